//! Attention by the oracle.

use crate::{
    device::{Exact, Queue, read, values, write, write_beyond},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionCompute, AttentionLimits, AttentionMergeArgs,
        AttentionMergeSpec, AttentionPlan, AttentionSpec, AttentionStep, Mask, ValueProducts,
    },
    cache::{KvFormat, KvValues},
};
use halite_parity::oracle::{
    attention::{Int8, Partial, Sequence, attend, merge},
    cache::Kind,
};
use halite_parity::tolerance::Bound;

#[derive(Debug)]
pub(crate) struct Plan {
    spec: AttentionSpec,
    capacity: AttentionCapacity,
    pub(crate) cu_seqlens: Vec<u32>,
    kv_lens: Vec<u32>,
    table: Vec<i32>,
    pub(crate) tree_parents: Vec<i32>,
}

impl Plan {
    /// The slots of a sequence's positions.
    pub(crate) fn slots(&self, sequence: usize) -> impl Iterator<Item = usize> {
        let block_size = self.spec.kv.block_size;
        let table = &self.table[sequence * self.capacity.max_blocks_per_sequence..];
        (0..self.kv_lens[sequence] as usize)
            .map(move |position| table[position / block_size] as usize * block_size + position % block_size)
    }
}

impl AttentionPlan for Plan {
    fn spec(&self) -> &AttentionSpec {
        &self.spec
    }
    fn capacity(&self) -> &AttentionCapacity {
        &self.capacity
    }
    fn tokens(&self) -> usize {
        self.cu_seqlens.last().map_or(0, |&tokens| tokens as usize)
    }
}

/// Keys and values of a sequence, position by position.
struct Positions {
    k: Vec<f64>,
    v: Vec<f64>,
    kv_len: usize,
    /// Elements and scales, of keys and of values, where there are scales.
    int8: [[Vec<f64>; 2]; 2],
    /// Where each is in the sequence.
    places: Vec<usize>,
}

impl Exact {
    fn positions(&self, args: &AttentionArgs<'_, Self>, sequence: usize) -> Positions {
        let (plan, kv) = (args.plan, &args.plan.spec.kv);
        let table = &plan.table[sequence * plan.capacity.max_blocks_per_sequence..];
        let layer = if self.has(Fault::AttentionFirstLayer) { 0 } else { args.layer };
        let mut kv_len = plan.kv_lens[sequence] as usize;
        if self.has(Fault::AttentionWholeBlocks) {
            kv_len = kv_len.next_multiple_of(kv.block_size);
        }
        let (mut k, mut v, mut int8) = (Vec::new(), Vec::new(), <[[Vec<f64>; 2]; 2]>::default());
        let contents = args.cache.contents();
        for position in 0..kv_len {
            let slot = table[position / kv.block_size] as usize * kv.block_size + position % kv.block_size;
            let (mut key, mut value) = contents.read(layer, slot);
            if kv.format == KvFormat::Int8PerTokenHead {
                let scaled = |kind: Kind, from: (Kind, usize)| -> Vec<f64> {
                    let (q, scales) =
                        (contents.elements(kind, layer, slot), contents.scales(from.0, layer, from.1));
                    q.chunks_exact(kind.dim(kv))
                        .zip(scales)
                        .flat_map(|(row, scale)| row.iter().map(move |x| x * scale))
                        .collect()
                };
                if self.has(Fault::AttentionNeighbourScale) {
                    key = scaled(Kind::Keys, (Kind::Keys, slot ^ usize::from(slot % kv.block_size > 1)));
                }
                if self.has(Fault::AttentionKeyScaleForValues) {
                    value = scaled(Kind::Values, (Kind::Keys, slot));
                }
            }
            if kv.values == KvValues::KeyPrefix {
                if self.has(Fault::AttentionLatentTail) {
                    let rows = key.chunks_exact(kv.head_dim);
                    value = rows.flat_map(|row| row[kv.head_dim - kv.value_head_dim..].to_vec()).collect();
                }
                if self.has(Fault::AttentionLatentNoRope) {
                    key.chunks_exact_mut(kv.head_dim).for_each(|row| row[kv.value_head_dim..].fill(0.0));
                }
            }
            k.extend(key);
            v.extend(value);
            for (kind, [elements, scales]) in Kind::ALL.into_iter().zip(&mut int8) {
                elements.extend(contents.elements(kind, layer, slot));
                scales.extend(contents.scales(kind, layer, slot));
            }
        }
        Positions { k, v, kv_len, int8, places: (0..kv_len).collect() }
    }

