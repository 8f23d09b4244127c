//! Penalties, biases and masks on logits, judged.

mod errors;

use crate::{
    case::{Group, Verdict, ensure},
    judge::{judge, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    sampling::{KINDS, Logits, logits},
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    logits::{LogitsArgs, LogitsCapacity, LogitsRow, LogitsSpec, LogitsStep, Penalties},
    sampling::{SamplingArgs, SamplingParams, SamplingSpec, SamplingStep},
};

/// Which tokens a row's mask allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Allowed {
    /// There is no mask.
    Unmasked,
    /// All; bits beyond the vocabulary are set too.
    Every,
    /// The first alone.
    First,
    /// The last alone, among set bits beyond the vocabulary.
    Last,
    /// Half of them.
    Some,
}

const MASKS: [Allowed; 5] = [Allowed::Unmasked, Allowed::Every, Allowed::First, Allowed::Last, Allowed::Some];

/// What is asked of one row.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Row {
    /// Its logits.
    pub logits: Logits,
    /// Its penalties.
    pub penalties: Penalties,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens of the output.
    pub output: usize,
    /// Biases, as far as the vocabulary has tokens.
    pub biases: usize,
    /// The mask.
    pub allowed: Allowed,
}

/// One step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// Columns of the logits.
    pub vocabulary: usize,
    /// Each row's request.
    pub rows: Vec<Row>,
    /// How the logits lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("logits", "penalties", penalties(), body),
        Group::listed("logits", "masks", masks(), body),
        Group::seeded("logits", "random", 60, random, body),
        Group::bodies("logits", "draws", vec![("a forbidden token is never drawn", forbidden)]),
        Group::bodies("logits", "errors", errors::bodies()),
    ]
}

fn row(logits: Logits) -> Row {
    Row { logits, penalties: Penalties::NONE, prompt: 0, output: 0, biases: 0, allowed: Allowed::Unmasked }
}

fn penalties() -> Vec<Case> {
    let none = Penalties::NONE;
    let settings = [
        none,
        none.with_repetition(1.3),
        none.with_repetition(0.7),
        none.with_presence(0.9),
        none.with_presence(-1.5),
        none.with_frequency(0.4),
        none.with_frequency(-2.0),
        none.with_repetition(2.0).with_presence(0.5).with_frequency(0.25),
    ];
    let mut cases = Vec::new();
    for (number, vocabulary) in [1, 2, 15, 16, 17, 33, 300].into_iter().enumerate() {
        for (setting, penalties) in settings.into_iter().enumerate() {
            let rows = KINDS.iter().enumerate().map(|(place, &kind)| {
                let (prompt, output) = [(0, 5), (5, 0), (7, 9), (40, 40)][(place + setting) % 4];
                Row { penalties, prompt, output, biases: place % 3, ..row(kind) }
            });
            let (layout, seed) = (LAYOUTS[number % 3], (number * 100 + setting) as u64);
            cases.push(Case { vocabulary, rows: rows.collect(), layout, seed });
        }
    }
    cases.push(Case { vocabulary: 9, rows: vec![], layout: Layout::Dense, seed: 0 });
    cases
}

