//! Converted weights that are kept: the same bits from them, and none from what is damaged or of something else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::weights_cache::WeightsCache;
use halite_engine::{Engine, EngineOptions, LoadStep, WeightsFormat};
use std::fs;
use std::path::{Path, PathBuf};
use support::checkpoints::{checkpoint, tokens};
use support::cpu;
use support::tiny_model::{Random, TinyModel, VOCABULARY};
use tempfile::TempDir;

/// The logits' bits, whether the weights had been kept, and the steps of loading.
struct Loaded {
    bits: Vec<Vec<u32>>,
    restored: bool,
    steps: Vec<LoadStep>,
}

fn load(model: &Path, folder: &Path, weights: WeightsFormat, tokens: &[u32]) -> Loaded {
    let cache = WeightsCache::new(folder, model).unwrap();
    let options = EngineOptions::new().weights(weights).weights_cache(cache);
    let mut steps = Vec::new();
    let mut engine = Engine::load(cpu(2, Tier::best()), model, &options, &mut |progress| {
        assert!(progress.done <= progress.total, "{progress:?}");
        if steps.last() != Some(&progress.step) {
            steps.push(progress.step);
        }
    })
    .unwrap();
    let logits = engine.logits(tokens, &(0..tokens.len()).collect::<Vec<_>>()).unwrap();
    let bits = logits.iter().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect();
    Loaded { bits, restored: engine.describe().weights_restored, steps }
}

/// A tiny model in a folder of its own, with tokens for it.
struct Place {
    folder: TempDir,
    tokens: Vec<u32>,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: TempDir::new().unwrap(), tokens: Random(5).tokens(20, VOCABULARY) };
        fs::write(place.model(), TinyModel::new(31).bytes()).unwrap();
        place
    }

    fn model(&self) -> PathBuf {
        self.folder.path().join("tiny.gguf")
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("weights")
    }

    fn load(&self) -> Loaded {
        load(&self.model(), &self.cache(), WeightsFormat::W8a8, &self.tokens)
    }

    /// The only file that was kept.
    fn kept(&self) -> PathBuf {
        let mut files = fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        let file = files.next().unwrap();
        assert_eq!(files.next(), None);
        file
    }
}

/// Converts, then takes what was kept, and holds the two together.
fn converts_and_takes(place: &Place, how: &str) {
    let first = place.load();
    assert!(!first.restored, "{how}");
    let second = place.load();
    assert!(second.restored && second.bits == first.bits, "{how}: what was kept anew is taken");
}

#[test]
fn every_format_and_family_gives_the_same_bits() {
    for name in ["llama2", "qwen2", "qwen3", "gemma3", "mixtral", "w8a8"] {
        let folder = TempDir::new().unwrap();
        let tokens = &tokens(name)[..24];
        for weights in WeightsFormat::ALL {
            let load = || load(&checkpoint(name), folder.path(), weights, tokens);
            let (first, second) = (load(), load());
            assert_eq!(first.steps, [LoadStep::Converting, LoadStep::Keeping], "{name} as {weights}");
            assert_eq!(second.steps, [LoadStep::Restoring], "{name} as {weights}");
            assert!(!first.restored && second.restored && first.bits == second.bits, "{name} as {weights}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), WeightsFormat::ALL.len(), "a file a format");
    }
}

#[test]
fn damaged_weights_are_converted_again() {
    let place = Place::new();
    let expected = place.load().bits;
    let file = place.kept();
    let sound = fs::read(&file).unwrap();
    let len = sound.len();
    for at in [0, 15, 64, len / 4, len / 2, len - 200, len - 39, len - 20, len - 1] {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        fs::write(&file, damaged).unwrap();
        let loaded = place.load();
        assert!(!loaded.restored && loaded.bits == expected, "byte {at} of {len}");
    }
    for at in [0, 3, 64, len / 2, len - 1] {
        fs::write(&file, &sound[..at]).unwrap();
        let loaded = place.load();
        assert!(!loaded.restored && loaded.bits == expected, "cut after {at}");
    }
    let mut other = sound.clone();
    other[15] = b'9';
    fs::write(&file, other).unwrap();
    let loaded = place.load();
    assert!(!loaded.restored && loaded.bits == expected, "another version");
    // Each was replaced by a sound one.
    let last = place.load();
    assert!(last.restored && last.bits == expected);
    assert_eq!(fs::read(place.kept()).unwrap().len(), len);
}

#[test]
fn another_model_of_the_same_name_and_size_is_converted() {
    let place = Place::new();
    converts_and_takes(&place, "the first");
    let before = fs::metadata(place.model()).unwrap().modified().unwrap();
    let old = place.load().bits;
    fs::write(place.model(), TinyModel::new(32).bytes()).unwrap();
    let file = fs::File::options().write(true).open(place.model()).unwrap();
    if cfg!(unix) {
        // The time of the last change tells.
        file.set_modified(before).unwrap();
    }
    drop(file);
    let new = place.load();
    assert!(!new.restored && new.bits != old);
    place.kept();
    assert!(place.load().restored);
}

/// A folder that cannot be made stands for all that cannot be written; where the tests may write anywhere, so does a
/// folder without permission.
#[test]
fn what_cannot_be_written_changes_nothing() {
    let place = Place::new();
    fs::write(place.cache(), "a file, not a folder").unwrap();
    let first = place.load();
    assert_eq!(first.steps, [LoadStep::Converting]);
    let second = place.load();
    assert!(!second.restored && first.bits == second.bits);
    fs::remove_file(place.cache()).unwrap();

    // What is there already is taken from a folder that nobody may write.
    converts_and_takes(&place, "writable");
    let mut permissions = fs::metadata(place.cache()).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(place.cache(), permissions.clone()).unwrap();
    let taken = place.load();
    let other = load(&place.model(), &place.cache(), WeightsFormat::Bf16, &place.tokens);
    #[allow(clippy::permissions_set_readonly_false, reason = "so that the test's folder can be removed")]
    permissions.set_readonly(false);
    fs::set_permissions(place.cache(), permissions).unwrap();
    assert!(taken.restored && taken.bits == first.bits && !other.restored);
}

#[test]
fn writers_at_once_do_not_meet() {
    let place = Place::new();
    let loaded: Vec<Loaded> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| place.load())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(loaded.iter().all(|one| one.bits == loaded[0].bits));
    place.kept();
    let last = place.load();
    assert!(last.restored && last.bits == loaded[0].bits);
}

#[test]
fn weights_of_a_model_that_is_gone_go_too() {
    let place = Place::new();
    place.load();
    fs::rename(place.model(), place.folder.path().join("elsewhere.gguf")).unwrap();
    let other = place.folder.path().join("elsewhere.gguf");
    load(&other, &place.cache(), WeightsFormat::W8a8, &place.tokens);
    assert!(place.kept().file_name().unwrap().to_str().unwrap().starts_with("elsewhere.gguf-"));
}

/// Without a cache nothing is written anywhere, and nothing is said to be restored.
#[test]
fn it_is_off_unless_asked_for() {
    let place = Place::new();
    let engine =
        Engine::load(cpu(1, Tier::best()), place.model(), &EngineOptions::new(), &mut |_| {}).unwrap();
    assert!(!engine.describe().weights_restored);
    assert!(!place.cache().exists());
}
