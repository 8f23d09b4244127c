//! Multi-head latent attention.
//!
//! The absorbed form is attention's, over rows of the latent cache; `project.wgsl` has the products before and after it.
//! The expanded form takes the same way in F32: queries are absorbed, and states of parts are projected before they are
//! joined, so that what is handed on is of values and not of latents. It makes no key or value of a head, and costs what
//! the absorbed form costs.

mod expanded;
mod packed;

pub use packed::WgpuMlaPacked;

use crate::{
    attention::{RowTensors, WgpuAttentionPlan},
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionCapacity, AttentionLimits, AttentionPlan, AttentionSpec, AttentionStep,
        cut::Parted,
    },
    mla::{AbsorbArgs, LatentAttention, MlaArgs, MlaForm, MlaPlan, MlaSpec, MlaWeights, UpProjectArgs},
};
use packed::HeadWeights;

static PROJECT: Shader = Shader { name: "mla", source: &[include_str!("project.wgsl")] };

/// Rows that share a weight which was read.
const TOKENS: usize = 8;

/// A step's tables for the expanded form.
#[derive(Debug)]
pub struct WgpuMlaPlan {
    mla: MlaSpec,
    /// Of attention over latents, in F32.
    plan: WgpuAttentionPlan,
}

impl AttentionPlan for WgpuMlaPlan {
    fn spec(&self) -> &AttentionSpec {
        &self.mla.attention
    }

    fn capacity(&self) -> &AttentionCapacity {
        self.plan.capacity()
    }

    fn tokens(&self) -> usize {
        self.plan.tokens()
    }
}

impl MlaPlan for WgpuMlaPlan {
    fn mla(&self) -> &MlaSpec {
        &self.mla
    }
}

/// Rows `[tokens, heads, ..]`, with the elements between them.
struct HeadRows {
    elements: Operand,
    token: usize,
    head: usize,
}

impl HeadRows {
    fn all(tensor: &Tensor<Wgpu>) -> Self {
        let rows = Rows::of(tensor);
        HeadRows { elements: Operand::tensor(tensor), token: rows.outer_stride, head: rows.inner_stride }
    }
}

/// `out[t, h] = [x[t, h] W[h], carried]`: what `x` has beyond the product's elements goes through as it is.
struct HeadProducts {
    weights: HeadWeights,
    carried: usize,
    tokens: usize,
    heads: usize,
    x: HeadRows,
    out: HeadRows,
}

impl HeadProducts {
    fn run(self, stream: &mut WgpuStream) -> Result<()> {
        let HeadProducts { weights: HeadWeights { matrices, k, n }, carried, tokens, heads, x, out } = self;
        let together = if tokens == 1 { 1 } else { TOKENS };
        let launch = Launch::new(&PROJECT)
            .operand("x", Access::In, x.elements)
            .operand("weights", Access::In, matrices)
            .operand("out", Access::Out, out.elements)
            .constant("TOKENS", together as u32)
            .size("tokens", tokens)
            .size("heads", heads)
            .size("k", k)
            .size("n", n)
            .size("carried", carried)
            .size("x_token", x.token)
            .size("x_head", x.head)
            .size("out_token", out.token)
            .size("out_head", out.head)
            // CHUNK elements at a time: brought by 128 invocations, then summed one by one.
            .rounds(k.saturating_add(k.div_ceil(256).saturating_mul(3 + 2 * together)));
        stream.launch(launch, spread(tokens.div_ceil(together) * heads * (n + carried).div_ceil(128)))
    }
}

/// The same of all rows of two tensors.
fn head_products(
    stream: &mut WgpuStream,
    weights: HeadWeights,
    carried: usize,
    x: &Tensor<Wgpu>,
    out: &Tensor<Wgpu>,
) -> Result<()> {
    let Rows { outer: tokens, inner: heads, .. } = Rows::of(x);
    let (x, out) = (HeadRows::all(x), HeadRows::all(out));
    HeadProducts { weights, carried, tokens, heads, x, out }.run(stream)
}

/// Attention as it runs over latents.
fn over_latents(spec: &MlaSpec) -> AttentionSpec {
    spec.attention.clone().with_dtype(DType::F32)
}

impl LatentAttention for Wgpu {
    type MlaPacked = WgpuMlaPacked;
    type MlaPlan = WgpuMlaPlan;

    fn mla_supports(&self, spec: &MlaSpec) -> Support {
        match (self.attention_supports(&spec.attention), spec.form) {
            (Support::Native, MlaForm::Expanded) => {
                Support::Composed("absorb, attention over latents, up_project")
            }
            (answer, MlaForm::Absorbed | MlaForm::Expanded) => answer,
            (_, other) => Support::No(format!("the form {other:?} is not implemented")),
        }
    }

    fn mla_pack(
        &self,
        stream: &mut WgpuStream,
        weights: Checked<MlaWeights<'_>, &MlaSpec>,
    ) -> Result<WgpuMlaPacked> {
        self.mla_supports(weights.context()).require("mla", self, weights.context())?;
        packed::pack(stream, &weights)
    }

    fn mla_save(&self, stream: &mut WgpuStream, packed: &WgpuMlaPacked) -> Result<Vec<u8>> {
        packed::save(stream, packed)
    }

    fn mla_restore(&self, stream: &mut WgpuStream, spec: &MlaSpec, saved: &[u8]) -> Result<WgpuMlaPacked> {
        spec.check()?;
        self.mla_supports(spec).require("mla", self, spec)?;
        packed::restore(stream, spec, saved)
    }

    fn absorb(&self, stream: &mut WgpuStream, args: Checked<AbsorbArgs<'_, Self>>) -> Result<()> {
        let rope_dim = args.weights.as_ref().rope_dim();
        head_products(stream, args.weights.uk(), rope_dim, args.q, args.out)
    }

    fn up_project(&self, stream: &mut WgpuStream, args: Checked<UpProjectArgs<'_, Self>>) -> Result<()> {
        head_products(stream, args.weights.uv(), 0, args.x, args.out)
    }

    fn mla_plan(&self, spec: &MlaSpec, capacity: &AttentionCapacity) -> Result<WgpuMlaPlan> {
        spec.check_expanded()?;
        self.mla_supports(spec).require("mla", self, spec)?;
        spec.attention.kv.cache_bytes(capacity.cache_blocks)?;
        let plan = WgpuAttentionPlan::new(self, "mla", &over_latents(spec), capacity, Parted::All)?;
        Ok(WgpuMlaPlan { mla: spec.clone(), plan })
    }

    fn mla_workspace(&self, plan: &WgpuMlaPlan) -> u64 {
        expanded::workspace(plan)
    }

    fn mla_update(
        &self,
        stream: &mut WgpuStream,
        plan: &mut WgpuMlaPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("mla", &plan.limits())?;
        plan.plan.update(stream, "mla", step)
    }

    fn mla(&self, stream: &mut WgpuStream, args: Checked<MlaArgs<'_, Self>>) -> Result<()> {
        let &MlaArgs { plan, cache, layer, weights, q, state_in, out, sinks, log_sum_exp } = &*args;
        let tensors = RowTensors { q, state_in, out, sinks, log_sum_exp };
        expanded::run(stream, plan, weights, (cache, layer), tensors)
    }
}
