//! What is remembered of each byte of a block's shared memory.
//!
//! Most words of four bytes are only ever touched as one: then one cell stands for all four.

use super::tag::Tag;

/// What is remembered of a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// The last write.
    pub(super) write: Tag,
    /// The last reads since, of up to two warps.
    pub(super) reads: [Tag; 2],
}

/// Stands for a word whose bytes have cells of their own: no access has its tag.
const APART: Cell = Cell { write: Tag::NOBODY, reads: [Tag::NOBODY; 2] };

/// A cell for each byte.
#[derive(Debug)]
pub(super) struct Shadow {
    words: Vec<Cell>,
    /// By byte, of words that are [`APART`].
    bytes: Vec<Cell>,
}

impl Shadow {
    /// Nobody has touched any of the bytes.
    pub(super) fn new(bytes: usize) -> Shadow {
        let words = bytes.div_ceil(4);
        Shadow { words: vec![Cell::default(); words], bytes: vec![Cell::default(); 4 * words] }
    }

    /// As for a block that begins.
    pub(super) fn reset(&mut self) {
        self.words.fill(Cell::default());
    }

    /// Shows the cells of some bytes, lowest first; once those of a word that are one, with its first byte.
    #[inline(always)]
    pub(super) fn touch(&mut self, address: usize, bytes: usize, mut visit: impl FnMut(usize, &mut Cell)) {
        let end = address + bytes;
        let mut at = address;
        while at < end {
            let next = (at / 4 * 4 + 4).min(end);
            let word = &mut self.words[at / 4];
            if next - at == 4 && word.write != Tag::NOBODY {
                visit(at, word);
            } else {
                self.touch_bytes(at, next, &mut visit);
            }
            at = next;
        }
    }

    /// Shows the cells of bytes of one word.
    #[inline(never)]
    fn touch_bytes(&mut self, from: usize, to: usize, visit: &mut impl FnMut(usize, &mut Cell)) {
        let word = &mut self.words[from / 4];
        let cells = &mut self.bytes[from / 4 * 4..][..4];
        if *word != APART {
            cells.fill(*word);
        }
        for at in from..to {
            visit(at, &mut cells[at % 4]);
        }
        *word = if cells.iter().all(|cell| *cell == cells[0]) { cells[0] } else { APART };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(shadow: &mut Shadow, address: usize, bytes: usize) -> Vec<(usize, u64)> {
        let mut all = Vec::new();
        shadow.touch(address, bytes, |at, cell| all.push((at, cell.write.epoch())));
        all
    }

    #[test]
    fn words_that_are_touched_as_one_have_one_cell() {
        let mut shadow = Shadow::new(14);
        let write = |shadow: &mut Shadow, address, bytes, epoch| {
            shadow.touch(address, bytes, |_, cell| cell.write = Tag::new(epoch, 0, 0, false));
        };
        write(&mut shadow, 0, 12, 7);
        assert_eq!(visited(&mut shadow, 0, 14), [(0, 7), (4, 7), (8, 7), (12, 0), (13, 0)]);
        write(&mut shadow, 3, 2, 8);
        let parted = [(0, 7), (1, 7), (2, 7), (3, 8), (4, 8), (5, 7), (6, 7), (7, 7), (8, 7)];
        assert_eq!(visited(&mut shadow, 0, 12), parted);
        assert_eq!(visited(&mut shadow, 2, 3), parted[2..5]);
        write(&mut shadow, 0, 8, 9);
        assert_eq!(visited(&mut shadow, 0, 8), [(0, 9), (4, 9)]);
        shadow.reset();
        assert_eq!(visited(&mut shadow, 0, 4), [(0, 0)]);
    }
}
