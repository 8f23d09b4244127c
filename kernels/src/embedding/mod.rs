//! Embedding: rows of a table by token id, multiplied by a constant where the model has one; and what embedding models do
//! at their other end, [pooling](PoolArgs) and [L2 normalising](L2NormalizeArgs).
//!
//! An id below 0 or beyond the table gives a row of zeros: ids may be born on the device, where nothing can be
//! refused, and are never trusted.

mod l2_normalize;
mod pooling;

pub use l2_normalize::{L2NormalizeArgs, L2NormalizeSpec, MIN_EPS};
pub use pooling::{PoolArgs, Pooling, PoolingLimits, PoolingPlan, PoolingSpec, PoolingStep};

use crate::{
    Checked, Support,
    check::{Check, Named},
    linear::{GROUP_STEP, WeightFormat},
};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("embedding");

/// How the table is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableFormat {
    /// Elements of a floating-point type.
    Float(DType),
    /// INT8 with one F32 scale a row: `row = q · scale`.
    Int8PerRow,
    /// 4 bits with one F32 scale a group of a row's columns: `row[c] = (code[c] - 8) · scale[c / group_size]`.
    Int4PerGroup {
        /// Columns of a group: a multiple of [`GROUP_STEP`].
        group_size: usize,
    },
    /// A GGUF file's blocks; see [`blocks`](crate::linear::blocks).
    Q4_0,
    /// A GGUF file's blocks; see [`blocks`](crate::linear::blocks).
    Q4_1,
    /// A GGUF file's blocks; see [`blocks`](crate::linear::blocks).
    Q4K,
}

impl TableFormat {
    /// The name that linear layers have for the blocks of a file's format; none of others.
    pub fn blocks(self) -> Option<WeightFormat> {
        match self {
            TableFormat::Q4_0 => Some(WeightFormat::Q4_0),
            TableFormat::Q4_1 => Some(WeightFormat::Q4_1),
            TableFormat::Q4K => Some(WeightFormat::Q4K),
            _ => None,
        }
    }
}

/// Which table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EmbeddingSpec {
    /// How the table is stored.
    pub table: TableFormat,
    /// Factor of every row (Gemma: √hidden); finite. 1 leaves the rows' bits as they are.
    pub scale: f32,
    /// Type of the output.
    pub output: DType,
}

impl EmbeddingSpec {
    /// A table of this format, to F32, as it is.
    pub fn new(table: TableFormat) -> Self {
        EmbeddingSpec { table, scale: 1.0, output: DType::F32 }
    }

    /// Another factor of the rows.
    pub fn with_scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }

    /// Another output type.
    pub fn with_output(mut self, output: DType) -> Self {
        self.output = output;
        self
    }
}

/// The table's tensors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EmbeddingTable<'a, D: Device> {
    /// `[vocabulary, hidden]` of a floating-point type.
    Float(&'a Tensor<D>),
    /// INT8 per row.
    Int8PerRow {
        /// I8 `[vocabulary, hidden]`.
        q: &'a Tensor<D>,
        /// F32 `[vocabulary]`.
        scales: &'a Tensor<D>,
    },
    /// 4 bits per group.
    Int4PerGroup {
        /// U8 `[vocabulary, ceil(hidden / 2)]`: column `2i` in the low half of byte `i`, `2i + 1` in its high half.
        codes: &'a Tensor<D>,
        /// F32 `[vocabulary, ceil(hidden / group_size)]`.
        scales: &'a Tensor<D>,
    },
    /// U8 `[vocabulary, bytes of a row]`: a file's blocks.
    Blocks(&'a Tensor<D>),
}

/// One call: `out[t] = table[ids[t]] · scale`, the row widened or dequantised to F32 first.
#[derive(Clone, Debug)]
pub struct EmbeddingArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a EmbeddingSpec,
    /// The table.
    pub table: EmbeddingTable<'a, D>,
    /// I32 `[tokens]`.
    pub ids: &'a Tensor<D>,
    /// `[tokens, hidden]` of the spec's output type.
    pub out: &'a Tensor<D>,
}

