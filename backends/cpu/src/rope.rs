//! Rotary position embedding, in place and on the way to the cache.

use crate::{
    cache::{
        Kind,
        write::{self, HeadRows, Place},
    },
    cost,
    device::Cpu,
    room::room_for,
    row::Row,
    simd::{Isa, Kernel, LANES, StoredFloat},
    stream::CpuStream,
    view::{Rows, read, with_float, write as lend},
};
use halite_hal::{Result, Tensor};
use halite_kernels::{
    Checked, Support,
    rope::{
        CosSin, Direction, PositionLimits, Positions, Rope, RopeArgs, RopePlan, RopeSpec, RopeStyle,
        RopeWriteArgs,
    },
};

/// A step's cosines and sines.
///
/// They are made anew each step, since that is one sine and cosine a pair and token, shared by all heads and layers;
/// a table of all positions would take longer to read than to compute, and 33 MB at 128 k positions.
#[derive(Debug)]
pub struct CpuRopePlan {
    spec: RopeSpec,
    max_tokens: usize,
    frequencies: Vec<f64>,
    /// `[tokens, 2, rotary_dim / 2]`: cosines, then sines.
    cos_sin: Vec<f32>,
    tokens: usize,
}

impl CpuRopePlan {
    fn pairs(&self) -> usize {
        self.spec.rotary_dim / 2
    }
}

impl RopePlan for CpuRopePlan {
    fn spec(&self) -> &RopeSpec {
        &self.spec
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}

impl Rope for Cpu {
    type RopePlan = CpuRopePlan;

    fn rope_supports(&self, spec: &RopeSpec) -> Support {
        crate::float_only(spec.dtype)
    }

    fn rope_plan(&self, spec: &RopeSpec, max_tokens: usize) -> Result<CpuRopePlan> {
        spec.check()?;
        self.rope_supports(spec).require("rope", self, spec)?;
        let cos_sin = room_for(max_tokens.saturating_mul(spec.rotary_dim))?;
        Ok(CpuRopePlan {
            spec: spec.clone(),
            max_tokens,
            frequencies: spec.frequencies(),
            cos_sin,
            tokens: 0,
        })
    }

    fn rope_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuRopePlan,
        positions: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        positions.checked_against("rope", &plan.limits())?;
        let (tokens, pairs) = (positions.positions.len() / plan.spec.axes(), plan.pairs());
        let factor = f64::from(plan.spec.attention_factor());
        plan.tokens = tokens;
        plan.cos_sin.clear();
        plan.cos_sin.resize(tokens * 2 * pairs, 0.0);
        for (token, cos_sin) in plan.cos_sin.chunks_exact_mut(2 * pairs).enumerate() {
            let (cos, sin) = cos_sin.split_at_mut(pairs);
            for (pair, frequency) in plan.frequencies.iter().enumerate() {
                let axis = plan.spec.pair_axes.get(pair).copied().unwrap_or(0);
                let angle = f64::from(positions.positions[axis * tokens + token]) * frequency;
                let (s, c) = angle.sin_cos();
                (cos[pair], sin[pair]) = ((c * factor) as f32, (s * factor) as f32);
            }
        }
        Ok(())
    }

    fn rope_update_cos_sin(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuRopePlan,
        cos_sin: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        cos_sin.checked_against("rope", &plan.limits())?;
        let pairs = plan.pairs();
        plan.tokens = cos_sin.cos.len() / pairs;
        plan.cos_sin.clear();
        plan.cos_sin.extend(cos_sin.by_token(pairs));
        Ok(())
    }

    fn rope(&self, _stream: &mut CpuStream, args: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        self.turn(args.plan, args.direction, args.x)
    }

    /// Keys turn while they are written; what a cache stores is computed from the turned F32 values, as it would be
    /// from memory.
    fn rope_cache_write(
        &self,
        _stream: &mut CpuStream,
        args: Checked<RopeWriteArgs<'_, Self>>,
    ) -> Result<()> {
        self.turn(args.plan, Direction::Forward, args.q)?;
        let place = Place { cache: args.cache, layer: args.layer, slots: args.slots };
        let k = read::<f32>(args.k)?;
        let heads = TurnedHeads { plan: args.plan, data: k.data(), rows: k.rows };
        write::write(self, &place, Kind::Keys, 0, &heads)?;
        // Keys and values may be columns of one matrix: reading them does not disturb.
        write::stored(self, &place, Kind::Values, &[args.v])
    }
}

impl Cpu {
    fn turn(&self, plan: &CpuRopePlan, direction: Direction, x: &Tensor<Cpu>) -> Result<()> {
        with_float!(plan.spec.dtype, Float => {
            let mut x = lend::<Float>(x)?;
            let (rows, pairs, style) = (x.rows, plan.pairs(), plan.spec.style);
            let per_task = self.team().units_per_task(rows.outer, cost::turned(rows.inner, rows.columns));
            let tasks =
                x.data().chunks_mut(rows.outer_stride * per_task).zip(plan.cos_sin.chunks(2 * pairs * per_task));
            self.team().each(tasks, |(x, cos_sin)| {
                self.tier().run(Turn { style, direction, x, rows, cos_sin, pairs });
            });
            Ok(())
        })
    }
}

