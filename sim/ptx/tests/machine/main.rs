//! Whole kernels, written by hand: memories, barriers, divergence, and every fault.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests, and what they have in common")]

mod atomic;
mod barrier;
mod copy_async;
mod counters;
mod divergence;
mod faults;
mod launch;
mod matrix;
mod mbarrier;
mod memory;
mod mutations;
mod races;
mod refused;
mod special;
mod support;
