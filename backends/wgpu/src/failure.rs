//! What goes wrong behind a caller's back: a lost device, and errors that no call was waiting for.

use halite_hal::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// The first failure that nobody was told of yet, and whether the device is gone.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    untold: Option<String>,
    lost: Option<String>,
}

impl Failure {
    /// Hears of everything that happens to the device from now on.
    pub(crate) fn watch(device: &wgpu::Device) -> Self {
        let failure = Failure::default();
        let heard = failure.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| heard.note(error.to_string(), false)));
        let heard = failure.clone();
        device.set_device_lost_callback(move |reason, message| {
            // Somebody who destroys a device knows it.
            heard.note(
                format!("the device is lost ({reason:?}): {message}; make a new one with `Wgpu::rebuild`"),
                true,
            );
        });
        failure
    }

    fn note(&self, cause: String, lost: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lost {
            state.lost.get_or_insert_with(|| cause.clone());
        }
        state.untold.get_or_insert(cause);
    }

    /// The failure, once; of a lost device, every time.
    pub(crate) fn told(&self, device: &str) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cause = state.untold.take().or_else(|| state.lost.clone());
        cause.map_or(Ok(()), |cause| Err(Error::Device { device: device.to_owned(), cause }))
    }
}

/// Runs `work` and gives the error that the driver found in it, in words.
pub(crate) fn caught<T>(device: &wgpu::Device, work: impl FnOnce() -> T) -> std::result::Result<T, String> {
    let scopes = [wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation]
        .map(|filter| device.push_error_scope(filter));
    let result = work();
    // The last scope pushed is the first to end.
    let mut found = None;
    for scope in scopes.into_iter().rev() {
        if let Some(error) = pollster::block_on(scope.pop()) {
            found.get_or_insert(error.to_string());
        }
    }
    found.map_or(Ok(result), Err)
}
