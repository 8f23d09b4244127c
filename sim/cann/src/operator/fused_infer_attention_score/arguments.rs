//! The arguments, and what the documents allow of them.

use super::super::call::{Arg, Call, Plan};
use super::compute::{Attention, Source};
use super::layout::{Layout, Paged};
use super::quantized;
use crate::element::Element;
use crate::runtime::error::Failure;
use crate::settings::Profile;

/// The side of the mask that stands for masks of every size.
const MASK: i64 = 2048;

pub(super) struct Arguments {
    pub(super) query: Arg,
    pub(super) key: Arg,
    pub(super) value: Arg,
    pub(super) mask: Option<Arg>,
    pub(super) query_lengths: Option<Vec<i64>>,
    pub(super) kv_lengths: Option<Vec<i64>>,
    pub(super) table: Option<Arg>,
    pub(super) key_scale: Option<Arg>,
    pub(super) value_scale: Option<Arg>,
    pub(super) heads: i64,
    pub(super) kv_heads: i64,
    pub(super) scale: f64,
    pub(super) layout: String,
    pub(super) sparse_mode: i64,
    pub(super) inner_precise: i64,
    pub(super) block_size: i64,
    pub(super) key_mode: i64,
    pub(super) value_mode: i64,
    pub(super) out: Arg,
    pub(super) lse: Option<Arg>,
}

/// What the shapes come to.
pub(super) struct Sizes {
    pub(super) layout: Layout,
    pub(super) batch: i64,
    /// The longest that a query may be.
    pub(super) longest: i64,
    pub(super) width: i64,
    pub(super) value_width: i64,
    pub(super) paged: Option<[Paged; 2]>,
}

pub(super) fn plan(call: &Call, arguments: Arguments) -> Result<Plan, Failure> {
    let of = &arguments;
    types(call, of)?;
    heads(call, of)?;
    let sizes = sizes(call, of)?;
    widths(call, of, &sizes)?;
    blocks(call, of, &sizes)?;
    let causal = mask(call, of, &sizes)?;
    let queries = query_spans(call, of, &sizes)?;
    let keys = key_spans(call, of, &sizes)?;
    results(call, of, &sizes)?;
    let scales = quantized::scales(call, of, &sizes)?;
    let workspace = 16 * 1024 * 1024 + 4 * of.query.count();
    let attention = Attention {
        source: match sizes.paged {
            Some(paged) => Source::Blocks(paged),
            None => Source::Plain,
        },
        layout: sizes.layout,
        value_width: sizes.value_width as usize,
        width: sizes.width as usize,
        causal,
        queries,
        keys,
        scales,
        of: arguments,
    };
    Plan::new(workspace, move || attention.run())
}

fn types(call: &Call, of: &Arguments) -> Result<(), Failure> {
    // Queries of INT8 are not modelled.
    call.element(&of.query, &[Element::F16, Element::Bf16])?;
    call.element(&of.key, &[of.query.element, Element::I8])?;
    call.element(&of.value, &[of.key.element])?;
    call.element(&of.out, &[of.query.element])?;
    let mut all = vec![&of.query, &of.key, &of.value, &of.out];
    all.extend(of.mask.iter().chain(&of.table));
    call.contiguous(&all)?;
    call.not_empty(&[&of.query, &of.key, &of.value])
}

fn heads(call: &Call, of: &Arguments) -> Result<(), Failure> {
    let (heads, kv_heads) = (of.heads, of.kv_heads);
    call.tiles((1..=256).contains(&heads), || format!("numHeads {heads}, limit 1 to 256"))?;
    call.tiles((1..=heads).contains(&kv_heads) && heads % kv_heads == 0, || {
        format!("numKeyValueHeads {kv_heads}, which does not divide numHeads {heads}")
    })?;
    // Without a limit in the document of 2026-08.
    let ratio = heads / kv_heads;
    call.tiles(call.profile >= Profile::V9_0 || ratio <= 64, || {
        format!("numHeads {heads} for numKeyValueHeads {kv_heads}: a ratio of {ratio}, limit 64")
    })
}

