//! What lanes tell each other.

mod common;

use common::{check32, warp32};

#[test]
fn shuffles() {
    let all = |lane: u32| [u64::from(lane) * 3, 0, 0];
    let expect = |body: &str, from: fn(u64) -> u64| {
        let result = warp32(body, all);
        let expected: Vec<u64> = (0..32).map(|lane| from(lane) * 3).collect();
        assert_eq!(result, expected, "{body}");
    };
    expect("shfl.sync.bfly.b32 %r0, %r1, 5, 31, -1;", |lane| lane ^ 5);
    expect("shfl.sync.down.b32 %r0, %r1, 4, 31, -1;", |lane| if lane < 28 { lane + 4 } else { lane });
    expect("shfl.sync.up.b32 %r0, %r1, 4, 0, -1;", |lane| if lane < 4 { lane } else { lane - 4 });
    expect("shfl.sync.idx.b32 %r0, %r1, 7, 31, -1;", |_| 7);
    // Segments of eight lanes: the mask 0x18 in bits 8 to 12.
    expect("shfl.sync.idx.b32 %r0, %r1, 7, 0x181f, -1;", |lane| lane & 24 | 7);
    expect("shfl.sync.down.b32 %r0, %r1, 2, 0x181f, -1;", |lane| if lane % 8 < 6 { lane + 2 } else { lane });
    expect("shfl.sync.up.b32 %r0, %r1, 2, 0x1800, -1;", |lane| if lane % 8 < 2 { lane } else { lane - 2 });
    expect("shfl.sync.bfly.b32 %r0, %r1, 8, 0x181f, -1;", |lane| if lane & 8 == 0 { lane } else { lane - 8 });
    // Only five bits of the distance count.
    expect("shfl.sync.bfly.b32 %r0, %r1, 33, 31, -1;", |lane| lane ^ 1);
}

#[test]
fn shuffles_tell_who_was_in_range() {
    let body = "shfl.sync.down.b32 %r4|%p1, %r1, 4, 31, -1; selp.b32 %r0, 1, 0, %p1;";
    let expected: Vec<u64> = (0..32).map(|lane| u64::from(lane < 28)).collect();
    assert_eq!(warp32(body, |_| [0; 3]), expected);
    // A bound of 27 for all.
    let body = "shfl.sync.idx.b32 %r0|%p1, %r1, %r2, 27, -1;";
    let result = warp32(body, |lane| [u64::from(lane), 31 - u64::from(lane), 0]);
    let expected: Vec<u64> = (0..32).map(|lane| if 31 - lane <= 27 { 31 - lane } else { lane }).collect();
    assert_eq!(result, expected);
}

#[test]
fn shuffles_within_groups_of_lanes() {
    // Each half of the warp on its own, with its own mask.
    let body = "setp.lt.u32 %p2, %r2, 16; selp.b32 %r4, 0xffff, 0xffff0000, %p2;
        shfl.sync.bfly.b32 %r0, %r1, 15, 31, %r4;";
    let result = warp32(body, |lane| [u64::from(lane), u64::from(lane), 0]);
    let expected: Vec<u64> = (0..32).map(|lane| lane ^ 15).collect();
    assert_eq!(result, expected);
}

#[test]
fn votes() {
    let votes = |body: &str, yes: fn(u32) -> bool| {
        let body = format!("setp.ne.u32 %p2, %r1, 0; {body}");
        warp32(&body, move |lane| [u64::from(yes(lane)), 0, 0])
    };
    let each = |name: &str| format!("vote.sync.{name}.pred %p1, %p2, -1; selp.b32 %r0, 1, 0, %p1;");
    for (name, none, some, every) in [("all", 0, 0, 1), ("any", 0, 1, 1), ("uni", 1, 0, 1)] {
        assert_eq!(votes(&each(name), |_| false), [none; 32], "{name}");
        assert_eq!(votes(&each(name), |lane| lane == 9), [some; 32], "{name}");
        assert_eq!(votes(&each(name), |_| true), [every; 32], "{name}");
    }
    assert_eq!(votes("vote.sync.ballot.b32 %r0, %p2, -1;", |lane| lane % 3 == 0), [0x4924_9249; 32]);
    assert_eq!(votes("vote.sync.ballot.b32 %r0, !%p2, -1;", |lane| lane < 31), [0x8000_0000; 32]);
}

