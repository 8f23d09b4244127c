//! Texts that were changed at random: whatever they say, the parser answers.

use super::random::Random;
use super::{calls, text};
use crate::ir::Module;

/// A text in which every part of the parser has something to do.
fn seeds() -> Vec<String> {
    let body = "\
        .loc 1 4 5, function_name $L__info0, inlined_at 1 16 13\n\
        ld.param.u64 %d0, [pointer];\n cvta.to.global.u64 %d1, %d0;\n mov.u32 %r0, %tid.x;\n\
        L0:\n setp.lt.and.s32 %p0|%p1, %r0, 0x10, !%p2;\n @!%p0 bra L1;\n .pragma \"nounroll\";\n\
        { .reg .b32 t; mov.b32 {%h0, %h1}, %r0; add.cc.u32 t, %r0, -1; lop3.b32 %r1, t, %r0, 7U, 0xEA; }\n\
        cp.async.cg.shared.global.L2::128B [tile+16], [%d1+-64], 16, %r0;\n cp.async.commit_group;\n cp.async.wait_group 0;\n\
        ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4, %r5, %r6, %r7}, [%r1];\n\
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r8,%r9,%r10,%r11}, {%r4,%r5,%r6,%r7}, {%r2,%r3}, {%r8,%r9,%r10,%r11};\n\
        cvt.rn.satfinite.e4m3x2.f32 %h2, %f0, 0f3F800000;\n fma.rn.ftz.f32 %f0, %f1, 1.5e-3, %f2;\n\
        atom.global.cas.b32 _, [counter], 1, 2;\n red.shared.add.f32 [tile], %f0;\n st.volatile.global.v4.f32 [%d1], {%f0, %f1, %f2, 0f00000000};\n\
        shfl.sync.bfly.b32 %r1|%p3, %r0, 16, 31, -1;\n bar.red.popc.u32 %r1, 1, 64, !%p1;\n mbarrier.try_wait.parity.shared.b64 %p4, [tile], %r0, 1000;\n\
        T: .branchtargets L0, L1;\n brx.idx %r0, T;\n L1: ret;\n";
    let rest = ".global .align 8 .u64 table[4] = {generic(counter)+8, {1, ~2}, counter};\n.section .debug_str { x: .b8 1,2 }\n.file 1 \"a.cu\", 1, 2\n";
    vec![format!("{}{rest}", text(body)), calls::whole()]
}

#[test]
fn the_seeds_are_right() {
    for seed in seeds() {
        Module::parse(&seed).unwrap();
    }
}

#[test]
fn a_text_that_ends_early_is_an_error_or_a_module() {
    for seed in seeds() {
        for end in 0..seed.len() {
            let _ = Module::parse(&seed[..end]).map_err(|error| error.to_string());
        }
    }
}

#[test]
fn changed_bytes_and_moved_pieces() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut right, mut wrong) = (0, 0);
    for seed in seeds() {
        let tokens: Vec<&str> =
            seed.split_inclusive([' ', ',', '.', ';', '\n', '+', '[', '{', '(', ']', '}', ')']).collect();
        for _ in 0..4000 {
            let mut pieces = tokens.clone();
            for _ in 0..=random.below(3) {
                let (a, b) = (random.below(pieces.len()), random.below(pieces.len()));
                match random.below(4) {
                    0 => pieces.swap(a, b),
                    1 => pieces.insert(a, tokens[random.below(tokens.len())]),
                    2 => {
                        pieces.remove(a);
                    }
                    _ => pieces[a] = tokens[random.below(tokens.len())],
                }
            }
            let mut bytes = pieces.concat().into_bytes();
            if random.below(2) == 0 {
                let at = random.below(bytes.len());
                bytes[at] = b"{}[]()<>,;:=+-!~@|_%$.0189aefx\"\\/*\n \x00\xC3\xFF"[random.below(39)];
            }
            match Module::parse(&String::from_utf8_lossy(&bytes)) {
                Ok(_) => right += 1,
                Err(error) => {
                    assert!(error.line > 0 && error.column > 0 && !error.expected.is_empty());
                    wrong += 1;
                }
            }
        }
    }
    // A check that everything is wrong, or nothing, would show nothing.
    assert!(right > 100 && wrong > 1000, "{right} {wrong}");
}

#[test]
fn depth_and_length_have_limits() {
    for (open, times) in [("{", 100_000), ("[", 100_000), ("(", 100_000), ("%p0|", 100_000), ("-", 100_000)] {
        let _ = Module::parse(&text(&format!("mov.u32 %r0, {};", open.repeat(times))));
        let _ = Module::parse(&text(&open.repeat(times)));
    }
    let error = Module::parse(&text(&"{".repeat(100)));
    assert!(error.unwrap_err().expected.contains("64"));
}
