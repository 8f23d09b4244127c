//! Packed integer weights whose scales change along K, and how pieces of their panels are unpacked.
//!
//! | weights | one panel | element |
//! |---|---|---|
//! | INT8 | `[ceil(K / 4)][32][4]` | `q + 128` as `u8`, as all INT8 panels |
//! | 4 bits | `[ceil(K / 8)][32][4]` | two in a byte: low halves are the first four values of K, high halves the next |
//!
//! INT8 with a zero point a channel is packed so for floats only: its zero points are signed, and are taken off when it is
//! dequantised. 4-bit elements are `q` from 0 to 15, of symmetric formats `q + 8`. Scales, zero points and minima lie as
//! `[panels][groups][32]`; lanes without a channel have scale and minimum 0. Groups are multiples of 8, so that none
//! begins within a byte.

use super::pack::{Columns, PANEL, Place, int8_panel_len};
use crate::simd::{Isa, Kernel, LANES};
use halite_kernels::linear::{GroupOffset, LinearSpec};
use std::ops::Range;

/// Bytes of 32 channels' next values of K: a quad of INT8, two of 4 bits.
pub(super) const LINE: usize = 4 * PANEL;

/// Values of K that are unpacked at once, into memory on the stack.
pub(super) const PIECE: usize = 128;

/// The pieces of a group, or of another step of K.
#[inline(always)]
pub(super) fn pieces(k: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    k.clone().step_by(PIECE).map(move |first| first..k.end.min(first + PIECE))
}

/// A piece of a panel as bytes `q + 128`.
pub(super) type PieceBytes = [u8; PIECE * PANEL];

/// A piece of a panel as floats, `[K][32]`.
pub(super) type PieceFloats = [f32; PIECE * PANEL];

/// Bytes of a panel of integer weights.
pub(super) fn panel_len(spec: &LinearSpec) -> Option<usize> {
    let (values, bits) = (spec.in_features, if spec.weights.is_int4() { 4 } else { 8 });
    values.checked_next_multiple_of(32 / bits)?.checked_mul(PANEL * bits / 8)
}

/// What scales, zero points and minima of all panels are kept in.
#[derive(Debug, Default)]
pub(super) struct Factors {
    pub(super) scales: Vec<f32>,
    /// Of formats with zero points; the bits of an `i8`.
    pub(super) zeros: Vec<u8>,
    /// Of formats with minima.
    pub(super) mins: Vec<f32>,
}

/// Packed weights and their factors.
#[derive(Clone, Copy)]
pub(super) struct GroupWiseWeights<'a> {
    panels: &'a [u8],
    panel_len: usize,
    int4: bool,
    /// What is taken from 4-bit elements where there are no zero points.
    zero: u8,
    factors: &'a Factors,
    k: usize,
    n: usize,
    group_size: usize,
    columns: Columns,
}

/// The factors of a group of a panel.
#[derive(Clone, Copy)]
pub(super) struct LaneFactors<'a> {
    pub(super) scales: &'a [f32; PANEL],
    /// What is still in the bytes of INT8; those of 4 bits come without.
    pub(super) zeros: Option<&'a [u8; PANEL]>,
    pub(super) mins: Option<&'a [f32; PANEL]>,
}

/// The factors of all groups of a panel.
#[derive(Clone, Copy)]
pub(super) struct PanelFactors<'a> {
    pub(super) scales: &'a [[f32; PANEL]],
    /// Of 4-bit elements that have them.
    pub(super) zeros: &'a [[u8; PANEL]],
    /// Of formats with minima.
    pub(super) mins: &'a [[f32; PANEL]],
}