fn sizes(call: &Call, of: &Arguments) -> Result<Sizes, Failure> {
    let layout = Layout::of(call, &of.layout)?;
    let rank = layout.rank();
    call.rank(&of.query, rank..=rank)?;
    let said = layout.heads(&of.query.dims, of.heads);
    call.tiles(said == of.heads, || format!("numHeads {}, query {:?} has {said}", of.heads, of.query.dims))?;
    let (rows, longest, width) = layout.sizes(&of.query.dims, of.heads);
    let mut batch = rows;
    if layout == Layout::Tnd {
        let Some(lengths) = &of.query_lengths else {
            call.tiles(false, || "actualSeqLengthsOptional is null, TND needs it".to_owned())?;
            return call.unmodelled("TND without lengths").map(|()| Sizes::none(layout));
        };
        batch = lengths.len() as i64;
        call.tiles((1..=4096).contains(&batch), || {
            format!("actualSeqLengths: {batch} sequences, limit 1 to 4096")
        })?;
        call.tiles(longest <= 1 << 20, || format!("query: T {longest}, limit 1048576"))?;
    }
    call.tiles(batch <= 65_536, || format!("query: {batch} sequences, limit 65536"))?;
    if of.table.is_none() {
        call.rank(&of.key, rank..=rank)?;
        call.rank(&of.value, rank..=rank)?;
        let said = layout.heads(&of.key.dims, of.kv_heads);
        let limit = of.kv_heads;
        call.tiles(said == limit, || format!("numKeyValueHeads {limit}, key {:?} has {said}", of.key.dims))?;
        let [key, value] = [&of.key, &of.value].map(|arg| layout.sizes(&arg.dims, of.kv_heads));
        call.tiles(key.0 == rows && (key.0, key.1) == (value.0, value.1), || {
            format!("key {:?}, value {:?} for {rows} sequences", of.key.dims, of.value.dims)
        })?;
        call.tiles(key.2 == width, || format!("key: heads of {}, query's are of {width}", key.2))?;
        return Ok(Sizes { layout, batch, longest, width, value_width: value.2, paged: None });
    }
    let [key, value] = [&of.key, &of.value].map(|arg| Paged::of(call, arg, of.kv_heads, of.block_size));
    let (key, value) = (key?, value?);
    call.tiles(key.width == width, || format!("key: heads of {}, query's are of {width}", key.width))?;
    call.tiles(key.blocks == value.blocks, || {
        format!("value: {} blocks, key has {}", value.blocks, key.blocks)
    })?;
    Ok(Sizes { layout, batch, longest, width, value_width: value.width, paged: Some([key, value]) })
}

impl Sizes {
    fn none(layout: Layout) -> Self {
        Self { layout, batch: 0, longest: 0, width: 0, value_width: 0, paged: None }
    }
}

/// Widths of heads. TND: 64, 128, or 192 with values of 128; since 2026-08 up to 256 with grouped heads.
fn widths(call: &Call, of: &Arguments, sizes: &Sizes) -> Result<(), Failure> {
    let (width, value) = (sizes.width, sizes.value_width);
    let step = if of.key.element == Element::I8 { 32 } else { 16 };
    call.tiles((1..=512).contains(&width) && width % step == 0, || {
        format!("query: heads of {width}, limit multiples of {step} to 512")
    })?;
    if sizes.layout != Layout::Tnd {
        return call.tiles(width == value, || format!("value: heads of {value}, key's are of {width}"));
    }
    let plain = matches!((width, value), (64, 64) | (128, 128) | (192, 128 | 192));
    let grouped = of.heads > of.kv_heads && width == value && width <= 256 && of.inner_precise == 0;
    call.tiles(plain || (call.profile >= Profile::V9_0 && grouped), || {
        format!("TND: heads of {width} and {value}, limit 64 and 64, 128 and 128, 192 and 128")
    })?;
    if call.profile < Profile::V9_0 {
        call.element(&of.query, &[Element::Bf16])?;
        call.tiles(of.table.is_none(), || "blockTableOptional: TND without rope has no blocks".to_owned())?;
    }
    let most = if of.heads == of.kv_heads && of.query.element == Element::F16 { 1 } else { 0 };
    call.tiles((0..=most).contains(&of.inner_precise), || {
        format!("innerPrecise {}, limit 0 to {most} with TND", of.inner_precise)
    })
}

