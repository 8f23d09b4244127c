//! `RMSNormalization`, `RotaryEmbedding`, `Softmax` and `TopK`.

use super::{
    around,
    fixture::{Array, Fixture},
};
use crate::{Fault, Verdict, judge::judge, oracle, tolerance::Bound};
use halite_hal::Tensor;
use halite_kernels::{
    Backend, DType,
    norm::{NormArgs, NormOut, NormSpec},
    rope::{CosSin, Direction, RopeArgs, RopeSpec, RopeStyle},
    sampling::{ProbabilityArgs, SamplingParams, SamplingSpec, SamplingStep},
    top_k::{TopKArgs, TopKSpec},
};

/// `axis`, counted from the front.
fn axis(fixture: &Fixture, rank: usize) -> usize {
    let axis = fixture.attribute("axis").unwrap_or(-1.0) as i64;
    if axis < 0 { (rank as i64 + axis) as usize } else { axis as usize }
}

fn rms_expected(fixture: &Fixture) -> Result<(Vec<Bound>, usize, f32), Fault> {
    let (x, weight) = (fixture.array("input.0")?, fixture.array("input.1")?);
    let (_, columns) = x.split(axis(fixture, x.dims.len()));
    let eps = fixture.attribute("epsilon").unwrap_or(1e-5) as f32;
    let row = |row: &[f64]| {
        let row: Vec<Bound> = row.iter().map(|&x| Bound::exact(x)).collect();
        oracle::norm::row(&NormSpec::rms(eps), &row, Some(&weight.values), None)
    };
    let rows = x.values.chunks_exact(columns).flat_map(row);
    Ok((rows.map(|y| y.rounded(DType::F32)).collect(), columns, eps))
}

pub(super) fn rms_oracle(fixture: &Fixture) -> Verdict {
    let (expected, _, _) = rms_expected(fixture)?;
    let y = fixture.array("output.0")?;
    judge(&fixture.name, &y.dims, &y.values, &expected)
}

pub(super) fn rms_device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let stream = &mut device.stream()?;
    let (expected, columns, eps) = rms_expected(fixture)?;
    let (x, weight, y) = (fixture.array("input.0")?, fixture.array("input.1")?, fixture.array("output.0")?);
    let dims = [x.values.len() / columns, columns];
    let x = Tensor::<B>::from_slice(stream, &x.floats(), &dims)?;
    let weight = Tensor::<B>::from_slice(stream, &weight.floats(), &[columns])?;
    let out = Tensor::<B>::new(device, DType::F32, &dims)?;
    let spec = NormSpec::rms(eps);
    let out_arg = NormOut::Float(&out);
    let args =
        NormArgs { spec: &spec, x: &x, residual: None, weight: Some(&weight), bias: None, out: out_arg };
    device.norm(stream, args.check()?)?;
    let got: Vec<f64> = out.to_vec::<f32>(stream)?.into_iter().map(f64::from).collect();
    judge(&fixture.name, &dims, &got, &around(&y.values, &expected))
}

/// A `RotaryEmbedding`, its heads by token. The tables are random numbers, no cosines of any angle.
struct Rotary {
    style: RopeStyle,
    /// `[batch · tokens, heads, head_dim]`
    dims: [usize; 3],
    x: Vec<f64>,
    y: Vec<f64>,
    /// `[batch · tokens, pairs]`
    cos: Vec<f64>,
    sin: Vec<f64>,
    pairs: usize,
}

