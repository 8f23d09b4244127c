//! `aclnnGroupedMatmulV5`: rows in groups, each group times a matrix of its own.

use super::call::{Arg, Call, Plan, phase_one};
use super::phase_two;
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::error::{AICORE_EXCEPTION, Failure};

const DOCUMENT: &str = "aclnnGroupedMatmulV5.md, 2026-08-21";
/// The last dimension of x and weight.
const LAST_DIMENSION: i64 = 65_535;
const GROUPS: i64 = 1024;

struct Grouped {
    x: Arg,
    weight: Arg,
    bias: Option<Arg>,
    /// [groups, n].
    scale: Option<Arg>,
    /// [m].
    tokens: Option<Arg>,
    list: Arg,
    /// The list has sums of all so far.
    cumulative: bool,
    out: Arg,
}

/// x [m, k], weight [groups, k, n] (a transposed one is a view), groupList INT64 [groups], out [m, n]: one tensor in each list.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclnnGroupedMatmulV5GetWorkspaceSize(
    x: Handle,
    weight: Handle,
    bias: Handle,
    scale: Handle,
    offset: Handle,
    antiquant_scale: Handle,
    antiquant_offset: Handle,
    per_token_scale: Handle,
    group_list: Handle,
    activation_input: Handle,
    activation_quant_scale: Handle,
    activation_quant_offset: Handle,
    split_item: i64,
    group_type: i64,
    group_list_type: i64,
    act_type: i64,
    tuning_config: Handle,
    out: Handle,
    activation_feature_out: Handle,
    dyn_quant_scale_out: Handle,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
) -> i32 {
    phase_one("aclnnGroupedMatmulV5", DOCUMENT, workspace, executor, |call| {
        let grouped = Grouped {
            x: call.single("x", x)?,
            weight: call.single("weight", weight)?,
            bias: call.optional_single("biasOptional", bias)?,
            scale: call.optional_single("scaleOptional", scale)?,
            tokens: call.optional_single("perTokenScaleOptional", per_token_scale)?,
            list: call.tensor("groupListOptional", group_list)?,
            cumulative: group_list_type == 0,
            out: call.single("out", out)?,
        };
        call.absent(&[
            ("offsetOptional", offset),
            ("antiquantScaleOptional", antiquant_scale),
            ("antiquantOffsetOptional", antiquant_offset),
            ("activationInputOptional", activation_input),
            ("activationQuantScaleOptional", activation_quant_scale),
            ("activationQuantOffsetOptional", activation_quant_offset),
            ("activationFeatureOutOptional", activation_feature_out),
            ("dynQuantScaleOutOptional", dyn_quant_scale_out),
        ])?;
        // What it tunes is speed.
        call.integers("tuningConfigOptional", tuning_config)?;
        call.require(matches!(group_list_type, 0..=2), || {
            format!("groupListType {group_list_type}, limit 0 to 2")
        })?;
        if !matches!(split_item, 2 | 3) || group_type != 0 || act_type != 0 || group_list_type == 2 {
            call.unmodelled(&format!(
                "splitItem {split_item}, groupType {group_type}, groupListType {group_list_type}, actType {act_type}"
            ))?;
        }
        types(call, &grouped)?;
        shapes(call, &grouped)?;
        Plan::new(1 << 20, move || grouped.run())
    })
}

phase_two!(aclnnGroupedMatmulV5);

