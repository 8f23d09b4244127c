//! Weights of several layers that one kernel reaches: groups, experts.

use super::{layout::UNIT, packed::WgpuPacked};
use crate::launch::MAX_GROUPS;

/// Groups whose weights one kernel reaches: they lie in one buffer, evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Successive {
    pub(crate) count: usize,
    /// Units from one's weights to the next's.
    pub(crate) apart: usize,
}

impl Successive {
    pub(crate) const ONE: Successive = Successive { count: 1, apart: 0 };

    /// As many as there are from the first on.
    pub(crate) fn of(weights: &[WgpuPacked]) -> Self {
        let places: Vec<_> = weights.iter().map_while(WgpuPacked::place).take(MAX_GROUPS).collect();
        Self::of_places(&places)
    }

    /// The same of a buffer's number and a place in it, in bytes, of each.
    fn of_places(places: &[(u64, u64)]) -> Self {
        let [(buffer, first), (_, second), ..] = *places else { return Self::ONE };
        let apart = second.saturating_sub(first);
        let there =
            (0u64..).zip(places).take_while(|&(member, &place)| place == (buffer, first + member * apart));
        match there.count() {
            count @ 2.. if apart > 0 => Successive { count, apart: apart as usize / UNIT },
            _ => Self::ONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_lie_evenly_in_a_buffer_are_successive() {
        let of = |places: &[(u64, u64)]| {
            let Successive { count, apart } = Successive::of_places(places);
            (count, apart)
        };
        assert_eq!(of(&[]), (1, 0));
        assert_eq!(of(&[(7, 256)]), (1, 0));
        assert_eq!(of(&[(7, 256), (7, 768), (7, 1280), (7, 1536)]), (3, 32));
        // Another buffer, the same weights twice, and places that descend.
        assert_eq!(of(&[(7, 256), (8, 512)]), (1, 0));
        assert_eq!(of(&[(7, 256), (7, 256), (7, 256)]), (1, 0));
        assert_eq!(of(&[(7, 512), (7, 256), (7, 0)]), (1, 0));
    }
}
