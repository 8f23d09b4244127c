//! How kernels are executed.

/// What is looked for besides accesses out of bounds, which always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checks {
    /// Reads of bytes of shared, local and global memory that nobody has written.
    pub uninitialised: bool,
    /// Accesses of shared memory by several threads that nothing orders.
    pub races: bool,
    /// Bank conflicts, sectors and the rest of [`Counters`](crate::Counters).
    pub counters: bool,
}

impl Checks {
    /// Everything.
    pub const ALL: Checks = Checks { uninitialised: true, races: true, counters: true };
    /// Bounds, alignment and deadlocks only.
    pub const BOUNDS: Checks = Checks { uninitialised: false, races: false, counters: false };

    /// With or without reports of uninitialised reads.
    pub const fn with_uninitialised(mut self, on: bool) -> Checks {
        self.uninitialised = on;
        self
    }

    /// With or without reports of races.
    pub const fn with_races(mut self, on: bool) -> Checks {
        self.races = on;
        self
    }

    /// With or without counters.
    pub const fn with_counters(mut self, on: bool) -> Checks {
        self.counters = on;
        self
    }
}

/// A machine's options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What is looked for. [`Checks::ALL`] by default.
    pub checks: Checks,
    /// Host threads that execute blocks, at least one; as many as the host has by default. With one, every launch is
    /// deterministic.
    pub threads: usize,
    /// Most instructions that a warp may execute in a block, 2^34 by default: what would never end is a fault.
    pub max_steps: u64,
    /// Most different faults that a launch collects before it stops, at least one; 16 by default. An access out of bounds, a deadlock and
    /// the like stop it at once.
    pub max_faults: usize,
    /// Most bytes of shared memory a block, static and dynamic. 227 KiB by default, as compute capability 9.0 has
    /// it; never more than 16 MiB, the part of generic addresses that shared memory has.
    pub max_shared_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            checks: Checks::ALL,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            max_steps: 1 << 34,
            max_faults: 16,
            max_shared_bytes: 227 * 1024,
        }
    }
}

impl Options {
    /// With these checks.
    pub fn with_checks(mut self, checks: Checks) -> Options {
        self.checks = checks;
        self
    }

    /// With this many host threads, at least one.
    pub fn with_threads(mut self, threads: usize) -> Options {
        self.threads = threads.max(1);
        self
    }

    /// With this limit of instructions a warp.
    pub fn with_max_steps(mut self, steps: u64) -> Options {
        self.max_steps = steps;
        self
    }

    /// With this limit of different faults a launch, at least one.
    pub fn with_max_faults(mut self, faults: usize) -> Options {
        self.max_faults = faults.max(1);
        self
    }

    /// With this limit of shared memory.
    pub fn with_max_shared_bytes(mut self, bytes: u64) -> Options {
        self.max_shared_bytes = bytes;
        self
    }
}
