//! `aclnnFusedInferAttentionScoreV4` and `V3`: softmax(scale * Q K^T + mask) V, over paged or plain keys and values.

mod arguments;
mod compute;
mod layout;
mod quantized;
#[cfg(test)]
mod tests;

use std::ffi::c_char;

use self::arguments::{Arguments, plan};
use super::call::phase_one;
use super::phase_two;
use crate::foreign;
use crate::handle::Handle;

const DOCUMENT_V4: &str = "aclnnFusedInferAttentionScoreV4.md, 2026-08-21";
const DOCUMENT_V3: &str = "aclnnFusedInferAttentionScoreV3.md, 2026-08-21 and 2025-11";

/// query in `inputLayout`; key and value in it as well, or in blocks if there is a table of them; sequence lengths on the host.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnFusedInferAttentionScoreV4GetWorkspaceSize(
    query: Handle,
    key: Handle,
    value: Handle,
    pse_shift: Handle,
    atten_mask: Handle,
    actual_seq_lengths: Handle,
    actual_seq_lengths_kv: Handle,
    deq_scale1: Handle,
    quant_scale1: Handle,
    deq_scale2: Handle,
    quant_scale2: Handle,
    quant_offset2: Handle,
    antiquant_scale: Handle,
    antiquant_offset: Handle,
    block_table: Handle,
    query_padding_size: Handle,
    kv_padding_size: Handle,
    key_antiquant_scale: Handle,
    key_antiquant_offset: Handle,
    value_antiquant_scale: Handle,
    value_antiquant_offset: Handle,
    key_shared_prefix: Handle,
    value_shared_prefix: Handle,
    actual_shared_prefix_len: Handle,
    query_rope: Handle,
    key_rope: Handle,
    key_rope_antiquant_scale: Handle,
    dequant_scale_query: Handle,
    learnable_sink: Handle,
    num_heads: i64,
    scale_value: f64,
    _pre_tokens: i64,
    _next_tokens: i64,
    input_layout: *const c_char,
    num_key_value_heads: i64,
    sparse_mode: i64,
    inner_precise: i64,
    block_size: i64,
    _antiquant_mode: i64,
    softmax_lse_flag: bool,
    key_antiquant_mode: i64,
    value_antiquant_mode: i64,
    _query_quant_mode: i64,
    attention_out: Handle,
    softmax_lse: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    let layout = foreign::text(input_layout);
    phase_one("aclnnFusedInferAttentionScoreV4", DOCUMENT_V4, workspace, executor, |call| {
        call.absent(&[
            ("pseShiftOptional", pse_shift),
            ("deqScale1Optional", deq_scale1),
            ("quantScale1Optional", quant_scale1),
            ("deqScale2Optional", deq_scale2),
            ("quantScale2Optional", quant_scale2),
            ("quantOffset2Optional", quant_offset2),
            ("antiquantScaleOptional", antiquant_scale),
            ("antiquantOffsetOptional", antiquant_offset),
            ("queryPaddingSizeOptional", query_padding_size),
            ("kvPaddingSizeOptional", kv_padding_size),
            ("keyAntiquantOffsetOptional", key_antiquant_offset),
            ("valueAntiquantOffsetOptional", value_antiquant_offset),
            ("keySharedPrefixOptional", key_shared_prefix),
            ("valueSharedPrefixOptional", value_shared_prefix),
            ("actualSharedPrefixLenOptional", actual_shared_prefix_len),
            ("queryRopeOptional", query_rope),
            ("keyRopeOptional", key_rope),
            ("keyRopeAntiquantScaleOptional", key_rope_antiquant_scale),
            ("dequantScaleQueryOptional", dequant_scale_query),
            ("learnableSinkOptional", learnable_sink),
        ])?;
        let arguments = Arguments {
            query: call.tensor("query", query)?,
            key: call.single("key", key)?,
            value: call.single("value", value)?,
            mask: call.optional("attenMaskOptional", atten_mask)?,
            query_lengths: call.integers("actualSeqLengthsOptional", actual_seq_lengths)?,
            kv_lengths: call.integers("actualSeqLengthsKvOptional", actual_seq_lengths_kv)?,
            table: call.optional("blockTableOptional", block_table)?,
            key_scale: call.optional("keyAntiquantScaleOptional", key_antiquant_scale)?,
            value_scale: call.optional("valueAntiquantScaleOptional", value_antiquant_scale)?,
            heads: num_heads,
            kv_heads: if num_key_value_heads == 0 { num_heads } else { num_key_value_heads },
            scale: scale_value,
            layout: layout.unwrap_or_else(|| "BSH".to_owned()),
            sparse_mode,
            inner_precise,
            block_size,
            key_mode: key_antiquant_mode,
            value_mode: value_antiquant_mode,
            out: call.tensor("attentionOut", attention_out)?,
            lse: if softmax_lse_flag { Some(call.tensor("softmaxLse", softmax_lse)?) } else { None },
        };
        plan(call, arguments)
    })
}

