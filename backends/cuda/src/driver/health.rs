//! Whether a device still works.

use std::sync::atomic::{AtomicBool, Ordering};

use super::DriverError;

/// A device works until it is lost, and then never again.
#[derive(Debug, Default)]
pub struct Health {
    lost: AtomicBool,
}

impl Health {
    /// Of a device that works.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it works.
    ///
    /// # Errors
    /// [`DriverError::Lost`].
    pub fn check(&self) -> Result<(), DriverError> {
        if self.is_lost() { Err(DriverError::Lost) } else { Ok(()) }
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// From now on it is lost. True for the one who says so first.
    pub fn lose(&self) -> bool {
        !self.lost.swap(true, Ordering::AcqRel)
    }
}
