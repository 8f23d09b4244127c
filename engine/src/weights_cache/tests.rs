//! What is taken, and why the rest is not.

use super::*;
use std::fs;
use tempfile::TempDir;

const WEIGHTS: WeightsFormat = WeightsFormat::W8a8;

/// A model of one file, and two sections kept of it.
fn kept() -> (TempDir, WeightsCache, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let model = place.path().join("a model.gguf");
    fs::write(&model, "weights").unwrap();
    let cache = WeightsCache::new(place.path().join("cache/weights"), &model).unwrap();
    let mut writer = cache.create(WEIGHTS, "cpu").unwrap();
    writer.push("first", &[1; 100]).unwrap();
    writer.push("second", &[2; 8]).unwrap();
    writer.finish().unwrap();
    let file = cache.file(WEIGHTS, "cpu");
    (place, cache, file)
}

fn refused(cache: &WeightsCache) -> WeightsCacheError {
    match cache.open(WEIGHTS, "cpu") {
        Err(error) => error,
        Ok(_) => panic!("it was taken"),
    }
}

#[test]
fn sections_come_back_in_order_and_aligned() {
    let (_place, cache, file) = kept();
    assert!(file.file_name().unwrap().to_str().unwrap().starts_with("a_model.gguf-"), "{file:?}");
    let mut kept = cache.open(WEIGHTS, "cpu").unwrap();
    assert_eq!(kept.take("first").unwrap(), [1; 100]);
    assert_eq!(kept.take_elements::<u64>("second", 1).unwrap(), [0x0202_0202_0202_0202]);
    assert!(matches!(kept.take("third"), Err(WeightsCacheError::Damaged { .. })));
    let mut kept = cache.open(WEIGHTS, "cpu").unwrap();
    let error = kept.take("second").unwrap_err().to_string();
    assert!(error.contains("second"), "{error}");
    let mut kept = cache.open(WEIGHTS, "cpu").unwrap();
    assert!(kept.take_elements::<[u64; 3]>("first", 1).is_err(), "no whole elements");
}

#[test]
fn every_damaged_byte_is_found() {
    let (_place, cache, file) = kept();
    let sound = fs::read(&file).unwrap();
    // What fills up to the next section is nobody's.
    let gap = 164..192;
    for place in (0..sound.len()).filter(|place| !gap.contains(place)) {
        let mut damaged = sound.clone();
        damaged[place] ^= 0x10;
        fs::write(&file, damaged).unwrap();
        let error = refused(&cache);
        let typed = matches!(
            error,
            WeightsCacheError::NotWeights { .. }
                | WeightsCacheError::Version { .. }
                | WeightsCacheError::Truncated { .. }
                | WeightsCacheError::Damaged { .. }
        );
        assert!(typed, "byte {place}: {error}");
    }
    for len in 0..sound.len() {
        fs::write(&file, &sound[..len]).unwrap();
        let error = refused(&cache);
        assert!(matches!(error, WeightsCacheError::Truncated { .. }), "{len} bytes: {error}");
    }
    fs::write(&file, [&sound[..], b"more"].concat()).unwrap();
    assert!(matches!(refused(&cache), WeightsCacheError::Truncated { .. }));
    fs::write(&file, sound).unwrap();
    cache.open(WEIGHTS, "cpu").unwrap();
}

#[test]
fn other_versions_and_other_files_are_told_apart() {
    let (_place, cache, file) = kept();
    let mut other = fs::read(&file).unwrap();
    other[15] = b'7';
    fs::write(&file, &other).unwrap();
    let error = refused(&cache);
    assert!(matches!(&error, WeightsCacheError::Version { got, .. } if got == "halite weights 7"), "{error}");
    fs::write(&file, "GGUF and more").unwrap();
    assert!(matches!(refused(&cache), WeightsCacheError::NotWeights { .. }));
    fs::remove_file(&file).unwrap();
    assert!(matches!(refused(&cache), WeightsCacheError::Nothing { .. }));
    fs::create_dir(&file).unwrap();
    assert!(matches!(refused(&cache), WeightsCacheError::Io { .. }));
}

