//! Opcodes of machine code, as nvdisasm names them.
//!
//! It takes a third of a second to start and microseconds for an instruction. So all programs of an architecture go through it
//! at once, as bare instructions without the files around them, each different one once.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
    process::Command,
};

/// One instruction, with all that it is scheduled by.
pub(super) type Instruction = [u8; 16];

/// The instructions of all functions in a file of machine code, which is an ELF file of 64 bits, little-endian.
pub(super) fn instructions(cubin: &[u8]) -> Vec<Instruction> {
    let number = |at: usize, bytes: usize| {
        cubin[at..at + bytes].iter().rev().fold(0_usize, |number, &byte| number << 8 | usize::from(byte))
    };
    let (table, size, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    let mut found = Vec::new();
    for header in (0..count).map(|section| table + section * size) {
        // Contents of the program (1) that are executed (4).
        if number(header + 4, 4) == 1 && number(header + 8, 8) & 4 != 0 {
            let (start, bytes) = (number(header + 0x18, 8), number(header + 0x20, 8));
            let (whole, rest) = cubin[start..start + bytes].as_chunks();
            assert!(rest.is_empty(), "a section of {bytes} bytes");
            found.extend_from_slice(whole);
        }
    }
    assert!(!found.is_empty(), "no machine code");
    found
}

/// The opcodes of each of some programs for one architecture.
pub(super) fn opcodes(
    programs: &[Vec<Instruction>],
    architecture: &str,
    nvdisasm: &Path,
    folder: &Path,
) -> Vec<BTreeSet<String>> {
    let mut places: HashMap<Instruction, usize> = HashMap::new();
    let mut bytes = Vec::new();
    for instruction in programs.iter().flatten() {
        let next = places.len();
        places.entry(*instruction).or_insert_with(|| {
            bytes.extend_from_slice(instruction);
            next
        });
    }
    if bytes.is_empty() {
        return vec![BTreeSet::new(); programs.len()];
    }
    let file = folder.join(architecture);
    fs::write(&file, bytes).unwrap();
    let binary = format!("--binary={}", architecture.replace("sm_", "SM"));
    let output = Command::new(nvdisasm).arg("--no-dataflow").arg(binary).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let named: Vec<&str> = text.lines().filter_map(opcode).collect();
    assert_eq!(named.len(), places.len(), "nvdisasm knows every instruction for {architecture}");
    let of = |program: &Vec<Instruction>| {
        program.iter().map(|instruction| named[places[instruction]].to_owned()).collect()
    };
    programs.iter().map(of).collect()
}

/// `/*0a30*/  @!P0 LDGSTS.E.BYPASS.128 [R5], [R2.64] ;`: what follows place and predicate. None where a line has no
/// instruction.
fn opcode(line: &str) -> Option<&str> {
    let (_, instruction) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    instruction.split_whitespace().find(|word| !word.starts_with('@'))
}

#[test]
fn an_opcode_is_found_behind_place_and_predicate() {
    assert_eq!(opcode("  /*0a30*/   @!P0 LDGSTS.E.128 [R5], [R2.64] ;"), Some("LDGSTS.E.128"));
    assert_eq!(opcode("        /*26010*/                   EXIT ;"), Some("EXIT"));
    assert_eq!(opcode("\t.headerflags\t@\"EF_CUDA_SM80\""), None);
    assert_eq!(opcode(".L_x_1:"), None);
}
