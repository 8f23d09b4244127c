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
        AttentionMergeSpec, AttentionOut, AttentionPlan, AttentionSpec, AttentionState, AttentionStep, Mask,
        ValueProducts,
    },
    cache::{KvFormat, KvValues},
};
use halite_parity::oracle::{
    attention::{Int8, Partial, Sequence, State, merge, state},
    cache::Kind,
};
use halite_parity::tolerance::Bound;
use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Plan {
    spec: AttentionSpec,
    capacity: AttentionCapacity,
    pub(crate) cu_seqlens: Vec<u32>,
    kv_lens: Vec<u32>,
    kv_ranges: Vec<Range<u32>>,
    table: Vec<i32>,
    pub(crate) tree_parents: Vec<i32>,
}

impl Plan {
    /// The positions that a sequence's rows read.
    pub(crate) fn read(&self, sequence: usize) -> Range<usize> {
        let read = &self.kv_ranges[sequence];
        read.start as usize..read.end as usize
    }

    /// Cached positions of a sequence.
    pub(crate) fn kv_len(&self, sequence: usize) -> usize {
        self.kv_lens[sequence] as usize
    }

    /// The slots of the positions that a sequence's rows read.
    pub(crate) fn slots(&self, sequence: usize) -> impl Iterator<Item = usize> {
        let block_size = self.spec.kv.block_size;
        let table = &self.table[sequence * self.capacity.max_blocks_per_sequence..];
        self.read(sequence)
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

/// Keys and values of the positions that are read of a sequence.
struct Positions {
    k: Vec<f64>,
    v: Vec<f64>,
    /// Cached positions of the sequence, read or not.
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
        let (mut kv_len, mut read) = (plan.kv_len(sequence), plan.read(sequence));
        if self.has(Fault::AttentionWholeBlocks) && read.end == kv_len {
            kv_len = kv_len.next_multiple_of(kv.block_size);
            read.end = kv_len;
        }
        if self.has(Fault::AttentionRangeOneBlockLate) && read.start > 0 {
            read.start = read.end.min(read.start + kv.block_size);
        }
        if self.has(Fault::AttentionRangeToTheEnd) {
            read.end = kv_len;
        }
        let (mut k, mut v, mut int8) = (Vec::new(), Vec::new(), <[[Vec<f64>; 2]; 2]>::default());
        let contents = args.cache.contents();
        for position in read.clone() {
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
        Positions { k, v, kv_len, int8, places: read.collect() }
    }

    /// What is seen of the positions before `row.visible`.
    fn mask(&self, spec: &AttentionSpec, row: &Row<'_>) -> Mask {
        let window = match spec.mask {
            Mask::Chunked { .. } if self.has(Fault::AttentionNoChunk) => return Mask::Causal,
            Mask::Chunked { chunk } if self.has(Fault::AttentionChunkIsWindow) => {
                return Mask::Sliding { window: chunk };
            }
            // What lies before a row's chunk is left out of its keys.
            Mask::Chunked { .. } => return Mask::Causal,
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
        let seen = (0..first).chain(own.into_iter().map(|row| first + row));
        let places: Vec<usize> = seen.filter(|place| keys.places.contains(place)).collect();
        // Where they are among the positions that are read.
        let seen: Vec<usize> = places.iter().map(|place| place - keys.places[0]).collect();
        Positions {
            k: seen.iter().flat_map(|j| keys.k[j * kd..][..kd].to_vec()).collect(),
            v: seen.iter().flat_map(|j| keys.v[j * vd..][..vd].to_vec()).collect(),
            kv_len: keys.kv_len,
            int8: [(&keys.int8[0], kd), (&keys.int8[1], vd)].map(|([elements, scales], dim)| {
                let gather = |from: &[f64], dim: usize| -> Vec<f64> {
                    seen.iter()
                        .flat_map(|j| from.get(j * dim..(j + 1) * dim).unwrap_or_default().to_vec())
                        .collect()
                };
                [gather(elements, dim), gather(scales, kv.kv_heads)]
            }),
            places,
        }
    }

    /// What a query row knows of the positions that are read, after what it knew before.
    fn row(&self, spec: &AttentionSpec, keys: &Positions, row: &Row<'_>, before: Running) -> Running {
        let kv = &spec.kv;
        let (kd, vd) = (kv.kv_heads * kv.head_dim, kv.kv_heads * kv.value_head_dim);
        // Only the last part of a split sequence.
        let start = match row.visible {
            0 => 0,
            _ if self.has(Fault::AttentionForgetsParts) => (row.visible - 1) / spec.kv_split * spec.kv_split,
            _ => 0,
        };
        let by_chunks = !self.has(Fault::AttentionNoChunk) && !self.has(Fault::AttentionChunkIsWindow);
        let chunk_start = match spec.mask {
            Mask::Chunked { chunk } if by_chunks => row.own.max(0) as usize / chunk * chunk,
            _ => 0,
        };
        let from = keys.places.partition_point(|&place| place < start.max(chunk_start));
        let end = keys.places.partition_point(|&place| place < row.visible).max(from);
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
        let one_scale = self.has(Fault::AttentionInt8OneWeightScale);
        let kv_split = if one_scale { usize::MAX } else { spec.kv_split };
        let part = |entries: Range<usize>| {
            let int8 = match spec.compute {
                AttentionCompute::Int8 { values } if !self.has(Fault::AttentionInt8AsFloat) => Some(Int8 {
                    k: &int8_k[entries.start * kd..entries.end * kd],
                    k_scales: &k_scales[entries.start * kv.kv_heads..entries.end * kv.kv_heads],
                    v: &int8_v[entries.start * vd..entries.end * vd],
                    v_scales: &v_scales[entries.start * kv.kv_heads..entries.end * kv.kv_heads],
                    positions: &keys.places[entries.clone()],
                    kv_split,
                    values: if self.has(Fault::AttentionInt8FloatWeights) {
                        ValueProducts::Float
                    } else {
                        values
                    },
                }),
                _ => None,
            };
            let sequence = Sequence {
                q: &q,
                k: &keys.k[entries.start * kd..entries.end * kd],
                v: &keys.v[entries.start * vd..entries.end * vd],
                q_len: 1,
                kv_len: entries.len(),
                first: own - keys.places[entries.start] as i64,
                query_heads: spec.query_heads,
                kv_heads: kv.kv_heads,
                head_dim: kv.head_dim,
                value_head_dim: kv.value_head_dim,
                scale,
                soft_cap,
                mask: self.mask(spec, row),
                tree_parents: &[],
                alibi_slopes: slopes.as_deref(),
                sinks: None,
                int8,
            };
            state(&sequence, 0..entries.len())
        };
        let after = self.parts(from, &keys.places[from..end], kv_split, before, part);
        if self.has(Fault::AttentionUnseenTimesZero) && keys.v[..end * vd].iter().any(|v| v.is_nan()) {
            return Running { values: vec![f64::NAN; after.values.len()], ..after };
        }
        after
    }

    /// Merges the parts of some places, whose first entry is `from`, from left to right.
    fn parts(
        &self,
        mut from: usize,
        places: &[usize],
        kv_split: usize,
        before: Running,
        part: impl Fn(Range<usize>) -> State,
    ) -> Running {
        let apart = self.has(Fault::AttentionStateMergedLast);
        let mut after = if apart { before.emptied() } else { before.clone() };
        for places in places.chunk_by(|a, b| a / kv_split == b / kv_split) {
            after.merge(&Running::of(part(from..from + places.len())));
            from += places.len();
        }
        if apart {
            let own = after;
            after = before;
            after.merge(&own);
        }
        after
    }

    /// The states that rows begin with.
    pub(crate) fn running(
        &self,
        state_in: Option<AttentionState<'_, Self>>,
        [rows, heads, dim]: [usize; 3],
    ) -> Vec<Running> {
        let Some(state) = state_in.filter(|_| !self.has(Fault::AttentionStateInIgnored)) else {
            let (max, sum) = (vec![f64::NEG_INFINITY; heads], vec![0.0; heads]);
            return vec![Running { max, sum, values: vec![0.0; heads * dim] }; rows];
        };
        let (max, sum, values) = (read(state.max), read(state.sum), read(state.values));
        let row = |row: usize| Running {
            max: max[row * heads..][..heads].to_vec(),
            sum: sum[row * heads..][..heads].to_vec(),
            values: values[row * heads * dim..][..heads * dim].to_vec(),
        };
        (0..rows).map(row).collect()
    }

    /// Writes states as they are.
    pub(crate) fn hand_on(&self, to: AttentionState<'_, Self>, mut rows: Vec<Running>) {
        if self.has(Fault::AttentionStateNormalised) {
            for row in &mut rows {
                row.values = row.normalised(None).0;
            }
        }
        write(to.max, rows.iter().flat_map(|row| row.max.clone()));
        write(to.sum, rows.iter().flat_map(|row| row.sum.clone()));
        write(to.values, rows.iter().flat_map(|row| row.values.clone()));
    }

    /// Output and log-sum-exp of a row.
    pub(crate) fn normalise(&self, row: &Running, sinks: Option<&[f64]>, went_on: bool) -> [Vec<f64>; 2] {
        let twice;
        let sinks = match sinks {
            Some(sinks) if went_on && self.has(Fault::AttentionSinkTwice) => {
                twice = sinks.iter().map(|sink| sink + std::f64::consts::LN_2).collect::<Vec<_>>();
                Some(&twice[..])
            }
            sinks => sinks,
        };
        let (plain, with_sinks) = (row.normalised(None), row.normalised(sinks));
        let out = if self.has(Fault::AttentionSinkInLogOnly) { plain.0 } else { with_sinks.0 };
        [out, if self.has(Fault::AttentionSinkNotInLog) { plain.1 } else { with_sinks.1 }]
    }
}

/// What a row knows, a head after the other, as F32 holds it.
#[derive(Clone)]
pub(crate) struct Running {
    max: Vec<f64>,
    sum: Vec<f64>,
    /// `[heads, value_head_dim]`.
    values: Vec<f64>,
}

impl Running {
    pub(crate) fn of(state: State) -> Self {
        Running { max: values(state.max), sum: values(state.sum), values: values(state.values) }
    }

    /// A state of several rows, a row at a time.
    pub(crate) fn rows_of(state: State, rows: usize) -> Vec<Self> {
        let all = Running::of(state);
        let [heads, width] = [all.max.len(), all.values.len()].map(|len| len / rows.max(1));
        let row = |row: usize| Running {
            max: all.max[row * heads..][..heads].to_vec(),
            sum: all.sum[row * heads..][..heads].to_vec(),
            values: all.values[row * width..][..width].to_vec(),
        };
        (0..rows).map(row).collect()
    }

    fn emptied(&self) -> Self {
        Running {
            max: vec![f64::NEG_INFINITY; self.max.len()],
            sum: vec![0.0; self.sum.len()],
            values: vec![0.0; self.values.len()],
        }
    }

    /// Goes on with what a later part tells. Rounded to F32 after each part, so that a state which is handed on is the
    /// state of a call that goes on by itself.
    pub(crate) fn merge(&mut self, part: &Running) {
        let dim = self.values.len() / self.max.len().max(1);
        let rounded = |x: f64| f64::from(x as f32);
        for head in 0..self.max.len() {
            if part.sum[head] == 0.0 {
                continue;
            }
            let top = rounded(self.max[head].max(part.max[head]));
            let factors = [(self.max[head] - top).exp(), (part.max[head] - top).exp()];
            self.max[head] = top;
            self.sum[head] = rounded(self.sum[head] * factors[0] + part.sum[head] * factors[1]);
            for column in head * dim..(head + 1) * dim {
                let sum = self.values[column] * factors[0] + part.values[column] * factors[1];
                self.values[column] = rounded(sum);
            }
        }
    }

    /// Output and log-sum-exp.
    fn normalised(&self, sinks: Option<&[f64]>) -> (Vec<f64>, Vec<f64>) {
        let (mut out, mut log_sum_exp) = (self.values.clone(), Vec::new());
        let dim = self.values.len() / self.max.len().max(1);
        for (head, (&max, &sum)) in self.max.iter().zip(&self.sum).enumerate() {
            let sink = sinks.map_or(f64::NEG_INFINITY, |sinks| sinks[head]);
            if sum == 0.0 {
                log_sum_exp.push(sink);
                continue;
            }
            let top = max.max(sink);
            let total = sum * (max - top).exp() + (sink - top).exp();
            for y in &mut out[head * dim..][..dim] {
                *y *= (max - top).exp() / total;
            }
            log_sum_exp.push(top + total.ln());
        }
        (out, log_sum_exp)
    }
}

/// A query row.
struct Row<'a> {
    q: &'a [f64],
    /// Its position.
    own: i64,
    /// Positions that it may see, from the first on.
    visible: usize,
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
            kv_ranges: Vec::new(),
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
        plan.kv_ranges = (0..step.kv_lens.len()).map(|sequence| step.kv_range(sequence)).collect();
        plan.table = step.block_table.to_vec();
        plan.tree_parents = step.tree_parents.to_vec();
        Ok(())
    }

    fn attention(&self, _: &mut Queue, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        let spec = &args.plan.spec;
        let width = spec.query_heads * spec.kv.head_dim;
        let (q, sinks) = (read(args.q), args.sinks.map(read));
        let dims = [args.plan.tokens(), spec.query_heads, spec.kv.value_head_dim];
        let (mut out, mut log_sum_exp, mut states) = (Vec::new(), Vec::new(), Vec::new());
        let mut before = self.running(args.state_in, dims).into_iter();
        for (sequence, ends) in args.plan.cu_seqlens.windows(2).enumerate() {
            let rows = ends[0] as usize..ends[1] as usize;
            let keys = self.positions(&args, sequence);
            for (row, before) in rows.clone().zip(&mut before) {
                let mut own = keys.kv_len as i64 - rows.len() as i64 + (row - rows.start) as i64;
                if self.has(Fault::AttentionRangeMovesPositions) {
                    own -= args.plan.read(sequence).start as i64;
                }
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
                let after = self.row(spec, keys, &Row { q, own, visible }, before);
                let [mut row_out, mut lse] =
                    self.normalise(&after, sinks.as_deref(), args.state_in.is_some());
                states.push(after);
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
        match args.out {
            AttentionOut::Normalised(tensor) => {
                write(tensor, out);
                if self.has(Fault::AttentionOutBeyond) {
                    write_beyond(tensor);
                }
            }
            AttentionOut::State(state) => self.hand_on(state, states),
            _ => {}
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
