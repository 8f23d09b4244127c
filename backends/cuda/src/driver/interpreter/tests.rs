//! The interpreter as a driver, on PTX that stands here: no compiler is needed.

use std::sync::Arc;

use super::*;
use crate::driver::Context;

/// A thread adds 1 to its element of `values`.
const TEXT: &str = r#"
.version 8.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 values)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [values];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    add.s32 %r2, %r2, 1;
    st.global.u32 [%rd3], %r2;
    ret;
}
"#;

struct Set {
    context: Context,
    stream: Stream,
    kernel: Kernel,
}

fn set_up() -> Set {
    let context = Context::new(interpreter(Interpreter::default()));
    let stream = context.stream().unwrap();
    let module = context.load(&image(TEXT)).unwrap();
    let kernel = context.kernel(&module, "add_one", 0).unwrap();
    Set { context, stream, kernel }
}

fn image(text: &str) -> Image {
    Image::ptx("test.cu".to_owned(), Architecture::OLDEST, text.to_owned())
}

impl Set {
    fn launch(&self, threads: u32, memory: &Memory) -> halite_hal::Result<()> {
        let shape = LaunchShape::new([1, 1, 1], [threads, 1, 1]);
        let parameters = Parameters::new().u64(*memory.address());
        // SAFETY: the interpreter checks every access.
        unsafe { self.context.launch(&self.stream, &self.kernel, &shape, &parameters) }
    }

    fn memory(&self, words: u64) -> Memory {
        self.context.allocate(&self.stream, 4 * words).unwrap()
    }

    fn zeros(&self, words: u64) -> Memory {
        let memory = self.memory(words);
        self.context.fill(&self.stream, (&memory, 0), 4 * words, 0).unwrap();
        memory
    }

    fn read(&self, memory: &Memory) -> Vec<u8> {
        let pinned = self.context.pinned(*memory.bytes()).unwrap();
        self.context.copy_out(&self.stream, (&pinned, 0), (memory, 0), *memory.bytes()).unwrap();
        self.context.synchronize(&self.stream).unwrap();
        let mut bytes = vec![0; *memory.bytes() as usize];
        self.context.read_pinned((&pinned, 0), &mut bytes).unwrap();
        bytes
    }
}