    /// What is seen of the positions before `row.visible`.
    fn mask(&self, spec: &AttentionSpec, row: &Row<'_>) -> Mask {
        let window = match spec.mask {
            Mask::Chunked { .. } if self.has(Fault::AttentionNoChunk) => return Mask::Causal,
            Mask::Chunked { chunk } if self.has(Fault::AttentionChunkIsWindow) => {
                return Mask::Sliding { window: chunk };
            }
            Mask::Causal if self.has(Fault::AttentionNoMask) => return Mask::Bidirectional,
            // What a row of a tree does not see is left out of its keys.
            Mask::Tree => return Mask::Bidirectional,
            Mask::Sliding { window } => window,
            mask => return mask,
        };
        let first = row.visible.saturating_sub(window);
        let window = match () {
            _ if self.has(Fault::AttentionNoWindow) => return Mask::Causal,
            _ if self.has(Fault::AttentionWindowOneMore) => window.saturating_add(1),
            // A window of 1 stays: none at all would be another fault.
            _ if self.has(Fault::AttentionWindowOneLess) => (window - 1).max(1),
            _ if self.has(Fault::AttentionWindowWholeParts) => {
                window.max(row.visible - first / spec.kv_split * spec.kv_split)
            }
            _ => window,
        };
        Mask::Sliding { window }
    }

    /// How many positions, from the first on, a row may see.
    fn visible(&self, spec: &AttentionSpec, own: i64, kv_len: usize, rows: usize) -> usize {
        let causal = (own + 1).max(0) as usize;
        let visible = match spec.mask {
            Mask::Bidirectional if self.has(Fault::AttentionBidirectionalIsCausal) => causal,
            Mask::Bidirectional if self.has(Fault::AttentionNothingBeforeFirst) && own < 0 => 0,
            Mask::Bidirectional => kv_len,
            _ if self.has(Fault::AttentionNoMask) => kv_len,
            _ => causal,
        };
        let less =
            self.has(Fault::AttentionMaskOneLess) || (self.has(Fault::AttentionLosesLastKey) && rows == 1);
        visible.saturating_sub(usize::from(less))
    }

    /// The positions that a row of a tree sees; `row` and its parents count from the step's first row.
    fn of_tree(&self, keys: &Positions, spec: &AttentionSpec, parents: &[i32], row: usize) -> Positions {
        let kv = &spec.kv;
        let (kd, vd) = (kv.kv_heads * kv.head_dim, kv.kv_heads * kv.value_head_dim);
        let first = keys.kv_len - parents.len();
        let mut own = vec![row];
        let mut at = parents[row];
        while at >= 0 {
            own.push(at as usize);
            at = if self.has(Fault::AttentionTreeParentOnly) { -1 } else { parents[at as usize] };
        }
        if self.has(Fault::AttentionTreeIsCausal) {
            own = (0..=row).collect();
        }
        // In the order of the sequence, as parts are.
        own.sort_unstable();
        let seen: Vec<usize> = (0..first).chain(own.into_iter().map(|row| first + row)).collect();
        Positions {
            k: seen.iter().flat_map(|j| keys.k[j * kd..][..kd].to_vec()).collect(),
            v: seen.iter().flat_map(|j| keys.v[j * vd..][..vd].to_vec()).collect(),
            kv_len: seen.len(),
            int8: [(&keys.int8[0], kd), (&keys.int8[1], vd)].map(|([elements, scales], dim)| {
                let gather = |from: &[f64], dim: usize| -> Vec<f64> {
                    seen.iter()
                        .flat_map(|j| from.get(j * dim..(j + 1) * dim).unwrap_or_default().to_vec())
                        .collect()
                };
                [gather(elements, dim), gather(scales, kv.kv_heads)]
            }),
            places: seen,
        }
    }

