//! `halite kernels precompile`, and models on the CUDA backend, interpreted; with NVIDIA's compiler in the library path:
//! `cargo xtask cuda` brings it and runs these tests.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests: outside of test functions too")]

mod support;

use support::Place;

#[test]
fn kernels_are_compiled_into_a_folder() {
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("made/here");
    let said =
        place.halite(&["kernels", "precompile", "--arch", "sm_80", "--out", out.to_str().unwrap()]).success();
    let files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|file| file.unwrap()).collect();
    let programs = halite_cuda::programs().len();
    assert_eq!(files.len(), programs);
    assert!(files.iter().all(|file| file.metadata().unwrap().len() > 500));
    assert!(said.starts_with(&format!("{programs} programs for sm_80, ")), "{said}");
}

#[test]
fn what_cannot_be_is_said() {
    let place = Place::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let file = file.path().to_str().unwrap();
    place.halite(&["kernels", "precompile", "--arch", "sm_80", "--out", file]).failure(&[file]);
    place.halite(&["kernels", "precompile", "--arch", "volta", "--out", "x"]).usage(&["volta", "--arch"]);
}

#[cfg(feature = "cuda-sim")]
mod interpreted {
    use super::support::{Place, json};
    use halite_cpu::Cpu;
    use halite_cuda::{Cuda, Options, driver::Interpreter};
    use halite_engine::model::load_runner;
    use halite_engine::runner::{Runner, SequencePart, StepBatch};
    use halite_engine::{EngineOptions, KvCapacity, SamplingParams, WeightsFormat, model_file};

    /// What a step gave for the last rows of its sequences.
    struct Given {
        tokens: Vec<u32>,
        /// Of each.
        logits: Vec<Vec<f32>>,
    }

    /// A step of these parts of sequences, each from a position on, in blocks that are out of order.
    fn step(runner: &mut dyn Runner, parts: &[(usize, &[u32])]) -> Given {
        let mut batch = StepBatch::new();
        for (sequence, &(start, tokens)) in parts.iter().enumerate() {
            let blocks = [[5u32, 2, 7], [1, 6, 0]][sequence];
            let slot = |position: usize| i64::from(blocks[position / 8]) * 8 + (position % 8) as i64;
            let slot_mapping: Vec<i64> = (start..start + tokens.len()).map(slot).collect();
            let block_table = &blocks[..(start + tokens.len()).div_ceil(8)];
            let rows = batch.push(SequencePart { start, tokens, slot_mapping: &slot_mapping, block_table });
            batch.samples.push((rows.end - 1, SamplingParams::greedy().at(0)));
            batch.logits.push(rows.end - 1);
        }
        let (output, vocabulary) = (runner.step(&batch).unwrap(), runner.info().vocabulary);
        let logits = output.logits.chunks(vocabulary).map(<[f32]>::to_vec).collect();
        Given { tokens: output.tokens, logits }
    }

    /// A prompt over two blocks, another beside the first one's next token, and both go on; as the CPU answers.
    ///
    /// Each kind of weights has the same tolerance, so the prompt was chosen among those whose INT8 activations are on no edge of
    /// rounding: on one, the CPU's own logits move by 0.1 where a norm's weights change by a unit in the last place.
    #[test]
    fn steps_are_those_of_the_cpu() {
        let (place, cuda) = (Place::new(), cuda());
        let model = place.model();
        let (long, short): (Vec<u32>, [u32; 3]) = ((0..11).map(|i| i * 7 % 66).collect(), [40, 2, 33]);
        let tolerance = 5e-5;
        for weights in [WeightsFormat::F32, WeightsFormat::W8a8] {
            let file = model_file::open(&model).unwrap();
            let options = EngineOptions::new().weights(weights).context(64).kv(KvCapacity::Tokens(64));
            let options = options.block_size(8).max_batch_tokens(16).max_sequences(2);
            let cpu = Cpu::new(halite_cpu::Options::default()).unwrap();
            let mut cpu = load_runner(cpu, &*file, &options, &mut |_| {}).unwrap();
            let mut gpu = load_runner(cuda.clone(), &*file, &options, &mut |_| {}).unwrap();
            let mut clear = 0;
            let mut both = |parts: &[(usize, &[u32])]| {
                let (right, given) = (step(&mut *cpu, parts), step(&mut *gpu, parts));
                for (row, (right, given)) in right.logits.iter().zip(&given.logits).enumerate() {
                    let far = right.iter().zip(given).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    println!("{weights}: row {row} is {far} off");
                    assert!(far <= tolerance, "{weights}: row {row} is {far} off");
                }
                for (sequence, logits) in right.logits.iter().enumerate() {
                    let mut sorted = logits.clone();
                    sorted.sort_by(|a, b| b.total_cmp(a));
                    if sorted[0] - sorted[1] > 2.0 * tolerance {
                        assert_eq!(right.tokens[sequence], given.tokens[sequence], "{weights}: {sequence}");
                        clear += 1;
                    }
                }
                right.tokens
            };
            let first = both(&[(0, &long)]);
            let second = both(&[(long.len(), &first), (0, &short)]);
            both(&[(long.len() + 1, &second[..1]), (short.len(), &second[1..])]);
            assert!(clear >= 3, "{weights}: {clear} of 5 tokens were told apart clearly");
        }
    }

    /// Kernels are kept on disk for all of these tests.
    fn cuda() -> Cuda {
        let kept = concat!(env!("CARGO_TARGET_TMPDIR"), "/cuda-kernels");
        Cuda::new(Options::default().interpreter(Interpreter::default()).cache(kept)).unwrap()
    }

    #[test]
    fn the_program_answers_as_on_the_cpu() {
        let place = Place::new();
        let model = place.model();
        let run = |device: &str| {
            place.halite(&["run", "-m", &model, "-n", "4", "--weights", "f32", "--device", device, "ABC"])
        };
        let kept = || {
            let files = std::fs::read_dir(place.path("cache/kernels")).unwrap();
            let mut names: Vec<_> =
                files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            names.sort_unstable();
            names
        };
        let parts = ["note: cuda-sim interprets", "f32 on cuda sm_80, cuda (interpreted PTX, no GPU)"];
        let answer = run("cuda-sim").said(&parts);
        assert_eq!(answer, run("cpu").success());
        // Compiled kernels are kept, and nothing is compiled again.
        let names = kept();
        assert!(names.len() > 4 && names.iter().all(|name| name.ends_with(".ptx")), "{names:?}");
        assert_eq!(run("cuda-sim").success(), answer);
        assert_eq!(kept(), names);
    }

    #[test]
    fn without_a_compiler_the_error_says_what_to_do() {
        let place = Place::new();
        let model = place.model();
        let halite = |arguments: &[&str]| {
            let mut command = place.command(arguments);
            super::support::Outcome::of(command.env_remove("LD_LIBRARY_PATH").output().unwrap())
        };
        let devices = halite(&["devices", "--json"]).success();
        if !json(&devices)[2]["missing"].to_string().contains("NVRTC") {
            eprintln!("NOT RUN: this system has an NVRTC that is found without a library path");
            return;
        }
        let run = ["run", "-m", &model, "--device", "cuda-sim", "A"];
        halite(&run).failure(&["NVRTC was not found", "nvidia-cuda-nvrtc"]);
    }
}
