//! Keys and values of INT8, with scales for keys and values apart.

use super::super::call::{Arg, Call};
use super::arguments::{Arguments, Sizes};
use super::layout::Layout;
use crate::element::Element;
use crate::runtime::error::Failure;

/// Mode 0: a scale for each channel of each head. Mode 1: one for each key of each sequence, whatever the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Channel,
    Token {
        /// Keys that a sequence has scales for.
        length: usize,
    },
}

/// The scales of keys and values, if they are INT8.
pub(super) fn scales(call: &Call, of: &Arguments, sizes: &Sizes) -> Result<Option<[Mode; 2]>, Failure> {
    let quantized = of.key.element == Element::I8;
    let given = (&of.key_scale, &of.value_scale);
    let (key, value) = match given {
        (None, None) if !quantized => return Ok(None),
        (Some(key), Some(value)) if quantized => (key, value),
        _ => {
            call.tiles(false, || {
                let dtype = of.key.element.name();
                format!("keyAntiquantScale, valueAntiquantScale: both or none, key is of {dtype}")
            })?;
            return Ok(None);
        }
    };
    call.tiles(sizes.layout != Layout::Tnd, || "key: INT8, which TND does not take".to_owned())?;
    let (key_mode, value_mode) = (of.key_mode, of.value_mode);
    call.tiles(key_mode == value_mode, || {
        format!("keyAntiquantMode {key_mode}, valueAntiquantMode {value_mode}: both are the same")
    })?;
    let one = sizes.longest == 1;
    if !one {
        // "Q_S > 1" of the table: BF16, at most 16 queries, no blocks; the document of 2025-11 says the last as well.
        call.element(&of.query, &[Element::Bf16])?;
        let longest = sizes.longest;
        call.tiles(longest <= 16, || format!("query: {longest} of a sequence, limit 16 with INT8 keys"))?;
        call.tiles(sizes.paged.is_none(), || {
            "blockTableOptional: INT8 keys in blocks take one query of a sequence".to_owned()
        })?;
    }
    Ok(Some([shape(call, of, sizes, key, one)?, shape(call, of, sizes, value, one)?]))
}

fn shape(call: &Call, of: &Arguments, sizes: &Sizes, scale: &Arg, one: bool) -> Result<Mode, Failure> {
    let (n, d) = (of.kv_heads, sizes.width);
    let mode = of.key_mode;
    let mut allowed = match (mode, one) {
        (0, true) => vec![vec![1, n, 1, d], vec![1, n, d], vec![1, n * d]],
        (0, false) => vec![vec![n, d], vec![n, 1, d], vec![n * d]],
        (1, _) => Vec::new(),
        (2..=6, true) => return call.unmodelled(&format!("keyAntiquantMode {mode}")).map(|()| Mode::Channel),
        _ => {
            return call
                .tiles(false, || format!("keyAntiquantMode {mode}, limit 0 to {}", if one { 6 } else { 1 }))
                .map(|()| Mode::Channel);
        }
    };
    if mode == 0 {
        call.element(scale, &[of.query.element])?;
    } else {
        call.element(scale, &[Element::F32])?;
        // In blocks there is a scale for every slot of a row of the table.
        let (_, padded, _) = sizes.layout.sizes(&of.key.dims, n);
        let least = of.table.as_ref().map_or(padded, |table| table.dims[1] * of.block_size);
        let length = scale.last() as i64;
        call.tiles(length >= least, || format!("antiquant scales for {length} keys, limit {least} or more"))?;
        allowed.push(if one { vec![1, sizes.batch, length] } else { vec![sizes.batch, length] });
    }
    call.tiles(allowed.contains(&scale.dims), || {
        format!("antiquant scales: shape {:?}, mode {mode} takes {allowed:?}", scale.dims)
    })?;
    Ok(if mode == 0 { Mode::Channel } else { Mode::Token { length: scale.last() } })
}

/// A row's bytes times their scales.
pub(super) fn dequantize(row: &mut [f64], mode: Mode, scales: &[f64], [b, position, head]: [usize; 3]) {
    let width = row.len();
    for (at, value) in row.iter_mut().enumerate() {
        *value *= match mode {
            Mode::Channel => scales[head * width + at],
            Mode::Token { length } => scales[b * length + position],
        };
    }
}
