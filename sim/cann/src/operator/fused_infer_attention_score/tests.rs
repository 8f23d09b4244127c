//! Cases whose answers are known without computing attention: equal scores give means, and ln 3 gives 3 to 1.

use super::*;
use crate::descriptor::array::{aclCreateIntArray, aclDestroyIntArray};
use crate::element::Element;
use crate::testing::{Session, assert_close};

const D: usize = 64;
const SLOTS: usize = 128;
/// Two blocks for keys and values of one head, `BnNBsD`.
const CACHE: [i64; 4] = [2, 1, SLOTS as i64, D as i64];

/// A call with what most of them have; the rest is null or 0.
struct Case {
    query: Handle,
    key: Handle,
    value: Handle,
    mask: Handle,
    lengths: Vec<i64>,
    kv_lengths: Vec<i64>,
    table: Handle,
    key_scale: Handle,
    value_scale: Handle,
    heads: i64,
    kv_heads: i64,
    lse: Handle,
    layout: &'static std::ffi::CStr,
    sparse_mode: i64,
    block_size: i64,
    mode: i64,
    out: Handle,
}

impl Case {
    fn run(&self, session: &Session) -> Result<(), (i32, String)> {
        let array = |values: &[i64]| match values.is_empty() {
            true => 0,
            false => aclCreateIntArray(values.as_ptr(), values.len() as u64),
        };
        let (lengths, kv_lengths) = (array(&self.lengths), array(&self.kv_lengths));
        let Case { query, key, value, mask, table, key_scale, value_scale, heads, mode, out, .. } = *self;
        let [key, value] = [session.list(&[key]), session.list(&[value])];
        let layout = self.layout.as_ptr();
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            let code = aclnnFusedInferAttentionScoreV4GetWorkspaceSize(
                query,
                key,
                value,
                0,
                mask,
                lengths,
                kv_lengths,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                table,
                0,
                0,
                key_scale,
                0,
                value_scale,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                heads,
                1.0,
                0,
                0,
                layout,
                self.kv_heads,
                self.sparse_mode,
                0,
                self.block_size,
                0,
                self.lse != 0,
                mode,
                mode,
                0,
                out,
                self.lse,
                size,
                executor,
            );
            // Host arrays were copied: they go before phase two.
            for array in [lengths, kv_lengths] {
                if array != 0 {
                    assert_eq!(aclDestroyIntArray(array), 0);
                }
            }
            code
        };
        session.run(first, aclnnFusedInferAttentionScoreV4)
    }
}

fn causal_mask(session: &Session) -> Handle {
    let mask = (0..2048 * 2048).map(|at| f64::from(u8::from(at % 2048 > at / 2048))).collect::<Vec<_>>();
    session.tensor(&[2048, 2048], Element::I8, &mask)
}

/// A cache whose rows at `slots` have a 1 times the given number everywhere, and NaN elsewhere.
fn cache(session: &Session, slots: &[(usize, f64)]) -> Handle {
    let mut values = vec![f64::NAN; 2 * SLOTS * D];
    for &(slot, value) in slots {
        values[slot * D..(slot + 1) * D].fill(value);
    }
    session.tensor(&CACHE, Element::Bf16, &values)
}

/// Queries of two sequences, two and one, in two heads that share keys; key lengths 3 and 1; blocks 1 and 0.
fn case(session: &Session) -> Case {
    let slots = [(SLOTS, 2.0), (SLOTS + 1, 4.0), (SLOTS + 2, 9.0), (0, -7.0)];
    Case {
        query: session.tensor(&[3, 2, D as i64], Element::Bf16, &[0.0; 6 * D]),
        key: cache(session, &slots),
        value: cache(session, &slots),
        mask: causal_mask(session),
        lengths: vec![2, 3],
        kv_lengths: vec![3, 1],
        table: session.tensor(&[2, 1], Element::I32, &[1.0, 0.0]),
        key_scale: 0,
        value_scale: 0,
        heads: 2,
        kv_heads: 1,
        lse: 0,
        layout: c"TND",
        sparse_mode: 3,
        block_size: SLOTS as i64,
        mode: 0,
        out: session.empty(&[3, 2, D as i64], Element::Bf16),
    }
}

fn firsts(session: &Session, out: Handle) -> Vec<f64> {
    session.read(out).chunks(D).map(|row| row[0]).collect()
}

