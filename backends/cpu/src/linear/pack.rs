//! Packed weights: panels of 32 output channels, in the order in which the kernels read them.
//!
//! | weights | one panel | element |
//! |---|---|---|
//! | INT8 | `[ceil(K / 4)][32][4]` | `w + 128` as `u8`, so that activations may stay signed and as they are |
//! | F32, BF16, F16 | `[K][32]` | as it is |
//!
//! Lanes without a channel and the K tail of a quad hold weight 0. One layout serves every row count.

use crate::simd::LANES;
use std::ops::Range;

/// Output channels of a panel: two vectors.
pub(crate) const PANEL: usize = 2 * LANES;

/// Which output channel sits in which lane of which panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Lane `l` of panel `p` is channel `32 p + l`.
    Plain,
    /// Of `N = 2 M` channels, gates first and then as many "up" values, panel `p` holds gates `16 p..` in lanes 0 to
    /// 15 and the matching up values in lanes 16 to 31, so that an epilogue has both in its hands. Results have `M`
    /// columns.
    Gated,
}

/// Where a panel's results go: `valid` columns from `column` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The first result column.
    pub(crate) column: usize,
    /// Result columns, at most 32 (plain) or 16 (gated); 0 beyond the last panel.
    pub(crate) valid: usize,
}

impl Columns {
    /// Result columns of a panel.
    const fn width(self) -> usize {
        match self {
            Self::Plain => PANEL,
            Self::Gated => PANEL / 2,
        }
    }

    /// Result columns of `n` weight channels.
    pub(crate) const fn results(self, n: usize) -> usize {
        match self {
            Self::Plain => n,
            Self::Gated => n / 2,
        }
    }

    /// Panels of `n` weight channels.
    pub(crate) const fn panels(self, n: usize) -> usize {
        self.results(n).div_ceil(self.width())
    }

    /// The columns that a panel computes.
    pub(crate) fn place(self, n: usize, panel: usize) -> Place {
        let column = panel * self.width();
        Place { column, valid: self.results(n).saturating_sub(column).min(self.width()) }
    }

    /// The weight channels of each vector of a panel, lane after lane, as far as there are any. `place` is the panel's, of
    /// `results` result columns in all.
    pub(crate) const fn channels(self, results: usize, place: Place) -> [Range<usize>; 2] {
        let (start, end) = (place.column, place.column + place.valid);
        match self {
            Self::Plain => {
                let middle = if place.valid < LANES { end } else { start + LANES };
                [start..middle, middle..end]
            }
            Self::Gated => [start..end, results + start..results + end],
        }
    }

    /// The weight channel in a lane of a panel, if there is one.
    pub(crate) fn channel(self, n: usize, panel: usize, lane: usize) -> Option<usize> {
        let place = self.place(n, panel);
        let within = lane % self.width();
        let half = lane / self.width();
        (within < place.valid).then_some(half * self.results(n) + place.column + within)
    }
}

/// Bytes of an INT8 panel.
pub(crate) const fn int8_panel_len(k: usize) -> usize {
    k.div_ceil(4) * 4 * PANEL
}

/// Elements of a float panel.
pub(crate) const fn float_panel_len(k: usize) -> usize {
    k * PANEL
}

/// Writes one panel of INT8 weights, lane after lane.
///
/// `channel` gives each lane's K weights, or `None` for a lane without a channel.
pub(crate) fn pack_int8_panel<'w>(k: usize, channel: impl Fn(usize) -> Option<&'w [i8]>, panel: &mut [u8]) {
    assert_eq!(panel.len(), int8_panel_len(k), "an INT8 panel of K = {k}");
    panel.fill(128);
    for lane in 0..PANEL {
        let Some(weights) = channel(lane) else { continue };
        assert_eq!(weights.len(), k, "weights of lane {lane}");
        for (quad, row) in weights.chunks(4).zip(panel.chunks_exact_mut(4 * PANEL)) {
            for (to, &w) in row[4 * lane..].iter_mut().zip(quad) {
                *to = (w as u8) ^ 0x80;
            }
        }
    }
}

/// Gives the weights of some input columns the value that counts as zero in each lane.
pub(crate) fn blank_int8_columns(columns: &[u32], zero: impl Fn(usize) -> i8, panel: &mut [u8]) {
    for &column in columns {
        let (quad, within) = (column as usize / 4, column as usize % 4);
        for lane in 0..PANEL {
            panel[quad * 4 * PANEL + 4 * lane + within] = (zero(lane) as u8) ^ 0x80;
        }
    }
}

/// Writes one panel of float weights, lane after lane; `zero` goes to lanes without a channel.
pub(crate) fn pack_float_panel<'w, T: Copy + 'w>(
    k: usize,
    zero: T,
    channel: impl Fn(usize) -> Option<&'w [T]>,
    panel: &mut [T],
) {
    assert_eq!(panel.len(), float_panel_len(k), "a float panel of K = {k}");
    panel.fill(zero);
    for lane in 0..PANEL {
        let Some(weights) = channel(lane) else { continue };
        assert_eq!(weights.len(), k, "weights of lane {lane}");
        for (&w, row) in weights.iter().zip(panel.chunks_exact_mut(PANEL)) {
            row[lane] = w;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_has_one_lane() {
        for columns in [Columns::Plain, Columns::Gated] {
            for n in (0..=130).step_by(2) {
                let mut seen = vec![0; n];
                let mut results = 0;
                for panel in 0..columns.panels(n) {
                    results += columns.place(n, panel).valid;
                    for lane in 0..PANEL {
                        if let Some(channel) = columns.channel(n, panel, lane) {
                            seen[channel] += 1;
                        }
                    }
                }
                assert_eq!(results, columns.results(n));
                assert!(seen.iter().all(|&count| count == 1), "{columns:?} n {n}: {seen:?}");
            }
        }
    }

    #[test]
    fn the_channels_of_a_vector_are_those_of_its_lanes() {
        for columns in [Columns::Plain, Columns::Gated] {
            for n in (0..=130).step_by(2) {
                for panel in 0..columns.panels(n) {
                    let lanes =
                        |lanes: Range<usize>| lanes.filter_map(|lane| columns.channel(n, panel, lane));
                    let [first, second] = columns.channels(columns.results(n), columns.place(n, panel));
                    assert!(first.eq(lanes(0..LANES)), "{columns:?} n {n} panel {panel}");
                    assert!(second.eq(lanes(LANES..PANEL)), "{columns:?} n {n} panel {panel}");
                }
            }
        }
    }

    #[test]
    fn gate_and_up_share_a_panel() {
        // 20 gates and 20 ups: panel 1 has gates 16..20 and ups 36..40.
        let columns = Columns::Gated;
        assert_eq!(columns.channel(40, 1, 0), Some(16));
        assert_eq!(columns.channel(40, 1, 16), Some(36));
        assert_eq!(columns.channel(40, 1, 4), None);
        assert_eq!(columns.place(40, 1), Place { column: 16, valid: 4 });
    }

    #[test]
    fn int8_bytes_are_offset_and_padded_with_zero_weights() {
        let weights: [i8; 5] = [-128, -1, 0, 1, 127];
        let mut panel = vec![7; int8_panel_len(5)];
        pack_int8_panel(5, |lane| (lane == 3).then_some(&weights[..]), &mut panel);
        assert_eq!(panel[12..16], [0, 127, 128, 129]);
        assert_eq!(panel[128 + 12..128 + 16], [255, 128, 128, 128]);
        assert!(panel[..12].iter().chain(&panel[16..128 + 12]).all(|&b| b == 128));
    }
}
