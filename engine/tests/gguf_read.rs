//! A whole file made by the `gguf` Python package, read back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

use std::path::{Path, PathBuf};

use halite_engine::gguf::{Array, GgmlType, GgufError, GgufFile, Value};

fn tiny() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf/tiny.gguf")
}

#[test]
fn every_metadata_type_reads_back() {
    let file = GgufFile::open(tiny()).unwrap();
    let metadata = file.metadata();
    assert_eq!((file.version(), metadata.len(), file.tensors().len()), (3, 29, 5));
    assert_eq!(metadata.str("general.architecture").unwrap(), "llama");

    assert_eq!(metadata.u64("t.u8").unwrap(), 200);
    assert_eq!(metadata.u64("t.u16").unwrap(), 60_000);
    assert_eq!(metadata.u32("t.u32").unwrap(), 4_000_000_000);
    assert_eq!(metadata.u64("t.u64").unwrap(), (1 << 63) + 5);
    assert_eq!(metadata.get("t.i8"), Some(&Value::I8(-100)));
    assert_eq!(metadata.get("t.i16"), Some(&Value::I16(-30_000)));
    assert_eq!(metadata.get("t.i32"), Some(&Value::I32(-2_000_000_000)));
    assert_eq!(metadata.get("t.i64"), Some(&Value::I64(-(1 << 62))));
    assert_eq!(metadata.f32("t.f32").unwrap(), 1.5);
    assert_eq!(metadata.f32("t.f64").unwrap(), -0.1);
    assert!(metadata.bool("t.true").unwrap() && !metadata.bool("t.false").unwrap());
    assert_eq!(metadata.str("t.str").unwrap(), "snow ☃ 😀");
    assert_eq!(metadata.str("t.empty").unwrap(), "");

    let strings = metadata.strings("t.strings").unwrap();
    assert_eq!(strings.iter().collect::<Vec<_>>(), ["a", "", "Ġb", "香"]);
    assert_eq!((strings.len(), strings.get(3), strings.get(4)), (4, Some("香"), None));
    assert_eq!(metadata.i32s("t.i32s").unwrap(), [1, -2, 3]);
    assert_eq!(metadata.f32s("t.f32s").unwrap(), [0.5, -1.25]);
    let array = |key: &str| match metadata.get(key) {
        Some(Value::Array(array)) => (**array).clone(),
        other => panic!("{key}: {other:?}"),
    };
    assert_eq!(array("t.bools"), Array::Bool(vec![true, false, true]));
    let nested = [vec![1, 2], vec![3], vec![4, 5, 6]].map(Array::I32);
    assert_eq!(array("t.nested"), Array::Arrays(nested.to_vec()));
    for (name, expected) in [
        ("uint8", Array::U8(vec![7, 8])),
        ("int8", Array::I8(vec![7, 8])),
        ("uint16", Array::U16(vec![7, 8])),
        ("int16", Array::I16(vec![7, 8])),
        ("uint32", Array::U32(vec![7, 8])),
        ("uint64", Array::U64(vec![7, 8])),
        ("int64", Array::I64(vec![7, 8])),
    ] {
        assert_eq!(array(&format!("t.array.{name}")), expected);
    }
    assert_eq!(array("t.array.float64"), Array::F64(vec![7.0, 8.0]));
    assert!(
        metadata.iter().all(|(key, value)| metadata.get(key) == Some(value)),
        "each key finds its own value"
    );
}

#[test]
fn tensors_read_back_with_the_outermost_dimension_first() {
    let file = GgufFile::open(tiny()).unwrap();
    let table: Vec<_> = file.tensors().map(|t| (t.name(), t.type_name(), t.shape(), t.byte_len())).collect();
    assert_eq!(
        table,
        [
            ("f32", "F32", &[3, 5][..], Some(60)),
            ("f16", "F16", &[1, 2, 3], Some(12)),
            ("q8_0", "Q8_0", &[2, 64], Some(136)),
            ("q4_k", "Q4_K", &[2, 256], Some(288)),
            ("iq4_nl", "IQ4_NL", &[1, 32], None),
        ]
    );
    let ramp = |len: u8| (0..len).map(f32::from).collect::<Vec<_>>();
    assert_eq!(file.tensor("f32").unwrap().to_f32().unwrap(), ramp(15));
    let f16 = file.tensor("f16").unwrap();
    assert_eq!((f16.ty(), f16.rows(), f16.row_len()), (GgmlType::F16, 2, 3));
    assert_eq!(f16.to_f32().unwrap(), ramp(6));
}