    /// Output and log-sum-exp of one query row.
    fn row(&self, spec: &AttentionSpec, keys: &Positions, row: &Row<'_>) -> (Vec<f64>, Vec<f64>) {
        let kv = &spec.kv;
        let visible = row.visible;
        let (kd, vd) = (kv.kv_heads * kv.head_dim, kv.kv_heads * kv.value_head_dim);
        // Only the last part of a split sequence.
        let start = match visible {
            0 => 0,
            _ if self.has(Fault::AttentionForgetsParts) => (visible - 1) / spec.kv_split * spec.kv_split,
            _ => 0,
        };
        let mut q = row.q.to_vec();
        if self.has(Fault::AttentionHeadsInterleaved) {
            let (group, dim) = (spec.group(), kv.head_dim);
            let turned = |head: usize| head % group * kv.kv_heads + head / group;
            q = (0..spec.query_heads).flat_map(|head| q[turned(head) * dim..][..dim].to_vec()).collect();
        }
        let scale = if self.has(Fault::AttentionNoScale) { 1.0 } else { f64::from(spec.scale) };
        let mut soft_cap = spec.soft_cap.map(f64::from).filter(|_| !self.has(Fault::AttentionNoSoftCap));
        if self.has(Fault::AttentionSoftCapBeforeScale)
            && let Some(cap) = &mut soft_cap
        {
            // scale · cap · tanh(x / cap) is what a cap of scale · cap makes of the scaled score.
            *cap *= f64::from(spec.scale);
        }
        let mut slopes = spec.alibi_slopes.clone();
        if let Some(slopes) = &mut slopes
            && self.has(Fault::AttentionAlibiNextHead)
        {
            slopes.rotate_left(1);
        }
        let from_last = self.has(Fault::AttentionAlibiFromLast) && spec.alibi_slopes.is_some();
        let own = if from_last { keys.kv_len as i64 - 1 } else { row.own };
        let mut int8 = keys.int8.clone();
        if self.has(Fault::AttentionInt8NextKeyScale) {
            let scales = int8[0][1].len();
            int8[0][1].rotate_left(scales.min(1));
        }
        if self.has(Fault::AttentionInt8ValueScaleForgotten) {
            int8[1][1].fill(1.0);
        }
        let [[int8_k, k_scales], [int8_v, v_scales]] = &int8;
        let int8 = match spec.compute {
            AttentionCompute::Int8 { values } if !self.has(Fault::AttentionInt8AsFloat) => Some(Int8 {
                k: &int8_k[start * kd..visible * kd],
                k_scales: &k_scales[start * kv.kv_heads..visible * kv.kv_heads],
                v: &int8_v[start * vd..visible * vd],
                v_scales: &v_scales[start * kv.kv_heads..visible * kv.kv_heads],
                positions: &keys.places[start..visible],
                kv_split: if self.has(Fault::AttentionInt8OneWeightScale) {
                    usize::MAX
                } else {
                    spec.kv_split
                },
                values: if self.has(Fault::AttentionInt8FloatWeights) {
                    ValueProducts::Float
                } else {
                    values
                },
            }),
            _ => None,
        };
        let (out, lse) = attend(&Sequence {
            q: &q,
            k: &keys.k[start * kd..visible * kd],
            v: &keys.v[start * vd..visible * vd],
            q_len: 1,
            kv_len: visible - start,
            first: own - start as i64,
            query_heads: spec.query_heads,
            kv_heads: kv.kv_heads,
            head_dim: kv.head_dim,
            value_head_dim: kv.value_head_dim,
            scale,
            soft_cap,
            mask: self.mask(spec, row),
            tree_parents: &[],
            alibi_slopes: slopes.as_deref(),
            sinks: row.sinks,
            int8,
        });
        let (mut out, mut lse) = (values(out), values(lse));
        if let Some(sinks) = row.sinks {
            for (head, &sink) in sinks.iter().enumerate() {
                // What the sink's term makes of the denominator.
                let share = (sink - lse[head]).exp();
                if self.has(Fault::AttentionSinkInLogOnly) && share < 1.0 {
                    let out = &mut out[head * kv.value_head_dim..][..kv.value_head_dim];
                    out.iter_mut().for_each(|y| *y /= 1.0 - share);
                }
                if self.has(Fault::AttentionSinkNotInLog) {
                    lse[head] += (1.0 - share).ln();
                }
            }
        }
        if self.has(Fault::AttentionUnseenTimesZero) && keys.v[..visible * vd].iter().any(|v| v.is_nan()) {
            out.iter_mut().for_each(|y| *y += f64::NAN);
        }
        (out, lse)
    }
}

/// A query row.
struct Row<'a> {
    q: &'a [f64],
    /// Its position.
    own: i64,
    /// Positions that it may see, from the first on.
    visible: usize,
    sinks: Option<&'a [f64]>,
}

impl Attention for Exact {
    type AttentionPlan = Plan;

    fn attention_supports(&self, _: &AttentionSpec) -> Support {
        Support::Native
    }

    fn attention_plan(&self, spec: &AttentionSpec, capacity: &AttentionCapacity) -> Result<Plan> {
        spec.check()?;
        let (spec, capacity) = (spec.clone(), *capacity);
        Ok(Plan {
            spec,
            capacity,
            cu_seqlens: vec![0],
            kv_lens: Vec::new(),
            table: Vec::new(),
            tree_parents: Vec::new(),
        })
    }

