//! `aclnnMoeInitRoutingV3`: tokens sorted by expert, with as many copies as they have experts.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::call::{Arg, Call, Plan, phase_one};
use super::dynamic_quant::quantize;
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::error::{AICORE_EXCEPTION, Failure};
use crate::runtime::memory::POISON;
use crate::settings::Profile;

const DOCUMENT: &str = "aclnnMoeInitRoutingV3.md, 2026-08-21 and 2025-11";

struct Routing {
    x: Arg,
    experts: Arg,
    rows: Arg,
    indices: Arg,
    counts: Arg,
    scales: Option<Arg>,
    range: Range<i64>,
    expert_num: i64,
    /// Counts are sums of all so far.
    cumulative: bool,
    /// `rowIdxType` 1: the place of row i is i; else the row of place i is i.
    scatter: bool,
}

/// x [T, H], expertIdx [T, K], expandedX [T K, H], expandedRowIdx [T K], counts [experts of the range], expandedScale [T K].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnMoeInitRoutingV3GetWorkspaceSize(
    x: Handle,
    expert_idx: Handle,
    scale: Handle,
    offset: Handle,
    active_num: i64,
    _expert_capacity: i64,
    expert_num: i64,
    drop_pad_mode: i64,
    expert_tokens_num_type: i64,
    expert_tokens_num_flag: bool,
    quant_mode: i64,
    active_expert_range: Handle,
    row_idx_type: i64,
    expanded_x_out: Handle,
    expanded_row_idx_out: Handle,
    expert_tokens_count_out: Handle,
    expanded_scale_out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnMoeInitRoutingV3", DOCUMENT, workspace, executor, |call| {
        let [x, experts] = [call.tensor("x", x)?, call.tensor("expertIdx", expert_idx)?];
        let rows = call.tensor("expandedXOut", expanded_x_out)?;
        let indices = call.tensor("expandedRowIdxOut", expanded_row_idx_out)?;
        let counts = call.tensor("expertTokensCountOrCumsumOut", expert_tokens_count_out)?;
        let scales = call.optional("expandedScaleOut", expanded_scale_out)?;
        call.absent(&[("scaleOptional", scale), ("offsetOptional", offset)])?;
        call.element(&experts, &[Element::I32])?;
        call.rank(&x, 2..=2)?;
        call.rank(&experts, 2..=2)?;
        let (tokens, width, k) = (x.dims[0], x.dims[1], experts.dims[1]);
        call.tiles(experts.dims[0] == tokens, || {
            format!("expertIdx: shape {:?} for {tokens} tokens", experts.dims)
        })?;
        call.tiles(tokens > 0 || call.profile >= Profile::V9_0, || "x: no tokens".to_owned())?;
        let range = call.integers("activeExpertRangeOptional", active_expert_range)?;
        let range = range.unwrap_or_else(|| vec![0, expert_num]);
        let valid = matches!(range[..], [first, end] if 0 <= first && first <= end && end <= expert_num);
        call.tiles(valid, || format!("activeExpertRange {range:?}, limit [0, {expert_num}]"))?;
        let kind = expert_tokens_num_type;
        attributes(call, [active_num, tokens * k, drop_pad_mode, kind, row_idx_type])?;
        if !expert_tokens_num_flag {
            call.unmodelled("expertTokensNumFlag false")?;
        }
        let range = range[0]..range[1];
        match quant_mode {
            -1 => {
                call.element(&x, &[Element::F16, Element::Bf16, Element::F32, Element::I8])?;
                call.element(&rows, &[x.element])?;
            }
            1 => {
                call.element(&x, &[Element::F16, Element::Bf16, Element::F32])?;
                call.element(&rows, &[Element::I8])?;
            }
            0 if call.profile >= Profile::V9_0 => call.unmodelled("quantMode 0")?,
            _ => call.tiles(false, || format!("quantMode {quant_mode}, limit -1, 1"))?,
        }
        let scales = match (quant_mode, scales) {
            (1, None) => {
                call.tiles(false, || "expandedScaleOut is null, quantMode 1 writes it".to_owned())?;
                None
            }
            (1, Some(scales)) => {
                call.element(&scales, &[Element::F32])?;
                call.shape(&scales, &[tokens * k])?;
                Some(scales)
            }
            _ => None,
        };
        for (arg, element) in [(&indices, Element::I32), (&counts, Element::I64)] {
            call.element(arg, &[element])?;
        }
        call.shape(&rows, &[tokens * k, width])?;
        call.shape(&indices, &[tokens * k])?;
        call.shape(&counts, &[range.end - range.start])?;
        let (cumulative, scatter) = (kind == 0, row_idx_type == 1);
        let routing =
            Routing { x, experts, rows, indices, counts, scales, range, expert_num, cumulative, scatter };
        Plan::new(16_384 + 16 * (tokens * k) as usize, move || routing.run())
    })
}

