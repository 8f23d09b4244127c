//! Faults made in the source of the tensor cores' kernel: the interpreter, or the comparison with the kernel as it is, tells
//! each.

use halite_hal::{DType, Device, Result};
use halite_kernels::{
    attention::AttentionSpec,
    cache::{KvFormat, KvSpec},
};

use super::testing::{Sequence, by_tensor_cores, launch};
use crate::{compile::Source, testing};

/// The files that the source is made of, each including the next.
const FILES: [(&str, &str); 4] = [
    ("attention/mma.cu", include_str!("mma.cu")),
    ("attention/products.cuh", include_str!("products.cuh")),
    ("attention/step.cuh", include_str!("step.cuh")),
    ("attention/call.cuh", include_str!("call.cuh")),
];

/// The source with one place changed.
fn changed(from: &str, to: &str) -> &'static Source {
    let mut text = String::new();
    for (name, file) in FILES.iter().rev() {
        let (included, whole) = (format!("#include \"{name}\"\n"), file.replace("#pragma once\n", ""));
        let next = FILES.iter().skip_while(|(other, _)| other != name).nth(1);
        text = match next {
            Some((next, _)) => {
                let include = format!("#include \"{next}\"\n");
                assert_eq!(whole.matches(&include).count(), 1, "{name} includes {next}");
                whole.replace(&include, &text)
            }
            None => whole,
        };
        assert!(!text.contains(&included), "{name} is there once");
    }
    assert_eq!(text.matches(from).count(), 1, "the source has one {from:?}");
    Box::leak(Box::new(Source::new("test/mma.cu", text.replace(from, to).leak())))
}

/// What a source gives, and what it should.
struct Ran {
    got: Result<Vec<u16>>,
    expected: Vec<u16>,
}

/// None without NVRTC.
fn run(source: &'static Source, format: KvFormat) -> Result<Option<Ran>> {
    // A device of its own: a fault loses it.
    let Some(cuda) = testing::cuda("faults in the source of attention") else { return Ok(None) };
    let mut stream = cuda.stream()?;
    // Four steps of positions, over pages that no step begins with; several warps along rows.
    let kv = KvSpec::new(1, 1, 48).with_block_size(7).with_format(format);
    let spec = AttentionSpec::causal(2, kv).with_dtype(DType::Bf16);
    let sequence = Sequence::new(&cuda, &mut stream, &spec, 100, &[])?;
    let expected = sequence.run(&mut stream, 20, by_tensor_cores)?;
    let got = sequence.run(&mut stream, 20, |stream, call| launch(stream, call, source));
    Ok(Some(Ran { got, expected }))
}

const BF16: KvFormat = KvFormat::Float(DType::Bf16);
const INT8: KvFormat = KvFormat::Int8PerTokenHead;

/// The interpreter tells the change: the kernel, the place, and `what`.
fn assert_told(from: &str, to: &str, format: KvFormat, what: &str) -> Result<()> {
    let Some(Ran { got, .. }) = run(changed(from, to), format)? else { return Ok(()) };
    let report = got.map_or_else(|error| error.to_string(), |_| "nothing".to_owned());
    for part in ["kernel `attend_mma`", "block (", "lane ", "line ", what] {
        assert!(report.contains(part), "{part}: {report}");
    }
    Ok(())
}

#[test]
fn the_source_itself_is_right() -> Result<()> {
    for format in [BF16, INT8] {
        let Some(Ran { got, expected }) = run(changed("// ---- Products.", ""), format)? else {
            return Ok(());
        };
        assert!(got? == expected, "{format:?}");
    }
    Ok(())
}

#[test]
fn steps_that_others_copied_need_a_barrier() -> Result<()> {
    let barrier = "        __syncthreads();\n        if (next.first < all.end)";
    assert_told(barrier, "        if (next.first < all.end)", BF16, "no barrier lies between")
}

#[test]
fn steps_under_way_are_waited_for() -> Result<()> {
    let wait = "        copy_async_wait<0>();\n        // After it";
    assert_told(wait, "        // After it", BF16, "a cp.async is yet to write")
}

#[test]
fn bytes_that_others_widened_need_a_barrier() -> Result<()> {
    let barrier = "room.value_bytes);\n        __syncthreads();\n";
    assert_told(barrier, "room.value_bytes);\n", INT8, "no barrier lies between")
}

#[test]
fn rows_of_the_cache_are_found_before_they_are_copied() -> Result<()> {
    let barrier = "        __syncthreads();\n        copy(step, turn);";
    assert_told(barrier, "        copy(step, turn);", BF16, "no barrier lies between")
}

#[test]
fn a_page_too_far_is_a_wrong_number() -> Result<()> {
    for (from, to) in [
        ("block_table[position / call.block_size]", "block_table[(position + 1) / call.block_size]"),
        ("position % call.block_size)", "(position + 1) % call.block_size)"),
    ] {
        let Some(Ran { got, expected }) = run(changed(from, to), BF16)? else { return Ok(()) };
        // The last page has none after it: there the interpreter may tell what is read.
        assert!(got.is_err() || got? != expected, "{to}");
    }
    Ok(())
}

#[test]
fn wrong_fragments_are_wrong_numbers() -> Result<()> {
    for (from, to) in [
        (
            "multiply_add<ELEMENT>(sums[2 * i], a, b[0], b[1]);",
            "multiply_add<ELEMENT>(sums[2 * i], a, b[1], b[0]);",
        ),
        (
            "multiply_add<Value>(sums[unit][1], a, b[2], b[3]);",
            "multiply_add<Value>(sums[unit][1], a, b[0], b[1]);",
        ),
        ("0.0f;\n            sums[c / 2]", "1.0f;\n            sums[c / 2]"),
    ] {
        let Some(Ran { got, expected }) = run(changed(from, to), BF16)? else { return Ok(()) };
        assert!(got? != expected, "{to}");
    }
    Ok(())
}