impl Rotary {
    fn of(fixture: &Fixture) -> Result<Self, Fault> {
        let [x, cos, sin] = [fixture.array("input.0")?, fixture.array("input.1")?, fixture.array("input.2")?];
        let y = fixture.array("output.0")?;
        let positions = if fixture.has("input.3") { Some(fixture.array("input.3")?) } else { None };
        let interleaved = fixture.attribute("interleaved") == Some(1.0);
        let style = if interleaved { RopeStyle::Interleaved } else { RopeStyle::HalfSplit };
        let pairs = cos.dims[cos.dims.len() - 1];
        // `[batch, tokens, heads · dim]` or `[batch, heads, tokens, dim]`.
        let by_token = x.dims.len() == 3;
        let heads = fixture.attribute("num_heads").map_or(x.dims[1], |heads| heads as usize);
        let (batch, tokens) = (x.dims[0], if by_token { x.dims[1] } else { x.dims[2] });
        let head_dim = if by_token { x.dims[2] / heads } else { x.dims[3] };
        let ordered = |values: &[f64]| -> Vec<f64> {
            let rows: Vec<&[f64]> = values.chunks_exact(head_dim).collect();
            let place = |at: usize, head: usize| {
                let (sequence, token) = (at / tokens, at % tokens);
                if by_token { at * heads + head } else { (sequence * heads + head) * tokens + token }
            };
            let all = (0..batch * tokens).flat_map(|at| (0..heads).map(move |head| (at, head)));
            all.flat_map(|(at, head)| rows[place(at, head)].to_vec()).collect()
        };
        let rows = |table: &[f64]| -> Vec<f64> {
            let row = |at: usize| positions.as_ref().map_or(at, |positions| positions.values[at] as usize);
            (0..batch * tokens).flat_map(|at| table[row(at) * pairs..][..pairs].to_vec()).collect()
        };
        let (x, y) = (ordered(&x.values), ordered(&y.values));
        let dims = [batch * tokens, heads, head_dim];
        Ok(Rotary { style, dims, x, y, cos: rows(&cos.values), sin: rows(&sin.values), pairs })
    }

    fn expected(&self) -> Vec<Bound> {
        let [_, heads, head_dim] = self.dims;
        let turned = self.x.chunks_exact(head_dim).enumerate().flat_map(|(row, head)| {
            let start = row / heads * self.pairs;
            let (cos, sin) = (&self.cos[start..][..self.pairs], &self.sin[start..][..self.pairs]);
            oracle::rope::turn(self.style, head, cos, sin)
        });
        turned.map(|y| y.rounded(DType::F32)).collect()
    }
}

pub(super) fn rope_oracle(fixture: &Fixture) -> Verdict {
    let rotary = Rotary::of(fixture)?;
    judge(&fixture.name, &rotary.dims, &rotary.y, &rotary.expected())
}

pub(super) fn rope_device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let rotary = Rotary::of(fixture)?;
    let stream = &mut device.stream()?;
    let floats = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let spec = RopeSpec::new(rotary.dims[2], rotary.style, 1).with_rotary_dim(2 * rotary.pairs);
    let mut plan = device.rope_plan(&spec, rotary.dims[0])?;
    let (cos, sin) = (floats(&rotary.cos), floats(&rotary.sin));
    let tables = CosSin { cos: &cos, sin: &sin }.check(&plan)?;
    device.rope_update_cos_sin(stream, &mut plan, &tables)?;
    let x = Tensor::<B>::from_slice(stream, &floats(&rotary.x), &rotary.dims)?;
    device.rope(stream, RopeArgs { plan: &plan, direction: Direction::Forward, x: &x }.check()?)?;
    let got: Vec<f64> = x.to_vec::<f32>(stream)?.into_iter().map(f64::from).collect();
    judge(&fixture.name, &rotary.dims, &got, &around(&rotary.y, &rotary.expected()))
}

/// Rows along the axis, the published rows, and the exact softmax.
fn softmax(fixture: &Fixture) -> Result<(Array, Array, Vec<Bound>), Fault> {
    let (x, y) = (fixture.array("input.0")?, fixture.array("output.0")?);
    let axis = axis(fixture, x.dims.len());
    let (x, y) = (x.innermost(axis), y.innermost(axis));
    let columns = x.dims[x.dims.len() - 1];
    let mut expected = Vec::new();
    for row in x.values.chunks_exact(columns) {
        let kept = oracle::sampling::kept(row, &SamplingParams::seeded(1.0, 0)).swap_remove(0);
        expected.extend((0..columns).map(|id| kept.probability(id)));
    }
    Ok((x, y, expected))
}

