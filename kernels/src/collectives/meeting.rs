//! Where the threads of a communicator wait for each other, for backends whose ranks are threads of one process.

use halite_hal::{Error, Result};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A place where `ranks` threads meet again and again, each bringing a `T`.
#[derive(Debug)]
pub struct Meeting<T> {
    ranks: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// How often all have met.
    round: u64,
    /// What those brought who are waiting.
    brought: Vec<Option<Result<T>>>,
    /// What everybody takes home from the last round, until all have: the last one leaves nothing behind. The next round
    /// cannot end before, since each must have left this one to come to it.
    outcome: Option<Result<Arc<[T]>>>,
    taken: usize,
    /// The rank that left first.
    lost: Option<usize>,
}

impl<T> Meeting<T> {
    /// A place for so many.
    pub fn new(ranks: usize) -> Self {
        let brought = (0..ranks).map(|_| None).collect();
        let state = State { round: 0, brought, outcome: None, taken: 0, lost: None };
        Meeting { ranks, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Threads that meet.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Waits until all ranks are here; everybody gets what all have brought, in rank order, or the first error among it, or
    /// what `agree` finds wrong.
    pub fn meet(
        &self,
        rank: usize,
        brings: Result<T>,
        agree: impl FnOnce(&[T]) -> Result<()>,
    ) -> Result<Arc<[T]>> {
        let lost = |rank| Error::RankLost { operator: "collectives", rank, ranks: self.ranks };
        let mut state = self.lock();
        let round = state.round;
        if let Some(place) = state.brought.get_mut(rank) {
            *place = Some(brings);
        }
        if state.lost.is_none() && state.brought.iter().all(Option::is_some) {
            // All of it first: collecting results stops at an error, and what it left would be there in the next round.
            let brought: Vec<Result<T>> = state.brought.iter_mut().filter_map(Option::take).collect();
            let brought: Result<Vec<T>> = brought.into_iter().collect();
            let agreed = brought.and_then(|brought| agree(&brought).map(|()| brought.into()));
            (state.outcome, state.taken) = (Some(agreed), 0);
            state.round += 1;
            self.changed.notify_all();
        }
        while state.round == round {
            if let Some(rank) = state.lost {
                return Err(lost(rank));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.taken += 1;
        let outcome = if state.taken == self.ranks { state.outcome.take() } else { state.outcome.clone() };
        outcome.unwrap_or_else(|| Err(lost(rank)))
    }

    /// Nobody need wait for this rank any more.
    pub fn leave(&self, rank: usize) {
        self.lock().lost.get_or_insert(rank);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // The state is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn error(rank: usize) -> Error {
        Error::RankLost { operator: "test", rank, ranks: 3 }
    }

    #[test]
    fn all_get_what_all_brought_and_nothing_stays() {
        let meeting = Meeting::new(3);
        thread::scope(|scope| {
            for rank in 0..3 {
                let meeting = &meeting;
                scope.spawn(move || {
                    for round in 0..300 {
                        let got = meeting.meet(rank, Ok(round * 10 + rank), |_| Ok(())).unwrap();
                        assert_eq!(got[..], [0, 1, 2].map(|rank| round * 10 + rank));
                    }
                });
            }
        });
        let state = meeting.lock();
        assert!(state.outcome.is_none() && state.brought.iter().all(Option::is_none));
    }

    #[test]
    fn an_error_of_one_is_the_error_of_all_and_the_next_round_is_whole() {
        let meeting = Meeting::new(3);
        thread::scope(|scope| {
            for rank in 0..3 {
                let meeting = &meeting;
                scope.spawn(move || {
                    let brings = if rank > 0 { Err(error(rank)) } else { Ok(rank) };
                    assert_eq!(meeting.meet(rank, brings, |_| Ok(())).unwrap_err(), error(1));
                    let refused = meeting.meet(rank, Ok(rank), |_| Err(error(7)));
                    assert_eq!(refused.unwrap_err(), error(7));
                    assert_eq!(meeting.meet(rank, Ok(rank), |_| Ok(())).unwrap()[..], [0, 1, 2]);
                });
            }
        });
    }

    #[test]
    fn who_waits_for_a_lost_rank_is_told() {
        let meeting = Meeting::new(3);
        thread::scope(|scope| {
            for rank in 0..2 {
                let meeting = &meeting;
                scope.spawn(move || {
                    for _ in 0..2 {
                        let met = meeting.meet(rank, Ok(()), |_| Ok(()));
                        assert!(matches!(met, Err(Error::RankLost { rank: 2, ranks: 3, .. })), "{met:?}");
                    }
                });
            }
            meeting.leave(2);
        });
    }

    #[test]
    fn nothing_is_left_of_a_round_with_two_errors() {
        let meeting = Meeting::<usize>::new(2);
        let error = |rank| Error::RankLost { operator: "test", rank, ranks: 2 };
        thread::scope(|scope| {
            for rank in 0..2 {
                let (meeting, error) = (&meeting, &error);
                scope.spawn(move || {
                    assert_eq!(meeting.meet(rank, Err(error(rank)), |_| Ok(())).unwrap_err(), error(0));
                });
            }
        });
        assert!(meeting.lock().brought.iter().all(Option::is_none));
    }
}
