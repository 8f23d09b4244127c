//! One decoder layer of a decode step, with SmolLM2-135M's sizes and W8A8: its operators in the order in which the engine
//! calls them.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Product, Work, cold_copies, for_each_device, values};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{
    activation::Activation, attention::*, cache::*, linear::*, norm::*, quantize::*, rope::*,
};

const HIDDEN: usize = 576;
const QUERY_HEADS: usize = 9;
const KV_HEADS: usize = 3;
const HEAD_DIM: usize = 64;
const INTERMEDIATE: usize = 1536;
const QUERY: usize = QUERY_HEADS * HEAD_DIM;
const KV: usize = KV_HEADS * HEAD_DIM;
/// Tokens of each sequence, the new one among them.
const KV_LEN: usize = 512;
/// Launches of a layer, where a backend counts them. At most: a GPU takes some microseconds for each.
const MAX_LAUNCHES: u64 = 12;

struct Decode;

impl Bench for Decode {
    const OPERATOR: &'static str = "decode";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        [1, 8].into_iter().try_for_each(|sequences| measure(group, device, sequences))
    }
}

/// A layer's weights.
struct Weights<B: Measured> {
    qkv: B::Packed,
    attention_out: B::Packed,
    gate_up: B::Packed,
    down: B::Packed,
}

impl<B: Measured> Weights<B> {
    fn new(device: &B, stream: &mut B::Stream) -> Result<Self> {
        let mut pack = |spec: LinearSpec| {
            let data = values(spec.weight_rows() * spec.in_features);
            let q: Vec<i8> = data.iter().map(|value| (value * 127.0).round() as i8).collect();
            // So that a layer keeps the size of what it reads.
            let scale = 1.0 / (127.0 * (spec.in_features as f32).sqrt());
            let scales = vec![scale; spec.weight_rows()];
            let host = HostWeights::Int8PerChannel { q: &q, scales: &scales };
            device.linear_pack(stream, host.check(&spec)?)
        };
        Ok(Weights {
            qkv: pack(LinearSpec::w8a8(HIDDEN, QUERY + 2 * KV))?,
            attention_out: pack(LinearSpec::w8a8(QUERY, HIDDEN))?,
            gate_up: pack(LinearSpec::w8a8(HIDDEN, INTERMEDIATE).gated(Activation::Silu))?,
            down: pack(LinearSpec::w8a8(INTERMEDIATE, HIDDEN))?,
        })
    }

    /// Multiply-adds of a row, and bytes.
    const PRODUCTS: usize = HIDDEN * (QUERY + 2 * KV) + QUERY * HIDDEN + 3 * HIDDEN * INTERMEDIATE;

    fn workspace(&self, device: &B, rows: usize) -> u64 {
        let layers = [&self.qkv, &self.attention_out, &self.gate_up, &self.down];
        layers.map(|layer| device.linear_workspace(layer, rows)).into_iter().fold(0, u64::max)
    }
}

/// Rows in INT8 with a scale each.
struct Int8<B: Measured> {
    q: Tensor<B>,
    scales: Tensor<B>,
}

impl<B: Measured> Int8<B> {
    fn new(device: &B, rows: usize, columns: usize) -> Result<Self> {
        let q = Tensor::new(device, DType::I8, &[rows, columns])?;
        Ok(Int8 { q, scales: Tensor::new(device, DType::F32, &[rows])? })
    }
}

/// The plans of a step, and what its layers work in.
struct Step<'a, B: Measured> {
    device: &'a B,
    norm: NormSpec,
    norm_weight: Tensor<B>,
    quantize: QuantizeSpec,
    rope: B::RopePlan,
    slots: B::Slots,
    cache: B::KvCache,
    attention: B::AttentionPlan,
    /// Before the layer, between its halves and after it.
    states: [Tensor<B>; 3],
    normed: Int8<B>,
    qkv: Tensor<B>,
    attention_out: Tensor<B>,
    attention_out_int8: Int8<B>,
    gated: Tensor<B>,
    gated_int8: Int8<B>,
}

