//! `aclnnScatterPaKvCache`: rows of keys and values to slots of a paged cache.

use std::collections::BTreeSet;
use std::ffi::c_char;

use super::call::{Arg, Call, Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::foreign;
use crate::handle::Handle;
use crate::runtime::error::{AICORE_EXCEPTION, Failure};

const DOCUMENT: &str = "aclnnScatterPaKvCache.md, 2026-08-21";

/// key [T, N, D], keyCache [blocks, block size, N, D], slotMapping [T]; value and its cache the same, with a D of their own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnScatterPaKvCacheGetWorkspaceSize(
    key: Handle,
    key_cache: Handle,
    slot_mapping: Handle,
    value: Handle,
    value_cache: Handle,
    compress_lens: Handle,
    compress_seq_offset: Handle,
    seq_lens: Handle,
    cache_mode: *const c_char,
    scatter_mode: *const c_char,
    strides: Handle,
    offsets: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    let (cache_mode, scatter_mode) = (foreign::text(cache_mode), foreign::text(scatter_mode));
    phase_one("aclnnScatterPaKvCache", DOCUMENT, workspace, executor, |call| {
        let sides = [("key", key, "keyCacheRef", key_cache), ("value", value, "valueCacheRef", value_cache)];
        let mut pairs = Vec::new();
        for (name, rows, cache_name, cache) in sides {
            pairs.push((call.tensor(name, rows)?, call.tensor(cache_name, cache)?));
        }
        let slots = call.tensor("slotMapping", slot_mapping)?;
        call.absent(&[
            ("compressLensOptional", compress_lens),
            ("compressSeqOffsetOptional", compress_seq_offset),
            ("seqLensOptional", seq_lens),
            ("stridesOptional", strides),
            ("offsetsOptional", offsets),
        ])?;
        let modes =
            [("cacheModeOptional", cache_mode, "Norm"), ("scatterModeOptional", scatter_mode, "None")];
        for (name, mode, known) in modes {
            if let Some(mode) = mode.filter(|mode| !mode.is_empty() && mode != known) {
                call.unmodelled(&format!("{name} `{mode}`"))?;
            }
        }
        plan(call, pairs, slots)
    })
}

phase_two!(aclnnScatterPaKvCache);

fn plan(call: &Call, pairs: Vec<(Arg, Arg)>, slots: Arg) -> Result<Plan, Failure> {
    let types = [Element::F16, Element::Bf16, Element::F32, Element::I8, Element::U8, Element::I32];
    call.element(&slots, &[Element::I32, Element::I64])?;
    call.rank(&slots, 1..=1)?;
    let element = pairs.first().map_or(Element::F16, |pair| pair.0.element);
    let mut blocks = None;
    for (rows, cache) in &pairs {
        call.element(rows, &types)?;
        call.element(rows, &[element])?;
        call.element(cache, &[element])?;
        call.rank(rows, 3..=3)?;
        call.rank(cache, 4..=4)?;
        call.contiguous(&[rows, cache, &slots])?;
        let (tokens, of_cache) = (slots.count() as i64, &cache.dims);
        call.shape(rows, &[tokens, of_cache[2], of_cache[3]])?;
        let expected = blocks.get_or_insert((of_cache[0], of_cache[1]));
        call.require((of_cache[0], of_cache[1]) == *expected, || {
            format!(
                "valueCacheRef: {of_cache:?}, the key's cache has {expected:?} blocks and slots of a block"
            )
        })?;
    }
    let limit = blocks.map_or(0, |(count, size)| count * size);
    Plan::new(64 + 8 * slots.count(), move || {
        let slots = slots.integers()?;
        let mut seen = BTreeSet::new();
        for (token, &slot) in slots.iter().enumerate() {
            // A device would write somewhere else, or twice in an order of its own.
            let wrong = match (0..limit).contains(&slot) {
                false => format!("slotMapping[{token}] = {slot}, limit 0 to {limit} (without the last)"),
                true if !seen.insert(slot) => format!("slotMapping[{token}] = {slot} for the second time"),
                true => continue,
            };
            return Err(Failure::new(AICORE_EXCEPTION, wrong));
        }
        for (rows, cache) in &pairs {
            let width = (rows.dims[1] * rows.dims[2]) as usize;
            for (token, &slot) in slots.iter().enumerate() {
                cache.write_raw_at(slot as usize * width, &rows.raw_at(token * width, width)?)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, message};

    fn scatter(session: &Session, slots: &[f64], caches: [Handle; 2]) -> Result<(), (i32, String)> {
        let tokens = slots.len() as i64;
        let count = slots.len() * 4;
        let rows: Vec<f64> = (1..=count).map(|value| value as f64).collect();
        let key = session.tensor(&[tokens, 2, 2], Element::F16, &rows);
        let value = session.tensor(&[tokens, 2, 1], Element::F16, &rows[..count / 2]);
        let slots = session.tensor(&[tokens], Element::I32, slots);
        let (mode, null) = (c"Norm".as_ptr(), std::ptr::null());
        session.run(
            |size, executor| {
                aclnnScatterPaKvCacheGetWorkspaceSize(
                    key, caches[0], slots, value, caches[1], 0, 0, 0, mode, null, 0, 0, size, executor,
                )
            },
            aclnnScatterPaKvCache,
        )
    }

    fn caches(session: &Session) -> [Handle; 2] {
        [&[2, 3, 2, 2], &[2, 3, 2, 1]].map(|dims: &[i64; 4]| {
            session.tensor(dims, Element::F16, &vec![0.0; dims.iter().product::<i64>() as usize])
        })
    }

    #[test]
    fn rows_reach_their_slots() {
        let session = Session::new();
        let caches = caches(&session);
        scatter(&session, &[4.0, 0.0], caches).unwrap();
        let keys = session.read(caches[0]);
        assert_eq!(keys[16..20], [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(keys[..4], [5.0, 6.0, 7.0, 8.0]);
        assert_eq!(keys[4..16], [0.0; 12]);
        assert_eq!(session.read(caches[1])[8..10], [1.0, 2.0]);
    }

    #[test]
    fn slots_outside_the_cache_are_refused() {
        let session = Session::new();
        let caches = caches(&session);
        let (code, text) = scatter(&session, &[1.0, 6.0], caches).unwrap_err();
        assert_eq!(code, AICORE_EXCEPTION);
        assert!(text.contains("aclnnScatterPaKvCache: slotMapping[1] = 6, limit 0 to 6"), "{text}");
        assert_eq!(session.read(caches[0])[4..8], [0.0; 4]);
    }

    #[test]
    fn slots_named_twice_are_refused() {
        let session = Session::new();
        let (_, text) = scatter(&session, &[1.0, 1.0], caches(&session)).unwrap_err();
        assert!(text.contains("slotMapping[1] = 1 for the second time"), "{text}");
    }

    #[test]
    fn other_layouts_are_refused() {
        let session = Session::new();
        let [keys, _] = caches(&session);
        let rows = session.tensor(&[1, 2, 2], Element::F16, &[0.0; 4]);
        let slots = session.tensor(&[1], Element::I64, &[0.0]);
        let (mode, null) = (c"PA_NZ".as_ptr(), std::ptr::null());
        let code = aclnnScatterPaKvCacheGetWorkspaceSize(
            rows,
            keys,
            slots,
            rows,
            keys,
            0,
            0,
            0,
            mode,
            null,
            0,
            0,
            Some(&mut 0),
            Some(&mut 0),
        );
        assert_eq!(code, 561_002);
        assert!(message().contains("`PA_NZ`: the stand-in does not model it"));
    }
}
