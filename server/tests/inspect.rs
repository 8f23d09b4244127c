//! `halite inspect` on files that hold what they should not.

mod support;

use std::fs;
use support::Place;

#[test]
fn texts_of_the_file_stay_in_their_line() {
    let place = Place::new();
    let folder = place.path("model");
    let checkpoint = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/fixtures/models/llama2");
    fs::create_dir(&folder).unwrap();
    for file in fs::read_dir(checkpoint).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    let path = folder.join("config.json");
    let config = fs::read_to_string(&path).unwrap();
    let forged = r#"\u001b[31m\u009b2J\nsupported     yes"#;
    let long = "x".repeat(100_000);
    for (key, value, supported) in [
        ("\"model_type\": \"llama\"", format!("\"model_type\": \"{forged}\""), "no"),
        ("\"model_type\": \"llama\"", format!("\"model_type\": \"{long}\""), "no"),
        ("\"use_cache\": true", format!("\"_name_or_path\": \"{forged}\""), "yes"),
        ("\"use_cache\": true", format!("\"_name_or_path\": \"{long}\""), "yes"),
    ] {
        assert!(config.contains(key), "{key}");
        fs::write(&path, config.replace(key, &value)).unwrap();
        let report = place.halite(&["inspect", "model"]).success();
        assert!(report.len() < 5000, "{report}");
        assert!(report.chars().all(|c| c == '\n' || !c.is_control()), "{report:?}");
        let verdicts = report.lines().filter(|line| line.starts_with("supported"));
        assert_eq!(verdicts.collect::<Vec<_>>(), [format!("supported     {supported}")]);
    }
}