impl<'a> GroupWiseWeights<'a> {
    /// All panels and their factors, as packed for `spec`.
    ///
    /// # Panics
    /// Where there are too few of either.
    pub(super) fn new(spec: &LinearSpec, columns: Columns, panels: &'a [u8], factors: &'a Factors) -> Self {
        let (k, n) = (spec.in_features, spec.weight_rows());
        let group_size = spec.weights.group_size(k).unwrap_or(k).min(k).max(1);
        let count = columns.panels(n);
        let len = panel_len(spec).unwrap_or(usize::MAX);
        assert!(count.checked_mul(len).is_some_and(|bytes| bytes <= panels.len()), "panels of {spec:?}");
        let lanes = count * k.div_ceil(group_size) * PANEL;
        let enough = |len: usize, wanted: bool| if wanted { len == lanes } else { len == 0 };
        let offset = spec.weights.offset();
        assert!(
            factors.scales.len() == lanes
                && enough(factors.zeros.len(), offset == GroupOffset::ZeroPoint)
                && enough(factors.mins.len(), offset == GroupOffset::Min),
            "factors of {spec:?}"
        );
        Self {
            panels,
            panel_len: len,
            int4: spec.weights.is_int4(),
            zero: if offset == GroupOffset::Symmetric { 8 } else { 0 },
            factors,
            k,
            n,
            group_size,
            columns,
        }
    }

    /// Columns: K.
    pub(super) fn k(&self) -> usize {
        self.k
    }

    /// Values of K that share factors; at most K.
    pub(super) fn group_size(&self) -> usize {
        self.group_size
    }

    /// The number of panels.
    pub(super) fn panels(&self) -> usize {
        self.columns.panels(self.n)
    }

    /// Whether elements are of 4 bits.
    pub(super) fn is_int4(&self) -> bool {
        self.int4
    }

    /// A panel's bytes.
    pub(super) fn panel(&self, panel: usize) -> &'a [u8] {
        &self.panels[panel * self.panel_len..][..self.panel_len]
    }

    /// What every element is too large by, read as unsigned bytes; of 4 bits with zero points, when those are taken off and
    /// 128 is added.
    pub(super) fn excess(&self) -> i32 {
        if self.int4 && self.factors.zeros.is_empty() { i32::from(self.zero) } else { 128 }
    }

    /// Whether groups have minima; then no element is too large.
    pub(super) fn has_mins(&self) -> bool {
        !self.factors.mins.is_empty()
    }

    /// A panel's factors, of all its groups.
    pub(super) fn panel_factors(&self, panel: usize) -> PanelFactors<'a> {
        let groups = self.k.div_ceil(self.group_size);
        PanelFactors {
            scales: of_panel(&self.factors.scales, panel, groups),
            zeros: if self.int4 { of_panel(&self.factors.zeros, panel, groups) } else { &[] },
            mins: of_panel(&self.factors.mins, panel, groups),
        }
    }

    /// Bytes of a panel.
    pub(super) fn panel_bytes(&self) -> usize {
        self.panel_len
    }

    /// Where a panel's results go.
    pub(super) fn place(&self, panel: usize) -> Place {
        self.columns.place(self.n, panel)
    }

    /// The factors of the group of `k`.
    pub(super) fn lane_factors(&self, panel: usize, k: usize) -> LaneFactors<'a> {
        let place = self.factor_place(panel, k);
        LaneFactors {
            scales: lanes(&self.factors.scales, place),
            zeros: (!self.int4 && !self.factors.zeros.is_empty()).then(|| lanes(&self.factors.zeros, place)),
            mins: (!self.factors.mins.is_empty()).then(|| lanes(&self.factors.mins, place)),
        }
    }

    fn factor_place(&self, panel: usize, k: usize) -> usize {
        panel * self.k.div_ceil(self.group_size) + k / self.group_size
    }

    /// The values `k` of a panel as bytes `q - z + 128` (INT8: `q + 128`), in quads as INT8 panels have them:
    /// in `room`, or where they lie already. They are at most [`PIECE`] of one group, from a multiple of 8 on.
    pub(super) fn bytes<'r, I: Isa>(
        &'r self,
        isa: I,
        panel: usize,
        k: Range<usize>,
        room: &'r mut PieceBytes,
    ) -> &'r [u8] {
        let panel_bytes = self.panel(panel);
        let len = int8_panel_len(k.len());
        if !self.int4 {
            return &panel_bytes[k.start * PANEL..][..len];
        }
        let lines = &panel_bytes[k.start / 2 * PANEL..][..k.len().div_ceil(8) * 4 * PANEL];
        let zeros = (!self.factors.zeros.is_empty())
            .then(|| lanes::<u8>(&self.factors.zeros, self.factor_place(panel, k.start)));
        isa.call(UnpackNibbles { lines, zero: self.zero, zeros, to: room });
        &room[..len]
    }
}

