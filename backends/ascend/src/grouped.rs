//! Grouped products of INT8 rows and weights, by CANN's GroupedMatmul, with its scales and all after it in F32, as a layer has
//! them.
//!
//! Offsets are born on the device and never trusted, and CANN does not look at them: they are made ends that ascend and lie
//! within the rows, and each row's group is found by them, of F32 operators that are exact on whole numbers.

use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    grouped::{Grouped, GroupedArgs},
    linear::{Activations, Linear, LinearSpec},
};

use crate::{
    copy,
    device::Ascend,
    linear::{AscendPacked, Stack, gated, stack},
    room::{Room, bytes},
    runtime::{Elementwise, Operator},
    steps::{Steps, room_of},
    stream::AscendStream,
    support::{by, unsupported},
};

/// Beside a layer's own.
const OPERATORS: [Operator; 5] =
    [Operator::GroupedMatmul, Operator::Amax, Operator::Clamp, Operator::Embedding, Operator::SWhere];
/// F32 tells whole numbers apart up to here, and it counts rows.
const MOST_ROWS: u64 = 1 << 24;
/// Offsets are at most so many: as many as CANN's groups, and one.
const MOST_OFFSETS: usize = 1024;

impl Grouped for Ascend {
    fn grouped_supports(&self, spec: &LinearSpec) -> Support {
        if spec.activations.dtype() != DType::I8 {
            return Support::No(format!("rows of {:?}: only INT8", spec.activations));
        }
        // In F16 and BF16 a layer's scales are CANN's, and these would be ours: other bits than the same row has there.
        if !matches!(spec.output, DType::F32 | DType::I32) {
            return Support::No(format!("an output of {}: only F32 and I32", spec.output));
        }
        match (self.linear_supports(spec), by(self, &OPERATORS)) {
            (no @ Support::No(_), _) | (_, no @ Support::No(_)) => no,
            _ => Support::Composed("GroupedMatmul, Embedding, SWhere and elementwise operators in F32"),
        }
    }

    fn grouped_workspace(&self, packed: &AscendPacked, max_rows: usize) -> u64 {
        workspace(packed.as_ref(), max_rows)
    }

    fn grouped(&self, stream: &mut AscendStream, args: Checked<GroupedArgs<'_, Self>>) -> Result<()> {
        let GroupedArgs { x, weights, offsets, bias, out } = &*args;
        let [first, ..] = weights else { return Ok(()) };
        let spec = first.as_ref();
        self.grouped_supports(spec).require("grouped", self, spec)?;
        let Activations::Quantized(x) = x else {
            return Err(unsupported("grouped", "only INT8", spec));
        };
        // CANN refuses empty tensors.
        if out.shape().elements() == 0 {
            return Ok(());
        }
        let rows = out.dims()[0];
        let (got, limit) = (rows as u64, MOST_ROWS);
        if got > limit {
            return Err(Error::Limit { operator: "grouped", argument: "rows", got, limit });
        }
        let Stack { elements, scales } = stack(self, stream, weights)?;
        let mut room = Room::new(stream.scratch("grouped", workspace(spec, rows))?);
        let groups = Groups::find(stream, &mut room, offsets, rows)?;
        let wide = [rows, spec.weight_rows()];
        let sums = room.tensor("grouped", DType::I32, &wide)?;
        // CANN's document does not speak of rows with gaps.
        let q = if x.q.is_dense() {
            x.q.clone()
        } else {
            let q = room.tensor("grouped", DType::I8, x.q.dims())?;
            copy::elements(stream, x.q, &q)?;
            q
        };
        let tensors = [("x", &q), ("offsets", &groups.ends), ("out", &sums)];
        stream.run("grouped", &tensors, |cann| cann.grouped_matmul(&q, &elements, &groups.ends, &sums))?;
        if spec.output == DType::I32 {
            return groups.store(stream, &mut room, &sums, out);
        }
        let of_groups = room.tensor("grouped", DType::F32, &wide)?;
        let mut steps = Steps::new("grouped", &mut room, &sums, &wide)?;
        steps.widen(stream)?;
        stream.run("grouped", &[], |cann| cann.embedding(&scales, &groups.stacked, &of_groups))?;
        steps.mul(stream, "weights", &of_groups)?;
        steps.mul(stream, "scales", &x.scales.split_last(1)?)?;
        if let Some(bias) = bias {
            let table = [("bias", *bias)];
            stream.run("grouped", &table, |cann| cann.embedding(bias, &groups.own, &of_groups))?;
            steps.add(stream, "bias", 1.0, &of_groups)?;
        }
        let steps = gated(stream, &mut room, steps, spec, rows)?;
        groups.store(stream, &mut room, steps.now(), out)
    }
}