#[test]
fn copies_fills_and_launches_happen_in_order() {
    let set = set_up();
    let (a, b) = (set.zeros(4), set.memory(4));
    let pinned = set.context.pinned(100).unwrap();
    set.context.write_pinned((&pinned, 10), &[9, 0, 0, 0]).unwrap();
    set.launch(4, &a).unwrap();
    set.context.copy(&set.stream, (&b, 0), (&a, 0), 16).unwrap();
    set.launch(3, &b).unwrap();
    set.context.copy_in(&set.stream, (&a, 8), (&pinned, 10), 4).unwrap();
    assert_eq!(set.read(&a), [1, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(set.read(&b), [2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn what_a_kernel_does_wrong_is_told_once_with_its_place_and_loses_the_device() {
    let set = set_up();
    let memory = set.zeros(2);
    let error = set.launch(3, &memory).unwrap_err().to_string();
    for part in
        ["no GPU", "kernel `add_one`, grid 1x1x1, block 3x1x1", "line 13", "block (0, 0, 0)", "lane 2"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert!(error.contains("out of bounds") && error.contains("`rebuild`"), "{error}");
    let error = set.context.synchronize(&set.stream).unwrap_err().to_string();
    assert!(error.contains("is lost since an earlier error"), "{error}");
    let rebuilt = set.context.rebuild().unwrap();
    rebuilt.synchronize(&rebuilt.stream().unwrap()).unwrap();
    // Nothing of the old device belongs to it.
    let error = rebuilt.synchronize(&set.stream).unwrap_err().to_string();
    assert!(error.contains("this stream belongs to another device"), "{error}");
}

#[test]
fn memory_that_nobody_wrote_is_not_read_in_silence() {
    let set = set_up();
    let error = set.launch(1, &set.memory(1)).unwrap_err().to_string();
    assert!(error.contains("line 13") && error.contains("lane 0") && error.contains("written"), "{error}");
    let set = set_up();
    let freed = set.zeros(1);
    let stale = Parameters::new().u64(*freed.address());
    drop(freed);
    let shape = LaunchShape::new([1, 1, 1], [1, 1, 1]);
    // SAFETY: the interpreter checks every access.
    let error = unsafe { set.context.launch(&set.stream, &set.kernel, &shape, &stale) }.unwrap_err();
    assert!(error.to_string().contains("freed"), "{error}");
}

#[test]
fn a_graph_is_collected_and_then_done_as_often_as_it_is_launched() {
    let set = set_up();
    let memory = set.zeros(2);
    set.context.begin_capture(&set.stream).unwrap();
    set.launch(2, &memory).unwrap();
    set.launch(1, &memory).unwrap();
    assert!(set.context.synchronize(&set.stream).unwrap_err().to_string().contains("captured"));
    assert!(set.context.begin_capture(&set.stream).is_err());
    let graph = set.context.end_capture(&set.stream).unwrap();
    assert!(set.context.end_capture(&set.stream).is_err());
    assert_eq!(set.read(&memory), [0; 8], "nothing is done while it is collected");
    for round in 1..4 {
        // SAFETY: the interpreter checks every access.
        unsafe { set.context.launch_graph(&set.stream, &graph) }.unwrap();
        assert_eq!(set.read(&memory), [2 * round, 0, 0, 0, round, 0, 0, 0]);
    }
    drop(memory);
    // SAFETY: as above.
    let error = unsafe { set.context.launch_graph(&set.stream, &graph) }.unwrap_err().to_string();
    assert!(error.contains("`add_one`") && error.contains("freed"), "{error}");
}

#[test]
fn events_know_when_they_were_recorded() {
    let set = set_up();
    let (from, to) = (set.context.event().unwrap(), set.context.event().unwrap());
    assert!(set.context.reached(&from).unwrap());
    assert!(set.context.elapsed(&from, &to).unwrap_err().to_string().contains("never recorded"));
    set.context.record(&set.stream, &from).unwrap();
    set.context.record(&set.stream, &to).unwrap();
    set.context.wait(&to).unwrap();
    set.context.wait_on(&set.stream, &to).unwrap();
    set.context.elapsed(&from, &to).unwrap();
}

#[test]
fn memory_has_a_limit_and_comes_back() {
    let context = Context::new(interpreter(Interpreter::default().memory(1000)));
    let stream = context.stream().unwrap();
    let most = context.allocate(&stream, 900).unwrap();
    assert!(most.address().is_multiple_of(256));
    assert!(context.allocate(&stream, 101).is_err());
    assert_eq!(*context.allocate(&stream, 0).unwrap().address(), 0);
    drop(most);
    context.allocate(&stream, 1000).unwrap();
}

#[test]
fn code_that_it_does_not_run_is_refused_with_the_reason() {
    let set = set_up();
    let cubin = Image::cubin("test.cu".to_owned(), Architecture::OLDEST, vec![0; 16]);
    let error = set.context.load(&cubin).unwrap_err().to_string();
    assert!(error.contains("test.cu") && error.contains("interpreter gets PTX"), "{error}");
    let error = set.context.load(&image(&TEXT.replace("add.s32", "add.s33"))).unwrap_err().to_string();
    assert!(error.contains("14"), "{error}");
    let module = set.context.load(&image(TEXT)).unwrap();
    assert!(set.context.kernel(&module, "none", 0).unwrap_err().to_string().contains("none"));
    let error = set.context.kernel(&module, "add_one", 200 << 10).unwrap_err().to_string();
    assert!(error.contains("shared memory"), "{error}");
}

#[test]
fn machines_of_two_devices_do_not_mix() {
    let (one, other): (Arc<dyn Driver>, _) = (interpreter(Interpreter::default()), set_up());
    let stream = one.stream().unwrap();
    let memory = other.zeros(1);
    assert_eq!(one.fill(&stream, (&memory, 0), 4, 0), Err(DriverError::Foreign { what: "device memory" }));
    assert_eq!(one.synchronize(&other.stream), Err(DriverError::Foreign { what: "stream" }));
}
