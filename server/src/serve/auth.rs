//! The key that clients must show, if there is one.

use super::app::App;
use super::error::ApiError;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Lets pass what shows the key, and questions after the server's health.
pub(super) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match app.api_key.as_deref() {
        Some(key) if request.uri().path() != "/health" && !shows(request.headers(), key) => refusal(),
        _ => next.run(request).await,
    }
}

fn refusal() -> Response {
    let message = "the API key is missing or wrong; send it as `Authorization: Bearer KEY`";
    let mut response =
        ApiError::refused(StatusCode::UNAUTHORIZED, "invalid_api_key", message).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    response
}

fn shows(headers: &HeaderMap, key: &str) -> bool {
    let value = headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let (scheme, shown) = value.split_at_checked(b"Bearer ".len()).unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"Bearer ") && same(shown.trim_ascii(), key.as_bytes())
}

/// Compares without telling by the time it takes how much of the key was right; its length may be told.
fn same(shown: &[u8], key: &[u8]) -> bool {
    shown.ct_eq(key).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_is_the_key() {
        assert!(same(b"secret", b"secret"));
        for shown in [&b""[..], b"s", b"secre", b"secret2", b"Secret", b"secretsecret", b"terces"] {
            assert!(!same(shown, b"secret"), "{shown:?}");
        }
    }

    #[test]
    fn the_scheme_is_bearer() {
        let shows = |value: &str| {
            shows(&HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]), "k1")
        };
        assert!(shows("Bearer k1") && shows("bearer k1"));
        assert!(!shows("k1") && !shows("Basic k1") && !shows("Bearer") && !shows("Bearer k2"));
        assert!(!super::shows(&HeaderMap::new(), "k1"));
    }
}