/// What goes with which result.
fn types(call: &Call, of: &Grouped) -> Result<(), Failure> {
    let Grouped { x, weight, bias, scale, tokens, list, out, .. } = of;
    call.element(x, &[Element::I8, Element::F16, Element::Bf16])?;
    call.element(weight, &[x.element])?;
    call.element(list, &[Element::I64])?;
    if x.element != Element::I8 {
        call.element(out, &[x.element])?;
        let unscaled = scale.is_none() && tokens.is_none();
        call.require(unscaled, || "scaleOptional, perTokenScaleOptional: for INT8 only".to_owned())?;
        return match bias {
            Some(_) => call.unmodelled("biasOptional with floats"),
            None => Ok(()),
        };
    }
    let scales: &[Element] = match out.element {
        Element::Bf16 => &[Element::F32, Element::Bf16],
        Element::F16 => &[Element::F32],
        Element::I32 => &[],
        Element::I8 => return call.unmodelled("out of INT8"),
        _ => return call.element(out, &[Element::Bf16, Element::F16, Element::I32]),
    };
    match scale {
        Some(scale) => call.element(scale, scales)?,
        None => call.require(out.element == Element::I32, || {
            format!("scaleOptional is null, {} needs it", out.element.name())
        })?,
    }
    if let Some(tokens) = tokens {
        call.element(tokens, &[Element::F32])?;
        let of_sums = out.element == Element::I32;
        call.require(!of_sums, || "perTokenScaleOptional: not with INT32".to_owned())?;
    }
    bias.as_ref().map_or(Ok(()), |bias| call.element(bias, &[Element::I32]))
}

fn shapes(call: &Call, of: &Grouped) -> Result<(), Failure> {
    call.rank(&of.x, 2..=2)?;
    call.rank(&of.weight, 3..=3)?;
    call.rank(&of.out, 2..=2)?;
    call.contiguous(&[&of.x, &of.out, &of.list])?;
    let (m, k) = (of.x.dims[0], of.x.dims[1]);
    let (groups, inner, n) = (of.weight.dims[0], of.weight.dims[1], of.weight.dims[2]);
    call.require(inner == k, || format!("weight: {inner} rows, x has {k} columns"))?;
    call.require((1..=GROUPS).contains(&groups), || format!("weight: {groups} groups, limit 1 to {GROUPS}"))?;
    // Of a transposed view the rows are what follows itself in memory.
    let last = if of.weight.strides[2] == 1 { n } else { inner };
    call.require(last.max(k) <= LAST_DIMENSION, || {
        format!("x, weight: a last dimension of {}, limit {LAST_DIMENSION}", last.max(k))
    })?;
    // vllm-ascend issue 9007: as many values as there are groups here, not in the model.
    call.shape(&of.list, &[groups])?;
    call.shape(&of.out, &[m, n])?;
    for (arg, shape) in [(&of.bias, vec![groups, n]), (&of.scale, vec![groups, n]), (&of.tokens, vec![m])] {
        if let Some(arg) = arg {
            call.shape(arg, &shape)?;
        }
    }
    Ok(())
}

impl Grouped {
    fn run(&self) -> Result<(), Failure> {
        let (m, k) = (self.x.dims[0], self.x.last());
        let n = self.out.last();
        let of = |arg: &Option<Arg>| arg.as_ref().map(|arg| arg.values()).transpose();
        let (bias, scale, tokens) = (of(&self.bias)?, of(&self.scale)?, of(&self.tokens)?);
        let mut first = 0;
        for (group, &value) in self.list.integers()?.iter().enumerate() {
            let count = if self.cumulative { value - first } else { value };
            if count < 0 || first + count > m {
                let kind = if self.cumulative { "sums" } else { "counts" };
                let text =
                    format!("groupListOptional[{group}] = {value} after {first} rows, limit {m}: {kind}");
                return Err(Failure::new(AICORE_EXCEPTION, text));
            }
            if count == 0 {
                continue;
            }
            let weight = self.weight.values_at(group * k * n, k * n)?;
            let column = |j: usize| weight.iter().skip(j).step_by(n).copied().collect::<Vec<_>>();
            let columns: Vec<_> = (0..n).map(column).collect();
            let rows = self.x.values_at(first as usize * k, count as usize * k)?;
            for (at, row) in rows.chunks(k).enumerate() {
                let place = first as usize + at;
                let mut results = Vec::with_capacity(n);
                for j in 0..n {
                    let mut sum: f64 =
                        row.iter().zip(&columns[j]).map(|(value, weight)| value * weight).sum();
                    sum += bias.as_ref().map_or(0.0, |bias| bias[group * n + j]);
                    sum *= scale.as_ref().map_or(1.0, |scale| scale[group * n + j]);
                    results.push(sum * tokens.as_ref().map_or(1.0, |tokens| tokens[place]));
                }
                self.out.write_at(place * n, &results)?;
            }
            first += count;
        }
        // Rows behind the last group stay as they are.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Session, assert_close};

    struct Case<'a> {
        session: &'a Session,
        weight: Handle,
        list: Vec<f64>,
        kind: i64,
        scale: Handle,
        out: Handle,
    }

