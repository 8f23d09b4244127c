//! Every program compiles for every architecture without a warning, has the instructions that it was written for, and stays
//! within the registers of `resources.txt` without a byte of spills.

mod disassembly;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use self::disassembly::{Instruction, instructions, opcodes};
use crate::{
    compile::{Architecture, Output, Program, compile, for_all, nvrtc_version},
    programs, testing,
};

const ARCHITECTURES: &[&str] = &["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"];
/// One line a program: its name, and the most registers for each architecture.
const TABLE: &str = include_str!("resources.txt");
/// What machine code must have, by source: products, copies past the registers, loads of matrices.
const INSTRUCTIONS: &[(&str, &[&str])] = &[
    ("activation.cu", &["LDG.E.128", "STG.E.128", "MUFU"]),
    ("activation_quantize.cu", &["SHFL", "STG.E"]),
    ("attention/attend.cu", &["LDS.128", "STS.128", "LDG.E.128", "SHFL", "MUFU.EX2"]),
    ("attention/mma.cu", &["HMMA", "LDGSTS", "LDSM", "SHFL", "MUFU.EX2"]),
    ("attention/join.cu", &["LDG", "STG", "MUFU.EX2"]),
    ("cache/write.cu", &["LDG", "STG", "SHFL"]),
    ("collectives/reduce.cu", &["LDG", "STG"]),
    ("copy.cu", &["LDG", "STG"]),
    ("embedding/l2_normalize.cu", &["SHFL", "MUFU.RSQ"]),
    ("embedding/look_up.cu", &["LDG", "STG"]),
    ("embedding/pooling.cu", &["LDG", "STG"]),
    ("linear/dot.cu", &["SHFL", "LDG", "STG"]),
    ("linear/grouped.cu", &["SHFL", "LDG", "STG"]),
    ("linear/grouped_float.cu", &["HMMA", "LDGSTS", "LDSM", "SHFL"]),
    ("linear/grouped_group_wise.cu", &["IMMA", "LDGSTS", "LDSM", "SHFL"]),
    ("linear/grouped_int8.cu", &["IMMA", "LDGSTS", "LDSM", "SHFL"]),
    ("linear/float.cu", &["HMMA", "LDGSTS", "LDSM"]),
    ("linear/group_wise.cu", &["IMMA", "LDGSTS", "LDSM"]),
    ("linear/int8.cu", &["IMMA", "LDGSTS", "LDSM"]),
    ("logits/logits.cu", &["LDG", "STG"]),
    ("mla/project.cu", &["LDG.E.64", "LDG.E.128", "LDS.128"]),
    ("moe/permutation.cu", &["BAR", "LDG.E.128", "STG.E.128"]),
    ("moe/routing.cu", &["SHFL", "MUFU.EX2"]),
    ("moe/rows.cu", &["SHFL", "LDG", "STG", "MUFU"]),
    ("moe/shared_gate.cu", &["SHFL", "MUFU.EX2", "BAR"]),
    ("norm/norm.cu", &["LDG.E", "STG.E", "SHFL", "MUFU.RSQ"]),
    ("norm/quantize.cu", &["SHFL", "MUFU.RSQ"]),
    ("quantize/quantize.cu", &["SHFL", "STG.E"]),
    ("quantize/rotate.cu", &["LDS", "STS", "BAR"]),
    ("rope/rope.cu", &["LDG", "STG"]),
    ("rope/write.cu", &["LDG", "STG", "SHFL"]),
    ("sampling/log_probs.cu", &["SHFL", "MUFU.EX2"]),
    ("sampling/sampling.cu", &["SHFL", "MUFU.EX2", "ATOMS"]),
    ("sampling/verify.cu", &["SHFL", "MUFU.EX2", "ATOMS"]),
    ("top_k.cu", &["ATOMS", "LDS.64", "BAR"]),
];
/// What it must not have: loads and stores of local memory, which spills are.
const SPILLS: &[&str] = &["LDL", "STL"];

