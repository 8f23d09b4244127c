//! What goes wrong behind a caller's back: a lost device, and errors that no call was waiting for.

use crate::device::NAME;
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
            heard.note(
                format!("the device is lost ({reason:?}): {message}; make a new one with `Wgpu::rebuild`"),
                true,
            );
        });
        failure
    }

    pub(crate) fn note(&self, cause: String, lost: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lost {
            state.lost.get_or_insert_with(|| cause.clone());
        }
        state.untold.get_or_insert(cause);
    }

    /// The failure, once; of a lost device, every time.
    pub(crate) fn told(&self) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = state.untold.take();
        // Whatever else went wrong, it is the loss that has a way out.
        let cause = state.lost.clone().or(untold);
        cause.map_or(Ok(()), |cause| Err(Error::Device { device: NAME.to_owned(), cause }))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use halite_hal::{Device, Event, Pending, Stream, Tensor};

    /// The device's error.
    fn said<T>(result: Result<T>) -> String {
        match result {
            Err(error @ Error::Device { .. }) => error.to_string(),
            Err(error) => panic!("an error of another kind: {error}"),
            Ok(_) => panic!("nobody was told"),
        }
    }

    #[test]
    fn a_lost_device_is_told_of_with_the_way_out_and_made_anew() -> Result<()> {
        let Some(gpu) = testing::gpu("a lost device") else { return Ok(()) };
        let mut stream = gpu.stream()?;
        let x = Tensor::from_slice(&mut stream, &[1.0f32, 2.0], &[2])?;
        let event = stream.submit()?;
        event.wait()?;
        gpu.raw().destroy();
        // Whatever a caller does next: the first that hands over work or waits for it is told, and so is the second.
        for _ in 0..2 {
            let text = said(stream.submit().and_then(|event| event.wait()));
            assert!(text.contains("lost") && text.contains("Wgpu::rebuild"), "{text}");
        }
        assert!(said(x.to_vec::<f32>(&mut stream)).contains("Wgpu::rebuild"));
        said(Tensor::from_slice(&mut stream, &[3.0f32], &[1]).and_then(|x| x.to_vec::<f32>(&mut stream)));
        let large = vec![0u8; 4 << 20];
        said(
            Tensor::from_slice(&mut stream, &large, &[large.len()]).and_then(|x| stream.download(&x)?.wait()),
        );
        // A column, which a kernel gathers.
        let column = x.split_last(1)?;
        said(column.narrow(0, 1..2)?.to_vec::<f32>(&mut stream));
        drop(stream);

        let gpu = gpu.rebuild()?;
        let mut stream = gpu.stream()?;
        let x = Tensor::from_slice(&mut stream, &[1.0f32, 2.0], &[2])?;
        assert_eq!(x.to_vec::<f32>(&mut stream)?, [1.0, 2.0]);
        Ok(())
    }

    #[test]
    fn an_error_that_no_call_waits_for_is_told_once() {
        let failure = Failure::default();
        failure.note("first".to_owned(), false);
        failure.note("second".to_owned(), false);
        assert!(said(failure.told()).contains("first"));
        assert_eq!(failure.told(), Ok(()));
        failure.note("gone".to_owned(), true);
        assert_eq!(said(failure.told()), said(failure.told()));
        // What follows from the loss has no way out, and the loss has.
        failure.note("invalid".to_owned(), false);
        assert!(said(failure.told()).contains("gone"));
    }

    #[test]
    fn a_stream_that_goes_leaves_the_error_to_the_next_call() -> Result<()> {
        let Some(gpu) = testing::gpu("an error and a stream that goes") else { return Ok(()) };
        let stream = gpu.stream()?;
        gpu.failure().note("meanwhile".to_owned(), false);
        drop(stream);
        assert!(said(gpu.stream()?.submit()).contains("meanwhile"));
        Ok(())
    }

    #[test]
    fn what_the_driver_refuses_is_caught_where_it_happens() {
        let Some(gpu) = testing::gpu("caught errors") else { return };
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size: 4,
            // Memory that the host reads and writes both.
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE,
            mapped_at_creation: false,
        };
        let refused = caught(gpu.raw(), || gpu.raw().create_buffer(&descriptor));
        assert!(refused.unwrap_err().contains("MAP_READ"));
        assert_eq!(gpu.told(), Ok(()));
    }
}
