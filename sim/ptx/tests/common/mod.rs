//! Runs one instruction, or a few, on values.

#![allow(dead_code, reason = "each family of tests uses its own part")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a part of tests")]

use halite_ptx::ir::Module;
use halite_ptx::{Arguments, LaunchShape, Machine, Options};

/// Bits of an f32.
pub(crate) fn f(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// Bits of an f64.
pub(crate) fn d(value: f64) -> u64 {
    value.to_bits()
}

/// A negative number's 16 bits.
pub(crate) fn i16(value: i16) -> u64 {
    u64::from(value as u16)
}

/// A negative number's 32 bits.
pub(crate) fn i32(value: i32) -> u64 {
    u64::from(value as u32)
}

/// A kernel that gives thread t the three values `in[t]`: whole in `%d1` to `%d3`, their lower halves in `%r1` to `%r3`
/// and quarters in `%h1` to `%h3`; and that stores `result`, a 64-bit register.
fn text(body: &str, finish: &str) -> String {
    format!(
        ".version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 in, .param .u64 out)
{{
    .reg .pred %p<8>;
    .reg .b16 %h<16>;
    .reg .b32 %r<32>;
    .reg .b64 %d<16>;
    .reg .b64 %address<4>;
    .reg .b32 %thread;
    mov.u32 %thread, %tid.x;
    ld.param.u64 %address1, [in];
    ld.param.u64 %address2, [out];
    mad.wide.u32 %address1, %thread, 24, %address1;
    mad.wide.u32 %address2, %thread, 8, %address2;
    ld.global.b64 %d1, [%address1];
    ld.global.b64 %d2, [%address1+8];
    ld.global.b64 %d3, [%address1+16];
    cvt.u32.u64 %r1, %d1;
    cvt.u32.u64 %r2, %d2;
    cvt.u32.u64 %r3, %d3;
    cvt.u16.u64 %h1, %d1;
    cvt.u16.u64 %h2, %d2;
    cvt.u16.u64 %h3, %d3;
    mov.b64 %d0, 0;
    {body}
    {finish}
    st.global.b64 [%address2], %d0;
    ret;
}}
"
    )
}

/// What each thread stores.
pub(crate) fn run(body: &str, finish: &str, inputs: &[[u64; 3]]) -> Vec<u64> {
    let text = text(body, finish);
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{body}\n{error}"));
    let mut machine = Machine::new(Options::default());
    let module = machine.load(module).unwrap();
    let bytes: Vec<u8> = inputs.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    let from = machine.allocate_with(&bytes).unwrap();
    let to = machine.allocate(inputs.len() as u64 * 8).unwrap();
    let shape = LaunchShape::linear(1, inputs.len() as u32);
    let arguments = Arguments::new().u64(from).u64(to);
    if let Err(error) = machine.launch(&module, "test", shape, &arguments) {
        panic!("{body}\n{error}");
    }
    let mut bytes = vec![0; inputs.len() * 8];
    machine.read(to, &mut bytes).unwrap();
    bytes.chunks_exact(8).map(|value| u64::from_le_bytes(value.try_into().unwrap())).collect()
}

fn check(body: &str, finish: &str, cases: &[([u64; 3], u64)]) {
    let inputs: Vec<[u64; 3]> = cases.iter().map(|case| case.0).collect();
    for ((inputs, expected), result) in cases.iter().zip(run(body, finish, &inputs)) {
        assert_eq!(result, *expected, "{body} of {inputs:#x?}: {result:#x}, not {expected:#x}");
    }
}

/// `%h0` for each row of values.
pub(crate) fn check16(body: &str, cases: &[([u64; 3], u64)]) {
    check(body, "cvt.u64.u16 %d0, %h0;", cases);
}

/// `%r0` for each row of values.
pub(crate) fn check32(body: &str, cases: &[([u64; 3], u64)]) {
    check(body, "cvt.u64.u32 %d0, %r0;", cases);
}

/// `%d0` for each row of values.
pub(crate) fn check64(body: &str, cases: &[([u64; 3], u64)]) {
    check(body, "", cases);
}

/// `%p1`, as 0 or 1, for each row of values.
pub(crate) fn check_predicate(body: &str, cases: &[([u64; 3], u64)]) {
    check(body, "selp.b64 %d0, 1, 0, %p1;", cases);
}

/// `%r0` of each lane of a warp whose `%r1`, `%r2` and `%r3` are given by lane.
pub(crate) fn warp32(body: &str, values: impl Fn(u32) -> [u64; 3]) -> Vec<u64> {
    run(body, "cvt.u64.u32 %d0, %r0;", &(0..32).map(values).collect::<Vec<_>>())
}
