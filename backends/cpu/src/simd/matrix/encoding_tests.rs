//! The assembler's bytes against the encodings in Intel's manual (Software Developer's Manual, volume 2, AMX). They are read
//! and never run, so that every machine of the architecture checks them.

use super::*;

/// The bytes of an instruction, which is jumped over.
macro_rules! bytes {
    ($text:expr $(, $name:ident = $value:literal)*) => {{
        let (start, end): (usize, usize);
        // SAFETY: two addresses are taken and the instruction between them is not reached.
        unsafe {
            asm!(
                "lea {start}, [rip + 2f]",
                "lea {end}, [rip + 3f]",
                "jmp 3f",
                "2:",
                $text,
                "3:",
                start = out(reg) start,
                end = out(reg) end,
                $($name = const $value,)*
            );
            // SAFETY: the program's own text.
            std::slice::from_raw_parts(start as *const u8, end - start)
        }
    }};
}

/// A VEX prefix of three bytes for the map 0F38, 128 bits, W0 and registers below 8; `pp` is 0 for none, 1 for 66, 2 for F3,
/// 3 for F2.
fn vex(pp: u8, vvvv: u8) -> [u8; 3] {
    [0xC4, 0b111_00010, (!vvvv & 15) << 3 | pp]
}

/// The encoding of `[rax + rcx]` or `[rax]` as an operand beside `register`.
const fn sib(register: u8) -> [u8; 2] {
    [register << 3 | 0b100, 0b00_001_000]
}

#[test]
fn configuring_and_releasing() {
    // VEX.128.NP.0F38.W0 49 /0 with memory; 49 C0.
    let configure = bytes!(text!(configure "rax"));
    assert_eq!(configure, [&vex(0, 0)[..], &[0x49, 0b00_000_000]].concat());
    assert_eq!(bytes!(text!(release)), [&vex(0, 0)[..], &[0x49, 0xC0]].concat());
}

/// Compares loads and stores of one tile.
macro_rules! memory {
    ($($tile:literal)*) => {$({
        // VEX.128.F2.0F38.W0 4B /r and VEX.128.F3.0F38.W0 4B /r, both with SIB.
        let load = bytes!(text!(load "rax" "rcx"), tile = $tile);
        assert_eq!(load, [&vex(3, 0)[..], &[0x4B], &sib($tile)].concat());
        let store = bytes!(text!(store "rax" "rcx"), tile = $tile);
        assert_eq!(store, [&vex(2, 0)[..], &[0x4B], &sib($tile)].concat());
    })*};
}

#[test]
fn loading_and_storing() {
    memory!(0 1 2 3 4 5 6 7);
}

/// Compares multiplications: sums, rows, panel.
macro_rules! products {
    ($($c:literal $a:literal $b:literal),*) => {$({
        // VEX.128.F3.0F38.W0 5E 11:rrr:bbb: the sums in reg, the signed bytes in r/m, the unsigned bytes in vvvv. The same
        // with F2 takes both for signed, with 66 the first for unsigned.
        let multiply = bytes!(text!(multiply), c = $c, a = $a, b = $b);
        assert_eq!(multiply, [&vex(2, $b)[..], &[0x5E, 0b11 << 6 | $c << 3 | $a]].concat());
    })*};
}

#[test]
fn multiplying() {
    products!(0 4 6, 1 4 7, 2 5 6, 3 5 7, 7 0 1);
}