impl<'a, B: Measured> Step<'a, B> {
    fn new(device: &'a B, stream: &mut B::Stream, layers: usize, sequences: usize) -> Result<Self> {
        let kv = KvSpec::new(layers, KV_HEADS, HEAD_DIM).with_dtype(DType::F16);
        let row = KV_LEN.div_ceil(kv.block_size);
        let cache = device.kv_cache(&kv, row * sequences)?;
        fill(device, stream, &cache)?;

        let mut slots = device.slots_plan(&cache, sequences)?;
        let new: Vec<i64> = (1..=sequences).map(|end| (end * row * kv.block_size - 1) as i64).collect();
        let mapping = SlotMapping { slots: &new }.check(&slots)?;
        device.slots_update(stream, &mut slots, &mapping)?;

        let mut rope = device.rope_plan(&RopeSpec::new(HEAD_DIM, RopeStyle::HalfSplit, 8192), sequences)?;
        let positions = vec![KV_LEN as u32 - 1; sequences];
        let positions = Positions { positions: &positions }.check(&rope)?;
        device.rope_update(stream, &mut rope, &positions)?;

        let capacity = AttentionCapacity {
            max_tokens: sequences,
            max_sequences: sequences,
            max_blocks_per_sequence: row,
            cache_blocks: row * sequences,
        };
        let mut attention = device.attention_plan(&AttentionSpec::causal(QUERY_HEADS, kv), &capacity)?;
        let step = AttentionStep {
            cu_seqlens: &(0..=sequences as u32).collect::<Vec<_>>(),
            kv_lens: &vec![KV_LEN as u32; sequences],
            kv_ranges: &[],
            block_table: &(0..(row * sequences) as i32).collect::<Vec<_>>(),
            tree_parents: &[],
        };
        let step = step.check(&attention)?;
        device.attention_update(stream, &mut attention, &step)?;

        let f32 = |columns: usize| Tensor::new(device, DType::F32, &[sequences, columns]);
        let hidden = Tensor::from_slice(stream, &values(sequences * HIDDEN), &[sequences, HIDDEN])?;
        Ok(Step {
            device,
            norm: NormSpec::rms(1e-5),
            norm_weight: Tensor::from_slice(stream, &[1.0f32; HIDDEN], &[HIDDEN])?,
            quantize: QuantizeSpec::INT8_PER_TOKEN,
            rope,
            slots,
            cache,
            attention,
            states: [hidden, f32(HIDDEN)?, f32(HIDDEN)?],
            normed: Int8::new(device, sequences, HIDDEN)?,
            qkv: f32(QUERY + 2 * KV)?,
            attention_out: f32(QUERY)?,
            attention_out_int8: Int8::new(device, sequences, QUERY)?,
            gated: f32(INTERMEDIATE)?,
            gated_int8: Int8::new(device, sequences, INTERMEDIATE)?,
        })
    }

    fn workspace(&self, weights: &Weights<B>) -> u64 {
        let (device, rows, quantize) = (self.device, self.states[0].dims()[0], &self.quantize);
        weights
            .workspace(device, rows)
            .max(device.attention_workspace(&self.attention))
            .max(device.norm_quantize_workspace(&self.norm, quantize, rows, HIDDEN))
            .max(device.quantize_workspace(quantize, rows, INTERMEDIATE))
    }

    fn layer(&self, stream: &mut B::Stream, layer: usize, weights: &Weights<B>) -> Result<()> {
        let [hidden, between, after] = &self.states;
        let part = |start: usize, width| self.qkv.narrow(1, start..start + width)?.split_last(HEAD_DIM);
        let (q, k, v) = (part(0, QUERY)?, part(QUERY, KV)?, part(QUERY + KV, KV)?);

        self.norm(stream, hidden)?;
        self.linear(stream, &self.normed, &weights.qkv, None, &self.qkv)?;
        let (cache, plan) = (&self.cache, &self.attention);
        let write = RopeWriteArgs { plan: &self.rope, q: &q, slots: &self.slots, cache, layer, k: &k, v: &v };
        self.device.rope_cache_write(stream, write.check()?)?;
        let out = self.attention_out.split_last(HEAD_DIM)?;
        let attention = AttentionArgs {
            plan,
            cache,
            layer,
            q: &q,
            state_in: None,
            out: AttentionOut::Normalised(&out),
            sinks: None,
            log_sum_exp: None,
        };
        self.device.attention(stream, attention.check()?)?;
        self.quantize(stream, &self.attention_out, &self.attention_out_int8)?;
        self.linear(stream, &self.attention_out_int8, &weights.attention_out, Some(hidden), between)?;

        self.norm(stream, between)?;
        self.linear(stream, &self.normed, &weights.gate_up, None, &self.gated)?;
        self.quantize(stream, &self.gated, &self.gated_int8)?;
        self.linear(stream, &self.gated_int8, &weights.down, Some(between), after)
    }

