//! Adds two vectors with a kernel, then lets a kernel with a mistake be found out.
//!
//! `cargo run --release -p halite-ptx --example vector_add`

use halite_ptx::ir::Module;
use halite_ptx::{Arguments, Error, FaultKind, LaunchShape, Machine, Options};

/// `if (i < count) sum[i] = a[i] + b[i];` as a compiler writes it.
const VECTOR_ADD: &str = r#"
.version 8.0
.target sm_80
.address_size 64

.visible .entry vector_add(
    .param .u64 a,
    .param .u64 b,
    .param .u64 sum,
    .param .u32 count
)
{
    .reg .pred %p<2>;
    .reg .f32 %f<4>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<11>;

    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [sum];
    ld.param.u32 %r2, [count];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra $DONE;
    .loc 1 3 5
    cvta.to.global.u64 %rd4, %rd1;
    mul.wide.s32 %rd5, %r1, 4;
    add.s64 %rd6, %rd4, %rd5;
    ld.global.nc.f32 %f1, [%rd6];
    cvta.to.global.u64 %rd7, %rd2;
    add.s64 %rd8, %rd7, %rd5;
    ld.global.nc.f32 %f2, [%rd8];
    add.f32 %f3, %f1, %f2;
    cvta.to.global.u64 %rd9, %rd3;
    add.s64 %rd10, %rd9, %rd5;
    st.global.f32 [%rd10], %f3;
$DONE:
    ret;
}
.file 1 "vector_add.cu"
"#;

fn bytes(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = 1000u32;
    let mut machine = Machine::new(Options::default());
    let a = machine.allocate_with(&bytes((0..count).map(|i| i as f32)))?;
    let b = machine.allocate_with(&bytes((0..count).map(|i| 2.0 * i as f32)))?;
    let sum = machine.allocate(4 * u64::from(count))?;
    let arguments = Arguments::new().u64(a).u64(b).u64(sum).u32(count);
    let shape = LaunchShape::linear(count.div_ceil(128), 128);

    let module = machine.load(Module::parse(VECTOR_ADD)?)?;
    let counters = machine.launch(&module, "vector_add", shape, &arguments)?;
    let mut result = vec![0; 4 * count as usize];
    machine.read(sum, &mut result)?;
    if result != bytes((0..count).map(|i| 3.0 * i as f32)) {
        return Err("the sums are wrong".into());
    }
    println!("{count} sums in {} instructions of a warp", counters.instructions);
    println!("sectors moved: {}, at best {}", counters.global.sectors, counters.global.ideal_sectors);

    // The same kernel with `i <= count`: thread 1000 goes one element too far.
    let wrong = VECTOR_ADD.replace("setp.ge.s32", "setp.gt.s32");
    let module = machine.load(Module::parse(&wrong)?)?;
    match machine.launch(&module, "vector_add", shape, &arguments) {
        Err(Error::Faults(faults)) if matches!(faults.first().kind, FaultKind::OutOfBounds { .. }) => {
            println!("with a mistake: {}", faults.first());
            Ok(())
        }
        other => Err(format!("the mistake was not found: {other:?}").into()),
    }
}
