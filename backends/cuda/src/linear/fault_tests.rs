//! Faults made in the source of the tensor cores' kernel: the interpreter, or the comparison with dot products, tells each.

use halite_hal::{Device, Result};
use halite_kernels::linear::LinearSpec;

use super::{
    dot, int8,
    testing::{self, Layer},
};
use crate::{compile::Source, testing::cuda};

/// The source with one place of its tile changed.
fn changed(from: &str, to: &str) -> &'static Source {
    let headers =
        [("linear/int8.cuh", include_str!("int8.cuh")), ("linear/tile.cuh", include_str!("tile.cuh"))];
    testing::changed("test/int8.cu", &int8::SOURCE, &headers, from, to)
}

/// What a source gives, and what it should.
struct Ran {
    got: Result<Vec<u8>>,
    expected: Vec<u8>,
}

/// None without NVRTC.
fn run(source: &'static Source) -> Result<Option<Ran>> {
    // A device of its own: a fault loses it.
    let Some(cuda) = cuda("faults in the source of INT8 products") else { return Ok(None) };
    let mut stream = cuda.stream()?;
    // Several parts of K, the last where the first was; several warps along both sides.
    let layer = Layer::new(&cuda, &mut stream, &LinearSpec::w8a8(496, 64), 40)?;
    let expected = layer.run(&mut stream, dot::run)?;
    let got = layer.run(&mut stream, |stream, call| stream.launch(int8::launch(source, call)?));
    Ok(Some(Ran { got, expected }))
}

/// The interpreter tells the change: the kernel, the place, and `what`.
fn assert_told(from: &str, to: &str, what: &str) -> Result<()> {
    let Some(Ran { got, .. }) = run(changed(from, to))? else { return Ok(()) };
    let report = got.map_or_else(|error| error.to_string(), |_| "nothing".to_owned());
    for part in ["kernel `linear_int8`", "block (", "lane ", "line ", what] {
        assert!(report.contains(part), "{part}: {report}");
    }
    Ok(())
}

#[test]
fn the_source_itself_is_right() -> Result<()> {
    let Some(Ran { got, expected }) = run(changed("// ---- The way out.", ""))? else { return Ok(()) };
    assert!(got? == expected);
    Ok(())
}

#[test]
fn parts_that_others_copied_need_a_barrier() -> Result<()> {
    let barrier = "        __syncthreads();\n        const i32 next";
    assert_told(barrier, "        const i32 next", "no barrier lies between")
}

#[test]
fn parts_under_way_are_waited_for() -> Result<()> {
    assert_told("        copy_async_wait<STAGES - 2>();\n", "", "a cp.async is yet to write")
}

#[test]
fn one_part_too_few_is_waited_for() -> Result<()> {
    assert_told("copy_async_wait<STAGES - 2>", "copy_async_wait<STAGES - 1>", "a cp.async is yet to write")
}

#[test]
fn sums_go_where_parts_were_only_when_all_have_read_them() -> Result<()> {
    let barrier = "        // Everybody has read what lay here.\n        __syncthreads();\n";
    assert_told(barrier, "", "no barrier lies between")
}

#[test]
fn wrong_fragments_are_wrong_numbers() -> Result<()> {
    for (from, to) in [
        ("multiply(sums[i][j], a[i], b[0], b[1]);", "multiply(sums[i][j], a[i], b[1], b[0]);"),
        ("multiply(sums[i][j + 1], a[i], b[2], b[3]);", "multiply(sums[i][j + 1], a[i], b[1], b[3]);"),
        ("2 * step + warp.lane / 16));", "2 * step + 1 - warp.lane / 16));"),
    ] {
        let Some(Ran { got, expected }) = run(changed(from, to))? else { return Ok(()) };
        assert!(got? != expected, "{to}");
    }
    Ok(())
}
