//! `aclnnEmbedding`: rows of a table by their numbers.

use super::call::{Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::error::{AICORE_EXCEPTION, Failure};

const DOCUMENT: &str = "aclnnEmbedding.md, 2026-08-22";

/// weight [rows, width], indices INT32 or INT64 [..], out [.., width]. A number that is no row an NPU does not look at.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnEmbeddingGetWorkspaceSize(
    weight: Handle,
    indices: Handle,
    out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnEmbedding", DOCUMENT, workspace, executor, |call| {
        let [weight, indices] = [call.tensor("weight", weight)?, call.tensor("indices", indices)?];
        let out = call.tensor("out", out)?;
        call.rank(&weight, 2..=2)?;
        call.element(
            &weight,
            &[Element::F32, Element::F16, Element::Bf16, Element::I32, Element::I8, Element::U8],
        )?;
        call.element(&indices, &[Element::I32, Element::I64])?;
        call.element(&out, &[weight.element])?;
        let (rows, width) = (weight.dims[0], weight.dims[1]);
        call.shape(&out, &[&indices.dims[..], &[width]].concat())?;
        call.not_empty(&[&weight, &out])?;
        Plan::new(0, move || {
            for (at, index) in indices.integers()?.into_iter().enumerate() {
                if !(0..rows).contains(&index) {
                    let text = format!("indices[{at}] = {index}, limit 0 to {rows} (without the last)");
                    return Err(Failure::new(AICORE_EXCEPTION, text));
                }
                let row = weight.raw_at(index as usize * width as usize, width as usize)?;
                out.write_raw_at(at * width as usize, &row)?;
            }
            Ok(())
        })
    })
}

phase_two!(aclnnEmbedding);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Session;

    fn rows(session: &Session, indices: &[f64]) -> Result<Vec<f64>, (i32, String)> {
        let weight = session.tensor(&[3, 2], Element::Bf16, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let count = indices.len() as i64;
        let indices = session.tensor(&[count], Element::I32, indices);
        let out = session.empty(&[count, 2], Element::Bf16);
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnEmbeddingGetWorkspaceSize(weight, indices, out, size, executor)
        };
        session.run(first, aclnnEmbedding).map(|()| session.read(out))
    }

    #[test]
    fn rows_come_by_their_numbers_and_others_are_told() {
        let session = Session::new();
        assert_eq!(rows(&session, &[2.0, 0.0]).unwrap(), [5.0, 6.0, 1.0, 2.0]);
        let (code, text) = rows(&session, &[0.0, 3.0]).unwrap_err();
        assert_eq!(code, 507_015);
        assert!(text.contains("indices[1] = 3, limit 0 to 3"), "{text}");
    }
}
