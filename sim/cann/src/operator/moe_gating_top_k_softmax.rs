//! `aclnnMoeGatingTopKSoftmaxV2`: experts of each token by softmax and selection, in either order.

use super::call::{Plan, phase_one};
use super::phase_two;
use super::top_k::{largest, softmax};
use crate::element::Element;
use crate::handle::Handle;

const DOCUMENT: &str = "aclnnMoeGatingTopKSoftmaxV2.md, 2026-08-21";
/// The most experts of a token.
const LIMIT: i64 = 1024;

/// x [.., experts], finished [..], y and expertIdx [.., k], softmaxResult as x. renorm 0: softmax first; 1: selection first.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(
    x: Handle,
    finished: Handle,
    k: i64,
    renorm: i64,
    output_softmax_result: bool,
    y_out: Handle,
    expert_idx_out: Handle,
    softmax_result_out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnMoeGatingTopKSoftmaxV2", DOCUMENT, workspace, executor, |call| {
        let x = call.tensor("x", x)?;
        let finished = call.optional("finishedOptional", finished)?;
        let [y, experts] = [call.tensor("yOut", y_out)?, call.tensor("expertIdxOut", expert_idx_out)?];
        let all = match output_softmax_result && renorm == 0 {
            true => Some(call.tensor("softmaxResultOutOptional", softmax_result_out)?),
            false => None,
        };
        call.element(&x, &[Element::F16, Element::Bf16, Element::F32])?;
        call.element(&y, &[x.element])?;
        call.element(&experts, &[Element::I32])?;
        let (rank, count) = (x.dims.len(), x.last() as i64);
        call.tiles(matches!(rank, 2 | 3), || format!("x: {rank} dimensions, limit 2 to 3"))?;
        call.tiles((0..=count.min(LIMIT)).contains(&k), || {
            format!("k {k}, limit {count} experts and {LIMIT}")
        })?;
        call.tiles(matches!(renorm, 0 | 1), || format!("renorm {renorm}, limit 0 to 1"))?;
        let mut shape = x.dims.clone();
        shape[rank - 1] = k;
        for arg in [&y, &experts] {
            call.tiles(arg.dims == shape, || {
                format!("a result of shape {:?}, expected {shape:?}", arg.dims)
            })?;
        }
        if let Some(finished) = &finished {
            call.element(finished, &[Element::Bool])?;
            let rows = &x.dims[..rank - 1];
            call.tiles(finished.dims == rows, || {
                format!("finishedOptional: shape {:?}, expected {rows:?}", finished.dims)
            })?;
        }
        if let Some(all) = &all {
            call.element(all, &[Element::F32])?;
            call.tiles(all.dims == x.dims, || format!("softmaxResultOut: shape {:?}", all.dims))?;
        }
        Plan::new(4096, move || {
            let done = finished.as_ref().map(|finished| finished.integers()).transpose()?;
            let (mut weights, mut chosen, mut softmaxes) = (Vec::new(), Vec::new(), Vec::new());
            for (row, values) in x.values()?.chunks(count.max(1) as usize).enumerate() {
                let scores = if renorm == 0 { softmax(values) } else { values.to_vec() };
                let picked = largest(&scores, k as usize);
                let picks: Vec<f64> = picked.iter().map(|&expert| scores[expert]).collect();
                weights.extend(if renorm == 0 { picks } else { softmax(&picks) });
                let over = done.as_ref().is_some_and(|done| done[row] != 0);
                chosen.extend(picked.iter().map(|&expert| if over { count as f64 } else { expert as f64 }));
                softmaxes.extend(scores);
            }
            y.write(&weights)?;
            experts.write(&chosen)?;
            all.as_ref().map_or(Ok(()), |all| all.write(&softmaxes))
        })
    })
}

phase_two!(aclnnMoeGatingTopKSoftmaxV2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close};

    fn run(session: &Session, k: i64, renorm: i64) -> Result<[Vec<f64>; 2], (i32, String)> {
        let logs: Vec<f64> = [1.0_f64, 3.0, 4.0, 2.0, 5.0, 2.0].iter().map(|value| value.ln()).collect();
        let x = session.tensor(&[2, 3], Element::F32, &logs);
        let finished = session.tensor(&[2], Element::Bool, &[0.0, 1.0]);
        let [y, experts] = [Element::F32, Element::I32].map(|element| session.empty(&[2, k], element));
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(
                x, finished, k, renorm, false, y, experts, 0, size, executor,
            )
        };
        session.run(first, aclnnMoeGatingTopKSoftmaxV2)?;
        Ok([session.read(y), session.read(experts)])
    }

    #[test]
    fn the_order_of_softmax_and_selection_matters() {
        let session = Session::new();
        let [y, experts] = run(&session, 2, 0).unwrap();
        assert_close(&y, &[0.5, 0.375, 5.0 / 9.0, 2.0 / 9.0], 1e-6);
        // The second token is finished: its experts are the one that does not exist.
        assert_eq!(experts, [2.0, 1.0, 3.0, 3.0]);
        let [y, _] = run(&session, 2, 1).unwrap();
        assert_close(&y, &[4.0 / 7.0, 3.0 / 7.0, 5.0 / 7.0, 2.0 / 7.0], 1e-6);
    }

    #[test]
    fn more_experts_than_there_are_are_refused() {
        let (code, text) = run(&Session::new(), 4, 0).unwrap_err();
        assert_eq!(code, 561_002);
        assert!(text.contains("k 4, limit 3 experts"), "{text}");
    }
}
