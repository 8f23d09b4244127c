//! What a driver answers when something is wrong.

use halite_hal::Error;

use super::LaunchShape;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// There is nothing to run on.
    #[error("{what}: {remedy}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// There is no room for an allocation.
    #[error("out of memory: {requested} bytes were asked for")]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
    },
    /// The driver refused a call, or tells of an earlier failure.
    #[error("{call}: {code}: {meaning}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// Its code.
        code: String,
        /// What it says of that code.
        meaning: String,
        /// Whether every later call will fail too.
        sticky: bool,
    },
    /// A launch failed.
    #[error("kernel `{kernel}`, {shape}: {cause}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// How it was launched.
        shape: LaunchShape,
        /// Why it failed.
        cause: Box<DriverError>,
    },
    /// A kernel did what it must not.
    #[error("{report}")]
    Kernel {
        /// What it did, where and when.
        report: String,
    },
    /// A launch asks for more than there is.
    #[error("{what} is {got}, beyond the limit of {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much was asked for.
        got: u64,
        /// The most that works.
        limit: u64,
    },
    /// The parameters are not those that the kernel declares.
    #[error("it takes parameters at (offset, size) {expected:?}, got {got:?}")]
    Parameters {
        /// Offset and size in bytes of each that it declares.
        expected: Vec<(usize, usize)>,
        /// Offset and size of each that was given.
        got: Vec<(usize, usize)>,
    },
    /// Bytes outside of an object.
    #[error("{what}: bytes {offset}..{offset}+{bytes} of {size}")]
    Range {
        /// The object.
        what: &'static str,
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// How many it has.
        size: u64,
    },
    /// Code that this driver does not run.
    #[error("{program}: {reason}")]
    Image {
        /// What the code was made of.
        program: String,
        /// Why not.
        reason: String,
    },
    /// An object of another driver, or of a device before it was rebuilt.
    #[error("this {what} belongs to another device: make it anew on this one")]
    Foreign {
        /// What object.
        what: &'static str,
    },
    /// The device broke, and said so.
    #[error("the device is lost since an earlier error: make another with `rebuild`")]
    Lost,
}

impl DriverError {
    /// Whether every later call will fail too.
    pub fn is_sticky(&self) -> bool {
        match self {
            DriverError::Call { sticky, .. } => *sticky,
            DriverError::Launch { cause, .. } => cause.is_sticky(),
            DriverError::Kernel { .. } => true,
            _ => false,
        }
    }

    /// The same, as the error of all devices.
    pub fn on(self, device: &str) -> Error {
        let device = device.to_owned();
        match self {
            DriverError::OutOfMemory { requested } => Error::OutOfMemory { device, requested },
            other => Error::Device { device, cause: other.to_string() },
        }
    }
}