phase_two!(aclnnFusedInferAttentionScoreV4);

/// V4 without a scale of the query and without a sink.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnFusedInferAttentionScoreV3GetWorkspaceSize(
    query: Handle,
    key: Handle,
    value: Handle,
    pse_shift: Handle,
    atten_mask: Handle,
    actual_seq_lengths: Handle,
    actual_seq_lengths_kv: Handle,
    deq_scale1: Handle,
    quant_scale1: Handle,
    deq_scale2: Handle,
    quant_scale2: Handle,
    quant_offset2: Handle,
    antiquant_scale: Handle,
    antiquant_offset: Handle,
    block_table: Handle,
    query_padding_size: Handle,
    kv_padding_size: Handle,
    key_antiquant_scale: Handle,
    key_antiquant_offset: Handle,
    value_antiquant_scale: Handle,
    value_antiquant_offset: Handle,
    key_shared_prefix: Handle,
    value_shared_prefix: Handle,
    actual_shared_prefix_len: Handle,
    query_rope: Handle,
    key_rope: Handle,
    key_rope_antiquant_scale: Handle,
    num_heads: i64,
    scale_value: f64,
    _pre_tokens: i64,
    _next_tokens: i64,
    input_layout: *const c_char,
    num_key_value_heads: i64,
    sparse_mode: i64,
    inner_precise: i64,
    block_size: i64,
    _antiquant_mode: i64,
    softmax_lse_flag: bool,
    key_antiquant_mode: i64,
    value_antiquant_mode: i64,
    attention_out: Handle,
    softmax_lse: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    let layout = foreign::text(input_layout);
    phase_one("aclnnFusedInferAttentionScoreV3", DOCUMENT_V3, workspace, executor, |call| {
        call.absent(&[
            ("pseShiftOptional", pse_shift),
            ("deqScale1Optional", deq_scale1),
            ("quantScale1Optional", quant_scale1),
            ("deqScale2Optional", deq_scale2),
            ("quantScale2Optional", quant_scale2),
            ("quantOffset2Optional", quant_offset2),
            ("antiquantScaleOptional", antiquant_scale),
            ("antiquantOffsetOptional", antiquant_offset),
            ("queryPaddingSizeOptional", query_padding_size),
            ("kvPaddingSizeOptional", kv_padding_size),
            ("keyAntiquantOffsetOptional", key_antiquant_offset),
            ("valueAntiquantOffsetOptional", value_antiquant_offset),
            ("keySharedPrefixOptional", key_shared_prefix),
            ("valueSharedPrefixOptional", value_shared_prefix),
            ("actualSharedPrefixLenOptional", actual_shared_prefix_len),
            ("queryRopeOptional", query_rope),
            ("keyRopeOptional", key_rope),
            ("keyRopeAntiquantScaleOptional", key_rope_antiquant_scale),
        ])?;
        let arguments = Arguments {
            query: call.tensor("query", query)?,
            key: call.single("key", key)?,
            value: call.single("value", value)?,
            mask: call.optional("attenMaskOptional", atten_mask)?,
            query_lengths: call.integers("actualSeqLengthsOptional", actual_seq_lengths)?,
            kv_lengths: call.integers("actualSeqLengthsKvOptional", actual_seq_lengths_kv)?,
            table: call.optional("blockTableOptional", block_table)?,
            key_scale: call.optional("keyAntiquantScaleOptional", key_antiquant_scale)?,
            value_scale: call.optional("valueAntiquantScaleOptional", value_antiquant_scale)?,
            heads: num_heads,
            kv_heads: if num_key_value_heads == 0 { num_heads } else { num_key_value_heads },
            scale: scale_value,
            layout: layout.unwrap_or_else(|| "BSH".to_owned()),
            sparse_mode,
            inner_precise,
            block_size,
            key_mode: key_antiquant_mode,
            value_mode: value_antiquant_mode,
            out: call.tensor("attentionOut", attention_out)?,
            lse: if softmax_lse_flag { Some(call.tensor("softmaxLse", softmax_lse)?) } else { None },
        };
        plan(call, arguments)
    })
}

phase_two!(aclnnFusedInferAttentionScoreV3);
