//! `halite bench model`: tokens a second, prefill and decode apart.

use crate::answer::per_second;
use crate::cli::{LoadArgs, at_least_one};
use crate::figures::{Place, Spread};
use crate::load;
use crate::output;
use crate::progress::{Progress, Unit};
use anyhow::{Context, bail};
use clap::Args;
use halite_engine::{Engine, Event, FinishReason, KvCapacity, ModelInfo, PrefixReuse, Request};
use serde::Serialize;
use std::collections::HashSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Measure a model's speed: prefill and decode, median of several runs
///
/// A run adds B prompts of P tokens at once, random but always the same, and generates greedily; stop tokens do not
/// end an answer. Prefill is the time until every prompt has its first token: B*P tokens. Decode is the rest, until
/// every prompt has G tokens more; tokens of early prompts that came during prefill are not counted. One run before
/// the measured ones warms up. Nothing is reused between runs.
#[derive(Debug, Args)]
pub(crate) struct BenchModelArgs {
    /// The model: a name known to `halite pull`, ORG/NAME on the Hugging Face hub, or the path of a .gguf file or a model's folder
    model: String,

    /// P, tokens of a prompt
    #[arg(long, value_name = "P", default_value_t = 512, value_parser = at_least_one())]
    prompt: usize,

    /// G, tokens generated after each prompt's first one
    #[arg(long, value_name = "G", default_value_t = 128, value_parser = at_least_one())]
    generate: usize,

    /// B, prompts at once
    #[arg(long, value_name = "B", default_value_t = 1, value_parser = at_least_one())]
    batch: usize,

    /// Measured runs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one())]
    runs: usize,

    /// Write over so much other memory before each decode step, so that no cache holds weights or KV; its time does not count
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    flush: usize,

    /// Write JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    load: LoadArgs,
}

#[derive(Serialize)]
struct Report {
    model: String,
    weights: String,
    kv: String,
    backend: &'static str,
    tier: String,
    threads: usize,
    prompt: usize,
    generate: usize,
    batch: usize,
    runs: usize,
    flush_mib: usize,
    prefill_tokens_per_s: f64,
    prefill_tokens_per_s_min: f64,
    prefill_tokens_per_s_max: f64,
    decode_tokens_per_s: f64,
    decode_tokens_per_s_min: f64,
    decode_tokens_per_s_max: f64,
    version: &'static str,
}

pub(crate) fn execute(args: &BenchModelArgs, progress: &Progress) -> anyhow::Result<()> {
    let &BenchModelArgs { prompt, generate, batch, runs, .. } = args;
    let mut options = args.load.options().max_sequences(batch).prefix_reuse(PrefixReuse::Off);
    // Every prompt, its first token and those after it; saturating, as the engine names what is too large.
    let context = prompt.saturating_add(generate).saturating_add(1);
    let blocks = context.div_ceil(options.block_size).saturating_mul(batch);
    let kv = KvCapacity::Tokens(blocks.saturating_mul(options.block_size));
    let rows = options.max_batch_tokens.max(batch);
    options = options.context(context).kv(kv).max_batch_tokens(rows);
    let model = load::open(&args.model, &args.load, progress)?;
    let asked = || format!("--prompt {prompt} and --generate {generate} need a context of {context} tokens");
    let mut engine = load::load(&model, &options, progress).with_context(asked)?;

    let prompts = prompts(batch, prompt, engine.describe().vocabulary);
    let bytes = args.flush.saturating_mul(1 << 20);
    let mut other = Vec::new();
    other.try_reserve_exact(bytes).with_context(|| format!("--flush {}: no memory for it", args.flush))?;
    other.resize(bytes, 0u8);
    let (mut prefill, mut decode) = (Vec::new(), Vec::new());
    let title = format!("{prompt} prompt + {generate} generated tokens, batch {batch}");
    let mut stage = progress.stage(&title, Unit::Runs, Some(runs as u64 + 1));
    for run in 0..=runs {
        let rates = measure(&mut engine, &prompts, generate, &mut other)?;
        if run > 0 {
            prefill.push(rates.prefill);
            decode.push(rates.decode);
        }
        stage.set(run as u64 + 1);
    }
    drop(stage);
    let (Some(prefill), Some(decode)) = (Spread::of(prefill), Spread::of(decode)) else {
        bail!("no run was measured");
    };
    let info = engine.describe();
    if args.json {
        output::write_json(&report(args, info, prefill, decode))
    } else {
        output::write(&table(args, info, prefill, decode))
    }
}