    impl Case<'_> {
        /// Four rows [1, 2], [3, 4] and so on.
        fn run(&self) -> Result<Vec<f64>, (i32, String)> {
            let session = self.session;
            let x = session.tensor(&[4, 2], Element::I8, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
            let list = session.tensor(&[self.list.len() as i64], Element::I64, &self.list);
            let lists = [x, self.weight, self.out].map(|tensor| session.list(&[tensor]));
            let [x, weight, out] = lists;
            let scales = if self.scale == 0 { 0 } else { session.list(&[self.scale]) };
            let first = |size: Option<&mut u64>, executor: Option<&mut Handle>| {
                aclnnGroupedMatmulV5GetWorkspaceSize(
                    x, weight, 0, scales, 0, 0, 0, 0, list, 0, 0, 0, 2, 0, self.kind, 0, 0, out, 0, 0, size,
                    executor,
                )
            };
            session.run(first, aclnnGroupedMatmulV5).map(|()| session.read(self.out))
        }
    }

    /// Group 0 takes the sum, group 2 the difference times 10; nobody is in group 1.
    const WEIGHTS: [f64; 6] = [1.0, 1.0, 99.0, 99.0, -10.0, 10.0];

    fn case(session: &Session, element: Element) -> Case<'_> {
        Case {
            session,
            weight: session.tensor(&[3, 2, 1], Element::I8, &WEIGHTS),
            list: vec![1.0, 0.0, 2.0],
            kind: 1,
            scale: 0,
            out: session.tensor(&[4, 1], element, &[-1.0; 4]),
        }
    }

    #[test]
    fn groups_have_matrices_of_their_own_and_rows_behind_them_stay() {
        let session = Session::new();
        assert_eq!(case(&session, Element::I32).run().unwrap(), [3.0, 10.0, 10.0, -1.0]);
        let sums = Case { list: vec![1.0, 1.0, 3.0], kind: 0, ..case(&session, Element::I32) };
        assert_eq!(sums.run().unwrap(), [3.0, 10.0, 10.0, -1.0]);
        let scale = session.tensor(&[3, 1], Element::F32, &[0.5, 1.0, 0.25]);
        let scaled = Case { scale, ..case(&session, Element::Bf16) };
        assert_close(&scaled.run().unwrap(), &[1.5, 2.5, 2.5, -1.0], 1e-9);
    }

    #[test]
    fn transposed_weights_are_views() {
        let session = Session::new();
        let weight = session.tensor(
            &[3, 2, 2],
            Element::I8,
            &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        );
        let view = session.view(session.data(weight), &[3, 2, 2], Some(&[4, 1, 2]), Element::I8, &[12]);
        let case = Case {
            weight: view,
            out: session.tensor(&[4, 2], Element::I32, &[-1.0; 8]),
            ..case(&session, Element::I32)
        };
        // [1, 2] times [[1, 3], [2, 4]].
        assert_eq!(case.run().unwrap()[..2], [5.0, 11.0]);
    }

    #[test]
    fn lists_are_those_of_the_kind() {
        let session = Session::new();
        let (code, text) = Case { kind: 0, ..case(&session, Element::I32) }.run().unwrap_err();
        assert_eq!(code, 507_015);
        assert!(text.contains("groupListOptional[1] = 0 after 1 rows, limit 4: sums"), "{text}");
    }

    #[test]
    fn there_is_a_count_for_every_group() {
        let session = Session::new();
        let (code, text) = Case { list: vec![1.0; 4], ..case(&session, Element::I32) }.run().unwrap_err();
        assert_eq!(code, 161_002);
        assert!(text.contains("groupListOptional: shape [4], expected [3]"), "{text}");
    }
}