phase_two!(aclnnMoeInitRoutingV3);

/// The attributes; the older document knows fewer values.
fn attributes(call: &Call, [active, all, drop_pad, kind, row]: [i64; 5]) -> Result<(), Failure> {
    let newer = call.profile >= Profile::V9_0;
    match (active, drop_pad) {
        (0, _) if newer => {}
        (active, _) if active == all => {}
        _ if newer => call.unmodelled(&format!("activeNum {active} of {all}"))?,
        _ => call.tiles(false, || format!("activeNum {active}, expected {all}"))?,
    }
    match drop_pad {
        0 => {}
        1 if newer => call.unmodelled("dropPadMode 1")?,
        _ => call.tiles(false, || format!("dropPadMode {drop_pad}, limit 0"))?,
    }
    match kind {
        1 => {}
        0 if newer => {}
        2 => call.unmodelled("expertTokensNumType 2")?,
        _ => call.tiles(false, || format!("expertTokensNumType {kind}, limit 1 to 2"))?,
    }
    call.tiles(matches!(row, 0 | 1), || format!("rowIdxType {row}, limit 0 to 1"))
}

impl Routing {
    fn run(&self) -> Result<(), Failure> {
        let experts = self.experts.integers()?;
        for (at, &expert) in experts.iter().enumerate() {
            if !(0..self.expert_num).contains(&expert) {
                let text =
                    format!("expertIdx[{at}] = {expert}, limit 0 to {} (without the last)", self.expert_num);
                return Err(Failure::new(AICORE_EXCEPTION, text));
            }
        }
        let sorted = self.sorted(&experts);
        self.write_rows(&sorted)?;
        // What no row fills is garbage where the document says "not initialised", and -1 where it says so.
        let mut indices = vec![if self.scatter { f64::from(i32::MIN) } else { -1.0 }; experts.len()];
        for (place, &row) in sorted.iter().enumerate() {
            let (to, index) = if self.scatter { (place, row) } else { (row, place) };
            indices[to] = index as f64;
        }
        self.indices.write(&indices)?;
        let mut counts = Vec::new();
        let mut before = 0.0;
        for expert in self.range.clone() {
            let count = experts.iter().filter(|&&one| one == expert).count() as f64;
            before += count;
            counts.push(if self.cumulative { before } else { count });
        }
        self.counts.write(&counts)
    }

    /// Rows of the range's experts, expert by expert; an expert's own rows in an order that changes from call to call.
    fn sorted(&self, experts: &[i64]) -> Vec<usize> {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let turned = CALLS.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        let mut sorted: Vec<usize> =
            (0..experts.len()).filter(|&row| self.range.contains(&experts[row])).collect();
        if turned {
            sorted.reverse();
        }
        sorted.sort_by_key(|&row| experts[row]);
        sorted
    }

