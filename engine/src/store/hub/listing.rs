//! What is in a repository.

use std::io::Read;

use hf_hub::{Repo, RepoType};
use serde::Deserialize;

use super::http::{Answer, Http, escaped, is_redirect};
use super::{HubError, HubModel};
use crate::quoted::shortened;

/// A listing is a line a file; the largest repositories have some ten thousand.
const MAX_LISTING_BYTES: u64 = 64 << 20;

/// A repository at one commit.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) repo: String,
    pub(super) commit: String,
    pub(super) files: Vec<ListedFile>,
}

/// A file of a repository. What a mirror of the hub leaves out of its listing is asked for later.
#[derive(Clone, Debug)]
pub(super) struct ListedFile {
    pub(super) name: String,
    pub(super) bytes: Option<u64>,
    pub(super) content: Option<Content>,
}

/// What a file's content is known by; its name among the cache's blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// SHA-256 of the content: large files.
    Sha256(String),
    /// The hub's entity tag: small files, kept in git. It is git's SHA-1 of the content and a header; these files are
    /// checked by their size alone.
    Tag(String),
}

impl Content {
    /// The blob's file name.
    pub(super) fn blob(&self) -> &str {
        match self {
            Self::Sha256(name) | Self::Tag(name) => name,
        }
    }
}

/// A file with all that is needed to fetch and check it.
#[derive(Clone, Debug)]
pub(super) struct RemoteFile {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) bytes: u64,
    pub(super) content: Content,
}

impl Listing {
    /// Asks the hub.
    pub(super) fn fetch(http: &Http, model: &HubModel) -> Result<Self, HubError> {
        let repo = Repo::with_revision(model.repo().into(), RepoType::Model, model.revision().into());
        let url = format!("{}/api/{}?blobs=true", http.endpoint(), repo.api_url());
        let answer = http.get(&url, None)?;
        if answer.status() != 200 {
            return Err(refusal(http, model, &url, &answer));
        }
        let bad = |reason: String| HubError::BadAnswer { url: url.clone(), reason };
        let mut json = Vec::new();
        let body = answer.response.into_body().into_reader().take(MAX_LISTING_BYTES + 1);
        let read = { body }.read_to_end(&mut json);
        read.map_err(|error| bad(format!("it breaks off: {error}")))?;
        if json.len() as u64 > MAX_LISTING_BYTES {
            return Err(bad(format!("it is longer than {MAX_LISTING_BYTES} bytes")));
        }
        let info: Info = serde_json::from_slice(&json).map_err(|error| bad(shortened(error)))?;
        if !is_commit(&info.sha) {
            return Err(bad("its \"sha\" is no commit".into()));
        }
        let files = info.siblings.into_iter().map(|sibling| sibling.listed().map_err(bad));
        let files = files.collect::<Result<_, _>>()?;
        Ok(Self { repo: model.repo().to_owned(), commit: info.sha, files })
    }

    pub(super) fn find(&self, name: &str) -> Option<&ListedFile> {
        self.files.iter().find(|file| file.name == name)
    }

    /// Where a file of this commit is, and what it should be; asks the hub for what the listing does not say.
    pub(super) fn remote(
        &self,
        http: &Http,
        model: &HubModel,
        file: &ListedFile,
    ) -> Result<RemoteFile, HubError> {
        let (name, endpoint) = (file.name.clone(), http.endpoint());
        let url = format!("{endpoint}/{}/resolve/{}/{}", self.repo, self.commit, escaped(&name));
        if let (Some(bytes), Some(content)) = (file.bytes, file.content.clone()) {
            return Ok(RemoteFile { name, url, bytes, content });
        }
        let answer = http.head(&url)?;
        // A redirect's own length is not that of the file.
        let length = match answer.status() {
            200 => answer.header("content-length"),
            status if is_redirect(status) => None,
            _ => return Err(refusal(http, model, &url, &answer)),
        };
        let bad = |reason: &str| HubError::BadAnswer { url: url.clone(), reason: reason.to_owned() };
        let bytes = answer.header("x-linked-size").or(length);
        let bytes =
            bytes.and_then(|bytes| bytes.parse().ok()).ok_or_else(|| bad("it does not say the size"))?;
        let tag =
            |name| answer.header(name).map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
        let content = match (tag("x-linked-etag"), tag("etag")) {
            (Some(hash), _) if is_hex(&hash, 64) => Content::Sha256(hash.to_ascii_lowercase()),
            (Some(tag), _) | (None, Some(tag)) if is_tag(&tag) => Content::Tag(tag),
            _ => return Err(bad("it has no usable ETag")),
        };
        Ok(RemoteFile { name, url, bytes, content })
    }
}

/// The error for an answer that is no success.
pub(super) fn refusal(http: &Http, model: &HubModel, url: &str, answer: &Answer) -> HubError {
    let (repo, endpoint) = (model.repo().to_owned(), http.endpoint().to_owned());
    let with_token = http.has_token();
    match (answer.status(), answer.header("x-error-code")) {
        (401 | 403, Some("RepoNotFound")) => HubError::NoSuchRepo { repo, endpoint, with_token },
        (status @ (401 | 403), _) => {
            HubError::NeedsToken { repo, endpoint, status, with_token, token_file: None }
        }
        (404, Some("RevisionNotFound")) => {
            HubError::NoSuchRevision { repo, revision: model.revision().to_owned(), endpoint }
        }
        (404, Some("EntryNotFound")) => HubError::Status { url: url.to_owned(), status: 404 },
        (404, _) => HubError::NoSuchRepo { repo, endpoint, with_token },
        (status, _) => HubError::Status { url: url.to_owned(), status },
    }
}

/// Git's name of a commit.
pub(super) fn is_commit(text: &str) -> bool {
    is_hex(text, 40) || is_hex(text, 64)
}

fn is_hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A tag that can be the name of a file.
fn is_tag(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=128).contains(&text.len()) && text.bytes().all(plain)
}

/// The hub's JSON.
#[derive(Deserialize)]
struct Info {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
    size: Option<u64>,
}

impl Sibling {
    fn listed(self) -> Result<ListedFile, String> {
        let content = match (self.lfs.as_ref(), self.blob_id) {
            (Some(Lfs { sha256, .. }), _) if is_hex(sha256, 64) => {
                Some(Content::Sha256(sha256.to_ascii_lowercase()))
            }
            (Some(_), _) => return Err("a file's \"sha256\" is none".into()),
            (None, Some(id)) if is_hex(&id, 40) => Some(Content::Tag(id)),
            _ => None,
        };
        let bytes = self.lfs.and_then(|lfs| lfs.size).or(self.size);
        Ok(ListedFile { name: self.rfilename, bytes, content })
    }
}
