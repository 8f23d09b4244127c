//! Embeddings, by CANN's Embedding of ids that were made rows, and its SWhere, which puts zeros where they were none. Pooling and
//! L2 norms are not begun, so there are no plans.

use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    embedding::{
        Embedding, EmbeddingArgs, EmbeddingSpec, EmbeddingTable, L2NormalizeArgs, L2NormalizeSpec, PoolArgs,
        PoolingLimits, PoolingPlan, PoolingSpec, PoolingStep, TableFormat,
    },
};

use crate::{
    device::Ascend,
    room::{Room, bytes},
    runtime::{Elementwise, Operator},
    steps::{Steps, room_of},
    stream::AscendStream,
    support::{by, is_float, not_yet, refused, unsupported},
};

/// A plan; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendPoolingPlan {}

impl PoolingPlan for AscendPoolingPlan {
    fn spec(&self) -> &PoolingSpec {
        match *self {}
    }

    fn max_sequences(&self) -> usize {
        match *self {}
    }

    fn max_tokens(&self) -> usize {
        match *self {}
    }

    fn sequences(&self) -> usize {
        match *self {}
    }

    fn tokens(&self) -> usize {
        match *self {}
    }
}

const OPERATORS: [Operator; 8] = [
    Operator::Clamp,
    Operator::EqTensor,
    Operator::Embedding,
    Operator::Cast,
    Operator::Mul,
    Operator::Muls,
    Operator::SWhere,
    Operator::InplaceCopy,
];

/// Rows in up to four types, and three numbers for each.
fn aside(dims: [usize; 2]) -> u64 {
    let rows = room_of(&dims).saturating_mul(2);
    rows.saturating_add(bytes(DType::F32, &dims[..1]).saturating_mul(3))
}

impl Embedding for Ascend {
    type PoolingPlan = AscendPoolingPlan;

    fn embedding_supports(&self, spec: &EmbeddingSpec) -> Support {
        let table = match spec.table {
            TableFormat::Float(dtype) => is_float(dtype),
            TableFormat::Int8PerRow => true,
            _ => false,
        };
        if !table || !is_float(spec.output) {
            let formats = (spec.table, spec.output);
            return Support::No(format!("{formats:?}: only tables of floats and of INT8 by rows, to floats"));
        }
        match by(self, &OPERATORS) {
            Support::Native => Support::Composed("Clamp, EqTensor, Embedding, Cast, Mul, Muls and SWhere"),
            no => no,
        }
    }

    fn embedding(&self, stream: &mut AscendStream, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()> {
        self.embedding_supports(args.spec).require("embedding", self, args.spec)?;
        let EmbeddingArgs { spec, table, ids, out } = &*args;
        let (rows, scales) = match table {
            EmbeddingTable::Float(rows) => (*rows, None),
            EmbeddingTable::Int8PerRow { q, scales } => (*q, Some(*scales)),
            other => return Err(unsupported("embedding", "this form of table", other)),
        };
        // CANN refuses empty tensors.
        if out.shape().elements() == 0 {
            return Ok(());
        }
        let (dims, each) = ([out.dims()[0], out.dims()[1]], [out.dims()[0], 1]);
        let mut room = Room::new(stream.aside(aside(dims))?);
        let Some(last) = rows.dims()[0].checked_sub(1) else {
            let ones = stream.ones(out.shape().elements())?.reshape(&dims)?;
            let mut zeros = Steps::new("embedding", &mut room, &ones, &dims)?;
            zeros.each(stream, Elementwise::Muls(0.0))?;
            return zeros.store(stream, out);
        };
        // Ids are never trusted, and CANN does not look at them.
        let limits = [0, i32::try_from(last).unwrap_or(i32::MAX)];
        let known = room.tensor("embedding", DType::I32, &each[..1])?;
        let mask = room.tensor("embedding", DType::U8, &each[..1])?;
        stream.run("embedding", &[("ids", ids)], |cann| cann.clamp_ints(ids, limits, &known))?;
        stream.run("embedding", &[("ids", ids)], |cann| cann.equal(ids, &known, &mask))?;
        let mask = mask.split_last(1)?;
        let taken = room.tensor("embedding", rows.dtype(), &dims)?;
        stream.run("embedding", &[("table", rows)], |cann| cann.embedding(rows, &known, &taken))?;
        let mut steps = Steps::new("embedding", &mut room, &taken, &dims)?;
        if rows.dtype() != spec.output || spec.scale != 1.0 {
            steps.widen(stream)?;
            if let Some(scales) = scales {
                let (scales, own) = (scales.split_last(1)?, room.tensor("embedding", DType::F32, &each)?);
                let table = [("scales", &scales)];
                stream.run("embedding", &table, |cann| cann.embedding(&scales, &known, &own))?;
                steps.mul(stream, "scales", &own)?;
            }
            if spec.scale != 1.0 {
                steps.each(stream, Elementwise::Muls(spec.scale))?;
            }
        }
        let y = if steps.now().dtype() == spec.output {
            steps.now().clone()
        } else {
            let y = room.tensor("embedding", spec.output, &dims)?;
            steps.store(stream, &y)?;
            y
        };
        let zero = stream.zero(spec.output)?;
        stream.run("embedding", &[("out", out)], |cann| cann.select(&mask, [&y, &zero], out))
    }

    fn pooling_supports(&self, _: &PoolingSpec) -> Support {
        not_yet()
    }

    fn pooling_plan(
        &self,
        spec: &PoolingSpec,
        _max_sequences: usize,
        _max_tokens: usize,
    ) -> Result<AscendPoolingPlan> {
        refused("pool", spec)
    }

    fn pooling_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendPoolingPlan,
        _: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn pool(&self, _: &mut AscendStream, args: Checked<PoolArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn l2_normalize_supports(&self, _: &L2NormalizeSpec) -> Support {
        not_yet()
    }

    fn l2_normalize(&self, _: &mut AscendStream, args: Checked<L2NormalizeArgs<'_, Self>>) -> Result<()> {
        refused("l2_normalize", args.spec)
    }
}