impl<D: Device> EmbeddingArgs<'_, D> {
    /// Checks shapes, types and the factor.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        CHECK.that(self.spec.scale.is_finite(), "scale", "a finite number", self.spec.scale)?;
        let tokens = CHECK.rows("ids", self.ids, 1)?;
        CHECK.tensor("ids", self.ids, DType::I32, &[tokens])?;
        CHECK.rows("out", self.out, 2)?;
        let hidden = self.out.dims()[1];
        CHECK.tensor("out", self.out, self.spec.output, &[tokens, hidden])?;
        let tables = self.table.check(self.spec.table, hidden)?;
        CHECK.disjoint("out", self.out, &tables)?;
        CHECK.disjoint("out", self.out, &[("ids", Some(self.ids))])?;
        Ok(Checked::new(self))
    }
}

impl<'a, D: Device> EmbeddingTable<'a, D> {
    /// Checks against the format for rows of `hidden` columns, and gives all tensors by name.
    fn check(&self, format: TableFormat, hidden: usize) -> Result<[Named<'a, D>; 2]> {
        let (table, dtype, columns, scales) = match (self, format) {
            (&EmbeddingTable::Float(table), TableFormat::Float(dtype)) => {
                CHECK.that(dtype.is_float(), "table", "a floating-point type", dtype)?;
                (table, dtype, hidden, None)
            }
            (&EmbeddingTable::Int8PerRow { q, scales }, TableFormat::Int8PerRow) => {
                (q, DType::I8, hidden, Some((scales, None)))
            }
            (&EmbeddingTable::Int4PerGroup { codes, scales }, TableFormat::Int4PerGroup { group_size }) => {
                let whole = group_size > 0 && group_size.is_multiple_of(GROUP_STEP);
                CHECK.that(whole, "group_size", format!("a multiple of {GROUP_STEP}"), group_size)?;
                (codes, DType::U8, hidden.div_ceil(2), Some((scales, Some(hidden.div_ceil(group_size)))))
            }
            (&EmbeddingTable::Blocks(table), format)
                if let Some(block) = format.blocks().and_then(WeightFormat::block) =>
            {
                let whole = hidden.is_multiple_of(block.values);
                CHECK.that(whole, "out", format!("a multiple of {} columns", block.values), hidden)?;
                (table, DType::U8, hidden / block.values * block.bytes, None)
            }
            (_, format) => return Err(CHECK.wrong("table", format!("{format:?}"), "another format")),
        };
        let vocabulary = CHECK.rows("table", table, 2)?;
        CHECK.tensor("table", table, dtype, &[vocabulary, columns])?;
        if let Some((scales, groups)) = scales {
            let dims: Vec<usize> = [vocabulary].into_iter().chain(groups).collect();
            CHECK.tensor("scales", scales, DType::F32, &dims)?;
        }
        Ok([("table", Some(table)), ("scales", scales.map(|(scales, _)| scales))])
    }
}

/// The family's trait.
pub trait Embedding: Device {
    /// The sequences of a step, at stable addresses.
    type PoolingPlan: PoolingPlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`.
    fn embedding_supports(&self, spec: &EmbeddingSpec) -> Support;

    /// Runs it.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn embedding(&self, stream: &mut Self::Stream, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()>;

    /// Whether and how the backend pools by `spec`.
    fn pooling_supports(&self, spec: &PoolingSpec) -> Support;

    /// Makes room, once, for steps of up to `max_sequences` sequences and `max_tokens` tokens in all.
    ///
    /// # Errors
    /// An unsupported spec, or no memory.
    fn pooling_plan(
        &self,
        spec: &PoolingSpec,
        max_sequences: usize,
        max_tokens: usize,
    ) -> Result<Self::PoolingPlan>;

    /// Uploads a step's sequences: once a step.
    ///
    /// # Errors
    /// The device's.
    fn pooling_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::PoolingPlan,
        step: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()>;

    /// Pools each sequence's rows.
    ///
    /// # Errors
    /// The device's.
    fn pool(&self, stream: &mut Self::Stream, args: Checked<PoolArgs<'_, Self>>) -> Result<()>;

    /// Whether and how the backend normalises by `spec`.
    fn l2_normalize_supports(&self, spec: &L2NormalizeSpec) -> Support;

    /// Normalises rows.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn l2_normalize(&self, stream: &mut Self::Stream, args: Checked<L2NormalizeArgs<'_, Self>>)
    -> Result<()>;
}
