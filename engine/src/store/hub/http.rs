//! Requests to the hub: who gets the token, how long to wait, which redirects are followed.
//!
//! hf-hub's own requests (0.5) send the token to whatever host the hub redirects to, wait for ever for a host that
//! falls silent, and do not look whether a range that was asked for is what came. So they are made here.

use std::time::Duration;

use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

use super::HubError;

/// The hub redirects to a store of files, and renamed repositories to their new name.
const MAX_REDIRECTS: usize = 5;

/// Makes requests.
pub(super) struct Http {
    agent: Agent,
    endpoint: Endpoint,
    token: Option<String>,
}

/// Where the hub is, as `https://host[:port]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint(String);

/// What the hub and, behind a redirect, its store of files answered.
pub(super) struct Answer {
    /// The hub's own headers.
    pub(super) headers: HeaderMap,
    /// The last answer.
    pub(super) response: Response<Body>,
}

impl Answer {
    /// A header of the hub's own answer.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }
}

impl Endpoint {
    pub(super) fn new(url: &str) -> Result<Self, HubError> {
        let trimmed = url.trim().trim_end_matches('/');
        match origin(trimmed) {
            Some(_) if !trimmed.contains(['?', '#']) => Ok(Self(trimmed.to_owned())),
            _ => Err(HubError::BadSetting {
                what: "HF_ENDPOINT",
                value: url.to_owned(),
                expected: "expected a URL such as https://huggingface.co",
            }),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.0
    }

    /// True where no proxy can reach it for us.
    fn is_here(&self) -> bool {
        let authority = origin(&self.0).map(|(_, authority)| authority).unwrap_or_default();
        let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    }
}

impl Http {
    /// `silence` is the longest wait for a connection, for an answer, and between two pieces of one.
    pub(super) fn new(
        endpoint: Endpoint,
        token: Option<String>,
        silence: Duration,
    ) -> Result<Self, HubError> {
        if token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(HubError::BadSetting {
                what: "the token",
                value: String::new(),
                expected: "expected letters, digits and signs without spaces; it is read from HF_TOKEN or the token file",
            });
        }
        let config = Agent::config_builder()
            .user_agent(concat!("halite/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // Sizes and ranges are those of the file, not of what a compressor makes of it.
            .accept_encoding("identity")
            .timeout_resolve(Some(silence))
            .timeout_connect(Some(silence))
            .timeout_recv_response(Some(silence))
            .timeout_per_read(Some(silence));
        let config = if endpoint.is_here() { config.proxy(None) } else { config };
        Ok(Self { agent: config.build().into(), endpoint, token })
    }

    pub(super) fn endpoint(&self) -> &str {
        self.endpoint.url()
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The body of `url` from byte `from` on, following redirects.
    pub(super) fn get(&self, url: &str, from: Option<u64>) -> Result<Answer, HubError> {
        let request = |agent: &Agent, url: &str| {
            let request = agent.get(url);
            match from {
                Some(from) => request.header("Range", format!("bytes={from}-")),
                None => request,
            }
        };
        self.send(url, true, request)
    }

    /// The headers that the hub itself has for `url`; its store of files is not asked.
    pub(super) fn head(&self, url: &str) -> Result<Answer, HubError> {
        self.send(url, false, |agent, url| agent.head(url))
    }

    fn send(
        &self,
        url: &str,
        leave_hub: bool,
        request: impl Fn(&Agent, &str) -> ureq::RequestBuilder<ureq::typestate::WithoutBody>,
    ) -> Result<Answer, HubError> {
        let mut headers = HeaderMap::new();
        let mut at = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let mut prepared = request(&self.agent, &at);
            let own = origin(&at).is_some() && origin(&at) == origin(self.endpoint.url());
            if let (true, Some(token)) = (own, &self.token) {
                prepared = prepared.header("Authorization", format!("Bearer {token}"));
            }
            let response = prepared.call().map_err(|error| unreachable(&at, &error))?;
            if own {
                headers.clone_from(response.headers());
            }
            let location = response.headers().get("location");
            let Some(location) = location.filter(|_| is_redirect(response.status().as_u16())) else {
                return Ok(Answer { headers, response });
            };
            let target = location.to_str().ok().and_then(|location| target(&at, location));
            let target = target.ok_or_else(|| HubError::BadAnswer {
                url: at.clone(),
                reason: "it redirects to no address that may be followed".into(),
            })?;
            if !leave_hub && origin(&target) != origin(&at) {
                return Ok(Answer { headers, response });
            }
            at = target;
        }
        Err(HubError::BadAnswer { url: url.to_owned(), reason: "it redirects again and again".into() })
    }
}

pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Scheme and authority in lower case; `None` for what is no plain http(s) address.
fn origin(url: &str) -> Option<(String, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let plain = matches!(&*scheme, "http" | "https") && !authority.is_empty();
    // A user's name in front would be read as the host by a careless eye.
    (plain && !authority.contains(['@', '\\', ' '])).then_some((scheme, authority))
}

/// The address that a redirect from `from` leads to; never from https to http.
fn target(from: &str, location: &str) -> Option<String> {
    let (scheme, authority) = origin(from)?;
    let url = match location {
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        _ => location.to_owned(),
    };
    let (to, _) = origin(&url)?;
    (scheme == "http" || to == "https").then_some(url)
}

fn unreachable(url: &str, error: &ureq::Error) -> HubError {
    match error {
        ureq::Error::Http(_) | ureq::Error::BadUri(_) | ureq::Error::Protocol(_) => {
            HubError::BadAnswer { url: url.to_owned(), reason: error.to_string() }
        }
        _ => {
            let host = origin(url).map_or_else(|| url.to_owned(), |(_, authority)| authority);
            HubError::Unreachable { host, reason: error.to_string(), cached: String::new() }
        }
    }
}

/// `path` for a URL: everything but letters, digits and a few signs escaped; slashes stay.
pub(super) fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(byte.into())
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_followed_to_plain_addresses_only() {
        let from = "https://hub.example/a/b?c";
        assert_eq!(target(from, "/x?y").unwrap(), "https://hub.example/x?y");
        assert_eq!(target(from, "https://cdn.example/x").unwrap(), "https://cdn.example/x");
        assert_eq!(target(from, "//cdn.example/x").unwrap(), "https://cdn.example/x");
        for location in ["http://cdn.example/x", "file:///etc/passwd", "x", "", "https://", "https://a@b/c"] {
            assert_eq!(target(from, location), None, "{location:?}");
        }
        assert!(target("http://127.0.0.1:1/a", "http://127.0.0.1:2/b").is_some());
    }

    #[test]
    fn endpoints_are_addresses() {
        assert_eq!(Endpoint::new("https://huggingface.co/").unwrap().url(), "https://huggingface.co");
        assert!(Endpoint::new("http://localhost:8000").unwrap().is_here());
        assert!(!Endpoint::new("http://localhost.example").unwrap().is_here());
        for url in ["", "huggingface.co", "ftp://x", "https://", "https://user:secret@x", "https://x?y"] {
            assert!(Endpoint::new(url).is_err(), "{url:?}");
        }
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a b/c#d?e%.gguf"), "a%20b/c%23d%3Fe%25.gguf");
        assert_eq!(escaped("é"), "%C3%A9");
    }
}
