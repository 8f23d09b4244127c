//! What a device would do in silence, or not at once, and what is said of it here: a test for each.

use crate::descriptor::executor::{aclDestroyAclOpExecutor, aclSetAclOpExecutorRepeatable};
use crate::descriptor::tensor::{aclCreateTensor, aclDestroyTensor};
use crate::element::Element;
use crate::handle::Handle;
use crate::operator::dynamic_quant::aclnnDynamicQuant;
use crate::operator::rms_norm::{aclnnRmsNorm, aclnnRmsNormGetWorkspaceSize};
use crate::operator::swi_glu::{aclnnSwiGlu, aclnnSwiGluGetWorkspaceSize};
use crate::runtime::capture::*;
use crate::runtime::context::{
    aclrtCreateContext, aclrtDestroyContext, aclrtGetCurrentContext, aclrtSetCurrentContext,
};
use crate::runtime::event::*;
use crate::runtime::memory::*;
use crate::runtime::stream::*;
use crate::settings::halite_cann_fault;
use crate::testing::{Session, message};

/// x and out of a SwiGlu, as many elements as wanted.
fn gated(session: &Session, count: i64) -> [Handle; 2] {
    let x = session.tensor(&[1, 2 * count], Element::F32, &vec![1.0; 2 * count as usize]);
    [x, session.empty(&[1, count], Element::F32)]
}

/// A phase one of it: workspace and executor.
fn planned([x, out]: [Handle; 2]) -> (u64, Handle) {
    let (mut size, mut executor) = (0, 0);
    let code = aclnnSwiGluGetWorkspaceSize(x, 1, out, Some(&mut size), Some(&mut executor));
    assert_eq!(code, 0, "{}", message());
    (size, executor)
}

fn allocate(size: usize) -> usize {
    let mut address = 0;
    assert_eq!(aclrtMalloc(Some(&mut address), size, 0), 0, "{}", message());
    address
}

#[test]
fn phase_two_comes_after_its_own_phase_one() {
    let session = Session::new();
    let tensors = gated(&session, 4);
    let (size, executor) = planned(tensors);
    let workspace = allocate(size as usize);
    assert_eq!(aclnnSwiGlu(workspace, size, 0, session.stream), 161_001);
    assert_eq!(message(), "aclnnSwiGlu: executor is null");
    assert_eq!(aclnnDynamicQuant(workspace, size, executor, session.stream), 161_002);
    assert_eq!(message(), "aclnnDynamicQuant: executor is of aclnnSwiGlu");
    assert_eq!(aclnnSwiGlu(workspace, size, 0xBAD0, session.stream), 161_002);
    assert!(message().contains("0xbad0 is no executor of this library"));
    assert_eq!(aclnnSwiGlu(workspace, size, executor, session.stream), 0);
    assert_eq!(aclrtSynchronizeStream(session.stream), 0);
    assert_eq!(aclnnSwiGlu(workspace, size, executor, session.stream), 161_002);
    assert!(message().contains("was destroyed or used up before"));
    assert_eq!(aclrtFree(workspace), 0);
}

#[test]
fn repeatable_executors_may_be_used_again() {
    let session = Session::new();
    let tensors = gated(&session, 4);
    let (size, executor) = planned(tensors);
    let workspace = allocate(size as usize);
    assert_eq!(aclDestroyAclOpExecutor(executor), 161_002);
    assert!(message().contains("was not made repeatable: it goes with its phase two"));
    assert_eq!(aclSetAclOpExecutorRepeatable(executor), 0);
    for _ in 0..2 {
        assert_eq!(aclnnSwiGlu(workspace, size, executor, session.stream), 0);
    }
    assert_eq!(aclrtSynchronizeStream(session.stream), 0);
    assert_eq!(aclDestroyAclOpExecutor(executor), 0);
    assert_eq!(aclrtFree(workspace), 0);
}