    /// Copies of tokens; what lies behind the last one is undefined, and becomes garbage.
    fn write_rows(&self, sorted: &[usize]) -> Result<(), Failure> {
        let (width, k) = (self.x.last(), self.experts.last().max(1));
        let rest = self.rows.count() - sorted.len() * width;
        let garbage = vec![POISON; rest * self.rows.element.size()];
        self.rows.write_raw_at(sorted.len() * width, &garbage)?;
        for (place, &row) in sorted.iter().enumerate() {
            match &self.scales {
                None => {
                    let raw = self.x.raw_at(row / k * width, width)?;
                    self.rows.write_raw_at(place * width, &raw)?;
                }
                Some(scales) => {
                    let (bytes, scale) = quantize(&self.x.values_at(row / k * width, width)?);
                    self.rows.write_at(place * width, &bytes)?;
                    scales.write_at(place, &[scale])?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::array::{aclCreateIntArray, aclDestroyIntArray};
    use crate::testing::{Session, assert_close};

    /// Three tokens of two channels, two experts each of four; experts 1 to 3 are here.
    fn route(
        session: &Session,
        experts: &[f64],
        quant_mode: i64,
        row_idx_type: i64,
    ) -> Result<[Vec<f64>; 4], (i32, String)> {
        route_by(session, experts, quant_mode, row_idx_type, 1)
    }

    fn route_by(
        session: &Session,
        experts: &[f64],
        quant_mode: i64,
        row_idx_type: i64,
        kind: i64,
    ) -> Result<[Vec<f64>; 4], (i32, String)> {
        let x = session.tensor(&[3, 2], Element::Bf16, &[1.0, 2.0, 3.0, -4.0, 5.0, 6.0]);
        let experts = session.tensor(&[3, 2], Element::I32, experts);
        let element = if quant_mode == 1 { Element::I8 } else { Element::Bf16 };
        let rows = session.tensor(&[6, 2], element, &[9.0; 12]);
        let indices = session.empty(&[6], Element::I32);
        let counts = session.empty(&[2], Element::I64);
        let scales = session.empty(&[6], Element::F32);
        let range = aclCreateIntArray([1, 3].as_ptr(), 2);
        let result = session.run(
            |size, executor| {
                aclnnMoeInitRoutingV3GetWorkspaceSize(
                    x,
                    experts,
                    0,
                    0,
                    6,
                    0,
                    4,
                    0,
                    kind,
                    true,
                    quant_mode,
                    range,
                    row_idx_type,
                    rows,
                    indices,
                    counts,
                    scales,
                    size,
                    executor,
                )
            },
            aclnnMoeInitRoutingV3,
        );
        assert_eq!(aclDestroyIntArray(range), 0);
        result?;
        Ok([rows, indices, counts, scales].map(|handle| session.read(handle)))
    }

    const EXPERTS: [f64; 6] = [2.0, 0.0, 1.0, 2.0, 3.0, 0.0];

    #[test]
    fn tokens_are_sorted_by_expert() {
        let session = Session::new();
        // An even and an odd call: an expert's rows come in either order, and the indices say which.
        for _ in 0..2 {
            let [rows, indices, counts, _] = route(&session, &EXPERTS, -1, 0).unwrap();
            assert_eq!(counts, [1.0, 2.0]);
            assert_eq!(rows[..2], [3.0, -4.0]);
            assert_eq!([indices[1], indices[4], indices[5]], [-1.0; 3]);
            assert_eq!(indices[2], 0.0);
            let (first, second) = (indices[0] as usize, indices[3] as usize);
            assert_eq!(rows[2 * first..2 * first + 2], [1.0, 2.0]);
            assert_eq!(rows[2 * second..2 * second + 2], [3.0, -4.0]);
            assert!(rows[6..].iter().all(|&value| value != 9.0), "{rows:?}");
        }
    }

    #[test]
    fn rows_are_quantised_and_scattered() {
        let session = Session::new();
        let [rows, indices, _, scales] = route(&session, &EXPERTS, 1, 1).unwrap();
        assert_eq!(rows[..2], [95.0, -127.0]);
        assert_close(&scales[..1], &[4.0 / 127.0], 1e-6);
        assert_eq!(indices[0], 2.0);
        assert!(indices[3..].iter().all(|&index| index == f64::from(i32::MIN)));
    }

    #[test]
    fn sums_are_of_the_newer_document() {
        let session = Session::new();
        let [_, _, counts, _] = route_by(&session, &EXPERTS, -1, 0, 0).unwrap();
        assert_eq!(counts, [1.0, 3.0]);
        drop(session);
        let session = Session::with(c"8.3");
        let (code, text) = route_by(&session, &EXPERTS, -1, 0, 0).unwrap_err();
        assert_eq!(code, 561_002);
        assert!(text.contains("expertTokensNumType 0, limit 1 to 2"), "{text}");
    }

    #[test]
    fn experts_that_do_not_exist_are_refused() {
        let session = Session::new();
        let (code, text) = route(&session, &[2.0, 0.0, 4.0, 2.0, 3.0, 0.0], -1, 0).unwrap_err();
        assert_eq!(code, 507_015);
        assert!(text.contains("expertIdx[2] = 4, limit 0 to 4"), "{text}");
    }
}
