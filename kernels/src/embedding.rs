//! Embedding: rows of a table by token id, multiplied by a constant where the model has one.
//!
//! An id below 0 or beyond the table gives a row of zeros: ids may be born on the device, where nothing can be
//! refused, and are never trusted.

use crate::{Checked, Support, check::Check};
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
        let (table, scales) = match (&self.table, self.spec.table) {
            (EmbeddingTable::Float(table), TableFormat::Float(dtype)) => {
                CHECK.that(dtype.is_float(), "table", "a floating-point type", dtype)?;
                CHECK.rows("table", table, 2)?;
                CHECK.tensor("table", table, dtype, table.dims())?;
                (*table, None)
            }
            (EmbeddingTable::Int8PerRow { q, scales }, TableFormat::Int8PerRow) => {
                let vocabulary = CHECK.rows("table", q, 2)?;
                CHECK.tensor("table", q, DType::I8, q.dims())?;
                CHECK.tensor("scales", scales, DType::F32, &[vocabulary])?;
                (*q, Some(*scales))
            }
            (_, format) => return Err(CHECK.wrong("table", format!("{format:?}"), "another format")),
        };
        CHECK.tensor("out", self.out, self.spec.output, &[tokens, table.dims()[1]])?;
        CHECK.disjoint(
            "out",
            self.out,
            &[("table", Some(table)), ("scales", scales), ("ids", Some(self.ids))],
        )?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait Embedding: Device {
    /// Whether and how the backend runs `spec`.
    fn embedding_supports(&self, spec: &EmbeddingSpec) -> Support;

    /// Runs it.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn embedding(&self, stream: &mut Self::Stream, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()>;
}
