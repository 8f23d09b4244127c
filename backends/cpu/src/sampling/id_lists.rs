//! Where rows are ranked: lists of ids that a plan allocates once, one for each row that is ranked at the same time.

use crate::room::room_for;
use halite_hal::Result;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lists with room for every id of a vocabulary.
#[derive(Debug)]
pub(super) struct IdLists(Mutex<Vec<Vec<u32>>>);

impl IdLists {
    /// As many as `threads` need for `tasks`.
    pub(super) fn new(vocabulary: usize, threads: usize, tasks: usize) -> Result<Self> {
        let count = threads.min(tasks);
        let mut lists = room_for(count)?;
        for _ in 0..count {
            lists.push(room_for(vocabulary)?);
        }
        Ok(IdLists(Mutex::new(lists)))
    }

    /// Lends a list to the task of one thread.
    pub(super) fn lend<R>(&self, task: impl FnOnce(&mut Vec<u32>) -> R) -> R {
        // There is one for each thread of a call. Two streams that use one plan at once may need more, which are
        // then made and kept.
        let list = self.lists().pop();
        let mut list = list.unwrap_or_default();
        let result = task(&mut list);
        self.lists().push(list);
        result
    }

    fn lists(&self) -> MutexGuard<'_, Vec<Vec<u32>>> {
        // Tasks run outside the lock: a panic leaves the lists whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_room_and_are_lent_again() {
        for (threads, tasks, expected) in [(4, 0, 0), (4, 3, 3), (2, 3, 2)] {
            let lists = IdLists::new(1000, threads, tasks).unwrap();
            let before: Vec<_> = lists.lists().iter().map(|list| list.as_ptr()).collect();
            assert_eq!(before.len(), expected, "{threads} threads, {tasks} tasks");
            for _ in 0..5 * expected {
                lists.lend(|list| {
                    list.clear();
                    list.extend(0..1000);
                });
            }
            let after: Vec<_> = lists.lists().iter().map(|list| list.as_ptr()).collect();
            assert_eq!(before, after, "{threads} threads, {tasks} tasks");
        }
    }

    #[test]
    fn two_calls_at_once_get_a_list_each() {
        let lists = IdLists::new(8, 1, 1).unwrap();
        lists.lend(|first| {
            first.push(1);
            lists.lend(|second| assert!(second.is_empty()));
        });
        assert_eq!(lists.lists().len(), 2);
    }

    #[test]
    fn a_vocabulary_beyond_memory_is_refused() {
        assert!(IdLists::new(usize::MAX, 1, 1).is_err());
    }
}