/// Sizes of blocks, which differ between the documents.
fn blocks(call: &Call, of: &Arguments, sizes: &Sizes) -> Result<(), Failure> {
    let (Some(table), Some([cache, _])) = (&of.table, &sizes.paged) else {
        return Ok(());
    };
    let size = of.block_size;
    let one = sizes.layout != Layout::Tnd && sizes.longest == 1;
    let equal = matches!((sizes.width, sizes.value_width), (64, 64) | (128, 128));
    let (step, most) = match (call.profile, of.key.element) {
        (Profile::V9_0, Element::I8) => (128, 512),
        (Profile::V9_0, _) if sizes.layout == Layout::Tnd => (16, 128),
        (Profile::V9_0, _) if equal => (16, 1024),
        (Profile::V9_0, _) if one => (16, 512),
        (Profile::V9_0, _) => (128, 1024),
        (_, Element::I8) if one => (32, 512),
        (..) if one => (16, 512),
        (..) => (128, 512),
    };
    call.tiles(size > 0 && size <= most && size % step == 0, || {
        format!("blockSize {size}, limit multiples of {step} to {most}")
    })?;
    call.element(table, &[Element::I32])?;
    call.tiles(table.dims.len() == 2 && table.dims[0] == sizes.batch, || {
        format!("blockTableOptional: shape {:?}, expected [{}, ..]", table.dims, sizes.batch)
    })?;
    let Some(lengths) = &of.kv_lengths else {
        return call.tiles(false, || "actualSeqLengthsKvOptional is null, blocks need it".to_owned());
    };
    let needed: i64 = lengths.iter().map(|length| (length + size - 1) / size).max().unwrap_or(0);
    call.tiles(table.dims[1] >= needed, || {
        format!("blockTableOptional: {} blocks for a sequence, {needed} are needed", table.dims[1])
    })?;
    call.tiles(cache.blocks > 0, || "key: no blocks".to_owned())
}

/// True for the causal mask whose corner is the last query at the last key.
fn mask(call: &Call, of: &Arguments, sizes: &Sizes) -> Result<bool, Failure> {
    if let Some(mask) = &of.mask {
        call.element(mask, &[Element::Bool, Element::I8, Element::U8])?;
    }
    let (precise, mode) = (of.inner_precise, of.sparse_mode);
    call.tiles((0..=3).contains(&precise), || format!("innerPrecise {precise}, limit 0 to 3"))?;
    // With one query the last key is all there is to see: the mode has no effect.
    let one = sizes.layout != Layout::Tnd && sizes.longest == 1;
    match (mode, &of.mask) {
        (0, None) => Ok(false),
        (3, Some(mask)) => {
            let shapes: [&[i64]; 3] = [&[MASK, MASK], &[1, MASK, MASK], &[1, 1, MASK, MASK]];
            call.tiles(shapes.contains(&&mask.dims[..]), || {
                format!("attenMaskOptional: shape {:?}, sparseMode 3 takes [{MASK}, {MASK}]", mask.dims)
            })?;
            Ok(!one)
        }
        (3, None) => {
            call.tiles(false, || "attenMaskOptional is null, sparseMode 3 needs it".to_owned())?;
            Ok(false)
        }
        (0..=9, _) => call.unmodelled(&format!("sparseMode {mode} with such a mask")).map(|()| false),
        _ => call.tiles(false, || format!("sparseMode {mode}, limit 0 to 9")).map(|()| false),
    }
}

