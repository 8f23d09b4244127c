//! What requests ask of their logits: penalties, biases and masks, over a vocabulary of 128k.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, for_each_device, values};
use halite_hal::{Result, Tensor};
use halite_kernels::logits::{LogitsArgs, LogitsCapacity, LogitsRow, LogitsSpec, LogitsStep, Penalties};

/// Llama 3's.
const VOCABULARY: usize = 128_256;
/// Tokens of a prompt, and of what was said since.
const PROMPT: usize = 2048;
const OUTPUT: usize = 512;
/// Biases of a row: as many as OpenAI's API takes.
const BIASES: usize = 300;

/// Tokens far apart and distinct, since the stride and the vocabulary have no divisor in common.
fn token(place: usize) -> u32 {
    (place * 7919 % VOCABULARY) as u32
}

struct LogitOps;

impl Bench for LogitOps {
    const OPERATOR: &'static str = "logits";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let tokens: Vec<u32> = (0..PROMPT + OUTPUT).map(token).collect();
        let (prompt, output) = tokens.split_at(PROMPT);
        let mut bias: Vec<(u32, f32)> = tokens[..BIASES].iter().map(|&token| (token, 5.0)).collect();
        bias.sort_unstable_by_key(|&(token, _)| token);
        let back: Vec<(u32, f32)> = bias.iter().map(|&(token, bias)| (token, -bias)).collect();
        let even = vec![0x5555_5555; LogitsSpec::new(VOCABULARY).mask_words()];

        let row = LogitsRow::unchanged;
        let penalties = |repetition: f32, less: f32| {
            let penalties = Penalties::NONE.with_repetition(repetition);
            row().with_penalties(penalties.with_presence(less).with_frequency(less), prompt, output)
        };
        for rows in [1, 32] {
            // A request and one that takes it back, in turn: logits stay in range however often they are adjusted.
            for (name, requests, touched) in [
                ("penalties", [penalties(2.0, 0.5), penalties(0.5, -0.5)], PROMPT + OUTPUT),
                ("bias", [row().with_bias(&bias), row().with_bias(&back)], BIASES),
                ("mask", [row().with_allowed(&even); 2], VOCABULARY),
            ] {
                // What is touched is read and written.
                let work = Work::bytes((rows * touched * 8) as u64);
                measure(group, device, &format!("{rows}x{VOCABULARY}/{name}"), work, requests, rows)?;
            }
        }
        Ok(())
    }
}

fn measure<B: Measured>(
    group: &mut Group<'_>,
    device: &B,
    id: &str,
    work: Work,
    requests: [LogitsRow<'_>; 2],
    rows: usize,
) -> Result<()> {
    let stream = &mut device.stream()?;
    let data = values(rows * VOCABULARY);
    let logits = Tensor::from_slice(stream, &data, &[rows, VOCABULARY])?;
    let mut plan = |request: LogitsRow<'_>| -> Result<B::LogitsPlan> {
        let capacity = LogitsCapacity::rows(rows)
            .with_history(rows * request.history())
            .with_biases(rows * request.bias.len());
        let mut plan = device.logits_plan(&LogitsSpec::new(VOCABULARY), &capacity)?;
        let rows = vec![request; rows];
        let step = LogitsStep { rows: &rows }.check(&plan)?;
        device.logits_update(stream, &mut plan, &step)?;
        Ok(plan)
    };
    let plans = [plan(requests[0])?, plan(requests[1])?];
    let step = |stream: &mut B::Stream, plan: &B::LogitsPlan| -> Result<()> {
        device.adjust_logits(stream, LogitsArgs { plan, logits: &logits }.check()?)
    };

    step(stream, &plans[0])?;
    let answer = logits.to_vec::<f32>(stream)?;
    for row in [0, rows - 1] {
        // Of the prompt, of neither, of the output.
        for token in [0, 2, 3, token(PROMPT)] {
            let at = row * VOCABULARY + token as usize;
            assert_eq!(
                answer[at],
                adjusted(&requests[0], token, data[at]),
                "{id}: token {token} of row {row}"
            );
        }
    }

    let mut turn = 0;
    group.measure(id, work, stream, |stream| {
        turn = 1 - turn;
        step(stream, &plans[turn])
    })
}

/// A logit as the request wants it; no token comes twice.
fn adjusted(request: &LogitsRow<'_>, token: u32, mut x: f32) -> f32 {
    let Penalties { repetition, presence, frequency, .. } = request.penalties;
    let said = request.output.contains(&token);
    if said || request.prompt.contains(&token) {
        x = if x > 0.0 { x / repetition } else { x * repetition };
    }
    if said {
        x = x - frequency - presence;
    }
    x += request.bias.iter().find(|bias| bias.0 == token).map_or(0.0, |bias| bias.1);
    let allowed = request.allowed.is_none_or(|words| words[token as usize / 32] >> (token % 32) & 1 == 1);
    if allowed { x } else { f32::NEG_INFINITY }
}

fn logits(criterion: &mut Criterion) {
    for_each_device(criterion, &LogitOps);
}

criterion_group!(benches, logits);
criterion_main!(benches);
