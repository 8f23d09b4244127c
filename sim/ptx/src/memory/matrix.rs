//! `ldmatrix` and `stmatrix`: 8 x 8 matrices of 16-bit elements, a row of 16 bytes an address.

use crate::compute::fragment::{of_rows, to_rows};
use crate::fault::{Access, Problem};
use crate::ir::{Address, Register, Source};
use crate::registers::{LANES, Lanes};
use crate::step::Step;

/// Bytes of a row.
const ROW: u32 = 16;

impl Step<'_> {
    /// Rows' addresses, lane `8 i + r` that of row r of matrix i, if all lanes are there and the rows exist.
    fn rows(&mut self, address: Address, count: usize, access: Access) -> Result<Lanes, Box<Problem>> {
        let addresses = self.addresses(address);
        for (lane, address) in addresses.iter().enumerate().take(8 * count) {
            let check = self.state.shared.check(*address, ROW, ROW, access);
            check.map_err(|kind| Problem::at(lane, kind))?;
        }
        if self.state.tally.on {
            let lanes = (u64::MAX >> (64 - 8 * count)) as u32;
            self.state.tally.shared(self.pc, lanes, &addresses, ROW);
        }
        Ok(addresses)
    }

    /// `ldmatrix`: lane `4 r + i` gets elements 2i and 2i + 1 of row r (of column r, transposed).
    pub(crate) fn load_matrix(
        &mut self,
        transposed: bool,
        dst: &[Register],
        address: Address,
    ) -> Result<(), Box<Problem>> {
        let addresses = self.rows(address, dst.len(), Access::Read)?;
        for (register, rows) in dst.iter().zip(addresses.chunks_exact(8)) {
            let value = &mut self.registers.values[register.0 as usize];
            let shared = &self.state.shared.bytes;
            if transposed {
                let mut matrix = [[0; ROW as usize]; 8];
                for (row, &at) in matrix.iter_mut().zip(rows) {
                    row.copy_from_slice(&shared[at as usize..][..ROW as usize]);
                }
                *value = of_rows(&matrix, true);
            } else {
                for (values, &at) in value.chunks_exact_mut(4).zip(rows) {
                    let row = &shared[at as usize..][..ROW as usize];
                    for (value, word) in values.iter_mut().zip(row.chunks_exact(4)) {
                        *value = u64::from(u32::from_le_bytes(std::array::from_fn(|i| word[i])));
                    }
                }
            }
        }
        if self.state.shared.is_checked() {
            for &address in &addresses[..8 * dst.len()] {
                // Four lanes read a row, eight where it is transposed.
                self.note_read(LANES, address, ROW, false);
            }
        }
        Ok(())
    }

    /// `stmatrix`.
    pub(crate) fn store_matrix(
        &mut self,
        transposed: bool,
        src: &[Source],
        address: Address,
    ) -> Result<(), Box<Problem>> {
        let addresses = self.rows(address, src.len(), Access::Write)?;
        for (source, rows) in src.iter().zip(addresses.chunks_exact(8)) {
            let value = self.registers.read(*source, self.specials);
            for (row, &at) in to_rows(&value, transposed).iter().zip(rows) {
                if self.state.shared.is_checked() {
                    self.note_write(LANES, at, ROW, Access::Write, false, false);
                }
                self.state.shared.bytes[at as usize..][..ROW as usize].copy_from_slice(row);
            }
        }
        Ok(())
    }
}
