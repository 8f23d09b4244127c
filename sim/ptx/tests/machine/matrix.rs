//! `ldmatrix` and `stmatrix`.

use super::support::block;
use halite_ptx::FaultKind;

/// Element (row, column) of matrix `i` in shared memory is 64 i + 8 row + column; rows are 16 bytes apart, 128 a matrix.
const FILL: &str = "mov.u32 %r1, s; mov.u32 %r10, 0;
    FILL: shl.b32 %r11, %r0, 4; shl.b32 %r12, %r10, 1; add.u32 %r11, %r11, %r12; add.u32 %r11, %r11, %r1;
    shl.b32 %r13, %r0, 3; add.u32 %r13, %r13, %r10; cvt.u16.u32 %h1, %r13; st.shared.u16 [%r11], %h1;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 8; @%p1 bra FILL; bar.sync 0;
    shl.b32 %r2, %r0, 4; add.u32 %r2, %r2, %r1; mul.wide.u32 %d8, %r0, 16; add.s64 %d8, %d1, %d8;";

fn pair(low: u32, high: u32) -> u32 {
    low | high << 16
}

#[test]
fn four_matrices_of_eight_rows() {
    let body = format!(
        "{FILL} ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r2];
        st.global.v4.u32 [%d8], {{%r4, %r5, %r6, %r7}};"
    );
    let output = block(32, &body).shared(512).outputs(128).output();
    for lane in 0..32 {
        let first = (8 * (lane / 4) + 2 * (lane % 4)) as u32;
        let expected: Vec<u32> = (0..4).map(|i| pair(64 * i + first, 64 * i + first + 1)).collect();
        assert_eq!(output[4 * lane..4 * lane + 4], expected, "lane {lane}");
    }
}

#[test]
fn two_matrices_transposed() {
    let body = format!(
        "{FILL} setp.ge.u32 %p2, %r0, 16; mov.u32 %r9, 0x7fffff; selp.b32 %r2, %r9, %r2, %p2;
        ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{%r4, %r5}}, [%r2]; mov.u32 %r6, 0; mov.u32 %r7, 0;
        st.global.v4.u32 [%d8], {{%r4, %r5, %r6, %r7}};"
    );
    // Lanes 16 to 31 give no rows, so their addresses may be anything.
    let output = block(32, &body).shared(512).outputs(128).output();
    for lane in 0..32 {
        let (column, row) = ((lane / 4) as u32, 2 * (lane % 4) as u32);
        for i in 0..2 {
            let at = |row| 64 * i as u32 + 8 * row + column;
            assert_eq!(output[4 * lane + i], pair(at(row), at(row + 1)), "lane {lane}");
        }
    }
}

#[test]
fn stored_matrices_load_again() {
    let body = format!(
        "{FILL} ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%r4, %r5}}, [%r2]; bar.sync 0;
        stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r2], {{%r4, %r5}}; bar.sync 0;
        ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{%r6, %r7}}, [%r2];
        st.global.v4.u32 [%d8], {{%r4, %r5, %r6, %r7}};"
    );
    let output = block(32, &body).shared(512).outputs(128).output();
    for lane in output.chunks_exact(4) {
        assert_eq!(lane[..2], lane[2..]);
    }
    // Not transposed, element (row, column) comes from (column, row).
    let output = block(32, &body.replace("x2.trans.shared.b16 {%r6", "x2.shared.b16 {%r6"))
        .shared(512)
        .outputs(128)
        .output();
    assert_eq!(output[4 * 13 + 2], pair(8 * 2 + 3, 8 * 3 + 3));
}

#[test]
fn rows_are_aligned_and_all_lanes_are_there() {
    let body = format!(
        "{FILL} add.u32 %r2, %r2, 8;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r4}}, [%r2]; // HERE"
    );
    assert!(matches!(block(32, &body).shared(512).fault(), FaultKind::Misaligned { align: 16, .. }));
    let body = format!(
        "{FILL} setp.lt.u32 %p2, %r0, 30; @!%p2 ret;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r4}}, [%r2]; // HERE"
    );
    let expected = FaultKind::MissingLanes { lanes: 0x3fff_ffff, missing: 0xc000_0000 };
    assert_eq!(block(32, &body).shared(512).fault(), expected);
}

#[test]
fn a_generic_address_is_none_of_shared_memory() {
    let body = format!(
        "{FILL} cvt.u64.u32 %d9, %r2; cvta.shared.u64 %d9, %d9;\n\
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r4}}, [%d9]; // HERE"
    );
    assert!(matches!(block(32, &body).shared(512).fault(), FaultKind::OutOfBounds { .. }));
}
