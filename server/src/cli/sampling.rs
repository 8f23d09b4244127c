//! How tokens are chosen.

use crate::progress::line;
use clap::Args;
use halite_engine::SamplingParams;
use std::hash::{BuildHasher, RandomState};

#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling options")]
pub(crate) struct SamplingArgs {
    /// 0 takes the most likely token each time; higher is more varied
    #[arg(short, long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    temperature: f32,

    /// Choose among the K most likely tokens only; 0 for all
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: u32,

    /// Choose among the most likely tokens that together have this probability
    #[arg(long, value_name = "P", default_value_t = 1.0, allow_negative_numbers = true)]
    top_p: f32,

    /// Choose among tokens that have at least this share of the most likely one's probability
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    min_p: f32,

    /// The same seed gives the same answer [default: another each time, told with the figures]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl SamplingArgs {
    /// The engine's form, checked.
    pub(crate) fn params(&self) -> anyhow::Result<SamplingParams> {
        // The standard library seeds `RandomState` from the operating system.
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0u8));
        let params = SamplingParams::seeded(self.temperature, seed)
            .with_top_k(self.top_k)
            .with_top_p(self.top_p)
            .with_min_p(self.min_p);
        params.check()?;
        if self.seed.is_some() && self.temperature == 0.0 {
            line(
                "note: --seed has no effect at temperature 0, where the most likely token is taken each time",
            );
        }
        Ok(params)
    }
}
