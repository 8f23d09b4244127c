//! `aclnnMoeFinalizeRoutingV2`: the weighted sum of what the experts of a token gave.

use super::call::{Arg, Call, Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::error::{AICORE_EXCEPTION, Failure};

const DOCUMENT: &str = "aclnnMoeFinalizeRoutingV2.md, 2026-08-21";

struct Routing {
    rows: Arg,
    indices: Arg,
    x1: Option<Arg>,
    x2: Option<Arg>,
    bias: Option<Arg>,
    scales: Option<Arg>,
    experts: Option<Arg>,
    /// 0, 1: indices by column; 2, 3: by row. 1, 3: -1 is a row that was dropped.
    mode: i64,
    out: Arg,
}

/// expandedX [T K, H] (modes 0, 2) or [E, C, H] (1, 3), expandedRowIdx [T K], scales and expertIdx [T, K], bias [E, H],
/// x1, x2 and out [T, H].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnMoeFinalizeRoutingV2GetWorkspaceSize(
    expanded_x: Handle,
    expanded_row_idx: Handle,
    x1: Handle,
    x2: Handle,
    bias: Handle,
    scales: Handle,
    expert_idx: Handle,
    drop_pad_mode: i64,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnMoeFinalizeRoutingV2", DOCUMENT, workspace, executor, |call| {
        let routing = Routing {
            rows: call.tensor("expandedX", expanded_x)?,
            indices: call.tensor("expandedRowIdx", expanded_row_idx)?,
            x1: call.optional("x1Optional", x1)?,
            x2: call.optional("x2Optional", x2)?,
            bias: call.optional("biasOptional", bias)?,
            scales: call.optional("scalesOptional", scales)?,
            experts: call.optional("expertIdxOptional", expert_idx)?,
            mode: drop_pad_mode,
            out: call.tensor("out", out)?,
        };
        check(call, &routing)?;
        Plan::new(2048, move || routing.run())
    })
}

phase_two!(aclnnMoeFinalizeRoutingV2);

fn check(call: &Call, of: &Routing) -> Result<(), Failure> {
    let element = of.rows.element;
    call.element(&of.rows, &[Element::F16, Element::Bf16, Element::F32])?;
    for arg in [Some(&of.out), of.x1.as_ref(), of.x2.as_ref(), of.bias.as_ref()].into_iter().flatten() {
        call.element(arg, &[element])?;
    }
    call.element(&of.indices, &[Element::I32])?;
    if let Some(scales) = &of.scales {
        let mixed = [element, Element::F32];
        call.element(scales, if element == Element::Bf16 { &mixed } else { &mixed[..1] })?;
    }
    call.not_empty(&[&of.rows, &of.indices, &of.out])?;
    call.shapes((0..=3).contains(&of.mode), || format!("dropPadMode {}, limit 0 to 3", of.mode))?;
    call.rank(&of.out, 2..=2)?;
    call.rank(&of.indices, 1..=1)?;
    let (tokens, width) = (of.out.dims[0], of.out.dims[1]);
    let all = of.indices.dims[0];
    let k = all / tokens;
    call.shapes(all == k * tokens && k > 0, || format!("expandedRowIdx: {all} indices for {tokens} tokens"))?;
    let padded = of.mode % 2 == 1;
    let rank = if padded { 3 } else { 2 };
    call.shapes(of.rows.dims.len() == rank && of.rows.last() as i64 == width, || {
        format!("expandedX: shape {:?}, {rank} dimensions of {width} columns at last", of.rows.dims)
    })?;
    call.shapes(padded || of.rows.dims[0] == all, || {
        format!("expandedX: {} rows for {all} indices", of.rows.dims[0])
    })?;
    call.shapes(of.scales.is_some() || k == 1, || {
        format!("scalesOptional is null with {k} experts of a token")
    })?;
    call.shapes(of.x1.is_some() || of.x2.is_none(), || "x2Optional without x1Optional".to_owned())?;
    call.shapes(of.experts.is_some() || of.bias.is_none(), || {
        "biasOptional without expertIdxOptional".to_owned()
    })?;
    for (arg, shape) in [(&of.x1, [tokens, width]), (&of.x2, [tokens, width]), (&of.scales, [tokens, k])] {
        let Some(arg) = arg else { continue };
        call.shapes(arg.dims == shape, || format!("shape {:?}, expected {shape:?}", arg.dims))?;
    }
    if let Some(experts) = &of.experts {
        call.element(experts, &[Element::I32])?;
        call.shapes(experts.dims == [tokens, k], || format!("expertIdxOptional: shape {:?}", experts.dims))?;
    }
    if let Some(bias) = &of.bias {
        call.shapes(bias.dims.len() == 2 && bias.last() as i64 == width, || {
            format!("biasOptional: shape {:?}, expected [experts, {width}]", bias.dims)
        })?;
    }
    Ok(())
}

