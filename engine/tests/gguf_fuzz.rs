//! A real small file, cut and damaged everywhere: an error or a usable file, never a panic, never much memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

use halite_engine::gguf::{GgufError, GgufFile};

const TINY: &[u8] = include_bytes!("fixtures/gguf/tiny.gguf");

/// Opens `bytes` and, where that works, asks for everything there is.
fn exercise(bytes: Vec<u8>, case: &dyn Fn() -> String) {
    let len = bytes.len() as u64;
    let mut opened = None;
    let memory = allocation_counter::measure(|| opened = Some(GgufFile::from_bytes(bytes)));
    assert!(
        memory.bytes_max <= 4096 + 16 * len,
        "{}: {} bytes for a file of {len}",
        case(),
        memory.bytes_max
    );
    let Some(Ok(file)) = opened else { return };
    for (key, _) in file.metadata().iter() {
        let metadata = file.metadata();
        assert!(metadata.get(key).is_some(), "{}: {key:?}", case());
        let _ =
            (metadata.u64(key), metadata.u32(key), metadata.f32(key), metadata.bool(key), metadata.str(key));
        let _ = (metadata.i32s(key), metadata.f32s(key));
        let _ = metadata.strings(key).map(|strings| strings.iter().map(str::len).sum::<usize>());
    }
    let mut values = 0;
    for info in file.tensors() {
        match file.tensor(info.name()) {
            Ok(view) => values += view.to_f32().unwrap().len() as u64,
            Err(error) => assert!(matches!(error, GgufError::UnsupportedType { .. }), "{}: {error}", case()),
        }
    }
    // Two bits a value are the fewest.
    assert!(values <= 4 * len, "{}: {values} values out of {len} bytes", case());
}

#[test]
fn cut_at_every_byte() {
    let whole = GgufFile::from_bytes(TINY).unwrap();
    let start = TINY.as_ptr().addr();
    let last = whole.tensors().filter_map(|info| whole.tensor(info.name()).ok());
    let end = last.map(|view| view.data().as_ptr_range().end.addr() - start).max().unwrap();
    for len in 0..end {
        let error = GgufFile::from_bytes(&TINY[..len]).expect_err("a file without its end is refused");
        assert!(
            matches!(
                error,
                GgufError::Truncated { .. } | GgufError::CountTooLarge { .. } | GgufError::OutsideFile { .. }
            ),
            "cut to {len} bytes: {error}"
        );
        assert!(error.to_string().contains("cut short"), "cut to {len} bytes: {error}");
    }
    // The last tensor's type is unknown, and so is its end: cut after its start, the rest can still be used.
    let start_of_last = (end as u64).next_multiple_of(64) as usize;
    for len in start_of_last..=TINY.len() {
        exercise(TINY[..len].to_vec(), &|| format!("cut to {len} bytes"));
        assert!(GgufFile::from_bytes(&TINY[..len]).is_ok(), "cut to {len} bytes");
    }
}

#[test]
fn every_bit_flipped() {
    for bit in 0..TINY.len() * 8 {
        let mut bytes = TINY.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        exercise(bytes, &|| format!("bit {} of byte {}", bit % 8, bit / 8));
    }
}

#[test]
fn every_word_replaced_by_an_extreme_one() {
    for word in [
        0,
        1,
        0x7FFF_FFFF,
        0xFFFF_FFFF,
        1 << 32,
        1 << 62,
        i64::MAX as u64,
        u64::MAX / 8,
        u64::MAX - 31,
        u64::MAX,
    ] {
        for at in 0..TINY.len() - 8 {
            let mut bytes = TINY.to_vec();
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            exercise(bytes, &|| format!("{word:#x} at byte {at}"));
        }
    }
}

#[test]
fn many_random_faults_at_once() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..5_000 {
        let mut bytes = TINY.to_vec();
        let faults = 1 + random() % 8;
        for _ in 0..faults {
            let at = random() as usize % bytes.len();
            match random() % 4 {
                0 => bytes[at] = random() as u8,
                1 => bytes[at] ^= 1 << (random() % 8),
                // Moves everything behind it.
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random() as u8),
            }
        }
        exercise(bytes, &|| format!("round {round}"));
    }
}
