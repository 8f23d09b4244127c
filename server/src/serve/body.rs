//! Reading a request's body, within its bounds.

use super::error::ApiError;
use super::limits::Limits;
use axum::body::BodyDataStream;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use std::time::Duration;
use tokio::time::timeout;
use tokio_stream::StreamExt;

/// What is read and thrown away of a body that is too large: a client that is still writing would not see the answer.
const DRAINED_BYTES: usize = 64 << 20;
/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// The whole body.
pub(super) async fn read(request: Request, limits: &Limits) -> Result<Vec<u8>, ApiError> {
    check_type(request.headers())?;
    let length = request.headers().get(header::CONTENT_LENGTH);
    let declared = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok()).unwrap_or_default();
    let waits_for_word = request.headers().contains_key(header::EXPECT);
    let mut data = request.into_body().into_data_stream();
    if declared > limits.body_bytes {
        if !waits_for_word {
            drain(&mut data).await;
        }
        return Err(too_large(limits.body_bytes));
    }
    match timeout(limits.read_timeout, collect(&mut data, limits.body_bytes, declared)).await {
        Ok(Err(error)) if error.status == StatusCode::PAYLOAD_TOO_LARGE => {
            drain(&mut data).await;
            Err(error)
        }
        Ok(outcome) => outcome,
        Err(_) => {
            let seconds = limits.read_timeout.as_secs_f64();
            let message = format!("the body did not arrive within {seconds} seconds");
            Err(ApiError::refused(StatusCode::REQUEST_TIMEOUT, "request_timeout", message))
        }
    }
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

async fn collect(data: &mut BodyDataStream, limit: usize, declared: usize) -> Result<Vec<u8>, ApiError> {
    // What was declared is within the limit; it is not taken at its word beyond a first allocation.
    let mut bytes = Vec::with_capacity(declared.min(64 << 10));
    while let Some(piece) = data.next().await {
        let piece = piece.map_err(|_| ApiError::invalid("the body ended before it was complete"))?;
        if bytes.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

async fn drain(data: &mut BodyDataStream) {
    let mut drained = 0;
    let rest = async {
        while let Some(Ok(piece)) = data.next().await {
            drained += piece.len();
            if drained > DRAINED_BYTES {
                break;
            }
        }
    };
    // Whatever is left after that, the connection closes on.
    _ = timeout(DRAIN_TIME, rest).await;
}

fn too_large(limit: usize) -> ApiError {
    let message = format!("the body has more than {limit} bytes");
    ApiError::refused(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
}
