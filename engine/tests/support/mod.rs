//! What the engine's tests share.
#![allow(dead_code, reason = "each test binary uses its own part of it")]

pub(crate) mod checkpoints;
pub(crate) mod sequences;
pub(crate) mod split_experts;
pub(crate) mod tiny_model;

use halite_cpu::{Cpu, Options, Tier};
use halite_engine::store::{self, Cache, DEFAULT_MODEL};
use halite_engine::{EngineOptions, WeightsFormat};
use std::path::PathBuf;

/// The default model's file; without it the test fails with the command that fetches it.
pub(crate) fn model_file() -> PathBuf {
    let file = Cache::open(None).and_then(|cache| store::cached(DEFAULT_MODEL, &cache));
    file.unwrap_or_else(|error| {
        panic!("{error}\nrun: cargo run --release -- pull {DEFAULT_MODEL}");
    })
}

pub(crate) fn cpu(threads: usize, tier: Tier) -> Cpu {
    Cpu::new(Options::default().threads(threads).tier(tier)).unwrap()
}

pub(crate) fn options(weights: WeightsFormat) -> EngineOptions {
    EngineOptions::new().weights(weights)
}
