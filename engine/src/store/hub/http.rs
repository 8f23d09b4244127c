//! Requests to the hub: who gets the token, how long to wait, which redirects are followed.
//!
//! hf-hub's own requests (0.5) send the token to whatever host the hub redirects to, wait for ever for a host that
//! falls silent, and do not look whether a range that was asked for is what came. So they are made here.

use std::net::IpAddr;
use std::time::Duration;

use ureq::http::uri::{Scheme, Uri};
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

/// Where the hub is, as `https://host[:port]`, perhaps with a path.
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
        let Some(Origin { host, .. }) = origin(&self.0) else { return false };
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
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

/// Who answers at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: Scheme,
    /// In lower case; an IPv6 address in its brackets.
    host: String,
    port: u16,
}

/// `None` for what is no plain http(s) address.
fn origin(url: &str) -> Option<Origin> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, authority) = (uri.scheme()?.clone(), uri.authority()?);
    let usual = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    // Nothing but host and port: a user's name in front would be read as the host by a careless eye.
    let plain = match authority.port() {
        Some(port) => format!("{}:{port}", authority.host()),
        None => authority.host().to_owned(),
    };
    let is_plain = plain == authority.as_str() && !authority.host().is_empty();
    let (host, port) = (authority.host().to_ascii_lowercase(), authority.port_u16().unwrap_or(usual));
    is_plain.then_some(Origin { scheme, host, port })
}

/// Host and port as they are written.
fn authority(url: &str) -> Option<String> {
    Some(url.parse::<Uri>().ok()?.authority()?.to_string())
}

/// The address that a redirect from `from` leads to; never from https to http.
fn target(from: &str, location: &str) -> Option<String> {
    let Origin { scheme, .. } = origin(from)?;
    let url = match location {
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{}{location}", authority(from)?),
        _ => location.to_owned(),
    };
    let to = origin(&url)?.scheme;
    (scheme == Scheme::HTTP || to == Scheme::HTTPS).then_some(url)
}

fn unreachable(url: &str, error: &ureq::Error) -> HubError {
    match error {
        ureq::Error::Http(_) | ureq::Error::BadUri(_) | ureq::Error::Protocol(_) => {
            HubError::BadAnswer { url: url.to_owned(), reason: error.to_string() }
        }
        _ => {
            let host = authority(url).unwrap_or_else(|| url.to_owned());
            HubError::Unreachable { host, reason: error.to_string(), cached: None }
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
        assert_eq!(target("http://[::1]/a", "/x").unwrap(), "http://[::1]/x");
        assert_eq!(target(from, "https://cdn.example/x").unwrap(), "https://cdn.example/x");
        assert_eq!(target(from, "//cdn.example/x").unwrap(), "https://cdn.example/x");
        for location in [
            "http://cdn.example/x",
            "file:///etc/passwd",
            "x",
            "",
            "//",
            "https://",
            "https://a@b/c",
            "https://a\\b/c",
        ] {
            assert_eq!(target(from, location), None, "{location:?}");
        }
        assert!(target("http://127.0.0.1:1/a", "http://127.0.0.1:2/b").is_some());
    }

    #[test]
    fn endpoints_are_addresses() {
        assert_eq!(Endpoint::new("https://huggingface.co/").unwrap().url(), "https://huggingface.co");
        for url in [
            "",
            "huggingface.co",
            "/models",
            "ftp://x",
            "https://",
            "https://:443",
            "https://x:",
            "https://x:99999",
            "https://x:y",
            "https://[::1",
            "https://user:secret@x",
            "https://x?y",
            "https://x#y",
            "https://x y",
        ] {
            assert!(Endpoint::new(url).is_err(), "{url:?}");
        }
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for (host, here) in [
            ("localhost", true),
            ("LocalHost", true),
            ("127.0.0.1", true),
            ("127.1.2.3", true),
            ("[::1]", true),
            ("localhost.example", false),
            ("127.0.0.1.example", false),
            ("[::2]", false),
            ("10.0.0.1", false),
        ] {
            for url in
                [format!("http://{host}"), format!("HTTP://{host}:8000/hub"), format!("https://{host}/")]
            {
                assert_eq!(Endpoint::new(&url).unwrap().is_here(), here, "{url}");
            }
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| origin(a).unwrap() == origin(b).unwrap();
        assert!(same("https://Hub.example/a", "HTTPS://hub.example:443/b?c"));
        assert!(same("http://[::1]", "http://[::1]:80/"));
        assert!(!same("https://hub.example", "http://hub.example"));
        assert!(!same("https://hub.example", "https://hub.example:444"));
        assert!(!same("https://hub.example", "https://hub.example.evil"));
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a b/c#d?e%.gguf"), "a%20b/c%23d%3Fe%25.gguf");
        assert_eq!(escaped("é"), "%C3%A9");
    }
}