fn masks() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, vocabulary) in
        [1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 1000].into_iter().enumerate()
    {
        for allowed in MASKS {
            let rows = KINDS.iter().enumerate();
            let rows = rows.map(|(place, &kind)| Row { allowed, biases: place % 2, ..row(kind) }).collect();
            cases.push(Case { vocabulary, rows, layout: LAYOUTS[number % 3], seed: number as u64 });
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let rows = (0..rng.below(6)).map(|_| Row {
        logits: rng.pick(&KINDS),
        penalties: Penalties::NONE
            .with_repetition(rng.pick(&[1.0, 1.1, 1.7, 0.5]))
            .with_presence(rng.pick(&[0.0, 0.3, -0.6]))
            .with_frequency(rng.pick(&[0.0, 0.2, -0.1])),
        prompt: rng.below(60),
        output: rng.below(60),
        biases: rng.below(5),
        allowed: rng.pick(&MASKS),
    });
    let rows = rows.collect();
    Case { vocabulary: 1 + rng.below(200), rows, layout: rng.pick(&LAYOUTS), seed }
}

/// A row's host data, drawn.
struct Asked {
    penalties: Penalties,
    prompt: Vec<u32>,
    output: Vec<u32>,
    bias: Vec<(u32, f32)>,
    allowed: Option<Vec<u32>>,
}

impl Asked {
    fn new(rng: &mut Rng, row: &Row, vocabulary: usize) -> Self {
        // Few distinct tokens, so that many come more than once; the last one among them.
        let some: Vec<u32> = (0..9).map(|_| rng.below(vocabulary) as u32).collect();
        let mut tokens = |count| -> Vec<u32> {
            let token = |place| if place == 2 { vocabulary as u32 - 1 } else { rng.pick(&some) };
            (0..count).map(token).collect()
        };
        let (prompt, output) = (tokens(row.prompt), tokens(row.output));
        let mut bias: Vec<(u32, f32)> = (0..row.biases)
            .map(|place| {
                let token = if place == 0 { vocabulary - 1 } else { rng.below(vocabulary) };
                (token as u32, 8.0 * rng.unit() - 4.0)
            })
            .collect();
        bias.sort_by_key(|&(token, _)| token);
        bias.dedup_by_key(|&mut (token, _)| token);
        let words = vocabulary.div_ceil(32);
        let last = vocabulary - 1;
        let only = |token: usize| {
            let mut mask = vec![0u32; words];
            mask[token / 32] = 1 << (token % 32);
            mask
        };
        let beyond = if vocabulary.is_multiple_of(32) { 0 } else { u32::MAX << (vocabulary % 32) };
        let allowed = match row.allowed {
            Allowed::Unmasked => None,
            Allowed::Every => Some(vec![u32::MAX; words]),
            Allowed::First => Some(only(0)),
            Allowed::Last => Some(only(last)),
            Allowed::Some => {
                Some(only(rng.below(vocabulary)).iter().map(|one| one | rng.bits() as u32).collect())
            }
        };
        let allowed = allowed.map(|mut mask: Vec<u32>| {
            mask[words - 1] |= beyond;
            mask
        });
        Asked { penalties: row.penalties, prompt, output, bias, allowed }
    }

    fn row(&self) -> LogitsRow<'_> {
        let row = LogitsRow::unchanged().with_penalties(self.penalties, &self.prompt, &self.output);
        let row = row.with_bias(&self.bias);
        self.allowed.as_ref().map_or(row, |allowed| row.with_allowed(allowed))
    }
}