    fn norm(&self, stream: &mut B::Stream, x: &Tensor<B>) -> Result<()> {
        let Int8 { q, scales } = &self.normed;
        let out = NormOut::Quantized { spec: &self.quantize, out: QuantizeOut::new(q, scales) };
        let weight = Some(&self.norm_weight);
        let args = NormArgs { spec: &self.norm, x, residual: None, weight, bias: None, out };
        self.device.norm(stream, args.check()?)
    }

    fn quantize(&self, stream: &mut B::Stream, x: &Tensor<B>, to: &Int8<B>) -> Result<()> {
        let args = QuantizeArgs::new(&self.quantize, x, &to.q, &to.scales);
        self.device.quantize(stream, args.check()?)
    }

    fn linear(
        &self,
        stream: &mut B::Stream,
        x: &Int8<B>,
        weights: &B::Packed,
        residual: Option<&Tensor<B>>,
        out: &Tensor<B>,
    ) -> Result<()> {
        let x = Activations::int8_per_token(&x.q, &x.scales);
        let epilogue = Epilogue { residual, ..Epilogue::default() };
        self.device.linear(stream, LinearArgs { x, weights, epilogue, out }.check()?)
    }
}

/// Keys and values everywhere, in every layer.
fn fill<B: Measured>(device: &B, stream: &mut B::Stream, cache: &B::KvCache) -> Result<()> {
    let slots: Vec<i64> = (0..cache.slots() as i64).collect();
    let mut plan = device.slots_plan(cache, slots.len())?;
    let mapping = SlotMapping { slots: &slots }.check(&plan)?;
    device.slots_update(stream, &mut plan, &mapping)?;
    let dims = [slots.len(), KV_HEADS, HEAD_DIM];
    let kv = Tensor::from_slice(stream, &values(dims.iter().product()), &dims)?;
    for layer in 0..cache.spec().layers {
        let args = CacheWriteArgs { slots: &plan, cache, layer, k: &kv, v: &kv };
        device.cache_write(stream, args.check()?)?;
    }
    Ok(())
}

fn measure<B: Measured>(group: &mut Group<'_>, device: &B, sequences: usize) -> Result<()> {
    let stream = &mut device.stream()?;
    let bytes = Weights::<B>::PRODUCTS;
    let layers = cold_copies(bytes);
    let weights = (0..layers).map(|_| Weights::new(device, stream)).collect::<Result<Vec<_>>>()?;
    let step = Step::new(device, stream, layers, sequences)?;
    stream.reserve(step.workspace(&weights[0]))?;

    let before = stream.launches();
    step.layer(stream, 0, &weights[0])?;
    if let (Some(before), Some(after)) = (before, stream.launches()) {
        assert!(after - before <= MAX_LAUNCHES, "{} launches a layer", after - before);
    }
    let answer = step.states[2].to_vec::<f32>(stream)?;
    assert!(answer.iter().all(|value| value.is_finite()), "every value is finite");

    let work = Work::Weights {
        product: Product::Int8,
        products: (sequences * bytes) as u64,
        moved: bytes as u64,
        resident: (layers * bytes) as u64,
    };
    let mut turn = 0;
    group.measure(&format!("{sequences}x1of{KV_LEN}/W8A8"), work, stream, |stream| {
        turn = (turn + 1) % layers;
        step.layer(stream, turn, &weights[turn])
    })
}

fn decode(criterion: &mut Criterion) {
    for_each_device(criterion, &Decode);
}

criterion_group!(benches, decode);
criterion_main!(benches);