#[test]
fn what_was_made_of_or_by_something_else_is_not_taken() {
    let (place, cache, file) = kept();
    let what = |cache: &WeightsCache| match refused(cache) {
        WeightsCacheError::Other { what, .. } => what,
        other => panic!("{other}"),
    };
    // The right name is no proof.
    fs::copy(&file, cache.file(WeightsFormat::Bf16, "cpu")).unwrap();
    assert!(matches!(
        cache.open(WeightsFormat::Bf16, "cpu"),
        Err(WeightsCacheError::Other { what: "weights format", .. })
    ));
    fs::copy(&file, cache.file(WEIGHTS, "wgpu")).unwrap();
    assert!(matches!(cache.open(WEIGHTS, "wgpu"), Err(WeightsCacheError::Other { what: "backend", .. })));
    let other = place.path().join("other.gguf");
    fs::write(&other, "weights").unwrap();
    let other = WeightsCache::new(place.path().join("cache/weights"), other).unwrap();
    fs::copy(&file, other.file(WEIGHTS, "cpu")).unwrap();
    assert_eq!(what(&other), "model path");

    let key = cache.key(WEIGHTS, "cpu");
    let program = Key { program: "0.0.1".to_owned(), ..key.clone() };
    assert_eq!((key.difference(&program), key.difference(&key)), (Some("program"), None));

    // Other contents of the same size, with the time set back.
    let model = place.path().join("a model.gguf");
    let before = fs::metadata(&model).unwrap().modified().unwrap();
    fs::write(&model, "weightz").unwrap();
    fs::File::options().write(true).open(&model).unwrap().set_modified(before).unwrap();
    assert!(cfg!(not(unix)) || !cache.is_current());
    fs::write(&model, "more weights").unwrap();
    assert!(!cache.is_current());
    assert_eq!(what(&WeightsCache::new(cache.folder(), &model).unwrap()), "model file");
}

#[test]
fn what_is_not_finished_is_not_there() {
    let (_place, cache, file) = kept();
    let before = fs::read(&file).unwrap();
    let mut writer = cache.create(WEIGHTS, "cpu").unwrap();
    writer.push("first", &[9; 100]).unwrap();
    // A second one beside it does not take the first for a dead one's.
    cache.create(WEIGHTS, "cpu").unwrap().finish().unwrap();
    writer.push("second", &[9; 8]).unwrap();
    drop(writer);
    assert_ne!(fs::read(&file).unwrap(), before, "the second one's");
    assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 1, "nothing is left");
}

#[test]
fn what_nobody_asks_for_again_is_removed() {
    let (place, cache, file) = kept();
    let named = |name: &str| file.with_file_name(name);
    let left = named("left-0123456789abcdef-w8a8-cpu.weights.123-0.part");
    let truncated = named("old-0123456789abcdef-w8a8-cpu.weights");
    fs::write(&left, "something").unwrap();
    fs::write(&truncated, "halite weights 1").unwrap();
    let others = [
        ("notes.txt", "something"),
        // What other programs call so.
        ("yolov3.weights", "something"),
        ("big.gguf.part", "something"),
        ("model.weights.part", "something"),
        ("other.weights.1-2.part", "something"),
        // Another version of this one.
        ("new-0123456789abcdef-w8a8-cpu.weights", "halite weights 2\nand what that has"),
        ("odd-0123456789abcdef-w8a8-cpu.weights", "something"),
    ];
    for (name, text) in others {
        fs::write(named(name), text).unwrap();
    }
    stale::remove(cache.folder());
    assert!(!left.exists() && !truncated.exists() && file.exists());
    assert_eq!(others.map(|(name, _)| name).into_iter().find(|name| !named(name).exists()), None);
    fs::remove_file(place.path().join("a model.gguf")).unwrap();
    stale::remove(cache.folder());
    assert!(!file.exists() && named("notes.txt").exists());
}