#[test]
fn the_last_query_sees_the_last_key() {
    let session = Session::new();
    let case = case(&session);
    case.run(&session).unwrap();
    assert_close(&firsts(&session, case.out), &[3.0, 3.0, 5.0, 5.0, -7.0, -7.0], 1.0 / 256.0);
}

/// Two queries and three keys in two heads: query s of head n looks for key (s + n) % 3, whose value is 10 n + key.
#[test]
fn every_layout_has_its_rows() {
    let session = Session::new();
    let (queries, keys, heads) = (2, 3, 2);
    for (layout, heads_first) in [(c"BSH", false), (c"BSND", false), (c"BNSD", true), (c"TND", false)] {
        let at = |s: usize, n: usize, length: usize| if heads_first { n * length + s } else { s * heads + n };
        let dims = |length: i64| match layout.to_bytes() {
            b"BSH" => vec![1, length, 2 * D as i64],
            b"BSND" => vec![1, length, 2, D as i64],
            b"BNSD" => vec![1, 2, length, D as i64],
            _ => vec![length, 2, D as i64],
        };
        let [mut query, mut key, mut value] =
            [queries, keys, keys].map(|length| vec![0.0; length * heads * D]);
        for n in 0..heads {
            for s in 0..queries {
                query[at(s, n, queries) * D + (s + n) % 3] = 100.0;
            }
            for s in 0..keys {
                key[at(s, n, keys) * D + s] = 1.0;
                value[at(s, n, keys) * D..][..D].fill((10 * n + s) as f64);
            }
        }
        let tnd = layout == c"TND";
        let case = Case {
            query: session.tensor(&dims(2), Element::Bf16, &query),
            key: session.tensor(&dims(3), Element::Bf16, &key),
            value: session.tensor(&dims(3), Element::Bf16, &value),
            mask: 0,
            lengths: if tnd { vec![2] } else { vec![] },
            kv_lengths: if tnd { vec![3] } else { vec![] },
            table: 0,
            kv_heads: 2,
            layout,
            sparse_mode: 0,
            out: session.empty(&dims(2), Element::Bf16),
            lse: session.empty(if tnd { &[2, 2, 1] } else { &[1, 2, 2, 1] }, Element::F32),
            ..case(&session)
        };
        case.run(&session).unwrap();
        let rows = firsts(&session, case.out);
        for (s, n) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let expected = (10 * n + (s + n) % 3) as f64;
            assert_eq!(rows[at(s, n, queries)], expected, "{layout:?}: query {s}, head {n}");
        }
        // A score of 100 and two of 0.
        assert_close(&session.read(case.lse), &[100.0; 4], 1e-6);
    }
}

#[test]
fn version_3_gives_the_same() {
    let session = Session::new();
    let Case { query, key, value, mask, table, out, .. } = case(&session);
    let [key, value] = [session.list(&[key]), session.list(&[value])];
    let [lengths, kv_lengths] =
        [[2, 3], [3, 1]].map(|values: [i64; 2]| aclCreateIntArray(values.as_ptr(), 2));
    let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
        let layout = c"TND".as_ptr();
        aclnnFusedInferAttentionScoreV3GetWorkspaceSize(
            query, key, value, 0, mask, lengths, kv_lengths, 0, 0, 0, 0, 0, 0, 0, table, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 2, 1.0, 0, 0, layout, 1, 3, 0, 128, 0, false, 0, 0, out, 0, size, executor,
        )
    };
    session.run(first, aclnnFusedInferAttentionScoreV3).unwrap();
    assert_eq!(aclDestroyIntArray(lengths) + aclDestroyIntArray(kv_lengths), 0);
    assert_close(&firsts(&session, out), &[3.0, 3.0, 5.0, 5.0, -7.0, -7.0], 1.0 / 256.0);
}

#[test]
fn scores_weigh_the_values() {
    let session = Session::new();
    let mut case = case(&session);
    // One query and two keys of 0 and 1: a score of ln 3 for the second.
    case.query = session.tensor(&[1, 1, 2, D as i64], Element::Bf16, &[3_f64.ln() / D as f64; 2 * D]);
    case.key = cache(&session, &[(0, 0.0), (1, 1.0)]);
    case.value = cache(&session, &[(0, 8.0), (1, 16.0)]);
    case.table = session.tensor(&[1, 1], Element::I32, &[0.0]);
    (case.layout, case.sparse_mode, case.mask) = (c"BSND", 0, 0);
    (case.lengths, case.kv_lengths) = (vec![], vec![2]);
    case.out = session.empty(&[1, 1, 2, D as i64], Element::Bf16);
    case.run(&session).unwrap();
    assert_close(&firsts(&session, case.out), &[14.0, 14.0], 1.0 / 128.0);
    // Without any key the result is zeros.
    case.kv_lengths = vec![0];
    case.key = cache(&session, &[]);
    case.value = cache(&session, &[]);
    case.run(&session).unwrap();
    assert_eq!(firsts(&session, case.out), [0.0, 0.0]);
}

