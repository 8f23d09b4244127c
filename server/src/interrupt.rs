//! Ctrl-C.

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that Ctrl-C ended: 128 and the signal's number.
pub(crate) const EXIT_CODE: u8 = 130;

/// Whether Ctrl-C was pressed since [`Interrupt::catch`].
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From here on the first Ctrl-C is only noted, so that what was computed is not lost; the second one ends the
    /// program at once.
    pub(crate) fn catch() -> std::io::Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        // In this order: the one that ends the program must not see what the other notes of the same signal.
        flag::register_conditional_shutdown(SIGINT, EXIT_CODE.into(), pressed.clone())?;
        flag::register(SIGINT, pressed.clone())?;
        Ok(Self(pressed))
    }

    /// From here on Ctrl-C ends the program at once: nothing is lost.
    pub(crate) fn release(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// From here on the first Ctrl-C is only noted again.
    pub(crate) fn hold(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    pub(crate) fn pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
