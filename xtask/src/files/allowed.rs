//! Where `unsafe` may stand. Everything else is safe Rust.

/// A file, or a folder when it ends in `/`, that may hold `unsafe` code.
pub(super) struct Allowed {
    pub(super) path: &'static str,
    /// Why it cannot be written without.
    #[allow(dead_code, reason = "read by people, and by the test that none is empty")]
    pub(super) reason: &'static str,
}

/// The whole list; an entry without any `unsafe` left fails the check.
pub(super) const UNSAFE: &[Allowed] = &[
    Allowed { path: "backends/cpu/src/simd/avx2.rs", reason: "instructions that only some processors have" },
    Allowed {
        path: "backends/cpu/src/simd/avx512.rs",
        reason: "instructions that only some processors have",
    },
    Allowed {
        path: "backends/cpu/src/simd/matrix/",
        reason: "AMX's instructions, and the permission that Linux wants for them",
    },
    Allowed {
        path: "backends/cpu/src/attention/operands.rs",
        reason: "microkernel: loads without bounds checks",
    },
    Allowed {
        path: "backends/cpu/src/attention/tile.rs",
        reason: "microkernel: loads without bounds checks",
    },
    Allowed {
        path: "backends/cpu/src/attention/weigh.rs",
        reason: "microkernel: loads without bounds checks",
    },
    Allowed {
        path: "backends/cpu/src/attention/call.rs",
        reason: "promises that the tasks' pieces of the result are apart",
    },
    Allowed { path: "backends/cpu/src/linear/float.rs", reason: "microkernel: loads without bounds checks" },
    Allowed {
        path: "backends/cpu/src/linear/group_wise_tile.rs",
        reason: "microkernel: loads without bounds checks",
    },
    Allowed { path: "backends/cpu/src/linear/int8.rs", reason: "microkernel: loads without bounds checks" },
    Allowed { path: "backends/cpu/src/linear/output.rs", reason: "tasks write columns of one matrix" },
    Allowed {
        path: "backends/cpu/src/linear/mod.rs",
        reason: "promises that those tasks' columns are apart",
    },
    Allowed { path: "backends/cpu/src/aligned.rs", reason: "allocates at the alignment of a vector" },
    Allowed {
        path: "backends/cpu/src/buffer.rs",
        reason: "counted buffers, whose ranges are lent at run time",
    },
    Allowed {
        path: "backends/cpu/src/team.rs",
        reason: "workers call a closure that the caller only lends, as scoped threads do",
    },
    Allowed {
        path: "backends/wgpu/src/pipeline_cache.rs",
        reason: "hands the driver compiled pipelines that an earlier process kept",
    },
    Allowed {
        path: "backends/cuda/src/compile/nvrtc.rs",
        reason: "NVRTC: the compiler is a foreign library",
    },
    Allowed { path: "backends/cuda/src/driver/hardware/", reason: "NVIDIA's driver: a foreign library" },
    Allowed {
        path: "backends/cuda/src/driver/mod.rs",
        reason: "launches: what a kernel may touch is the caller's promise",
    },
    Allowed { path: "backends/cuda/src/driver/context.rs", reason: "passes that promise on to the driver" },
    Allowed {
        path: "backends/cuda/src/driver/interpreter/",
        reason: "an interpreter, which is asked for the same promise and checks every access",
    },
    Allowed {
        path: "backends/cuda/src/stream.rs",
        reason: "gives that promise, for the crate's own kernels over checked tensors that are held until they are done",
    },
    Allowed {
        path: "backends/cuda/src/driver/testing.rs",
        reason: "a driver for tests, which is asked for the same promise",
    },
    Allowed {
        path: "sim/cann/src/descriptor/",
        reason: "C functions: the names that a loader looks for must stay as they are",
    },
    Allowed {
        path: "sim/cann/src/foreign.rs",
        reason: "reads what callers of C functions point at, and the host memory of their copies",
    },
    Allowed { path: "sim/cann/src/operator/", reason: "C functions, as above" },
    Allowed {
        path: "sim/cann/src/runtime/",
        reason: "C functions, as above; addresses of device memory are reserved from the system",
    },
    Allowed { path: "sim/cann/src/settings.rs", reason: "C functions of this library's own" },
    Allowed { path: "sim/cann/src/testing.rs", reason: "reads the texts that C functions return" },
    Allowed {
        path: "backends/ascend/src/abi/",
        reason: "CANN: foreign libraries, and what bindgen makes of them",
    },
    Allowed { path: "backends/ascend/src/runtime/", reason: "calls of those libraries" },
    Allowed {
        path: "backends/ascend/tests/faults.rs",
        reason: "asks the stand-in for faults, by a function of its own",
    },
    Allowed { path: "sim/cann/tests/", reason: "loads the library as others do" },
    Allowed { path: "benches/src/ceilings/", reason: "probes instructions that only some processors have" },
    Allowed {
        path: "engine/src/mapped_file.rs",
        reason: "maps model files: the system is a foreign function",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_its_reason() {
        assert!(UNSAFE.iter().all(|entry| !entry.reason.trim().is_empty()));
    }
}