/// One kind of a panel's factors; none where the format has none.
fn of_panel<T>(values: &[T], panel: usize, groups: usize) -> &[[T; PANEL]] {
    let lanes = values.as_chunks().0;
    lanes.get(panel * groups..(panel + 1) * groups).unwrap_or_default()
}

fn lanes<T>(values: &[T], place: usize) -> &[T; PANEL] {
    match values[place * PANEL..].first_chunk() {
        Some(lanes) => lanes,
        None => unreachable!("`new` has counted the factors"),
    }
}

/// 128 less the zero point, in all four bytes of a lane; no byte carries into the next.
#[inline(always)]
pub(super) fn nibble_offset<I: Isa>(isa: I, zeros: &[u8; LANES]) -> I::I32 {
    let byte = isa.sub_i32(isa.splat_i32(128), isa.load_i8_partial(bytemuck::cast_slice(zeros)));
    let pair = isa.add_i32(byte, isa.shift_left::<8>(byte));
    isa.add_i32(pair, isa.shift_left::<16>(pair))
}

/// Two quads of bytes from each line of 4-bit elements.
struct UnpackNibbles<'a> {
    lines: &'a [u8],
    zero: u8,
    zeros: Option<&'a [u8; PANEL]>,
    to: &'a mut PieceBytes,
}

impl Kernel for UnpackNibbles<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        const BYTES: usize = 4 * LANES;
        let mask = isa.splat_i32(0x0F0F_0F0F);
        for vector in 0..2 {
            let mut offset = isa.splat_i32(i32::from(128 - self.zero).wrapping_mul(0x0101_0101));
            if let Some(zeros) = self.zeros {
                offset = nibble_offset(isa, &zeros.as_chunks().0[vector]);
            }
            let lines = self.lines.as_chunks::<{ 2 * BYTES }>().0;
            for (line, to) in lines.iter().zip(self.to.as_chunks_mut::<{ 4 * BYTES }>().0) {
                let Some(packed) = line[vector * BYTES..].first_chunk() else { continue };
                let packed = isa.load_bytes(packed);
                let low = isa.add_i32(isa.and(packed, mask), offset);
                let high = isa.add_i32(isa.and(isa.shift_right::<4>(packed), mask), offset);
                for (quad, bytes) in [low, high].into_iter().enumerate() {
                    let mut words = [0i32; LANES];
                    isa.store_i32(bytes, &mut words);
                    to[2 * quad * BYTES + vector * BYTES..][..BYTES]
                        .copy_from_slice(bytemuck::cast_slice(&words));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_cut_into_what_the_stack_holds() {
        for (group, expected) in [
            (0..0, &[][..]),
            (0..1, &[(0, 1)]),
            (0..127, &[(0, 127)]),
            (0..128, &[(0, 128)]),
            (0..129, &[(0, 128), (128, 129)]),
            (96..128, &[(96, 128)]),
            (256..512, &[(256, 384), (384, 512)]),
        ] {
            let pieces: Vec<_> = pieces(group.clone()).map(|piece| (piece.start, piece.end)).collect();
            assert_eq!(pieces, expected, "{group:?}");
        }
    }
}