/// Room for exactly these.
fn capacity(rows: &[LogitsRow<'_>]) -> LogitsCapacity {
    let (history, biases) =
        rows.iter().fold((0, 0), |(history, biases), row| (history + row.history(), biases + row.bias.len()));
    LogitsCapacity::rows(rows.len()).with_history(history).with_biases(biases)
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { vocabulary, rows, layout, seed } = case;
    let spec = LogitsSpec::new(*vocabulary);
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(*seed);
    let asked: Vec<Asked> = rows.iter().map(|row| Asked::new(&mut rng, row, *vocabulary)).collect();
    let asked: Vec<LogitsRow<'_>> = asked.iter().map(Asked::row).collect();
    // Room for the step before as well, a row more: what it leaves in the plan must not be used.
    let (history, bias, mask) = ([0; 3], [(0, 9.0)], vec![u32::MAX; spec.mask_words()]);
    let harsh = Penalties::NONE.with_repetition(5.0).with_frequency(1.0);
    let row = LogitsRow::unchanged().with_penalties(harsh, &history, &history).with_bias(&bias);
    let earlier = vec![row.with_allowed(&mask); rows.len() + 1];
    let (now, before) = (capacity(&asked), capacity(&earlier));
    let capacity = LogitsCapacity::rows(before.max_rows)
        .with_history(now.max_history.max(before.max_history))
        .with_biases(now.max_biases.max(before.max_biases));
    let planned = device.logits_plan(&spec, &capacity);
    if denied(device.logits_supports(&spec)) {
        return unsupported("logits", planned);
    }
    let mut plan = planned?;
    for step in [&earlier, &asked] {
        let step = LogitsStep { rows: step }.check(&plan)?;
        device.logits_update(stream, &mut plan, &step)?;
    }
    let values: Vec<f32> = rows.iter().flat_map(|row| logits(&mut rng, row.logits, *vocabulary)).collect();
    let dims = [rows.len(), *vocabulary];
    let (guarded, values) = Guarded::<B>::input(stream, DType::F32, &values, &dims, *layout)?;
    device.adjust_logits(stream, LogitsArgs { plan: &plan, logits: &guarded.view }.check()?)?;
    let expected: Vec<_> = values
        .chunks_exact(*vocabulary)
        .zip(&asked)
        .flat_map(|(row, asked)| oracle::logits::adjusted(row, asked))
        .collect();
    judge("logits", &dims, &guarded.read(stream)?, &expected)
}

/// Seed and position of the greatest draw, 1 - 2^-24, and of the least, 0.
const GREATEST: (u64, u64) = (1, 2_666_051);
const LEAST: (u64, u64) = (1, 20_959_937);

/// Whatever the model says of the allowed tokens, one of them is taken: also where they are all -inf or NaN, and where
/// the draw is so close to 1 that running sums end before it.
fn forbidden<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let vocabulary = 301;
    let plain = SamplingParams::seeded(1.0, 5);
    let mut params: Vec<SamplingParams> = (0..20).map(|position| plain.clone().at(position)).collect();
    params.push(SamplingParams::greedy());
    for (seed, position) in [GREATEST, LEAST] {
        params.push(SamplingParams::seeded(1.0, seed).at(position));
        params.push(SamplingParams::seeded(0.2, seed).with_top_k(300).with_top_p(0.999_999).at(position));
    }
    let rows = params.len();
    let (spec, capacity) = (LogitsSpec::new(vocabulary), LogitsCapacity::rows(rows));
    let mut plan = device.logits_plan(&spec, &capacity)?;
    let mut draws = device.sampling_plan(&SamplingSpec::new(vocabulary), rows)?;
    let step = SamplingStep { params: &params }.check(&draws)?;
    device.sampling_update(stream, &mut draws, &step)?;
    for (number, kind) in KINDS.into_iter().enumerate() {
        let mut rng = Rng::new(number as u64);
        // One token in ten is allowed.
        let mut mask = vec![0u32; spec.mask_words()];
        let allowed = |token: usize| token % 10 == 3;
        (0..vocabulary)
            .filter(|&token| allowed(token))
            .for_each(|token| mask[token / 32] |= 1 << (token % 32));
        let asked = vec![LogitsRow::unchanged().with_allowed(&mask); rows];
        let step = LogitsStep { rows: &asked }.check(&plan)?;
        device.logits_update(stream, &mut plan, &step)?;
        let mut values: Vec<f32> = (0..rows).flat_map(|_| logits(&mut rng, kind, vocabulary)).collect();
        if number % 2 == 1 {
            // The model gives the allowed ones nothing.
            let nothing = [f32::NAN, f32::NEG_INFINITY];
            values
                .iter_mut()
                .enumerate()
                .filter(|(place, _)| allowed(place % vocabulary))
                .for_each(|(place, value)| *value = nothing[place % 2]);
        }
        let x = Tensor::<B>::from_slice(stream, &values, &[rows, vocabulary])?;
        device.adjust_logits(stream, LogitsArgs { plan: &plan, logits: &x }.check()?)?;
        let ids = Tensor::<B>::new(stream.device(), DType::I32, &[rows])?;
        device.sample(stream, SamplingArgs { plan: &draws, logits: &x, ids: &ids }.check()?)?;
        for (row, id) in ids.to_vec::<i32>(stream)?.into_iter().enumerate() {
            ensure(usize::try_from(id).is_ok_and(allowed), || {
                format!("logits {kind:?}, row {row}, {:?}: token {id} is forbidden", params[row])
            })?;
        }
    }
    Ok(())
}