    fn attention_workspace(&self, _: &Plan) -> u64 {
        0
    }

    fn attention_update(
        &self,
        _: &mut Queue,
        plan: &mut Plan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("attention", &plan.limits())?;
        plan.cu_seqlens = step.cu_seqlens.to_vec();
        plan.kv_lens = step.kv_lens.to_vec();
        plan.table = step.block_table.to_vec();
        plan.tree_parents = step.tree_parents.to_vec();
        Ok(())
    }

    fn attention(&self, _: &mut Queue, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        let spec = &args.plan.spec;
        let width = spec.query_heads * spec.kv.head_dim;
        let (q, sinks) = (read(args.q), args.sinks.map(read));
        let (mut out, mut log_sum_exp) = (Vec::new(), Vec::new());
        for (sequence, ends) in args.plan.cu_seqlens.windows(2).enumerate() {
            let rows = ends[0] as usize..ends[1] as usize;
            let keys = self.positions(&args, sequence);
            for row in rows.clone() {
                let own = keys.kv_len as i64 - rows.len() as i64 + (row - rows.start) as i64;
                let seen;
                let (keys, visible) = match spec.mask {
                    Mask::Tree => {
                        let parents = &args.plan.tree_parents[rows.clone()];
                        seen = self.of_tree(&keys, spec, parents, row - rows.start);
                        (&seen, seen.kv_len)
                    }
                    _ => (&keys, self.visible(spec, own, keys.kv_len, rows.len())),
                };
                let q = &q[row * width..][..width];
                let row = Row { q, own, visible, sinks: sinks.as_deref() };
                let (mut row_out, mut lse) = self.row(spec, keys, &row);
                if visible == 0 && self.has(Fault::AttentionEmptyIsNan) {
                    row_out.iter_mut().for_each(|y| *y = f64::NAN);
                }
                // A finite "masked" value takes part as if it were a score.
                if self.has(Fault::AttentionFiniteSentinel) && lse.iter().any(|&lse| lse < -5e4) {
                    row_out.iter_mut().for_each(|y| *y = 0.0);
                    lse.iter_mut().for_each(|lse| *lse = -5e4);
                }
                if self.has(Fault::AttentionLogBase2) {
                    lse.iter_mut().for_each(|lse| *lse *= std::f64::consts::LOG2_E);
                }
                let windowed = self.has(Fault::AttentionWindowChunkVariant) && spec.mask != Mask::Causal;
                if (self.has(Fault::AttentionChunkVariant) || windowed) && rows.len() > 1 {
                    row_out.iter_mut().for_each(|y| *y *= 1.0 + 1e-6);
                }
                out.extend(row_out);
                log_sum_exp.extend(lse);
            }
        }
        write(args.out, out);
        if self.has(Fault::AttentionOutBeyond) {
            write_beyond(args.out);
        }
        if let Some(tensor) = args.log_sum_exp {
            write(tensor, log_sum_exp);
        }
        Ok(())
    }
    fn attention_merge_supports(&self, spec: &AttentionMergeSpec) -> Support {
        if spec.dtype.is_float() { Support::Native } else { Support::No("outputs are floats".into()) }
    }

    fn attention_merge(&self, _: &mut Queue, args: Checked<AttentionMergeArgs<'_, Self>>) -> Result<()> {
        self.attention_merge_supports(args.spec).require("attention_merge", self, args.spec)?;
        let exact = |tensor| -> Vec<Bound> { read(tensor).into_iter().map(Bound::exact).collect() };
        let mut parts: Vec<Partial> = args
            .parts
            .iter()
            .map(|part| Partial { out: exact(part.out), log_sum_exp: exact(part.log_sum_exp) })
            .collect();
        if self.has(Fault::AttentionMergeFirstTwo) {
            parts.truncate(2);
        }
        let logs = parts.iter_mut().flat_map(|part| &mut part.log_sum_exp);
        if self.has(Fault::AttentionMergeLogBase2) {
            logs.for_each(|log| log.value *= std::f64::consts::LN_2);
        } else if self.has(Fault::AttentionMergeEmptyCounts) {
            logs.filter(|log| log.value == f64::NEG_INFINITY).for_each(|log| log.value = -1e30);
        }
        let merged = merge(args.out.dims()[2], &parts);
        write(args.out, values(merged.out));
        if let Some(tensor) = args.log_sum_exp {
            write(tensor, values(merged.log_sum_exp));
        }
        Ok(())
    }
}
