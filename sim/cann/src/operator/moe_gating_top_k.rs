//! `aclnnMoeGatingTopK`: experts of each token by softmax or sigmoid, with a bias, out of the best groups.

use super::call::{Call, Plan, phase_one};
use super::phase_two;
use super::top_k::{largest, softmax};
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::error::Failure;
use crate::settings::Profile;

const DOCUMENT: &str = "aclnnMoeGatingTopK.md, 2026-08-21";
/// Experts, each group's rounded up to 32.
const EXPERTS: i64 = 2048;

#[derive(Clone, Copy)]
struct Attributes {
    k: i64,
    k_group: i64,
    group_count: i64,
    group_select_mode: i64,
    renorm: i64,
    norm_type: i64,
    factor: f64,
    eps: f64,
}

/// x [tokens, experts], bias [experts], y and expertIdx [tokens, k], out as x. Weights come of scores without the bias.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnMoeGatingTopKGetWorkspaceSize(
    x: Handle,
    bias: Handle,
    k: i64,
    k_group: i64,
    group_count: i64,
    group_select_mode: i64,
    renorm: i64,
    norm_type: i64,
    out_flag: bool,
    routed_scaling_factor: f64,
    eps: f64,
    y_out: Handle,
    expert_idx_out: Handle,
    out_out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    let factor = routed_scaling_factor;
    let attributes =
        Attributes { k, k_group, group_count, group_select_mode, renorm, norm_type, factor, eps };
    phase_one("aclnnMoeGatingTopK", DOCUMENT, workspace, executor, |call| {
        let x = call.tensor("x", x)?;
        let bias = call.optional("biasOptional", bias)?;
        let [y, experts] = [call.tensor("yOut", y_out)?, call.tensor("expertIdxOut", expert_idx_out)?];
        let all = if out_flag { Some(call.tensor("outOut", out_out)?) } else { None };
        call.element(&x, &[Element::F16, Element::Bf16, Element::F32])?;
        call.element(&y, &[x.element])?;
        call.element(&experts, &[Element::I32])?;
        call.rank(&x, 2..=2)?;
        call.not_empty(&[&x])?;
        let count = x.last() as i64;
        check(call, &attributes, count)?;
        let shape = [x.dims[0], k];
        call.shape(&y, &shape)?;
        call.shape(&experts, &shape)?;
        if let Some(bias) = &bias {
            call.element(bias, &[Element::F16, Element::Bf16, Element::F32])?;
            call.shape(bias, &[count])?;
        }
        if let Some(all) = &all {
            call.element(all, &[Element::F32])?;
            call.shape(all, &x.dims)?;
        }
        Plan::new(8192, move || {
            let bias = bias.as_ref().map(|bias| bias.values()).transpose()?;
            let (mut weights, mut chosen, mut normed) = (Vec::new(), Vec::new(), Vec::new());
            for row in x.values()?.chunks(count as usize) {
                let scores = match norm_type {
                    0 => softmax(row),
                    _ => row.iter().map(|value| 1.0 / (1.0 + (-value).exp())).collect(),
                };
                let picked = attributes.pick(&scores, bias.as_deref());
                weights.extend(attributes.weigh(&scores, &picked));
                chosen.extend(picked.into_iter().map(|expert| expert as f64));
                normed.extend(scores);
            }
            y.write(&weights)?;
            experts.write(&chosen)?;
            all.as_ref().map_or(Ok(()), |all| all.write(&normed))
        })
    })
}

phase_two!(aclnnMoeGatingTopK);

fn check(call: &Call, of: &Attributes, count: i64) -> Result<(), Failure> {
    let &Attributes { k, k_group, group_count: groups, .. } = of;
    // vllm-ascend issue 5310: older releases had 256 experts only.
    call.shapes(call.profile >= Profile::V9_0 || count == 256, || format!("x: {count} experts, limit 256"))?;
    call.shapes(groups > 0 && count % groups == 0, || {
        format!("groupCount {groups}, which does not divide {count} experts")
    })?;
    let each = count / groups;
    let padded = (each + 31) / 32 * 32 * groups;
    call.shapes(padded <= EXPERTS, || format!("x: {padded} experts in groups of 32, limit {EXPERTS}"))?;
    let select = of.group_select_mode;
    call.shapes(matches!(select, 0 | 1) && each > select, || {
        format!("groupSelectMode {select}, limit 0, or 1 with groups of two and more")
    })?;
    call.shapes((1..=groups).contains(&k_group), || format!("kGroup {k_group}, limit 1 to {groups}"))?;
    let most = each * k_group;
    call.shapes((1..=most).contains(&k), || format!("k {k}, limit 1 to {most}"))?;
    call.shapes(matches!(of.renorm, 0 | 1), || format!("renorm {}, limit 0 to 1", of.renorm))?;
    match of.norm_type {
        0 | 1 => Ok(()),
        2 => call.unmodelled("normType 2"),
        other => call.shapes(false, || format!("normType {other}, limit 0 to 2")),
    }
}

