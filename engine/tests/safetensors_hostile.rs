//! Folders made to do harm: each is refused, by name, without a panic and without memory to match its claims.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

#[path = "support/safetensors_folder.rs"]
mod safetensors_folder;

use halite_engine::safetensors::{SafetensorsError, SafetensorsFolder};
use safetensors::Dtype;
use safetensors_folder::{TestFolder, f32s, raw, safetensors};

/// The error a folder gives, having shown that opening it takes little memory for `bytes` of headers.
fn refused(folder: &TestFolder, bytes: usize) -> SafetensorsError {
    let mut result = None;
    let memory = allocation_counter::measure(|| result = Some(SafetensorsFolder::open(folder.path())));
    let limit = 16_384 + 16 * bytes as u64;
    assert!(memory.bytes_max <= limit, "took {} bytes, limit {limit}", memory.bytes_max);
    result.unwrap().unwrap_err()
}

/// The fault of a file with this contents.
fn fault(contents: impl AsRef<[u8]>) -> SafetensorsError {
    let folder = TestFolder::new();
    let path = folder.file("model.safetensors", &contents);
    match refused(&folder, contents.as_ref().len()) {
        SafetensorsError::InFile { path: named, inner } if named == path => *inner,
        error => panic!("the file is not named: {error}"),
    }
}

fn entry(dtype: &str, shape: &str, start: u64, end: u64) -> String {
    format!(r#"{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
}

#[track_caller]
fn says(error: &SafetensorsError, parts: &[&str]) {
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} does not name {part:?}");
    }
}

#[test]
fn files_without_a_whole_header() {
    for len in 0..8 {
        let error = fault(&[1; 8][..len]);
        assert!(matches!(error, SafetensorsError::HeaderOutsideFile { needed: 8, .. }), "{error}");
    }
    let error = fault(b"\x20\0\0\0\0\0\0\0{\"short\":");
    assert!(matches!(error, SafetensorsError::HeaderOutsideFile { needed: 40, available: 17 }), "{error}");
    for length in [100_000_001, 1 << 32, u64::MAX - 7, u64::MAX] {
        let error = fault(length.to_le_bytes());
        assert!(
            matches!(error, SafetensorsError::HeaderTooLarge { bytes, .. } if bytes == length),
            "{error}"
        );
    }
    let error = fault(b"version https://git-lfs.github.com/spec/v1");
    assert!(matches!(error, SafetensorsError::HeaderTooLarge { .. }), "{error}");
}