/// The heads of a task's tokens.
struct Turn<'a, T> {
    style: RopeStyle,
    direction: Direction,
    x: &'a mut [T],
    rows: Rows,
    cos_sin: &'a [f32],
    pairs: usize,
}

impl<T: StoredFloat> Kernel for Turn<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let pairs = self.pairs;
        for (x, cos_sin) in
            self.x.chunks_mut(self.rows.outer_stride).zip(self.cos_sin.chunks_exact(2 * pairs))
        {
            let (cos, sin) = cos_sin.split_at(pairs);
            for head in 0..self.rows.inner {
                let x = &mut x[head * self.rows.inner_stride..][..2 * pairs];
                for start in (0..pairs).step_by(LANES) {
                    let range = start..pairs.min(start + LANES);
                    let cos = isa.load_partial(&cos[range.clone()]);
                    let sin = isa.load_partial(&sin[range.clone()]);
                    let sin = match self.direction {
                        Direction::Inverse => isa.sub(isa.splat(0.0), sin),
                        _ => sin,
                    };
                    match self.style {
                        RopeStyle::Interleaved => {
                            let both = &mut x[2 * range.start..2 * range.end].as_chunks_mut::<2>().0;
                            let (mut first, mut second) = ([T::ZERO; LANES], [T::ZERO; LANES]);
                            for ((a, b), pair) in first.iter_mut().zip(&mut second).zip(both.iter()) {
                                (*a, *b) = (pair[0], pair[1]);
                            }
                            let (a, b) = turned(isa, T::load(isa, &first), T::load(isa, &second), cos, sin);
                            T::store_partial(isa, a, &mut first);
                            T::store_partial(isa, b, &mut second);
                            for ((a, b), pair) in first.iter().zip(&second).zip(both.iter_mut()) {
                                *pair = [*a, *b];
                            }
                        }
                        _ => {
                            let (first, second) = x.split_at_mut(pairs);
                            let (first, second) = (&mut first[range.clone()], &mut second[range]);
                            let (a, b) = (T::load_partial(isa, first), T::load_partial(isa, second));
                            let (a, b) = turned(isa, a, b, cos, sin);
                            T::store_partial(isa, a, first);
                            T::store_partial(isa, b, second);
                        }
                    }
                }
            }
        }
    }
}

/// No multiply-add: the tiers agree to the last bit.
#[inline(always)]
fn turned<I: Isa>(isa: I, a: I::F32, b: I::F32, cos: I::F32, sin: I::F32) -> (I::F32, I::F32) {
    (isa.sub(isa.mul(a, cos), isa.mul(b, sin)), isa.add(isa.mul(a, sin), isa.mul(b, cos)))
}

/// Keys that turn as they are read.
struct TurnedHeads<'a> {
    plan: &'a CpuRopePlan,
    data: &'a [f32],
    rows: Rows,
}

impl<'a> HeadRows for TurnedHeads<'a> {
    type Row = TurnedRow<'a>;

    #[inline(always)]
    fn row(&self, token: usize, head: usize) -> TurnedRow<'a> {
        let pairs = self.plan.pairs();
        let (cos, sin) = self.plan.cos_sin[token * 2 * pairs..][..2 * pairs].split_at(pairs);
        let x = &self.data[self.rows.start(token, head)..][..self.rows.columns];
        TurnedRow { style: self.plan.spec.style, x, cos, sin }
    }
}

/// One key.
struct TurnedRow<'a> {
    style: RopeStyle,
    x: &'a [f32],
    cos: &'a [f32],
    sin: &'a [f32],
}

impl TurnedRow<'_> {
    /// One element, by the operations of [`turned`].
    #[inline(always)]
    fn element(&self, i: usize) -> f32 {
        let pairs = self.cos.len();
        if i >= 2 * pairs {
            return self.x[i];
        }
        let (pair, is_second, other) = match self.style {
            RopeStyle::Interleaved => (i / 2, i % 2 == 1, i ^ 1),
            _ if i < pairs => (i, false, i + pairs),
            _ => (i - pairs, true, i - pairs),
        };
        let (cos, sin) = (self.cos[pair], self.sin[pair]);
        if is_second { self.x[other] * sin + self.x[i] * cos } else { self.x[i] * cos - self.x[other] * sin }
    }
}

impl Row for TurnedRow<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let mut lanes = [0.0; LANES];
        let count = (self.x.len() - start).min(LANES);
        lanes[..count].iter_mut().enumerate().for_each(|(lane, to)| *to = self.element(start + lane));
        isa.load(&lanes)
    }
}
