//! The attention itself: plain sums in f64.

use super::super::call::Arg;
use super::arguments::Arguments;
use super::layout::{Layout, Paged};
use super::quantized::{Mode, dequantize};
use crate::runtime::error::{AICORE_EXCEPTION, Failure};

/// Where keys and values are.
pub(super) enum Source {
    /// In the query's layout.
    Plain,
    /// In blocks that a table names.
    Blocks([Paged; 2]),
}

pub(super) struct Attention {
    pub(super) of: Arguments,
    pub(super) source: Source,
    pub(super) layout: Layout,
    pub(super) width: usize,
    pub(super) value_width: usize,
    pub(super) causal: bool,
    /// First row and count, sequence by sequence.
    pub(super) queries: Vec<(i64, i64)>,
    pub(super) keys: Vec<(i64, i64)>,
    pub(super) scales: Option<[Mode; 2]>,
}

impl Attention {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.check_mask()?;
        let table = self.of.table.as_ref().map(|table| table.integers()).transpose()?;
        let scales = match (&self.of.key_scale, &self.of.value_scale) {
            (Some(key), Some(value)) => [key.values()?, value.values()?],
            _ => [Vec::new(), Vec::new()],
        };
        let group = (self.of.heads / self.of.kv_heads) as usize;
        for (b, (&queries, &keys)) in self.queries.iter().zip(&self.keys).enumerate() {
            for kv_head in 0..self.of.kv_heads as usize {
                let sides = [(&self.of.key, self.width), (&self.of.value, self.value_width)];
                let [key, value] = std::array::from_fn(|side| {
                    let (arg, width) = sides[side];
                    self.rows(side, arg, width, keys, [b, kv_head], table.as_deref(), &scales[side])
                });
                let (key, value) = (key?, value?);
                for head in kv_head * group..(kv_head + 1) * group {
                    self.head(b, head, queries, &key, &value)?;
                }
            }
        }
        Ok(())
    }

    /// The compressed mask has ones above its diagonal and nothing else; anything else would be no causal mask.
    fn check_mask(&self) -> Result<(), Failure> {
        let Some(mask) = &self.of.mask else { return Ok(()) };
        // Of one byte each, whatever the type.
        let bytes = mask.raw_at(0, mask.count())?;
        for (row, values) in bytes.chunks(mask.last()).enumerate() {
            let (seen, hidden) = values.split_at(row + 1);
            if seen.iter().all(|&value| value == 0) && hidden.iter().all(|&value| value == 1) {
                continue;
            }
            let column =
                (0..values.len()).find(|&column| values[column] != u8::from(column > row)).unwrap_or(0);
            let (value, place) = (values[column], [row, column]);
            let text =
                format!("attenMaskOptional: {value} at {place:?}, expected 0 to the diagonal and 1 above it");
            return Err(Failure::new(AICORE_EXCEPTION, text));
        }
        Ok(())
    }

    /// All rows of keys (side 0) or values (side 1) of a sequence's head.
    fn rows(
        &self,
        side: usize,
        arg: &Arg,
        width: usize,
        (first, count): (i64, i64),
        [b, head]: [usize; 2],
        table: Option<&[i64]>,
        scales: &[f64],
    ) -> Result<Vec<Vec<f64>>, Failure> {
        let mut rows = Vec::new();
        for position in 0..count as usize {
            let at = match &self.source {
                Source::Plain => self.layout.row(arg, self.of.kv_heads, [b, first as usize + position, head]),
                Source::Blocks(caches) => {
                    let size = self.of.block_size as usize;
                    let block = self.block(table, b, position / size, caches[side].blocks)?;
                    caches[side].row(block, position % size, head)
                }
            };
            let mut row = arg.values_at(at, width)?;
            if let Some(modes) = self.scales {
                dequantize(&mut row, modes[side], scales, [b, position, head]);
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// A block's number, which a device would not check.
    fn block(&self, table: Option<&[i64]>, b: usize, at: usize, limit: i64) -> Result<usize, Failure> {
        let row = self.of.table.as_ref().map_or(0, |table| table.last());
        let block = table.and_then(|table| table.get(b * row + at)).copied().unwrap_or(-1);
        if (0..limit).contains(&block) {
            return Ok(block as usize);
        }
        let text = format!("blockTableOptional[{b}][{at}] = {block}, limit 0 to {limit} (without the last)");
        Err(Failure::new(AICORE_EXCEPTION, text))
    }

    fn head(
        &self,
        b: usize,
        head: usize,
        (first, count): (i64, i64),
        keys: &[Vec<f64>],
        values: &[Vec<f64>],
    ) -> Result<(), Failure> {
        for at in 0..count as usize {
            let place = [b, first as usize + at, head];
            let query =
                self.of.query.values_at(self.layout.row(&self.of.query, self.of.heads, place), self.width)?;
            let seen = match self.causal {
                // The last query sees the last key.
                true => (keys.len() + at + 1).saturating_sub(count as usize).min(keys.len()),
                false => keys.len(),
            };
            let (row, lse) = self.attend(&query, &keys[..seen], values, keys.is_empty());
            self.of.out.write_at(self.layout.row(&self.of.out, self.of.heads, place), &row)?;
            if let Some(out) = &self.of.lse {
                out.write_at(self.lse_place(place), &[lse])?;
            }
        }
        Ok(())
    }

    fn lse_place(&self, [b, s, n]: [usize; 3]) -> usize {
        let (_, length, _) = self.layout.sizes(&self.of.query.dims, self.of.heads);
        let heads = self.of.heads as usize;
        if self.layout == Layout::Tnd { s * heads + n } else { (b * heads + n) * length as usize + s }
    }

    /// A row of the result, and the logarithm of its sum of exponentials (infinite where there is nothing to see).
    fn attend(&self, query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>], empty: bool) -> (Vec<f64>, f64) {
        if keys.is_empty() {
            // Zeros without any key; what a query gets that sees none of them the document leaves open.
            return (vec![if empty { 0.0 } else { f64::NAN }; self.value_width], f64::INFINITY);
        }
        let score = |key: &Vec<f64>| self.of.scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>();
        let scores: Vec<f64> = keys.iter().map(score).collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut row = vec![0.0; self.value_width];
        for (weight, value) in weights.iter().zip(values) {
            for (to, value) in row.iter_mut().zip(value) {
                *to += weight / sum * value;
            }
        }
        (row, largest + sum.ln())
    }
}