#[test]
fn workspaces_are_large_enough_and_alive() {
    let session = Session::new();
    let tensors = gated(&session, 4);
    let (size, executor) = planned(tensors);
    assert_eq!(aclnnSwiGlu(0, size - 1, executor, session.stream), 161_002);
    assert_eq!(message(), format!("aclnnSwiGlu: workspaceSize {}, limit {size} bytes or more", size - 1));
    let short = allocate(size as usize - 1);
    assert_eq!(aclnnSwiGlu(short, size, planned(tensors).1, session.stream), 361_001);
    assert!(
        message().contains("workspace: out of bounds: 256 bytes at offset 0 of an allocation of 255 bytes")
    );
    assert_eq!(aclrtFree(short), 0);
    assert_eq!(aclnnSwiGlu(short, size, planned(tensors).1, session.stream), 361_001);
    assert!(message().contains("workspace: use after free"));
}

#[test]
fn workspaces_are_scribbled_over() {
    let session = Session::new();
    let (size, executor) = planned(gated(&session, 4));
    let workspace = session.tensor(&[size as i64], Element::U8, &vec![1.0; size as usize]);
    assert_eq!(aclnnSwiGlu(session.data(workspace), size, executor, session.stream), 0);
    assert_eq!(aclrtSynchronizeStream(session.stream), 0);
    assert!(session.read(workspace).iter().all(|&byte| byte == f64::from(POISON)));
}

#[test]
fn descriptors_and_buffers_live_until_phase_two() {
    let session = Session::new();
    let [x, out] = gated(&session, 4);
    let workspace = allocate(4096);
    let gone = allocate(16);
    let short = session.view(gone, &[1, 4], None, Element::F32, &[1, 4]);
    let (size, executor) = planned([x, short]);
    assert_eq!(aclrtFree(gone), 0);
    assert_eq!(aclnnSwiGlu(workspace, size, executor, session.stream), 361_001);
    assert!(message().contains("aclnnSwiGlu: out: use after free: 16 bytes"));
    assert_eq!(aclDestroyTensor(short), 0);
    let view = session.view(session.data(out), &[1, 4], None, Element::F32, &[1, 4]);
    let (size, executor) = planned([x, view]);
    assert_eq!(aclDestroyTensor(view), 0);
    assert_eq!(aclnnSwiGlu(workspace, size, executor, session.stream), 361_001);
    assert_eq!(message(), "aclnnSwiGlu: out: aclTensor was destroyed before phase two");
    assert_eq!(aclDestroyTensor(view), 161_001);
    assert_eq!(aclrtFree(workspace), 0);
}

#[test]
fn views_stay_within_their_storage() {
    let session = Session::new();
    let data = allocate(64);
    let view = |dims: &[i64], storage: &[i64], data: usize| {
        let (rank, stored) = (dims.len() as u64, storage.len() as u64);
        aclCreateTensor(dims.as_ptr(), rank, 0, std::ptr::null(), 0, 2, storage.as_ptr(), stored, data)
    };
    assert_eq!(view(&[4, 5], &[4, 4], data), 0);
    assert_eq!(message(), "aclCreateTensor: the view ends at byte 80, storageDims [4, 4] at byte 64");
    assert_eq!(view(&[4], &[4], 0x1000), 0);
    assert!(message().contains("tensorData 0x1000 is no address of the device"));
    // Products that no number holds.
    let far = 1 << 62;
    assert_eq!(
        [view(&[far, 4], &[4], data), view(&[4], &[far, 4], data), view(&[0, far, 4], &[4], data)],
        [0; 3]
    );
    assert!(message().contains("aclCreateTensor: viewDims"));
    for (dims, strides) in [([4], [far]), ([2], [far + (far - 1)])] {
        assert_eq!(session.view(data, &dims, Some(&strides), Element::F32, &[4]), 0);
        assert!(message().contains("more elements or bytes than there are numbers for"));
    }
    // A storage that is said to be larger than the allocation is found when it is used.
    let long = view(&[1, 4], &[1, 4], data + 52);
    let (size, executor) = planned([gated(&session, 4)[0], long]);
    let workspace = allocate(size as usize);
    assert_eq!(aclnnSwiGlu(workspace, size, executor, session.stream), 361_001);
    assert!(message().contains("out: out of bounds: 16 bytes at offset 52 of an allocation of 64 bytes"));
    assert_eq!(aclDestroyTensor(long), 0);
    assert_eq!([aclrtFree(data), aclrtFree(workspace)], [0, 0]);
}