impl Attributes {
    /// The experts of a token: the largest biased scores in the best groups.
    fn pick(&self, scores: &[f64], bias: Option<&[f64]>) -> Vec<usize> {
        let mut biased = scores.to_vec();
        if let Some(bias) = bias {
            biased.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
        }
        let each = scores.len() / self.group_count as usize;
        if self.group_count > 1 {
            let best = |group: &[f64]| -> f64 {
                let taken = largest(group, if self.group_select_mode == 0 { 1 } else { 2 });
                taken.into_iter().map(|at| group[at]).sum()
            };
            let of_groups: Vec<f64> = biased.chunks(each).map(best).collect();
            let kept = largest(&of_groups, self.k_group as usize);
            for (group, scores) in biased.chunks_mut(each).enumerate() {
                if !kept.contains(&group) {
                    scores.fill(f64::NEG_INFINITY);
                }
            }
        }
        largest(&biased, self.k as usize)
    }

    fn weigh(&self, scores: &[f64], picked: &[usize]) -> Vec<f64> {
        let picks = picked.iter().map(|&expert| scores[expert]);
        let sum: f64 = picks.clone().sum();
        let divisor = if self.norm_type == 1 || self.renorm == 1 { sum + self.eps } else { 1.0 };
        picks.map(|score| score / divisor * self.factor).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close, message};

    #[test]
    fn groups_are_chosen_with_the_bias_and_weights_without() {
        let session = Session::new();
        // Sigmoids 0.25, 0.75, 0.5, 0.5: the bias lifts the second group.
        let logits: Vec<f64> = [0.25_f64, 0.75, 0.5, 0.5].iter().map(|p| (p / (1.0 - p)).ln()).collect();
        let x = session.tensor(&[1, 4], Element::F32, &logits);
        let bias = session.tensor(&[4], Element::F32, &[0.0, 0.0, 1.0, 0.5]);
        let [y, experts] = [Element::F32, Element::I32].map(|element| session.empty(&[1, 2], element));
        let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
            aclnnMoeGatingTopKGetWorkspaceSize(
                x, bias, 2, 1, 2, 1, 0, 1, false, 2.5, 0.0, y, experts, 0, size, executor,
            )
        };
        session.run(first, aclnnMoeGatingTopK).unwrap();
        assert_eq!(session.read(experts), [2.0, 3.0]);
        assert_close(&session.read(y), &[1.25, 1.25], 1e-6);
    }

    #[test]
    fn counts_are_those_of_the_documents() {
        let of = |session: &Session, groups: i64, k: i64| {
            let x = session.empty(&[1, 4], Element::F32);
            let [y, experts] = [Element::F32, Element::I32].map(|element| session.empty(&[1, k], element));
            let (size, executor) = (Some(&mut 0), Some(&mut 0));
            aclnnMoeGatingTopKGetWorkspaceSize(
                x, 0, k, 1, groups, 0, 0, 1, false, 1.0, 0.0, y, experts, 0, size, executor,
            )
        };
        let session = Session::new();
        // vllm-ascend issues 3312 and 337.
        assert_eq!(of(&session, 0, 2), 561_103);
        assert!(message().contains("groupCount 0, which does not divide 4 experts"));
        assert_eq!(of(&session, 2, 3), 561_103);
        assert!(message().contains("k 3, limit 1 to 2"));
        drop(session);
        let session = Session::with(c"8.3");
        assert_eq!(of(&session, 1, 2), 561_103);
        assert!(message().contains("x: 4 experts, limit 256"));
    }
}