pub(super) fn softmax_oracle(fixture: &Fixture) -> Verdict {
    let (_, y, expected) = softmax(fixture)?;
    judge(&fixture.name, &y.dims, &y.values, &expected)
}

pub(super) fn softmax_device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let stream = &mut device.stream()?;
    let (x, y, expected) = softmax(fixture)?;
    let columns = x.dims[x.dims.len() - 1];
    let rows = x.values.len() / columns;
    let mut plan = device.sampling_plan(&SamplingSpec::new(columns), rows)?;
    let params = vec![SamplingParams::seeded(1.0, 0); rows];
    let step = SamplingStep { params: &params }.check(&plan)?;
    device.sampling_update(stream, &mut plan, &step)?;
    let logits = Tensor::<B>::from_slice(stream, &x.floats(), &[rows, columns])?;
    let out = Tensor::<B>::new(device, DType::F32, &[rows, columns])?;
    device.probabilities(stream, ProbabilityArgs { plan: &plan, logits: &logits, out: &out }.check()?)?;
    let got: Vec<f64> = out.to_vec::<f32>(stream)?.into_iter().map(f64::from).collect();
    judge(&fixture.name, &[rows, columns], &got, &around(&y.values, &expected))
}

/// The operator, the rows along its axis, and the published values and columns.
fn top_k(fixture: &Fixture) -> Result<(TopKSpec, Array, Array, Array), Fault> {
    let (x, values, ids) =
        (fixture.array("input.0")?, fixture.array("output.0")?, fixture.array("output.1")?);
    let k = fixture.array("input.1")?.values[0] as usize;
    let axis = axis(fixture, x.dims.len());
    let smallest = fixture.attribute("largest") == Some(0.0);
    let spec = if smallest { TopKSpec::smallest(k) } else { TopKSpec::largest(k) };
    Ok((spec, x.innermost(axis), values.innermost(axis), ids.innermost(axis)))
}

fn exact(values: &[f64]) -> Vec<Bound> {
    values.iter().map(|&value| Bound::exact(value)).collect()
}

pub(super) fn top_k_oracle(fixture: &Fixture) -> Verdict {
    let (spec, x, _, ids) = top_k(fixture)?;
    let columns = x.dims[x.dims.len() - 1];
    let ranked = x.values.chunks_exact(columns).flat_map(|row| {
        oracle::top_k::ranking(spec.order, row).into_iter().take(spec.k).map(|id| Bound::exact(id as f64))
    });
    judge(&fixture.name, &ids.dims, &ids.values, &ranked.collect::<Vec<_>>())
}

pub(super) fn top_k_device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let stream = &mut device.stream()?;
    let (spec, x, values, ids) = top_k(fixture)?;
    let columns = x.dims[x.dims.len() - 1];
    let (rows, k) = (x.values.len() / columns, spec.k);
    let input = Tensor::<B>::from_slice(stream, &x.floats(), &[rows, columns])?;
    let best = Tensor::<B>::new(device, DType::F32, &[rows, k])?;
    let places = Tensor::<B>::new(device, DType::I32, &[rows, k])?;
    let args = TopKArgs { spec: &spec, x: &input, values: &best, ids: &places };
    device.top_k(stream, args.check()?)?;
    let got: Vec<f64> = places.to_vec::<i32>(stream)?.into_iter().map(f64::from).collect();
    judge(&fixture.name, &[rows, k], &got, &exact(&ids.values))?;
    let got: Vec<f64> = best.to_vec::<f32>(stream)?.into_iter().map(f64::from).collect();
    judge(&fixture.name, &[rows, k], &got, &exact(&values.values))
}
