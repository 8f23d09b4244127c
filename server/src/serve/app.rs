//! What all requests share.

use super::body_room::BodyRoom;
use super::error::ApiError;
use super::health::Health;
use super::job::EngineClient;
use super::limits::Limits;
use super::prompt::Model;
use std::sync::{Arc, OnceLock};

/// One for all connections.
#[derive(Debug)]
pub(super) struct App {
    pub(super) health: Arc<Health>,
    /// There once the model is loaded.
    pub(super) serving: OnceLock<Serving>,
    pub(super) api_key: Option<String>,
    pub(super) limits: Limits,
    pub(super) body_room: BodyRoom,
}

/// A loaded model and the way to its engine.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    pub(super) model: Arc<Model>,
    pub(super) engine: EngineClient,
}

impl App {
    /// The model, if requests are served now.
    pub(super) fn serving(&self) -> Result<&Serving, ApiError> {
        self.health.status().check()?;
        self.serving.get().ok_or_else(ApiError::engine_gone)
    }
}