impl Routing {
    fn run(&self) -> Result<(), Failure> {
        let (tokens, width) = (self.out.dims[0] as usize, self.out.last());
        let indices = self.indices.integers()?;
        let k = indices.len() / tokens;
        let limit = (self.rows.count() / width) as i64;
        let of = |arg: &Option<Arg>| arg.as_ref().map(|arg| arg.values()).transpose();
        let (scales, bias) = (of(&self.scales)?, of(&self.bias)?);
        let experts = self.experts.as_ref().map(|experts| experts.integers()).transpose()?;
        let mut sums = vec![0.0; tokens * width];
        for x in [of(&self.x1)?, of(&self.x2)?].into_iter().flatten() {
            sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
        }
        for token in 0..tokens {
            for choice in 0..k {
                let at = if self.mode < 2 { choice * tokens + token } else { token * k + choice };
                let row = indices[at];
                if row == -1 && self.mode % 2 == 1 {
                    continue;
                }
                let wrong = |name: &str, at: usize, value: i64, limit: i64| {
                    let text = format!("{name}[{at}] = {value}, limit 0 to {limit} (without the last)");
                    Failure::new(AICORE_EXCEPTION, text)
                };
                if !(0..limit).contains(&row) {
                    return Err(wrong("expandedRowIdx", at, row, limit));
                }
                let values = self.rows.values_at(row as usize * width, width)?;
                let place = token * k + choice;
                let scale = scales.as_ref().map_or(1.0, |scales| scales[place]);
                let extra = match (&bias, &experts) {
                    (Some(bias), Some(experts)) => {
                        let (expert, limit) = (experts[place], (bias.len() / width) as i64);
                        if !(0..limit).contains(&expert) {
                            return Err(wrong("expertIdxOptional", place, expert, limit));
                        }
                        Some(&bias[expert as usize * width..][..width])
                    }
                    _ => None,
                };
                for (column, value) in values.into_iter().enumerate() {
                    let value = value + extra.map_or(0.0, |extra| extra[column]);
                    sums[token * width + column] += scale * value;
                }
            }
        }
        self.out.write(&sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close};

    fn finalize(session: &Session, indices: &[f64], mode: i64) -> Result<Vec<f64>, (i32, String)> {
        let dims: &[i64] = if mode % 2 == 1 { &[2, 2, 1] } else { &[4, 1] };
        let rows = session.tensor(dims, Element::Bf16, &[1.0, 10.0, 100.0, 1000.0]);
        let indices = session.tensor(&[4], Element::I32, indices);
        let scales = session.tensor(&[2, 2], Element::F32, &[1.0, 2.0, 3.0, 4.0]);
        let x1 = session.tensor(&[2, 1], Element::Bf16, &[0.5, 0.0]);
        let out = session.empty(&[2, 1], Element::Bf16);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnMoeFinalizeRoutingV2GetWorkspaceSize(
                rows, indices, x1, 0, 0, scales, 0, mode, out, size, executor,
            )
        };
        session.run(first, aclnnMoeFinalizeRoutingV2)?;
        Ok(session.read(out))
    }

    #[test]
    fn indices_are_by_row_or_by_column() {
        let session = Session::new();
        let by_row = finalize(&session, &[0.0, 1.0, 2.0, 3.0], 2).unwrap();
        assert_close(&by_row, &[21.5, 4300.0], 1.0 / 128.0);
        let by_column = finalize(&session, &[0.0, 1.0, 2.0, 3.0], 0).unwrap();
        assert_close(&by_column, &[201.5, 4030.0], 1.0 / 128.0);
        let dropped = finalize(&session, &[0.0, -1.0, -1.0, 1.0], 3).unwrap();
        assert_close(&dropped, &[1.5, 40.0], 1.0 / 128.0);
    }

    /// sglang issue 27748.
    #[test]
    fn dropped_rows_need_their_mode() {
        let session = Session::new();
        let (code, text) = finalize(&session, &[0.0, -1.0, 2.0, 3.0], 2).unwrap_err();
        assert_eq!(code, 507_015);
        assert!(text.contains("expandedRowIdx[1] = -1, limit 0 to 4"), "{text}");
    }
}
