//! Memory of packed weights, which live as long as a model. Pieces of it lie one after the other in large allocations, so
//! that those which are smaller than a huge page lie on huge pages too.

use crate::aligned::{ALIGNMENT, AlignedBytes, HUGE_PAGE};
use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// Larger pieces are allocations of their own.
const LARGEST_PIECE: u64 = HUGE_PAGE as u64;

/// Bytes of an allocation that pieces share. What no piece has touched takes no physical memory.
const SLAB: u64 = 8 * LARGEST_PIECE;

/// The allocation that is being filled. It is freed with its last piece, and no piece is given out twice.
#[derive(Default)]
pub(crate) struct Slabs(Mutex<Open>);

#[derive(Default)]
struct Open {
    slab: Weak<AlignedBytes>,
    used: u64,
}

/// Bytes of an allocation that nobody else has.
pub(crate) struct Piece {
    slab: Arc<AlignedBytes>,
    range: Range<usize>,
}

impl Slabs {
    /// `bytes` of zeros, or `None` where there is no room.
    pub(crate) fn piece(&self, bytes: u64) -> Option<Piece> {
        if bytes > LARGEST_PIECE {
            let slab = Arc::new(AlignedBytes::zeroed(bytes)?);
            let range = 0..slab.len();
            return Some(Piece { slab, range });
        }
        // Whole between any two statements, so a panic elsewhere leaves it usable.
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slab = match open.slab.upgrade() {
            Some(slab) if bytes <= SLAB - open.used => slab,
            _ => {
                let slab = Arc::new(AlignedBytes::zeroed(SLAB)?);
                *open = Open { slab: Arc::downgrade(&slab), used: 0 };
                slab
            }
        };
        let start = open.used;
        open.used = (start + bytes).next_multiple_of(ALIGNMENT as u64).min(SLAB);
        Some(Piece { slab, range: start as usize..(start + bytes) as usize })
    }
}

impl Piece {
    /// The first byte, aligned. Valid for [`Piece::len`] bytes for as long as `self` lives.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.slab.as_ptr().wrapping_add(self.range.start)
    }

    /// Bytes asked for.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_and_apart_and_full_slabs_are_left() {
        let slabs = Slabs::default();
        let sizes = [0, 1, 64, 65, LARGEST_PIECE, 3, LARGEST_PIECE + 1, SLAB, 7];
        let pieces: Vec<Piece> =
            sizes.iter().cycle().take(90).map(|&size| slabs.piece(size).unwrap()).collect();
        let mut ranges: Vec<_> = pieces
            .iter()
            .map(|piece| piece.as_ptr() as usize..piece.as_ptr() as usize + piece.len())
            .collect();
        for (piece, size) in pieces.iter().zip(sizes.iter().cycle()) {
            assert_eq!((piece.len() as u64, piece.as_ptr() as usize % ALIGNMENT), (*size, 0));
            assert!(piece.range.end <= piece.slab.len());
        }
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by_key(|range| range.start);
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(slabs.piece(u64::MAX).is_none());
    }

    #[test]
    fn a_slab_is_freed_with_its_last_piece() {
        let slabs = Slabs::default();
        let first = slabs.piece(10).unwrap();
        let slab = Arc::downgrade(&first.slab);
        let second = slabs.piece(10).unwrap();
        assert!(std::ptr::eq(slab.as_ptr(), Arc::as_ptr(&second.slab)));
        drop(first);
        assert!(slab.upgrade().is_some());
        drop(second);
        assert!(slab.upgrade().is_none());
        assert_eq!(slabs.piece(10).unwrap().range, 0..10, "a fresh one, since pieces are given out once");
    }
}