#[test]
fn headers_that_are_none() {
    let good = entry("F32", "[1]", 0, 4);
    let cases = [
        ("", "EOF"),
        ("[]", "a JSON object"),
        ("{} {}", "trailing"),
        ("\u{0}{}", "expected"),
        (r#"{"a":1}"#, r#"tensor "a""#),
        (r#"{"a":{"dtype":"F32","shape":[1]}}"#, "data_offsets"),
        (&format!(r#"{{"a":{}}}"#, entry("F33", "[1]", 0, 4)), "F33"),
        (&format!(r#"{{"a":{}}}"#, entry("F32", "[-1]", 0, 4)), "-1"),
        (&format!(r#"{{"a":{}}}"#, entry("F32", "[1.0]", 0, 4)), "1.0"),
        (&format!(r#"{{"a":{}}}"#, entry("F32", "[99999999999999999999999]", 0, 4)), "tensor \"a\""),
        (
            &format!(r#"{{"a":{}}}"#, entry("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0, 4)),
            "16 dimensions",
        ),
        (r#"{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, "duplicate"),
        (&format!(r#"{{"a":{good},"a":{good}}}"#), r#"tensor "a" stands in it twice"#),
        (&format!(r#"{{"a":{good},"\u0061":{good}}}"#), r#"tensor "a" stands in it twice"#),
        (&format!(r#"{{"__metadata__":{{}},"__metadata__":{{}},"a":{good}}}"#), "__metadata__"),
        (&format!(r#"{{"__metadata__":{{"a":1}},"a":{good}}}"#), "a string"),
    ];
    for (header, part) in cases {
        let error = fault(raw(header, &[0; 4]));
        assert!(matches!(error, SafetensorsError::BadHeader { .. }), "{header}: {error}");
        says(&error, &[part]);
    }
    // No text at all, and nesting to break the stack.
    let mut bytes = raw("{\"a\":1}", &[]);
    bytes[9] = 0xFF;
    assert!(matches!(fault(bytes), SafetensorsError::BadHeader { .. }));
    for nested in ["[".repeat(1 << 20), "{\"a\":".repeat(1 << 18), format!("{{\"a\":{}", "[".repeat(1 << 20))]
    {
        assert!(matches!(fault(raw(&nested, &[])), SafetensorsError::BadHeader { .. }));
    }
}

#[test]
fn tensors_of_the_wrong_size_or_place() {
    let one = |dtype: &str, shape: &str, start, end| {
        fault(raw(&format!(r#"{{"w":{}}}"#, entry(dtype, shape, start, end)), &[0; 8]))
    };
    for (shape, end) in [("[1]", 8), ("[3]", 8), ("[2,2]", 8), ("[]", 8), ("[0]", 8), ("[2]", 7)] {
        let error = one("F32", shape, 0, end);
        assert!(matches!(error, SafetensorsError::WrongSize { .. }), "{shape}: {error}");
        says(&error, &["\"w\"", "F32"]);
    }
    // Half bytes.
    assert!(matches!(one("F4", "[15]", 0, 8), SafetensorsError::WrongSize { .. }));
    let error = one("F32", "[9223372036854775807,4]", 0, 8);
    assert!(matches!(error, SafetensorsError::SizeOverflow { .. }), "{error}");
    // More bits than 64 can count.
    let error = one("F64", "[18446744073709551615]", 0, 8);
    assert!(matches!(error, SafetensorsError::WrongSize { .. }), "{error}");
    for (start, end) in [(1, 8), (4, 8), (8, 0), (u64::MAX, 7), (1 << 63, 8)] {
        let error = one("F32", "[2]", start, end);
        assert!(matches!(error, SafetensorsError::OutOfPlace { expected: 0, .. }), "{start}..{end}: {error}");
    }
    for (elements, end) in [(3, 12), (1, 4), (1u64 << 60, 4u64 << 60), (0, 0)] {
        let error = one("F32", &format!("[{elements}]"), 0, end);
        assert!(matches!(error, SafetensorsError::WrongFileSize { got: 8, .. }), "{elements}: {error}");
    }
}

#[test]
fn tensors_that_overlap_or_leave_gaps() {
    let two = |start, end| {
        let header =
            format!(r#"{{"a":{},"b":{}}}"#, entry("U8", "[4]", 0, 4), entry("U8", "[4]", start, end));
        fault(raw(&header, &[0; 9]))
    };
    for start in [0, 3, 5] {
        let error = two(start, start + 4);
        assert!(matches!(error, SafetensorsError::OutOfPlace { .. }), "{start}: {error}");
        says(&error, &["\"b\"", "ends at 4"]);
    }
    assert!(matches!(two(4, 8), SafetensorsError::WrongFileSize { expected: 8, got: 9 }));
}

#[test]
fn large_headers_take_no_more_memory_than_their_size() {
    // Refused at the very end, when everything has been read.
    let many: Vec<_> = (0..20_000).map(|n| format!("\"{n}\":{}", entry("U8", "[0]", 0, 0))).collect();
    let error = fault(raw(&format!("{{{}}}", many.join(",")), &[0]));
    assert!(matches!(error, SafetensorsError::WrongFileSize { .. }), "{error}");
    let texts: Vec<_> = (0..100_000).map(|n| format!("\"{n}\":\"\"")).collect();
    let error = fault(raw(&format!("{{\"__metadata__\":{{{}}}}}", texts.join(",")), &[0]));
    assert!(matches!(error, SafetensorsError::WrongFileSize { .. }), "{error}");
    let long = "x".repeat(1 << 20);
    let error = fault(raw(&format!("{{\"{long}\":{}}}", entry("U8", "[1]", 0, 1)), &[]));
    assert!(error.to_string().len() < 400, "{} bytes of message", error.to_string().len());
}

const FIRST: &str = "model-00001-of-00002.safetensors";
const SECOND: &str = "model-00002-of-00002.safetensors";

/// Two shards with a tensor each, `a` and `b`.
fn shards() -> TestFolder {
    let folder = TestFolder::new();
    folder.file(FIRST, safetensors(&[("a", Dtype::F32, &[1], f32s(&[1.0]))]));
    folder.file(SECOND, safetensors(&[("b", Dtype::F32, &[1], f32s(&[2.0]))]));
    folder
}

#[test]
fn shards_that_are_missing_or_contradict_the_index() {
    let folder = shards();
    folder.index(&[("a", FIRST), ("b", "model-00003-of-00003.safetensors")]);
    let error = refused(&folder, 1000);
    assert!(matches!(error, SafetensorsError::MissingShard { .. }), "{error}");
    says(&error, &["model-00003-of-00003.safetensors", "\"b\"", "halite pull"]);

    for places in [[("a", FIRST), ("c", SECOND)], [("a", SECOND), ("b", FIRST)]] {
        folder.index(&places);
        assert!(matches!(refused(&folder, 1000), SafetensorsError::NotInShard { .. }));
    }
    let error = refused(&folder, 1000);
    says(&error, &["\"a\"", SECOND]);

    folder.index(&[("a", FIRST), ("b", SECOND)]);
    assert_eq!(SafetensorsFolder::open(folder.path()).unwrap().tensors().len(), 2);
    folder.file(SECOND, safetensors(&["a", "b"].map(|name| (name, Dtype::F32, &[1][..], f32s(&[2.0])))));
    let error = refused(&folder, 1000);
    assert!(matches!(error, SafetensorsError::InTwoShards { .. }), "{error}");
    says(&error, &["\"a\"", FIRST, SECOND]);

    // A shard that is a folder, and one that is damaged: named.
    std::fs::remove_file(folder.path().join(SECOND)).unwrap();
    folder.file(&format!("{SECOND}/x"), "");
    says(&refused(&folder, 1000), &[SECOND, "not a regular file"]);
    folder.file(FIRST, "damaged");
    says(&refused(&folder, 1000), &[FIRST]);
}

#[test]
fn shard_names_that_lead_elsewhere() {
    let folder = shards();
    let outside = TestFolder::new();
    let elsewhere = outside.file("x.safetensors", safetensors(&[("b", Dtype::F32, &[1], f32s(&[2.0]))]));
    folder.file("sub/x.safetensors", std::fs::read(&elsewhere).unwrap());
    let absolute = elsewhere.to_str().unwrap();
    for name in [
        absolute,
        "../x.safetensors",
        "sub/x.safetensors",
        "./x.safetensors",
        "",
        "..",
        "sub",
        "x\0.safetensors",
    ] {
        folder.index(&[("a", FIRST), ("b", name)]);
        let SafetensorsError::InFile { inner, .. } = refused(&folder, 1000) else { panic!("{name}") };
        assert!(matches!(*inner, SafetensorsError::BadShardName { .. }), "{name}: {inner}");
    }
}

#[test]
fn indices_that_are_none() {
    let folder = shards();
    let cases = [
        ("".to_owned(), "EOF"),
        ("[]".into(), "a JSON object"),
        ("{}".into(), "weight_map"),
        (r#"{"weight_map":[]}"#.into(), "a JSON object"),
        (r#"{"weight_map":{"a":1}}"#.into(), "a string"),
        (format!(r#"{{"weight_map":{{"a":"{FIRST}","a":"{SECOND}"}}}}"#), "\"a\" stands in it twice"),
        (format!(r#"{{"weight_map":{{"a":"{FIRST}"}},"weight_map":{{"b":"{SECOND}"}}}}"#), "twice"),
        ("[".repeat(1 << 20), "a JSON object"),
        (format!(r#"{{"x":{}"#, "[".repeat(1 << 20)), "EOF"),
    ];
    for (json, part) in cases {
        folder.file("model.safetensors.index.json", &json);
        let error = refused(&folder, json.len());
        says(&error, &["model.safetensors.index.json", part]);
    }
    // Without tensors it is an empty model, and valid.
    folder.file("model.safetensors.index.json", r#"{"weight_map":{}}"#);
    assert_eq!(SafetensorsFolder::open(folder.path()).unwrap().tensors().len(), 0);
}

#[test]
#[cfg(unix)]
fn an_endless_index_is_not_read_to_its_end() {
    use std::os::unix::fs::symlink;
    let folder = shards();
    let path = folder.path().join("model.safetensors.index.json");
    symlink("/dev/zero", &path).unwrap();
    assert!(matches!(refused(&folder, 0), SafetensorsError::LinkOutside { .. }));
    std::fs::remove_file(&path).unwrap();
    // A file of 200 MB that takes no space on the disk.
    std::fs::File::create(&path).unwrap().set_len(200_000_000).unwrap();
    let error = SafetensorsFolder::open(folder.path()).unwrap_err();
    says(&error, &["model.safetensors.index.json", "100000000 bytes"]);
}
