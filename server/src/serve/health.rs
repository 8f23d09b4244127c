//! Status and load: what every connection may know about the engine without asking it.

use super::error::ApiError;
use halite_engine::Engine;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// Where the server stands. It only ever moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Status {
    /// The model is on its way.
    Loading,
    /// Requests are served.
    Ready,
    /// Running requests are finished, new ones refused.
    Stopping,
    /// The engine's thread ended when it should not have.
    Failed,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Ready => "ok",
            Self::Stopping => "stopping",
            Self::Failed => "failed",
        }
    }

    /// Why a request cannot be taken now.
    pub(super) fn check(self) -> Result<(), ApiError> {
        match self {
            Self::Ready => Ok(()),
            Self::Loading => Err(ApiError::unavailable("loading", "the model is still being loaded")),
            Self::Stopping => Err(ApiError::stopping()),
            Self::Failed => Err(ApiError::engine_gone()),
        }
    }
}

/// The engine's load, as of its last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) running: usize,
    pub(super) waiting: usize,
    pub(super) used_blocks: usize,
    pub(super) cached_blocks: usize,
    pub(super) all_blocks: usize,
}

/// Written by the engine's thread, read by everybody.
#[derive(Debug)]
pub(super) struct Health {
    status: AtomicU8,
    load: Mutex<Load>,
}

impl Health {
    pub(super) fn new() -> Self {
        Self { status: AtomicU8::new(Status::Loading as u8), load: Mutex::default() }
    }

    pub(super) fn status(&self) -> Status {
        match self.status.load(Ordering::Acquire) {
            0 => Status::Loading,
            1 => Status::Ready,
            2 => Status::Stopping,
            _ => Status::Failed,
        }
    }

    /// Moves on to `status`; what is further along stays.
    pub(super) fn advance(&self, status: Status) {
        self.status.fetch_max(status as u8, Ordering::AcqRel);
    }

    pub(super) fn load(&self) -> Load {
        *self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn publish(&self, engine: &Engine) {
        let blocks = engine.blocks();
        let load = Load {
            running: engine.running(),
            waiting: engine.waiting(),
            used_blocks: blocks.used,
            cached_blocks: blocks.cached,
            all_blocks: blocks.all,
        };
        *self.load.lock().unwrap_or_else(PoisonError::into_inner) = load;
    }
}
