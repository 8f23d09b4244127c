//! A request's body: read within its bounds, or got rid of.
//!
//! A response that leaves a part of the body unread is a trap: the connection has to be closed, while the client may
//! still be writing, or may send its next request there. So whatever nobody has read is read and thrown away, within
//! bounds, and only beyond them the response says that the connection ends.

use super::app::App;
use super::body_room::HeldBody;
use super::error::ApiError;
use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use tokio_stream::StreamExt;

/// What is thrown away of a body at most.
const DISCARDED_BYTES: usize = 64 << 20;
/// How long that may take.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// The body of the request at hand, or what is left of it.
#[derive(Clone)]
pub(super) struct Unread(Arc<Mutex<Rest>>);

enum Rest {
    Data(BodyDataStream),
    /// Read to its end.
    Nothing,
    /// It did not come.
    GivenUp,
}

impl Unread {
    fn take(&self) -> Rest {
        self.replace(Rest::Nothing)
    }

    fn replace(&self, rest: Rest) -> Rest {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), rest)
    }
}

/// Hands the body on as [`Unread`], and gets rid of what is left of it before the response is sent.
pub(super) async fn read_to_the_end(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let waits_for_word = parts.headers.contains_key(header::EXPECT);
    let unread = Unread(Arc::new(Mutex::new(Rest::Data(body.into_data_stream()))));
    parts.extensions.insert(unread.clone());
    let mut response = next.run(Request::from_parts(parts, Body::empty())).await;
    let is_over = match unread.take() {
        Rest::Nothing => true,
        Rest::GivenUp => false,
        // Who asked before sending is still waiting for leave.
        Rest::Data(_) if waits_for_word => false,
        Rest::Data(mut data) => discard(&mut data).await,
    };
    if !is_over {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether the end was reached.
async fn discard(data: &mut BodyDataStream) -> bool {
    let mut discarded = 0;
    let rest = async {
        while let Some(piece) = data.next().await {
            discarded += piece.map_or(DISCARDED_BYTES, |piece| piece.len());
            if discarded >= DISCARDED_BYTES {
                return false;
            }
        }
        true
    };
    timeout(DISCARD_TIME, rest).await.unwrap_or(false)
}

/// The whole body.
pub(super) async fn read(headers: &HeaderMap, unread: &Unread, app: &App) -> Result<HeldBody, ApiError> {
    let limits = &app.limits;
    check_type(headers)?;
    let length = headers.get(header::CONTENT_LENGTH);
    let declared = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok()).unwrap_or_default();
    if declared > limits.body_bytes {
        return Err(too_large(limits.body_bytes));
    }
    let body = app.body_room.empty();
    let Rest::Data(mut data) = unread.take() else { return Ok(body) };
    let Ok(outcome) = timeout(limits.read_timeout, collect(&mut data, limits.body_bytes, body)).await else {
        unread.replace(Rest::GivenUp);
        let seconds = limits.read_timeout.as_secs_f64();
        let message = format!("the body did not arrive within {seconds} seconds");
        return Err(ApiError::refused(StatusCode::REQUEST_TIMEOUT, "request_timeout", message));
    };
    if outcome.is_err() {
        unread.replace(Rest::Data(data));
    }
    outcome
}

/// Any other type would let a web page send requests here without asking its browser first.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" {
        return Ok(());
    }
    let message = "the body has to be JSON, with the header `Content-Type: application/json`";
    Err(ApiError::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message))
}

/// Adds what comes to `body`. The length that was declared is not taken at its word: only what is here takes room.
async fn collect(data: &mut BodyDataStream, limit: usize, mut body: HeldBody) -> Result<HeldBody, ApiError> {
    while let Some(piece) = data.next().await {
        let piece = piece.map_err(|_| ApiError::invalid("the body ended before it was complete"))?;
        if body.bytes().len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        body.push(&piece)?;
    }
    Ok(body)
}

fn too_large(limit: usize) -> ApiError {
    let message = format!("the body has more than {limit} bytes");
    ApiError::refused(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
}