#[test]
fn a_tensor_of_a_type_that_is_not_read_is_refused_only_when_asked_for() {
    let file = GgufFile::open(tiny()).unwrap();
    let error = file.tensor("iq4_nl").unwrap_err();
    assert!(matches!(error, GgufError::UnsupportedType { id: 20, name: "IQ4_NL", .. }), "{error}");
    assert!(error.to_string().contains("\"iq4_nl\""), "{error}");
    assert!(file.tensor_info("iq4_nl").is_some());
    let error = file.tensor("f33").unwrap_err();
    assert!(matches!(error, GgufError::UnknownTensor { .. }), "{error}");
}

#[test]
fn mapping_and_reading_give_the_same() {
    let (mapped, read) = (GgufFile::open(tiny()).unwrap(), GgufFile::read(tiny()).unwrap());
    for info in mapped.tensors().filter(|info| info.ty().is_some()) {
        assert_eq!(mapped.tensor(info.name()).unwrap().data(), read.tensor(info.name()).unwrap().data());
    }
}

#[test]
fn getters_name_the_key_and_both_types() {
    let file = GgufFile::open(tiny()).unwrap();
    let metadata = file.metadata();
    let message = metadata.u64("t.str").unwrap_err().to_string();
    assert_eq!(message, "metadata key \"t.str\": expected u64, got string");
    let message = metadata.strings("t.i32s").unwrap_err().to_string();
    assert_eq!(message, "metadata key \"t.i32s\": expected array of strings, got array of i32");
    let message = metadata.u32("t.u64").unwrap_err().to_string();
    assert_eq!(message, "metadata key \"t.u64\": 9223372036854775813 does not fit u32");
    let message = metadata.u64("t.i8").unwrap_err().to_string();
    assert_eq!(message, "metadata key \"t.i8\": -100 does not fit u64");
    let message = metadata.bool("t.none").unwrap_err().to_string();
    assert_eq!(message, "metadata key \"t.none\" is missing");

    assert_eq!(metadata.opt_bool("t.none").unwrap(), None);
    assert_eq!(metadata.opt_u64("t.none").unwrap(), None);
    assert!(metadata.opt_f32s("t.none").unwrap().is_none());
    for wrong in [
        metadata.opt_u64("t.f32").err(),
        metadata.opt_u32("t.true").err(),
        metadata.opt_f32("t.u8").err(),
        metadata.opt_bool("t.u8").err(),
        metadata.opt_str("t.strings").err(),
        metadata.opt_strings("t.str").err(),
        metadata.opt_i32s("t.u32").err(),
        metadata.opt_f32s("t.i32s").err(),
    ] {
        assert!(matches!(wrong, Some(GgufError::WrongType { .. })), "{wrong:?}");
    }
}

#[test]
fn errors_name_the_path() {
    let folder = tempfile::tempdir().unwrap();
    for open in [|path: &Path| GgufFile::open(path), |path: &Path| GgufFile::read(path)] {
        let missing = folder.path().join("missing.gguf");
        let error = open(&missing).unwrap_err();
        assert!(
            matches!(error, GgufError::Io { .. }) && error.to_string().contains("missing.gguf"),
            "{error}"
        );

        let error = open(folder.path()).unwrap_err();
        assert!(matches!(error, GgufError::NotAFile { .. }), "{error}");

        for (name, contents) in
            [("empty.gguf", &b""[..]), ("page.gguf", b"<html><body>Not found</body></html>")]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, contents).unwrap();
            let error = open(&path).unwrap_err();
            let GgufError::InFile { inner, .. } = &error else { panic!("{error}") };
            assert!(
                error.to_string().contains(name) && error.to_string().contains(&inner.to_string()),
                "{error}"
            );
        }
    }
}
