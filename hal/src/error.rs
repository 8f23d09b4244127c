//! The one error type of devices and operators.

use crate::DType;

/// `Result` with Halite's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, named so that a person can act: operator, argument, what was expected and what came.
///
/// Every backend gives the same error for the same bad arguments, because arguments are checked once, in
/// `halite-kernels`, before a backend sees them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument does not fit its operator.
    #[error("{operator}: argument `{argument}`: expected {expected}, got {got}")]
    Argument {
        /// The operator, by its family's name.
        operator: &'static str,
        /// The argument's field name.
        argument: &'static str,
        /// What would have been right.
        expected: String,
        /// What was passed.
        got: String,
    },
    /// A size is beyond what the operator or the plan can serve.
    #[error("{operator}: `{argument}` is {got}, beyond the limit of {limit}")]
    Limit {
        /// The operator, by its family's name.
        operator: &'static str,
        /// The argument's field name, or the derived quantity.
        argument: &'static str,
        /// The value asked for.
        got: u64,
        /// The largest value that works.
        limit: u64,
    },
    /// The backend cannot run this specification; `…_supports` would have said so.
    #[error("{operator} on {backend}: not supported: {reason} (asked for {spec})")]
    Unsupported {
        /// The operator, by its family's name.
        operator: &'static str,
        /// The backend.
        backend: String,
        /// Why not.
        reason: String,
        /// The specification, as its `Debug` text.
        spec: String,
    },
    /// Packed weights, or saved ones, belong to another layout or specification.
    #[error("{operator}: packed weights do not fit: expected {expected}, got {got}")]
    Layout {
        /// The operator, by its family's name.
        operator: &'static str,
        /// The layout or specification that was wanted.
        expected: String,
        /// The one that was found.
        got: String,
    },
    /// The device has no room for an allocation.
    #[error("{device}: out of memory: {requested} bytes were asked for; use a smaller cache, batch or model")]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// Bytes asked for.
        requested: u64,
    },
    /// Two pieces of work touch the same bytes at the same time and one of them writes.
    #[error(
        "{device}: bytes {start}..{end} of a buffer are in use by other work; order the two by one stream or an event"
    )]
    Busy {
        /// The device's name.
        device: String,
        /// First byte of the range.
        start: u64,
        /// The byte after the range.
        end: u64,
    },
    /// A rank has left its communicator: a call that needs all of them cannot be done any more.
    #[error(
        "{operator}: rank {rank} of {ranks} has left the communicator; make a new one for those that remain"
    )]
    RankLost {
        /// The operator, by its family's name.
        operator: &'static str,
        /// The rank that left first.
        rank: usize,
        /// Ranks of the communicator.
        ranks: usize,
    },
    /// Host data of one type was paired with a tensor of another.
    #[error("expected host data of {expected}, got {got}")]
    DTypeMismatch {
        /// The tensor's type.
        expected: DType,
        /// The host data's type.
        got: DType,
    },
    /// The device failed; sticky failures appear once, at submit or wait, with their cause.
    #[error("{device}: {cause}")]
    Device {
        /// The device's name.
        device: String,
        /// The driver's or the backend's own message.
        cause: String,
    },
}