#[test]
fn scales_of_keys_and_values_count() {
    let session = Session::new();
    let bytes = |value: f64| session.tensor(&CACHE, Element::I8, &[value; 2 * SLOTS * D]);
    let channels: Vec<f64> = (0..D).map(|at| at as f64).collect();
    let mut case = Case {
        query: session.tensor(&[1, 1, 2, D as i64], Element::F16, &[0.0; 2 * D]),
        key: bytes(1.0),
        value: bytes(10.0),
        mask: 0,
        lengths: vec![],
        kv_lengths: vec![2],
        table: session.tensor(&[1, 1], Element::I32, &[1.0]),
        key_scale: session.tensor(&[1, 1, D as i64], Element::F16, &channels),
        value_scale: session.tensor(&[1, 1, D as i64], Element::F16, &channels),
        layout: c"BSND",
        sparse_mode: 0,
        out: session.empty(&[1, 1, 2, D as i64], Element::F16),
        ..case(&session)
    };
    case.run(&session).unwrap();
    assert_eq!(session.read(case.out)[..3], [0.0, 10.0, 20.0]);
    // A scale for each slot: the mean of 10 * 1 and 10 * 3.
    let mut slots = vec![f64::NAN; SLOTS];
    slots[..2].copy_from_slice(&[1.0, 3.0]);
    case.mode = 1;
    (case.key, case.value) = (bytes(1.0), bytes(10.0));
    case.key_scale = session.tensor(&[1, 1, SLOTS as i64], Element::F32, &slots);
    case.value_scale = session.tensor(&[1, 1, SLOTS as i64], Element::F32, &slots);
    case.run(&session).unwrap();
    assert_close(&session.read(case.out)[..2], &[20.0, 20.0], 1e-3);
    (case.key, case.value) = (bytes(1.0), bytes(10.0));
    case.key_scale = session.tensor(&[1, 1, SLOTS as i64], Element::F16, &slots);
    assert_eq!(case.run(&session).unwrap_err().0, 161_002);
}

#[test]
fn blocks_outside_the_cache_are_refused() {
    let session = Session::new();
    let mut case = case(&session);
    case.table = session.tensor(&[2, 1], Element::I32, &[1.0, 2.0]);
    let (code, text) = case.run(&session).unwrap_err();
    assert_eq!(code, 507_015);
    assert!(text.contains("blockTableOptional[1][0] = 2, limit 0 to 2"), "{text}");
}

#[test]
fn a_mask_that_is_none_is_refused() {
    let session = Session::new();
    let mut case = case(&session);
    case.mask = session.tensor(&[2048, 2048], Element::Bool, &vec![0.0; 2048 * 2048]);
    let (_, text) = case.run(&session).unwrap_err();
    assert!(
        text.contains("attenMaskOptional: 0 at [0, 1], expected 0 to the diagonal and 1 above it"),
        "{text}"
    );
}

#[test]
fn lengths_of_queries_are_cumulative() {
    let session = Session::new();
    let mut case = case(&session);
    case.lengths = vec![2, 1];
    let (code, text) = case.run(&session).unwrap_err();
    assert_eq!(code, 561_002);
    assert!(text.contains("actualSeqLengths: 1 after 2, limit 3: the values are cumulative"), "{text}");
}

/// vllm-ascend issues 4373, 8045 and 8523.
#[test]
fn the_older_documents_allow_less() {
    let session = Session::with(c"8.3");
    let mut case = case(&session);
    let (code, text) = case.run(&session).unwrap_err();
    assert_eq!(code, 561_002);
    assert!(text.contains("blockTableOptional: TND without rope has no blocks"), "{text}");
    (case.key, case.value) = (cache(&session, &[]), cache(&session, &[]));
    case.query = session.tensor(&[3, 2, D as i64], Element::F16, &[0.0; 6 * D]);
    let (code, text) = case.run(&session).unwrap_err();
    assert_eq!(code, 161_002);
    assert!(text.contains("key: dtype BFLOAT16, limit FLOAT16, INT8"), "{text}");
}
