//! Whole kernels, written by hand: memories, barriers, divergence, and every fault.

mod atomic;
mod barrier;
mod copy_async;
mod counters;
mod divergence;
mod faults;
mod launch;
mod matrix;
mod memory;
mod memory_barrier;
mod mutations;
mod races;
mod support;