/// The programs that tell of machine code, `cuobjdump` and `nvdisasm`: wheels have them beside NVRTC's, and so has the toolkit.
fn tool(name: &str) -> PathBuf {
    let beside_libraries = env::var_os("LD_LIBRARY_PATH")
        .into_iter()
        .flat_map(|paths| env::split_paths(&paths).map(|path| path.join("../bin")).collect::<Vec<_>>());
    let on_path =
        env::var_os("PATH").into_iter().flat_map(|paths| env::split_paths(&paths).collect::<Vec<_>>());
    let mut files = beside_libraries.chain(on_path).map(|folder| folder.join(name));
    files.find(|program| program.is_file()).unwrap_or_else(|| {
        panic!("{name} lies beside NVRTC (`cargo xtask cuda` brings it) or on the path, and is in neither")
    })
}

fn resource_usage(cuobjdump: &Path, file: &Path) -> String {
    let output = Command::new(cuobjdump).arg("--dump-resource-usage").arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The number after `key:` in a line such as `REG:122 STACK:0 SHARED:0`.
fn number(usage: &str, key: &str) -> u32 {
    let word = usage.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'));
    word.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {key} in {usage}"))
}

/// A program's machine code for one architecture.
#[derive(Default)]
struct Made {
    registers: u32,
    code: Vec<Instruction>,
    /// What is wrong with it.
    wrong: Vec<String>,
}

fn make(program: &Program, architecture: &str, cuobjdump: &Path, folder: &Path) -> Made {
    let made = match compile(program, architecture.parse::<Architecture>().unwrap(), Output::Cubin) {
        Ok(made) => made,
        Err(error) => return Made { wrong: vec![error.to_string()], ..Made::default() },
    };
    let mut wrong = Vec::new();
    if !made.log.is_empty() {
        wrong.push(format!("{program} for {architecture}: {}", made.log));
    }
    let name: String = program.to_string().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let file = folder.join(format!("{name}-{architecture}.cubin"));
    fs::write(&file, &made.code).unwrap();
    let usage = resource_usage(cuobjdump, &file);
    let kernels: Vec<&str> = usage.lines().filter(|line| line.contains("REG:")).collect();
    assert!(!kernels.is_empty(), "no kernel: {usage}");
    let registers = kernels.iter().map(|kernel| number(kernel, "REG")).max().unwrap();
    if kernels.iter().any(|kernel| number(kernel, "STACK") > 0 || number(kernel, "LOCAL") > 0) {
        wrong.push(format!("{program} for {architecture} has local memory: {}", kernels.join("; ")));
    }
    Made { registers, code: instructions(&made.code), wrong }
}

/// What a program's opcodes lack, and which of them should not be there.
fn judge(program: &Program, architecture: &str, opcodes: &BTreeSet<String>) -> Vec<String> {
    let has = |wanted: &str| {
        let is = |opcode: &String| {
            opcode.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        opcodes.iter().any(is)
    };
    let file = program.source().file;
    let row = INSTRUCTIONS.iter().find(|(source, _)| *source == file);
    let wanted = row.unwrap_or_else(|| panic!("{file} has no row of instructions that it must have")).1;
    let missing = wanted.iter().filter(|opcode| !has(opcode)).map(|opcode| format!("no {opcode}"));
    let spills = SPILLS.iter().filter(|opcode| has(opcode)).map(|opcode| (*opcode).to_owned());
    missing.chain(spills).map(|what| format!("{program} for {architecture} has {what}")).collect()
}

/// Registers of programs' kernels, and what is wrong with their machine code, by program and architecture.
fn inspect(programs: &[Program], architectures: &[&str]) -> Vec<Vec<(u32, Vec<String>)>> {
    let (cuobjdump, nvdisasm) = (tool("cuobjdump"), tool("nvdisasm"));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut made = for_all(programs, |program| {
        architectures.iter().map(|name| make(program, name, &cuobjdump, folder)).collect::<Vec<_>>()
    });
    thread::scope(|scope| {
        let named: Vec<_> = (architectures.iter().enumerate())
            .map(|(at, architecture)| {
                let code: Vec<_> = made.iter_mut().map(|made| std::mem::take(&mut made[at].code)).collect();
                let nvdisasm = &nvdisasm;
                scope.spawn(move || opcodes(&code, architecture, nvdisasm, folder))
            })
            .collect();
        for (at, named) in named.into_iter().enumerate() {
            for ((program, made), opcodes) in programs.iter().zip(&mut made).zip(named.join().unwrap()) {
                // What could not be compiled has said so.
                if !opcodes.is_empty() {
                    made[at].wrong.extend(judge(program, architectures[at], &opcodes));
                }
            }
        }
    });
    let of = |made: Vec<Made>| made.into_iter().map(|made| (made.registers, made.wrong)).collect();
    made.into_iter().map(of).collect()
}

fn table(text: &str) -> BTreeMap<String, Vec<u32>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line: &str| {
        let (program, numbers) = line.split_once(" | ").expect(line);
        (program.to_owned(), numbers.split_whitespace().map(|number| number.parse().expect(line)).collect())
    };
    lines.map(row).collect()
}

#[test]
fn every_program_compiles_for_every_architecture_and_stays_within_the_table() {
    if !testing::nvrtc("machine code") {
        return;
    }
    let version = nvrtc_version().unwrap();
    let programs = programs();
    let inspected = inspect(&programs, ARCHITECTURES);
    let (known, mut found, mut wrong) = (table(TABLE), String::new(), Vec::new());
    for (program, architectures) in programs.iter().zip(&inspected) {
        let name = program.to_string();
        let registers: Vec<u32> = architectures.iter().map(|(registers, _)| *registers).collect();
        let numbers: Vec<String> = registers.iter().map(ToString::to_string).collect();
        found.push_str(&format!("{name} | {}\n", numbers.join(" ")));
        wrong.extend(architectures.iter().flat_map(|(_, wrong)| wrong.clone()));
        match known.get(&name) {
            None => wrong.push(format!("{name} is not in resources.txt")),
            Some(limits) => {
                let over = |(limit, got): (&u32, &u32)| got > limit;
                if limits.len() != registers.len() || limits.iter().zip(&registers).any(over) {
                    wrong
                        .push(format!("{name}: registers {registers:?}, beyond {limits:?} of resources.txt"));
                }
            }
        }
    }
    let names: Vec<String> = programs.iter().map(ToString::to_string).collect();
    wrong.extend(
        known
            .keys()
            .filter(|name| !names.contains(name))
            .map(|name| format!("{name} is no program any more")),
    );
    assert!(
        wrong.is_empty(),
        "NVRTC {version}:\n{}\n\nthe table as it would be, for {ARCHITECTURES:?}:\n{found}",
        wrong.join("\n")
    );
}

#[test]
fn a_spill_is_found() {
    use crate::compile::Source;

    static SPILLING: Source = Source::new(
        "linear/int8.cu",
        "#include \"prelude.cuh\"\n\
         KERNEL void f(const i32* x, i32* y) {\n\
             i32 stack[64] = {};\n\
             i32 at = x[0] & 63;\n\
             for (i32 j = 0; j < y[0]; j++) { stack[at] += j; at = (at + stack[x[j] & 63]) & 63; }\n\
             y[1] = at;\n\
         }\n",
    );
    if !testing::nvrtc("spills") {
        return;
    }
    let inspected = inspect(&[Program::new(&SPILLING)], &["sm_80"]);
    let (_, wrong) = &inspected[0][0];
    for part in ["has local memory", "has LDL", "has STL", "has no IMMA", "has no LDGSTS", "has no LDSM"] {
        assert!(wrong.iter().any(|text| text.contains(part)), "{part}: {wrong:?}");
    }
}