#[test]
fn votes_of_some_lanes() {
    // Lanes below 8 vote; the rest have left.
    let body = "mov.u32 %r0, 0; setp.ge.u32 %p3, %r1, 8; @%p3 bra END; setp.ne.u32 %p2, %r1, 3;
        vote.sync.ballot.b32 %r0, %p2, 0xff; END:";
    let result = warp32(body, |lane| [u64::from(lane), 0, 0]);
    let expected: Vec<u64> = (0..32).map(|lane| if lane < 8 { 0xf7 } else { 0 }).collect();
    assert_eq!(result, expected);
}

#[test]
fn matches() {
    let result = warp32("match.any.sync.b32 %r0, %r1, -1;", |lane| [u64::from(lane % 4), 0, 0]);
    let expected: Vec<u64> = (0..32).map(|lane| 0x1111_1111 << (lane % 4)).collect();
    assert_eq!(result, expected);
    let body = "match.all.sync.b64 %r0|%p1, %d1, -1; @!%p1 mov.u32 %r0, 7;";
    assert_eq!(warp32(body, |_| [1 << 40, 0, 0]), [0xffff_ffff; 32]);
    assert_eq!(warp32(body, |lane| [1 << (40 + lane / 31), 0, 0]), [7; 32]);
}

#[test]
fn reductions() {
    let values = |lane: u32| [u64::from((lane as i32 - 5) as u32), 0, 0];
    // -5 to 26.
    assert_eq!(warp32("redux.sync.add.s32 %r0, %r1, -1;", values), [336; 32]);
    assert_eq!(warp32("redux.sync.min.s32 %r0, %r1, -1;", values), [0xffff_fffb; 32]);
    assert_eq!(warp32("redux.sync.max.s32 %r0, %r1, -1;", values), [26; 32]);
    assert_eq!(warp32("redux.sync.min.u32 %r0, %r1, -1;", values), [0; 32]);
    assert_eq!(warp32("redux.sync.max.u32 %r0, %r1, -1;", values), [0xffff_ffff; 32]);
    let bits = |lane: u32| [1 << (lane / 2) | 1 << 20, 0, 0];
    assert_eq!(warp32("redux.sync.or.b32 %r0, %r1, -1;", bits), [0x10_ffff; 32]);
    assert_eq!(warp32("redux.sync.and.b32 %r0, %r1, -1;", bits), [0x10_0000; 32]);
    assert_eq!(warp32("redux.sync.xor.b32 %r0, %r1, -1;", |lane| [u64::from(lane == 3), 0, 0]), [1; 32]);
}

#[test]
fn leaders_and_active_lanes() {
    let body = "elect.sync %r4|%p1, -1; selp.b32 %r0, 1, 0, %p1;";
    let expected: Vec<u64> = (0..32).map(|lane| u64::from(lane == 0)).collect();
    assert_eq!(warp32(body, |_| [0; 3]), expected);
    let body = "mov.u32 %r0, 0; and.b32 %r4, %r1, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra END; activemask.b32 %r0; END:";
    let result = warp32(body, |lane| [u64::from(lane), 0, 0]);
    let expected: Vec<u64> = (0..32).map(|lane| if lane % 2 == 1 { 0xaaaa_aaaa } else { 0 }).collect();
    assert_eq!(result, expected);
}

#[test]
fn special_registers_of_lanes() {
    check32("mov.u32 %r0, %laneid;", &(0..5).map(|lane| ([0; 3], lane)).collect::<Vec<_>>());
    check32("mov.u32 %r0, %lanemask_lt;", &[([0; 3], 0), ([0; 3], 1), ([0; 3], 3)]);
    check32("mov.u32 %r0, %lanemask_gt;", &[([0; 3], 0xffff_fffe), ([0; 3], 0xffff_fffc)]);
    check32("mov.u32 %r0, %ntid.x;", &[([0; 3], 2), ([0; 3], 2)]);
    check32("mov.u32 %r0, WARP_SZ;", &[([0; 3], 32)]);
}
