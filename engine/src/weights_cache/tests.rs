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

/// Each removes what others left before it begins, and none takes what another has just begun for that.
#[test]
fn writers_that_begin_together_all_keep_what_they_write() {
    let place = tempfile::tempdir().unwrap();
    let model = place.path().join("model.gguf");
    fs::write(&model, "weights").unwrap();
    let cache = WeightsCache::new(place.path().join("weights"), &model).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (cache, backend) = (&cache, format!("backend{thread}"));
            scope.spawn(move || {
                for round in 0..200 {
                    let mut writer = cache.create(WEIGHTS, &backend).unwrap();
                    writer.push("round", &[round; 8]).unwrap();
                    let finished = writer.finish();
                    assert!(finished.is_ok(), "{backend} in round {round}: {finished:?}");
                }
            });
        }
    });
    assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 6, "nothing is left");
}

/// Only what is known to be gone is gone: a folder may be out of reach for a while.
#[cfg(unix)]
#[test]
fn weights_of_a_model_out_of_reach_stay() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("models");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.gguf"), "weights").unwrap();
    let cache = WeightsCache::new(place.path().join("weights"), folder.join("a.gguf")).unwrap();
    cache.create(WEIGHTS, "cpu").unwrap().finish().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&folder, &folder).unwrap();
    stale::remove(cache.folder());
    assert!(cache.file(WEIGHTS, "cpu").exists(), "a circle of links says nothing of what was there");
    fs::remove_file(&folder).unwrap();
    stale::remove(cache.folder());
    assert!(!cache.file(WEIGHTS, "cpu").exists());
}

#[test]
fn a_model_from_before_1970_is_one_too() {
    let place = tempfile::tempdir().unwrap();
    let model = place.path().join("old.gguf");
    fs::write(&model, "weights").unwrap();
    let old = |seconds: u64| std::time::UNIX_EPOCH - std::time::Duration::from_millis(1000 * seconds + 1);
    let set = |time| fs::File::options().write(true).open(&model).unwrap().set_modified(time).unwrap();
    set(old(86_400));
    let cache = WeightsCache::new(place.path().join("weights"), &model).unwrap();
    cache.create(WEIGHTS, "cpu").unwrap().finish().unwrap();
    assert!(cache.is_current() && cache.open(WEIGHTS, "cpu").is_ok());
    set(old(86_401));
    assert!(!cache.is_current());
}

/// It takes no time: a hole of 1 TiB is read for many minutes.
#[cfg(unix)]
#[test]
fn of_a_file_that_is_something_else_the_beginning_is_enough() {
    let (_place, cache, file) = kept();
    fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(refused(&cache), WeightsCacheError::NotWeights { .. }));
    stale::remove(cache.folder());
    assert!(file.exists());
}