#[test]
fn memory_is_freed_once_and_where_it_begins() {
    let _session = Session::new();
    let address = allocate(100);
    assert_eq!(aclrtFree(address + 8), 107_000);
    assert!(message().contains("is not where an allocation of device memory begins"));
    assert_eq!(aclrtFree(address), 0);
    assert_eq!(aclrtFree(address), 107_000);
    assert_eq!(message(), format!("aclrtFree: double free of {address:#x}"));
    assert_ne!(allocate(100), address);
    let mut free = 0;
    assert_eq!(aclrtGetMemInfo(1, Some(&mut free), Some(&mut 0)), 0);
    assert_eq!(aclrtMalloc(Some(&mut 0), free + 1, 0), 207_001);
    assert_eq!(aclrtFree(address + 512 + 4096), 0);
}

#[test]
fn the_host_cannot_read_device_memory() {
    let _session = Session::new();
    let address = allocate(8);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let holds = |line: &&str| {
        let (first, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let number = |text| usize::from_str_radix(text, 16).unwrap();
        (number(first)..number(end)).contains(&address)
    };
    let line = maps.lines().find(holds).unwrap();
    assert_eq!(line.split(' ').nth(1), Some("---p"), "{line}");
    let bytes = [0_u8; 8];
    let host = bytes.as_ptr() as usize;
    assert_eq!(aclrtMemcpy(address, 8, host, 8, 3), 107_000);
    assert!(message().contains("is not of the device, as kind 3 says"));
    assert_eq!(aclrtMemcpy(host, 8, address, 8, 0), 107_000);
    assert_eq!(aclrtMemcpy(address, 4, host, 8, 1), 107_000);
    assert_eq!(message(), "aclrtMemcpy: count 8, limit destMax 4");
    assert_eq!(aclrtMemcpy(address, 16, host, 16, 1), 107_000);
    assert!(message().contains("out of bounds: 16 bytes at offset 0 of an allocation of 8 bytes"));
    assert_eq!(aclrtFree(address), 0);
}

#[test]
fn other_contexts_are_refused() {
    let session = Session::new();
    let (size, executor) = planned(gated(&session, 4));
    let workspace = allocate(size as usize);
    let (mut here, mut there) = (0, 0);
    assert_eq!(aclrtGetCurrentContext(Some(&mut here)), 0);
    let stream = session.stream;
    std::thread::spawn(move || {
        assert_eq!(aclnnSwiGlu(workspace, size, executor, stream), 107_002);
        assert!(message().contains("this thread has no context"));
    })
    .join()
    .unwrap();
    assert_eq!(aclrtCreateContext(Some(&mut there), 0), 0);
    assert_eq!(aclnnSwiGlu(workspace, size, executor, stream), 107_003);
    assert!(message().contains("executor was made in another context"));
    assert_eq!(aclrtSynchronizeStream(stream), 107_003);
    assert_eq!(aclrtDestroyContext(there), 0);
    assert_eq!(aclrtSetCurrentContext(here), 0);
    assert_eq!([aclSetAclOpExecutorRepeatable(executor), aclDestroyAclOpExecutor(executor)], [0, 0]);
    assert_eq!(aclrtFree(workspace), 0);
}

#[test]
fn faults_come_when_they_are_asked_for() {
    let session = Session::new();
    let tensors = gated(&session, 4);
    let workspace = allocate(256);
    assert_eq!(halite_cann_fault(c"malloc=2,launch=2,hide=aclnnRmsNorm".as_ptr()), 0);
    let first = allocate(1);
    assert_eq!(aclrtMalloc(Some(&mut 0), 1, 0), 207_001);
    assert_eq!(aclrtFree(first), 0);
    let code = aclnnRmsNormGetWorkspaceSize(tensors[0], 0, 0.0, 0, 0, Some(&mut 0), Some(&mut 0));
    assert_eq!(code, 561_112);
    assert_eq!(aclnnRmsNorm(workspace, 256, 0, session.stream), 161_001);
    let launch = || aclnnSwiGlu(workspace, 256, planned(tensors).1, session.stream);
    assert_eq!(launch(), 0);
    assert_eq!(launch(), 0);
    assert_eq!(aclrtSynchronizeStream(session.stream), 507_015);
    assert_eq!(message(), "aclrtSynchronizeStream: aclnnSwiGlu: the exception that was asked for");
    // It stays.
    assert_eq!(launch(), 507_015);
    assert_eq!(aclrtSynchronizeStream(session.stream), 507_015);
    assert_eq!(aclrtFree(workspace), 0);
}

/// vllm-ascend issue 4180 is a wait that never ends.
#[test]
fn nobody_waits_for_a_stream_that_failed() {
    let session = Session::new();
    let tensors = gated(&session, 4);
    let (workspace, mut event, mut other) = (allocate(256), 0, 0);
    assert_eq!(aclrtCreateEvent(Some(&mut event)), 0);
    assert_eq!(aclrtCreateStream(Some(&mut other)), 0);
    assert_eq!(halite_cann_fault(c"launch=1".as_ptr()), 0);
    // Some milliseconds of work first, so that the event is mostly recorded before the failure.
    let large = allocate(1 << 26);
    assert_eq!(aclrtMemsetAsync(large, 1 << 26, 0, 1 << 26, session.stream), 0);
    assert_eq!(aclnnSwiGlu(workspace, 256, planned(tensors).1, session.stream), 0);
    // Refused if the stream has come to the failure already; else the event is reached, and says so.
    let code = aclrtRecordEvent(event, session.stream);
    if code == 0 {
        assert_eq!(aclrtStreamWaitEvent(other, event), 0);
        assert_eq!(aclrtSynchronizeStream(other), 0);
        assert_eq!(aclrtSynchronizeEvent(event), 507_015);
        assert!(message().contains("the exception that was asked for"));
    } else {
        assert_eq!(code, 507_015);
    }
    assert_eq!(aclrtDestroyEvent(event), 0);
    assert_eq!(aclrtDestroyStream(other), 0);
    assert_eq!([workspace, large].map(|address| aclrtFree(address)), [0, 0]);
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let session = Session::new();
    let tensors = gated(&session, 4);
    let workspace = allocate(256);
    assert_eq!(halite_cann_fault(c"stall=1".as_ptr()), 0);
    assert_eq!(aclnnSwiGlu(workspace, 256, planned(tensors).1, session.stream), 0);
    assert_eq!(aclrtSynchronizeStreamWithTimeout(session.stream, 20), 507_046);
    let (mut status, mut event) = (0, 0);
    assert_eq!(aclrtStreamQuery(session.stream, Some(&mut status)), 0);
    assert_eq!(status, 1);
    assert_eq!(aclrtCreateEvent(Some(&mut event)), 0);
    assert_eq!(aclrtRecordEvent(event, session.stream), 0);
    assert_eq!(aclrtSynchronizeEventWithTimeout(event, 20), 507_047);
    assert_eq!(aclrtQueryEventStatus(event, Some(&mut status)), 0);
    assert_eq!(status, 0);
    assert_eq!(aclrtDestroyEvent(event), 0);
    assert_eq!(aclrtFree(workspace), 0);
}

#[test]
fn streams_wait_for_events_of_others() {
    let session = Session::new();
    let (mut other, mut event, mut never) = (0, 0, 0);
    assert_eq!(aclrtCreateStream(Some(&mut other)), 0);
    assert_eq!(aclrtCreateEventExWithFlag(Some(&mut event), 0x8), 0);
    assert_eq!(aclrtCreateEventExWithFlag(Some(&mut never), 0), 0);
    assert_eq!(aclrtStreamWaitEvent(other, never), 107_000);
    assert!(message().contains("was never recorded"));
    // Whatever the order of the threads, what comes after the event sees what came before it.
    for round in 0..50 {
        let at = allocate(4);
        assert_eq!(aclrtMemsetAsync(at, 4, round, 4, session.stream), 0);
        assert_eq!(aclrtRecordEvent(event, session.stream), 0);
        assert_eq!(aclrtStreamWaitEvent(other, event), 0);
        let mut bytes = [0_u8; 4];
        let to = bytes.as_mut_ptr() as usize;
        assert_eq!(aclrtMemcpyAsync(to, 4, at, 4, 2, other), 0);
        assert_eq!(aclrtSynchronizeStream(other), 0);
        assert_eq!(std::hint::black_box(bytes), [round as u8; 4]);
        assert_eq!(aclrtFree(at), 0);
    }
    let mut milliseconds = -1.0;
    assert_eq!(aclrtEventElapsedTime(Some(&mut milliseconds), event, event), 0);
    assert_eq!(milliseconds, 0.0);
    assert_eq!(aclrtEventElapsedTime(Some(&mut milliseconds), never, event), 107_000);
    assert_eq!([aclrtDestroyEvent(event), aclrtDestroyEvent(never)], [0, 0]);
    assert_eq!(aclrtDestroyStream(other), 0);
}

#[test]
fn captured_tasks_run_as_often_as_wanted() {
    let session = Session::new();
    let stream = session.stream;
    let cell = session.tensor(&[4], Element::U8, &[0.0; 4]);
    let at = session.data(cell);
    let (mut model, mut group) = (0, 0);
    assert_eq!(aclmdlRICaptureEnd(stream, Some(&mut model)), 107_029);
    assert_eq!(aclmdlRICaptureBegin(stream, 0), 0);
    assert_eq!(aclrtMemsetAsync(at, 2, 1, 2, stream), 0);
    assert_eq!(aclmdlRICaptureTaskGrpBegin(stream), 0);
    assert_eq!(aclrtMemsetAsync(at + 2, 2, 2, 2, stream), 0);
    assert_eq!(aclmdlRICaptureTaskGrpEnd(stream, Some(&mut group)), 0);
    // vllm-ascend issue 6002.
    assert_eq!(aclrtMemcpy(at, 1, at + 1, 1, 3), 107_030);
    assert_eq!(aclrtSynchronizeStream(stream), 107_027);
    assert_eq!(aclmdlRICaptureEnd(stream, Some(&mut model)), 0);
    assert_eq!(session.read(cell), [0.0; 4]);
    let run = || {
        assert_eq!(aclmdlRIExecuteAsync(model, stream), 0);
        assert_eq!(aclrtSynchronizeStream(stream), 0);
        session.read(cell)
    };
    assert_eq!(run(), [1.0, 1.0, 2.0, 2.0]);
    assert_eq!(aclmdlRICaptureTaskUpdateBegin(stream, group), 0);
    assert_eq!(aclrtMemsetAsync(at + 2, 2, 7, 2, stream), 0);
    assert_eq!(aclmdlRICaptureTaskUpdateEnd(stream), 0);
    assert_eq!(run(), [1.0, 1.0, 7.0, 7.0]);
    assert_eq!(aclmdlRICaptureTaskUpdateBegin(stream, group), 0);
    assert_eq!(aclmdlRICaptureTaskUpdateEnd(stream), 107_033);
    assert_eq!(message(), "aclmdlRICaptureTaskUpdateEnd: 0 tasks for a group of 1");
    assert_eq!(aclmdlRIDestroy(model), 0);
    assert_eq!(aclmdlRIExecuteAsync(model, stream), 107_000);
}

/// Some milliseconds of work, so that what comes after it waits; the memory that it fills.
fn long_work(stream: Handle) -> usize {
    let large = allocate(1 << 26);
    assert_eq!(aclrtMemsetAsync(large, 1 << 26, 0, 1 << 26, stream), 0);
    large
}

#[test]
fn host_memory_outlives_its_copies() {
    let session = Session::new();
    let (mut host, mut again) = (0, 0);
    assert_eq!(aclrtMallocHost(Some(&mut host), 16), 0);
    let at = allocate(16);
    assert_eq!(aclrtMemcpyAsync(at, 16, host + 8, 16, 1, session.stream), 107_000);
    assert_eq!(message(), "aclrtMemcpyAsync: out of bounds: 16 bytes at offset 8 of 16 of host memory");
    assert_eq!(aclrtMemcpyAsync(at, 16, host, 16, 1, session.stream), 0);
    assert_eq!(aclrtSynchronizeStream(session.stream), 0);
    let large = long_work(session.stream);
    assert_eq!(aclrtMemcpyAsync(host, 16, at, 16, 2, session.stream), 0);
    assert_eq!(aclrtFreeHost(host), 0);
    // Mostly where the other was: it is told from that.
    assert_eq!(aclrtMallocHost(Some(&mut again), 16), 0);
    assert_eq!(aclrtSynchronizeStream(session.stream), 507_015);
    assert!(message().contains("use after free: host memory at"));
    assert_eq!(aclrtFreeHost(again), 0);
    assert_eq!(aclrtFreeHost(host), 107_000);
    assert_eq!([at, large].map(|address| aclrtFree(address)), [0, 0]);
}

#[test]
fn a_recording_that_runs_is_not_destroyed() {
    let session = Session::new();
    let mut model = 0;
    let at = allocate(4);
    assert_eq!(aclmdlRICaptureBegin(session.stream, 2), 0);
    assert_eq!(aclrtMemsetAsync(at, 4, 1, 4, session.stream), 0);
    assert_eq!(aclmdlRICaptureEnd(session.stream, Some(&mut model)), 0);
    let large = long_work(session.stream);
    assert_eq!(aclmdlRIExecuteAsync(model, session.stream), 0);
    assert_eq!(aclmdlRIDestroy(model), 107_037);
    assert_eq!(message(), "aclmdlRIDestroy: it is running");
    assert_eq!(aclrtSynchronizeStream(session.stream), 0);
    assert_eq!(aclmdlRIDestroy(model), 0);
    assert_eq!([at, large].map(|address| aclrtFree(address)), [0, 0]);
}

#[test]
fn a_capture_forbids_what_its_mode_says() {
    let session = Session::new();
    let stream = session.stream;
    let (mut context, mut model) = (0, 0);
    assert_eq!(aclrtGetCurrentContext(Some(&mut context)), 0);
    let at = allocate(4);
    let elsewhere = |work: &(dyn Fn() -> i32 + Sync)| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                assert_eq!(aclrtSetCurrentContext(context), 0);
                work()
            });
            thread.join().unwrap()
        })
    };
    let synchronous = || aclrtMemset(at, 4, 0, 4);
    for (mode, here, there) in [(0, 107_030, 107_030), (1, 107_030, 0), (2, 0, 0)] {
        assert_eq!(aclmdlRICaptureBegin(stream, mode), 0);
        assert_eq!([synchronous(), elsewhere(&synchronous)], [here, there], "mode {mode}");
        let ended = elsewhere(&|| {
            let mut model = 0;
            let code = aclmdlRICaptureEnd(stream, Some(&mut model));
            if code == 0 { aclmdlRIDestroy(model) } else { code }
        });
        assert_eq!(ended, if mode == 2 { 0 } else { 107_038 }, "mode {mode}");
        if ended != 0 {
            assert_eq!(aclmdlRICaptureEnd(stream, Some(&mut model)), 0);
            assert_eq!(aclmdlRIDestroy(model), 0);
        }
        assert_eq!([synchronous(), elsewhere(&synchronous)], [0, 0], "mode {mode}");
    }
    // A capture that goes with its stream forbids nothing any more.
    let mut other = 0;
    assert_eq!(aclrtCreateStream(Some(&mut other)), 0);
    assert_eq!(aclmdlRICaptureBegin(other, 0), 0);
    assert_eq!(synchronous(), 107_030);
    assert_eq!(aclrtDestroyStreamForce(other), 0);
    assert_eq!(synchronous(), 0);
    assert_eq!(aclrtFree(at), 0);
}
