//! What CANN answers when something is wrong.

use halite_hal::Error;

/// No memory, on the device or on the host.
const NO_MEMORY: [i32; 2] = [207_001, 207_015];
/// A wait came to the end of its time.
pub(super) const NOT_YET: i32 = 507_047;
/// The stream is being captured.
pub(super) const CAPTURED: i32 = 107_027;
/// The operator's package is not installed.
const NO_PACKAGE: i32 = 561_112;
/// Parameters, shapes or types that this release of an operator does not take, or has no kernel for.
const REFUSED: [i32; 3] = [161_002, 561_002, 561_003];
/// Codes of a device or a stream that broke: they are answered from then on.
const BROKEN: std::ops::Range<i32> = 507_000..508_000;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum RuntimeError {
    /// There is nothing to run on.
    #[error("{what}: {remedy}")]
    Missing { what: String, remedy: &'static str },
    /// This release of CANN lacks a function.
    #[error("this release of CANN has no {name}")]
    Function { name: &'static str },
    /// There is no room for an allocation.
    #[error("out of memory: {requested} bytes were asked for")]
    OutOfMemory { requested: u64 },
    /// CANN refused a call, or tells of an earlier failure.
    #[error("{call}: code {code}{}{message}", if message.is_empty() { "" } else { ": " })]
    Call { call: &'static str, code: i32, message: String },
    /// Bytes outside of an object.
    #[error("{what}: bytes {offset}..{offset}+{bytes} of {size}")]
    Range { what: &'static str, offset: u64, bytes: u64, size: u64 },
    /// The device broke, and said so.
    #[error("the device is lost since an earlier error: start the process again")]
    Lost,
}

impl RuntimeError {
    pub(super) fn no_memory(self, requested: u64) -> Self {
        match self {
            RuntimeError::Call { code, .. } if NO_MEMORY.contains(&code) => {
                RuntimeError::OutOfMemory { requested }
            }
            other => other,
        }
    }

    pub(crate) fn of_code(call: &'static str, code: i32, message: String) -> Self {
        RuntimeError::Call { call, code, message }
    }

    /// Whether every later call will fail too.
    pub(super) fn is_sticky(&self) -> bool {
        matches!(self, RuntimeError::Call { code, .. } if BROKEN.contains(code) && *code != NOT_YET)
    }

    /// Whether this release of CANN lacks what was called.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, RuntimeError::Function { .. } | RuntimeError::Call { code: NO_PACKAGE, .. })
    }

    /// Whether this release's operator does not take what it was planned with.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, RuntimeError::Call { code, .. } if REFUSED.contains(code))
    }

    /// The same, as the error of all devices.
    pub(crate) fn on(self, device: &str) -> Error {
        let device = device.to_owned();
        match self {
            RuntimeError::OutOfMemory { requested } => Error::OutOfMemory { device, requested },
            other => Error::Device { device, cause: other.to_string() },
        }
    }
}

/// A size of memory as CANN takes it; more than that is more than there is.
pub(super) fn size_of(bytes: Option<u64>, requested: u64) -> Result<usize, RuntimeError> {
    let size = bytes.filter(|&bytes| bytes <= i64::MAX as u64).and_then(|bytes| usize::try_from(bytes).ok());
    size.ok_or(RuntimeError::OutOfMemory { requested })
}

/// Checks that `bytes` from `offset` on lie in something of `size` bytes.
pub(super) fn check_range(
    what: &'static str,
    size: u64,
    offset: u64,
    bytes: u64,
) -> Result<(), RuntimeError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(()),
        _ => Err(RuntimeError::Range { what, offset, bytes, size }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_apart() {
        let call = |code| RuntimeError::of_code("aclrtMalloc", code, String::new());
        assert_eq!(call(207_001).no_memory(7), RuntimeError::OutOfMemory { requested: 7 });
        assert_eq!(call(107_000).no_memory(7), call(107_000));
        assert!(call(507_015).is_sticky() && call(507_035).is_sticky());
        assert!(!call(NOT_YET).is_sticky() && call(561_112).is_absence());
        assert!(!call(107_030).is_sticky() && !call(161_002).is_sticky());
        assert!(call(561_002).is_refusal() && call(161_002).is_refusal() && !call(561_112).is_refusal());
        assert_eq!(call(107_000).to_string(), "aclrtMalloc: code 107000");
        let told = RuntimeError::of_code("aclrtMalloc", 1, "EZ9999: why".into());
        assert_eq!(told.to_string(), "aclrtMalloc: code 1: EZ9999: why");
    }

    #[test]
    fn ranges_end_within() {
        assert!(check_range("memory", 8, 8, 0).is_ok() && check_range("memory", 8, 0, 8).is_ok());
        assert!(check_range("memory", 8, 1, 8).is_err() && check_range("memory", 8, u64::MAX, 2).is_err());
    }
}
