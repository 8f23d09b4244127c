//! Reading safetensors folders as people have them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

#[path = "support/safetensors_folder.rs"]
mod safetensors_folder;

use half::{bf16, f16};
use halite_engine::safetensors::{ElementType, SafetensorsError, SafetensorsFolder};
use safetensors::Dtype;
use safetensors_folder::{TestFolder, f32s, raw, safetensors};

/// Values with every sign, size and oddity that survives narrowing to 16 bits.
const VALUES: [f32; 6] = [0.0, -0.0, 1.5, -2.25, f32::INFINITY, 0.00390625];

fn read(folder: &TestFolder) -> SafetensorsFolder {
    SafetensorsFolder::open(folder.path()).unwrap()
}

#[test]
fn values_of_all_read_types() {
    let folder = TestFolder::new();
    let f16s = VALUES.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect();
    let bf16s = VALUES.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect();
    let file = safetensors(&[
        ("f32", Dtype::F32, &[3, 2], f32s(&VALUES)),
        ("f16", Dtype::F16, &[3, 2], f16s),
        ("bf16", Dtype::BF16, &[6], bf16s),
        ("i8", Dtype::I8, &[2, 2], vec![0, 1, 127, 0x80]),
        ("i32", Dtype::I32, &[1], vec![1, 0, 0, 0]),
        ("scalar", Dtype::F32, &[], f32s(&[7.0])),
    ]);
    folder.file("model.safetensors", file);
    let model = read(&folder);
    let names: Vec<_> = model.tensors().map(|tensor| tensor.name()).collect();
    assert_eq!(names, ["bf16", "f16", "f32", "i32", "i8", "scalar"]);
    assert_eq!(model.bytes(), 24 + 12 + 12 + 4 + 4 + 4);
    for name in ["f32", "f16", "bf16"] {
        let values = model.tensor(name).unwrap().to_f32().unwrap();
        assert_eq!(values.map_bits(), VALUES.map_bits(), "{name}");
    }
    let tensor = model.tensor("i8").unwrap();
    assert_eq!((tensor.dtype(), tensor.shape(), tensor.elements()), (ElementType::I8, &[2, 2][..], 4));
    assert_eq!(tensor.as_i8().unwrap(), [0, 1, 127, -128]);
    assert_eq!(model.tensor("scalar").unwrap().to_f32().unwrap(), [7.0]);
    assert!(model.tensor("absent").is_none());
    let error = model.tensor("i32").unwrap().to_f32().unwrap_err();
    assert_eq!(error.to_string(), "tensor \"i32\" has type I32; expected F32, F16 or BF16");
    let error = model.tensor("f32").unwrap().as_i8().unwrap_err();
    assert_eq!(error.to_string(), "tensor \"f32\" has type F32; expected I8");
}

trait Bits {
    fn map_bits(&self) -> Vec<u32>;
}

impl<T: AsRef<[f32]>> Bits for T {
    fn map_bits(&self) -> Vec<u32> {
        self.as_ref().iter().map(|value| value.to_bits()).collect()
    }
}

#[test]
fn rows_of_a_matrix() {
    let folder = TestFolder::new();
    let values: Vec<f32> = (0..12).map(|value| value as f32).collect();
    folder.file(
        "model.safetensors",
        safetensors(&[
            ("matrix", Dtype::F32, &[4, 3], f32s(&values)),
            ("cube", Dtype::F32, &[2, 2, 3], f32s(&values)),
            ("no_cols", Dtype::F16, &[4, 0], vec![]),
            ("no_rows", Dtype::F16, &[0, 4], vec![]),
        ]),
    );
    let model = read(&folder);
    let matrix = model.tensor("matrix").unwrap();
    for (rows, expected) in [(0..4, &values[..]), (1..3, &values[3..9]), (3..4, &values[9..]), (2..2, &[])] {
        let mut out = vec![f32::NAN; expected.len()];
        matrix.rows_to_f32(rows, &mut out).unwrap();
        assert_eq!(out, expected);
    }
    model.tensor("no_cols").unwrap().rows_to_f32(1..3, &mut []).unwrap();
    model.tensor("no_rows").unwrap().rows_to_f32(0..0, &mut []).unwrap();
    assert!(model.tensor("no_rows").unwrap().to_f32().unwrap().is_empty());

    let mut out = [0.0; 6];
    #[expect(clippy::reversed_empty_ranges, reason = "what a caller may hand over")]
    for rows in [3..5, 4..6, 0..usize::MAX, 2..1] {
        let error = matrix.rows_to_f32(rows, &mut out).unwrap_err();
        assert!(matches!(error, SafetensorsError::RowsOutOfRange { have: 4, .. }), "{error}");
    }
    let error = matrix.rows_to_f32(0..1, &mut out).unwrap_err();
    assert!(matches!(error, SafetensorsError::OutputLength { expected: 3, got: 6, .. }), "{error}");
    let error = model.tensor("cube").unwrap().rows_to_f32(0..1, &mut out).unwrap_err();
    assert!(error.to_string().contains("[2, 2, 3]"), "{error}");
}

