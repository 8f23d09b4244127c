//! The text of a kernel: declarations made from what a dispatch says of itself, and the shader's own text behind them.

use crate::launch::{Access, Bound, Constant, Launch, Number};
use halite_hal::DType;
use std::fmt::Write;

/// Of one kernel.
pub(crate) fn text(launch: &Launch) -> String {
    let mut text = String::new();
    let present = || launch.operands.iter().filter(|bound| bound.operand.is_some());
    if present().count() + launch.numbers.len() > 0 {
        text.push_str("struct Immediates {\n");
        present().for_each(|bound| put(&mut text, format_args!("    {}_base: u32,\n", bound.name)));
        for (name, number) in &launch.numbers {
            let kind = match number {
                Number::U32(_) => "u32",
                Number::I32(_) => "i32",
                Number::F32(_) => "f32",
            };
            put(&mut text, format_args!("    {name}: {kind},\n"));
        }
        text.push_str("}\nvar<immediate> im: Immediates;\n");
    }
    for (name, constant) in &launch.constants {
        match constant {
            Constant::U32(value) => put(&mut text, format_args!("const {name}: u32 = {value}u;\n")),
            Constant::Bool(value) => put(&mut text, format_args!("const {name}: bool = {value};\n")),
        }
    }
    let mut binding = 0;
    for bound in &launch.operands {
        declare(&mut text, bound, binding);
        binding += u32::from(bound.operand.is_some());
    }
    text.push_str(include_str!("prelude.wgsl"));
    launch.shader.source.iter().for_each(|part| text.push_str(part));
    text
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = text.write_fmt(arguments);
}

/// The binding of an operand and its accessors.
fn declare(text: &mut String, bound: &Bound, binding: u32) {
    let Bound { name, access, dtype, operand } = bound;
    let there = operand.is_some();
    put(text, format_args!("const HAS_{}: bool = {there};\n", name.to_uppercase()));
    put(text, format_args!("alias {name}_value = {};\n", if dtype.is_float() { "f32" } else { "i32" }));
    let small = dtype.size() < 4;
    let reads = matches!(access, Access::In | Access::InOut);
    let writes = matches!(access, Access::Out | Access::InOut);
    let value = if dtype.is_float() { "f32" } else { "i32" };
    if !there {
        match access {
            Access::Words => {
                put(text, format_args!("fn {name}(i: u32) -> u32 {{ return 0u; }}\n"));
                put(text, format_args!("fn set_{name}(i: u32, value: u32) {{ }}\n"));
            }
            Access::Quads => {
                put(text, format_args!("fn {name}(i: u32) -> vec4<u32> {{ return vec4<u32>(); }}\n"))
            }
            Access::Atomic => {}
            _ => {
                put(text, format_args!("fn {name}(i: u32) -> {value} {{ return {value}(); }}\n"));
                put(text, format_args!("fn set_{name}(i: u32, value: {value}) {{ }}\n"));
            }
        }
        return;
    }
    let atomic = *access == Access::Atomic || writes && small;
    let element = match access {
        Access::Quads => "vec4<u32>",
        _ if atomic => "atomic<u32>",
        _ => "u32",
    };
    put(
        text,
        format_args!(
            "@group(0) @binding({binding}) var<storage, read_write> {name}_words: array<{element}>;\n"
        ),
    );
    put(text, format_args!("fn {name}_at(i: u32) -> u32 {{ return im.{name}_base + i; }}\n"));
    match access {
        Access::Words => {
            put(text, format_args!("fn {name}(i: u32) -> u32 {{ return {name}_words[{name}_at(i)]; }}\n"));
            put(
                text,
                format_args!("fn set_{name}(i: u32, value: u32) {{ {name}_words[{name}_at(i)] = value; }}\n"),
            );
        }
        Access::Quads => {
            put(
                text,
                format_args!("fn {name}(i: u32) -> vec4<u32> {{ return {name}_words[{name}_at(i)]; }}\n"),
            );
        }
        _ => {}
    }
    if reads {
        let word = |word: &str| {
            if atomic {
                format!("atomicLoad(&{name}_words[{word}])")
            } else {
                format!("{name}_words[{word}]")
            }
        };
        put(text, format_args!("fn {name}(i: u32) -> {value} {{\n    let at = {name}_at(i);\n"));
        let body = match dtype {
            DType::F32 => format!("bitcast<f32>({})", word("at")),
            DType::I32 => format!("bitcast<i32>({})", word("at")),
            DType::F16 => format!("f16_decode(extractBits({}, 16u * (at & 1u), 16u))", word("at >> 1u")),
            DType::Bf16 => {
                format!("bitcast<f32>(extractBits({}, 16u * (at & 1u), 16u) << 16u)", word("at >> 1u"))
            }
            DType::I8 => format!("extractBits(bitcast<i32>({}), 8u * (at & 3u), 8u)", word("at >> 2u")),
            _ => format!("bitcast<i32>(extractBits({}, 8u * (at & 3u), 8u))", word("at >> 2u")),
        };
        put(text, format_args!("    return {body};\n}}\n"));
    }
    if writes {
        put(text, format_args!("fn set_{name}(i: u32, value: {value}) {{\n    let at = {name}_at(i);\n"));
        let (bits, width) = match dtype {
            DType::F16 => ("f16_encode(value)", 16),
            DType::Bf16 => ("bf16_encode(value)", 16),
            DType::F32 | DType::I32 => ("bitcast<u32>(value)", 32),
            _ => ("bitcast<u32>(value)", 8),
        };
        if width == 32 {
            put(text, format_args!("    {name}_words[at] = {bits};\n}}\n"));
        } else {
            // Other invocations change other bits of the word at the same time, never these: so what is wanted is reached
            // by flipping, in one step, those that differ.
            let (shift, mask) = if width == 16 { (1, "0xffffu") } else { (2, "0xffu") };
            put(
                text,
                format_args!(
                    "    let shift = {width}u * (at & {}u);\n    let old = atomicLoad(&{name}_words[at >> {shift}u]) >> shift;\n    \
                 atomicXor(&{name}_words[at >> {shift}u], ((old ^ {bits}) & {mask}) << shift);\n}}\n",
                    32 / width - 1
                ),
            );
        }
    }
}