/// Sums, scales, results twice and a gate's twice; what stood there before; dense rows; and what groups take.
fn workspace(spec: &LinearSpec, max_rows: usize) -> u64 {
    let (wide, narrow) = ([max_rows, spec.weight_rows()], [max_rows, spec.out_features]);
    let (each, between) = ([max_rows, 1], [max_rows, MOST_OFFSETS]);
    let square = [MOST_OFFSETS, MOST_OFFSETS];
    let parts = [
        room_of(&wide).saturating_mul(2),
        room_of(&narrow),
        bytes(DType::F32, &narrow),
        bytes(DType::I8, &[max_rows, spec.in_features]),
        room_of(&between),
        room_of(&each).saturating_mul(7),
        room_of(&square).saturating_mul(2),
    ];
    parts.into_iter().fold(0, u64::saturating_add)
}

/// What offsets say of rows.
struct Groups {
    /// Where the rows before the first group end, and where each group ends: 64-bit integers in I32 `[groups + 1, 2]`.
    ends: Tensor<Ascend>,
    /// I32 `[rows]`: a row's place in a stack, 0 before the first group.
    stacked: Tensor<Ascend>,
    /// I32 `[rows]`: a row's group, or any.
    own: Tensor<Ascend>,
    /// U8 `[rows, 1]`: whether it belongs to one.
    mask: Tensor<Ascend>,
}

impl Groups {
    fn find(
        stream: &mut AscendStream,
        room: &mut Room,
        offsets: &Tensor<Ascend>,
        rows: usize,
    ) -> Result<Self> {
        let (count, one) = (offsets.dims()[0], stream.ones(1)?);
        let groups = (count - 1) as f32;
        // An end is the greatest offset so far.
        let within = Elementwise::Clamp(0.0, rows as f32);
        let mut ends = Steps::new("grouped", room, &offsets.split_last(1)?, &[count, 1])?;
        ends.widen(stream)?;
        ends.each(stream, within)?;
        let so_far = stream.triangle(count)?;
        let mut square = Steps::new("grouped", room, &ends.now().reshape(&[1, count])?, &[count, count])?;
        square.mul(stream, "offsets", &so_far)?;
        let spread = square.now().clone();
        ends.step(stream, &[("offsets", &spread)], |cann, _, out| cann.amax(&spread, &[1], out))?;
        let list = room.tensor("grouped", DType::I32, &[count, 2])?;
        let flat = ends.now().reshape(&[count])?;
        stream.run("grouped", &[], |cann| cann.cast_int64(&flat, &list))?;
        // How many ends a row is at or behind.
        let numbers = stream.numbers(rows.max(count))?;
        let (row, place) = (numbers.narrow(0, 0..rows)?.split_last(1)?, numbers.narrow(0, 0..count)?);
        let mut behind = Steps::new("grouped", room, &row, &[rows, count])?;
        behind.add(stream, "offsets", -1.0, &ends.now().reshape(&[1, count])?)?;
        behind.each(stream, Elementwise::Clamp(0.0, 1.0))?;
        behind.mul(stream, "offsets", &place)?;
        let mut number = Steps::new("grouped", room, behind.now(), &[rows, 1])?;
        number.step(stream, &[], |cann, x, out| cann.amax(x, &[1], out))?;
        let number = number.now().clone();
        let mut between = |stream: &mut AscendStream, less: f32, least: f32, most: f32| {
            let mut steps = Steps::new("grouped", room, &number, &[rows, 1])?;
            steps.add(stream, "offsets", -less, &one)?;
            steps.each(stream, Elementwise::Clamp(least, most))?;
            Ok::<_, Error>(steps)
        };
        let stacked = between(stream, 0.0, 0.0, groups)?;
        let own = between(stream, 1.0, 0.0, groups - 1.0)?;
        let beyond = between(stream, groups, 0.0, 1.0)?;
        let mut inside = between(stream, 0.0, 0.0, 1.0)?;
        inside.add(stream, "offsets", -1.0, beyond.now())?;
        let mut piece = |dtype| room.tensor("grouped", dtype, &[rows, 1]);
        let (stacked_ids, own_ids, mask) = (piece(DType::I32)?, piece(DType::I32)?, piece(DType::U8)?);
        stacked.store(stream, &stacked_ids)?;
        own.store(stream, &own_ids)?;
        let yes = inside.now().clone();
        stream.run("grouped", &[], |cann| cann.cast_bools(&yes, &mask))?;
        let (stacked, own) = (stacked_ids.reshape(&[rows])?, own_ids.reshape(&[rows])?);
        Ok(Groups { ends: list, stacked, own, mask })
    }

    /// Rows of a group to their places; what belongs to none stays as it was.
    fn store(
        &self,
        stream: &mut AscendStream,
        room: &mut Room,
        y: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Result<()> {
        let before = room.tensor("grouped", out.dtype(), out.dims())?;
        copy::elements(stream, out, &before)?;
        let tensors = [("x", y), ("out", out)];
        stream.run("grouped", &tensors, |cann| cann.select(&self.mask, [y, &before], out))
    }
}