#[test]
fn data_at_odd_addresses() {
    let folder = TestFolder::new();
    for odd in 0..8 {
        // The header's length decides where the data starts.
        let header = format!(
            "{}{}",
            r#"{"i8":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[1,9]}}"#,
            " ".repeat(odd)
        );
        folder.file("model.safetensors", raw(&header, &[vec![0xFF], f32s(&[1.0, -2.0])].concat()));
        let model = read(&folder);
        let mut out = [0.0; 2];
        let tensor = model.tensor("w").unwrap();
        tensor.rows_to_f32(0..1, &mut out).unwrap();
        assert_eq!((out, tensor.to_f32().unwrap()), ([1.0, -2.0], vec![1.0, -2.0]));
        assert_eq!(model.tensor("i8").unwrap().as_i8().unwrap(), [-1]);
    }
}

#[test]
fn shards_with_an_index() {
    let folder = TestFolder::new();
    let one = |name| safetensors(&[(name, Dtype::F32, &[1], f32s(&[1.0]))]);
    folder.file("model-00001-of-00002.safetensors", one("b"));
    folder.file("model-00002-of-00002.safetensors", one("a"));
    // No file of the model: not opened.
    folder.file("adapter.safetensors", "not safetensors");
    folder.index(&[("a", "model-00002-of-00002.safetensors"), ("b", "model-00001-of-00002.safetensors")]);
    let model = read(&folder);
    assert_eq!(model.tensors().map(|tensor| tensor.name()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(model.bytes(), 8);

    // As `transformers` does: the whole file wins.
    folder.file("model.safetensors", one("whole"));
    assert_eq!(read(&folder).tensors().next().unwrap().name(), "whole");
}

#[test]
fn the_only_file_of_another_name() {
    let folder = TestFolder::new();
    let error = SafetensorsFolder::open(folder.path()).unwrap_err();
    assert!(matches!(error, SafetensorsError::NoWeights { .. }), "{error}");
    let file = safetensors(&[("w", Dtype::F32, &[1], f32s(&[1.0]))]);
    folder.file("weights.safetensors", &file);
    folder.file("._weights.safetensors", "what a Mac leaves behind");
    assert!(read(&folder).tensor("w").is_some());
    folder.file("more.safetensors", &file);
    let error = SafetensorsFolder::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("(more.safetensors, weights.safetensors)"), "{error}");
    let error = SafetensorsFolder::open(folder.path().join("more.safetensors")).unwrap_err();
    assert!(matches!(error, SafetensorsError::NotAFolder { .. }), "{error}");
    let error = SafetensorsFolder::open(folder.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, SafetensorsError::Io { .. }), "{error}");
}

#[test]
fn a_lone_shard_is_no_model() {
    let folder = TestFolder::new();
    let file = safetensors(&[("w", Dtype::F32, &[1], f32s(&[1.0]))]);
    folder.file("model-00002-of-00003.safetensors", file);
    let error = SafetensorsFolder::open(folder.path()).unwrap_err();
    assert!(matches!(error, SafetensorsError::LoneShard { .. }), "{error}");
    assert!(error.to_string().contains("halite pull"), "{error}");
}

#[test]
#[cfg(unix)]
fn the_hubs_cache_is_made_of_links() {
    use std::os::unix::fs::symlink;
    let root = TestFolder::new();
    let shard = safetensors(&[("w", Dtype::F32, &[1], f32s(&[1.0]))]);
    root.file("models--a--b/blobs/0123", &shard);
    root.file("models--a--b/snapshots/main/config.json", "{}");
    root.file("elsewhere/0123", &shard);
    let snapshot = root.path().join("models--a--b/snapshots/main");
    let link = snapshot.join("model.safetensors");
    symlink("../../blobs/0123", &link).unwrap();
    assert!(SafetensorsFolder::open(&snapshot).unwrap().tensor("w").is_some());
    // Also when the folder itself is given by a link.
    symlink(&snapshot, root.path().join("mine")).unwrap();
    assert!(SafetensorsFolder::open(root.path().join("mine")).unwrap().tensor("w").is_some());

    for target in ["../../../elsewhere/0123", "../../blobs/../../elsewhere/0123", "/dev/null"] {
        std::fs::remove_file(&link).unwrap();
        symlink(target, &link).unwrap();
        let error = SafetensorsFolder::open(&snapshot).unwrap_err();
        assert!(matches!(error, SafetensorsError::LinkOutside { .. }), "{target}: {error}");
    }
    std::fs::remove_file(&link).unwrap();
    symlink("../../blobs/gone", &link).unwrap();
    let error = SafetensorsFolder::open(&snapshot).unwrap_err();
    assert!(matches!(error, SafetensorsError::MissingShard { .. }), "{error}");
}
