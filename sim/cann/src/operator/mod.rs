//! The operators: libopapi's part. A file for each; phase one checks and plans, phase two is the same for all.

mod broadcast;
mod call;
mod top_k;
mod unary;

pub(crate) mod abs;
pub(crate) mod add;
pub(crate) mod add_rms_norm;
pub(crate) mod amax;
pub(crate) mod apply_rotary_pos_emb;
pub(crate) mod ascend_quant;
pub(crate) mod cast;
pub(crate) mod clamp;
pub(crate) mod dequant_swiglu_quant;
pub(crate) mod div;
pub(crate) mod divs;
pub(crate) mod dynamic_quant;
pub(crate) mod embedding;
pub(crate) mod eq_tensor;
pub(crate) mod fused_infer_attention_score;
pub(crate) mod gelu;
pub(crate) mod grouped_matmul;
pub(crate) mod inplace_copy;
pub(crate) mod matmul;
pub(crate) mod moe_finalize_routing;
pub(crate) mod moe_gating_top_k;
pub(crate) mod moe_gating_top_k_softmax;
pub(crate) mod moe_init_routing;
pub(crate) mod mul;
pub(crate) mod muls;
pub(crate) mod nan_to_num;
pub(crate) mod quant_matmul;
pub(crate) mod rms_norm;
pub(crate) mod s_where;
pub(crate) mod scatter_pa_kv_cache;
pub(crate) mod silu;
pub(crate) mod swi_glu;
pub(crate) mod tanh;

/// Phase two of an operator: a C function of its name.
macro_rules! phase_two {
    ($name:ident) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            workspace: usize,
            size: u64,
            executor: $crate::handle::Handle,
            stream: $crate::handle::Handle,
        ) -> i32 {
            $crate::descriptor::executor::run(stringify!($name), workspace, size, executor, stream)
        }
    };
}
pub(crate) use phase_two;