/// First row and count of each sequence's queries.
fn query_spans(call: &Call, of: &Arguments, sizes: &Sizes) -> Result<Vec<(i64, i64)>, Failure> {
    let name = "actualSeqLengths";
    match (&of.query_lengths, sizes.layout) {
        (Some(ends), Layout::Tnd) => {
            let spans = cumulative(call, name, ends, sizes.longest)?;
            // vllm-ascend pads its lengths to reach T; what rows behind the last sequence get nobody says.
            let (last, total) = (ends.last().copied().unwrap_or(0), sizes.longest);
            call.tiles(last == total, || format!("{name}: the last is {last}, T is {total}"))?;
            Ok(spans)
        }
        (lengths, _) => padded(call, name, lengths.as_deref(), sizes.batch, sizes.longest),
    }
}

/// First row and count of each sequence's keys; in blocks the first is 0.
fn key_spans(call: &Call, of: &Arguments, sizes: &Sizes) -> Result<Vec<(i64, i64)>, Failure> {
    let name = "actualSeqLengthsKv";
    let (_, length, _) = sizes.layout.sizes(&of.key.dims, of.kv_heads);
    let lengths = of.kv_lengths.as_deref();
    match (sizes.paged, sizes.layout, lengths) {
        (Some(_), _, _) => {
            let most = of.table.as_ref().map_or(0, |table| table.dims[1] * of.block_size);
            padded(call, name, lengths, sizes.batch, most)
        }
        (None, Layout::Tnd, Some(ends)) => {
            let count = ends.len() as i64;
            call.tiles(count == sizes.batch, || {
                format!("{name}: {count} values for {} sequences", sizes.batch)
            })?;
            cumulative(call, name, ends, length)
        }
        (None, Layout::Tnd, None) => {
            call.tiles(false, || format!("{name}Optional is null, TND needs it"))?;
            Ok(Vec::new())
        }
        (None, _, lengths) => padded(call, name, lengths, sizes.batch, length),
    }
}

fn cumulative(call: &Call, name: &str, ends: &[i64], limit: i64) -> Result<Vec<(i64, i64)>, Failure> {
    let mut first = 0;
    let mut spans = Vec::new();
    for &end in ends {
        call.tiles((first..=limit).contains(&end), || {
            format!("{name}: {end} after {first}, limit {limit}: the values are cumulative")
        })?;
        spans.push((first, end - first));
        first = end;
    }
    Ok(spans)
}

fn padded(
    call: &Call,
    name: &str,
    lengths: Option<&[i64]>,
    batch: i64,
    limit: i64,
) -> Result<Vec<(i64, i64)>, Failure> {
    let all = match lengths {
        None => vec![limit; batch as usize],
        Some(&[only]) => vec![only; batch as usize],
        Some(lengths) => {
            let count = lengths.len();
            call.tiles(count as i64 >= batch, || format!("{name}: {count} values for {batch} sequences"))?;
            lengths[..batch as usize].to_vec()
        }
    };
    if let Some(wrong) = all.iter().find(|length| !(0..=limit).contains(*length)) {
        call.tiles(false, || format!("{name}: {wrong}, limit {limit}"))?;
    }
    Ok(all.into_iter().map(|length| (0, length)).collect())
}

fn results(call: &Call, of: &Arguments, sizes: &Sizes) -> Result<(), Failure> {
    call.shape(&of.out, &sizes.layout.with_width(&of.query.dims, of.heads, sizes.value_width))?;
    let Some(lse) = &of.lse else { return Ok(()) };
    call.element(lse, &[Element::F32])?;
    match sizes.layout {
        Layout::Tnd => call.shape(lse, &[sizes.longest, of.heads, 1]),
        _ => call.shape(lse, &[sizes.batch, of.heads, sizes.longest, 1]),
    }
}