/// Prompts that differ from each other and are the same in every run.
fn prompts(batch: usize, length: usize, vocabulary: usize) -> Vec<Vec<u32>> {
    // A linear congruential generator (Knuth's MMIX constants); its high bits are random enough for a cold cache.
    let mut state = 1u64;
    let mut token = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % vocabulary.max(1) as u64) as u32
    };
    (0..batch).map(|_| (0..length).map(|_| token()).collect()).collect()
}

/// Tokens a second of one run.
struct Rates {
    prefill: f64,
    decode: f64,
}

/// One run; `other` memory is written before each step of decode, outside what is measured.
fn measure(
    engine: &mut Engine,
    prompts: &[Vec<u32>],
    generate: usize,
    other: &mut [u8],
) -> anyhow::Result<Rates> {
    let requests: Vec<_> =
        prompts.iter().map(|prompt| Request::new(prompt.clone(), generate.saturating_add(1))).collect();
    let started = Instant::now();
    let mut without_token = HashSet::new();
    for request in requests {
        without_token.insert(engine.add(request)?);
    }
    let mut prefilled = None;
    let mut decoded = 0;
    let mut uncounted = Duration::ZERO;
    while !engine.is_idle() {
        if prefilled.is_some() && !other.is_empty() {
            let began = Instant::now();
            other.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&mut *other);
            uncounted += began.elapsed();
        }
        for event in engine.step()? {
            match event {
                Event::Token { id, .. } => {
                    decoded += usize::from(prefilled.is_some());
                    without_token.remove(&id);
                }
                Event::Finished(finished) if finished.reason == FinishReason::Length => {}
                Event::Finished(finished) => bail!("a run ended early: {:?}", finished.reason),
                _ => {}
            }
        }
        if prefilled.is_none() && without_token.is_empty() {
            prefilled = Some(started.elapsed());
        }
    }
    let prefilled = prefilled.context("the engine stopped before every prompt had its first token")?;
    let decoding = started.elapsed().saturating_sub(prefilled).saturating_sub(uncounted);
    let prompt_tokens = prompts.iter().map(Vec::len).sum();
    let too_fast = "a run took no measurable time";
    Ok(Rates {
        prefill: per_second(prompt_tokens, prefilled).context(too_fast)?,
        decode: per_second(decoded, decoding).context(too_fast)?,
    })
}

fn report(args: &BenchModelArgs, info: &ModelInfo, prefill: Spread, decode: Spread) -> Report {
    Report {
        model: args.model.clone(),
        weights: info.weights.to_string(),
        kv: info.kv_format.to_string(),
        backend: info.device.backend,
        tier: info.device.tier.clone(),
        threads: info.device.parallelism,
        prompt: args.prompt,
        generate: args.generate,
        batch: args.batch,
        runs: args.runs,
        flush_mib: args.flush,
        prefill_tokens_per_s: prefill.median,
        prefill_tokens_per_s_min: prefill.min,
        prefill_tokens_per_s_max: prefill.max,
        decode_tokens_per_s: decode.median,
        decode_tokens_per_s_min: decode.min,
        decode_tokens_per_s_max: decode.max,
        version: env!("CARGO_PKG_VERSION"),
    }
}

fn table(args: &BenchModelArgs, info: &ModelInfo, prefill: Spread, decode: Spread) -> String {
    let row = |name: &str, Spread { median, min, max }: Spread| {
        format!("{name:<10}{median:>12.1}{min:>12.1}{max:>12.1}\n")
    };
    format!(
        "{}: {}; batch {}, {} prompt + {} generated tokens, {} {}\n{:<10}{:>12}{:>12}{:>12}\n{}{}",
        args.model,
        Place(info),
        args.batch,
        args.prompt,
        args.generate,
        args.runs,
        if args.runs == 1 { "run" } else { "runs" },
        "tokens/s",
        "median",
        "min",
        "max",
        row("prefill", prefill),
        row("decode", decode),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_fixed_differ_and_stay_in_the_vocabulary() {
        let made = prompts(3, 50, 10);
        assert_eq!(made, prompts(3, 50, 10));
        assert!(made[0] != made[1] && made[1] != made[2]);
        assert!(made.iter().all(|prompt| prompt.len() == 50 && prompt.iter().all(|&id| id < 10)));
        assert!((0..10).all(|id| made.iter().flatten().any(|&token| token == id)));
    }
}
