//! A server on this machine that speaks the Hugging Face hub's protocol: listings, files behind a redirect to a store
//! on another port, ranges; and everything that can go wrong with them.
#![allow(dead_code, reason = "each test binary uses its own part of it")]

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};

pub(crate) const REPO: &str = "org/name";
/// What [`REPO`] is called later.
pub(crate) const RENAMED: &str = "org/new-name";
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The hub and its store of files. Gone at the end.
pub(crate) struct HubServer {
    hub: SocketAddr,
    store: SocketAddr,
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
}

/// What the server has and does.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) files: BTreeMap<String, ServedFile>,
    /// Names listed beside those of the files.
    pub(crate) listed_only: Vec<String>,
    /// What the listing says instead of the truth.
    pub(crate) listing: Option<(u16, String)>,
    /// Leaves sizes and hashes out of the listing.
    pub(crate) bare_listing: bool,
    /// Files are refused without it.
    pub(crate) token: Option<String>,
    /// What happens to the next answers with a file's content, first to last.
    pub(crate) faults: VecDeque<Fault>,
    /// Where the hub redirects to instead of its store.
    pub(crate) redirect: Option<String>,
    /// Redirects to the repository's new name, on the hub itself.
    pub(crate) renamed: bool,
    pub(crate) requests: Vec<Asked>,
}

#[derive(Clone)]
pub(crate) struct ServedFile {
    pub(crate) content: Vec<u8>,
    /// Large: behind a redirect and with a SHA-256.
    pub(crate) lfs: bool,
    /// What is said to be its SHA-256.
    pub(crate) sha256: String,
}

/// What can go wrong with a file's content.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The connection ends after so many bytes.
    Cut(usize),
    /// As [`Self::Cut`], of the whole file, whatever range was asked for.
    CutWhole(usize),
    /// Nothing comes after so many bytes, and the connection stays.
    Stall(usize),
    /// The whole file, whatever range was asked for.
    IgnoreRange,
    /// Another range than was asked for.
    OtherRange,
    /// A shorter file, with the length of the short one.
    Shorter(usize),
    /// Bytes that nobody asked for behind the file.
    Longer(usize),
    /// A status, with an error code of the hub.
    Status(u16, &'static str),
    /// An answer that is no HTTP.
    Garbage,
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// "hub" or "store".
    pub(crate) place: &'static str,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) token: Option<String>,
}

impl HubServer {
    pub(crate) fn new() -> Self {
        let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [hub, store] = [0, 1].map(|at| listeners[at].local_addr().unwrap());
        let (state, ended) = (Arc::<Mutex<State>>::default(), Arc::<AtomicBool>::default());
        for (place, listener) in ["hub", "store"].into_iter().zip(listeners) {
            let (state, ended) = (state.clone(), ended.clone());
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let (state, ended) = (state.clone(), ended.clone());
                    // A client that has had enough is no fault of the server's.
                    std::thread::spawn(move || serve(stream?, place, store, &state, &ended));
                }
            });
        }
        Self { hub, store, state, ended }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.hub)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// A small file, kept in git.
    pub(crate) fn small(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        self.add(name, content.as_ref(), false)
    }

    /// A large file, kept in the store.
    pub(crate) fn large(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        self.add(name, content.as_ref(), true)
    }

    fn add(&self, name: &str, content: &[u8], lfs: bool) -> &Self {
        let file = ServedFile { content: content.to_vec(), lfs, sha256: sha256(content) };
        self.state().files.insert(name.to_owned(), file);
        self
    }

    pub(crate) fn fault(&self, fault: Fault) -> &Self {
        self.state().faults.push_back(fault);
        self
    }

    /// What was asked for since the last look.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state().requests)
    }

    /// Names of the files whose content was asked for since the last look, with the range.
    pub(crate) fn fetched(&self) -> Vec<(String, Option<String>)> {
        let content =
            |asked: &Asked| asked.place == "hub" && asked.method == "GET" && asked.path.contains("/resolve/");
        let name = |path: &str| path.rsplit_once(&format!("/{COMMIT}/")).unwrap().1.to_owned();
        self.asked().into_iter().filter(content).map(|asked| (name(&asked.path), asked.range)).collect()
    }
}

impl Drop for HubServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Each listener looks once more.
        for address in [self.hub, self.store] {
            _ = TcpStream::connect(address);
        }
    }
}

pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where git would keep it; any 40 digits do.
fn tag(content: &[u8]) -> String {
    sha256(content)[..40].to_owned()
}

fn serve(
    stream: TcpStream,
    place: &'static str,
    store: SocketAddr,
    state: &Mutex<State>,
    ended: &AtomicBool,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(()) };
    let mut headers = BTreeMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let range = headers.remove("range");
    let asked = Asked { place, method, path, range, token: headers.remove("authorization") };
    let mut reply = Reply { stream, head_only: asked.method == "HEAD" };
    let mut state = state.lock().unwrap();
    state.requests.push(asked.clone());
    if asked.path.starts_with("/api/") {
        let (status, body) = state.listing.clone().unwrap_or_else(|| (200, listing(&state)));
        return reply.whole(status, &[], body.as_bytes());
    }
    let (old, new) = (format!("/{REPO}/"), format!("/{RENAMED}/"));
    if state.renamed && asked.path.starts_with(&old) {
        return reply.whole(307, &[format!("Location: {}", asked.path.replacen(&old, &new, 1))], b"");
    }
    let path = asked.path.replacen(&new, &old, 1);
    let name = path.split(['?']).next().unwrap_or_default();
    let name = match place {
        "hub" => name.strip_prefix(&format!("/{REPO}/resolve/{COMMIT}/")),
        _ => name.strip_prefix("/store/"),
    };
    let name = name.unwrap_or_default().replace("%20", " ");
    let Some(file) = state.files.get(&name).cloned() else {
        return reply.whole(404, &["X-Error-Code: EntryNotFound".into()], b"");
    };
    let mut own = vec![format!("X-Repo-Commit: {COMMIT}")];
    if place == "hub" {
        let given = asked.token.as_deref().and_then(|token| token.strip_prefix("Bearer "));
        if state.token.is_some() && given != state.token.as_deref() {
            return reply.whole(401, &["X-Error-Code: GatedRepo".into()], b"Access is restricted");
        }
        if file.lfs {
            let to =
                state.redirect.clone().unwrap_or_else(|| format!("http://{store}/store/{name}?signed=1"));
            own.push(format!("Location: {}", to.replace(' ', "%20")));
            own.push(format!("X-Linked-Size: {}", file.content.len()));
            own.push(format!("X-Linked-ETag: \"{}\"", file.sha256));
            return reply.whole(302, &own, b"Found");
        }
        own.push(format!("ETag: \"{}\"", tag(&file.content)));
    }
    let fault = if reply.head_only { None } else { state.faults.pop_front() };
    // Others are served while this one stalls.
    drop(state);
    reply.content(&file.content, asked.range.as_deref(), fault, own, ended)
}

fn listing(state: &State) -> String {
    let files = state.files.iter().map(|(name, file)| match (state.bare_listing, file.lfs) {
        (true, _) => json!({ "rfilename": name }),
        (false, true) => {
            let lfs = json!({ "sha256": file.sha256, "size": file.content.len(), "pointerSize": 127 });
            json!({ "rfilename": name, "size": file.content.len(), "blobId": tag(name.as_bytes()), "lfs": lfs })
        }
        (false, false) => {
            json!({ "rfilename": name, "size": file.content.len(), "blobId": tag(&file.content) })
        }
    });
    let others =
        state.listed_only.iter().map(|name| json!({ "rfilename": name, "size": 3, "blobId": tag(b"") }));
    let siblings: Vec<_> = files.chain(others).collect();
    json!({ "id": REPO, "sha": COMMIT, "gated": false, "siblings": siblings }).to_string()
}

struct Reply {
    stream: TcpStream,
    head_only: bool,
}

impl Reply {
    fn head(&mut self, status: u16, headers: &[String], length: usize) -> std::io::Result<()> {
        let mut text =
            format!("HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\nConnection: close\r\n");
        headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
        self.stream.write_all(format!("{text}\r\n").as_bytes())
    }

    fn whole(&mut self, status: u16, headers: &[String], body: &[u8]) -> std::io::Result<()> {
        self.head(status, headers, body.len())?;
        if !self.head_only {
            self.stream.write_all(body)?;
        }
        self.close()
    }

    fn content(
        mut self,
        content: &[u8],
        range: Option<&str>,
        fault: Option<Fault>,
        mut headers: Vec<String>,
        ended: &AtomicBool,
    ) -> std::io::Result<()> {
        let from =
            range.and_then(|range| range.strip_prefix("bytes=")?.split('-').next()?.parse::<usize>().ok());
        let from = match fault {
            Some(Fault::IgnoreRange | Fault::CutWhole(_)) => None,
            Some(Fault::OtherRange) => from.map(|from| from.saturating_sub(1)),
            _ => from,
        };
        let start = from.unwrap_or(0);
        if start >= content.len() && !content.is_empty() {
            headers.push(format!("Content-Range: bytes */{}", content.len()));
            return self.whole(416, &headers, b"");
        }
        if from.is_some() {
            headers.push(format!("Content-Range: bytes {start}-{}/{}", content.len() - 1, content.len()));
        }
        let status = if from.is_some() { 206 } else { 200 };
        let body = &content[start..];
        match fault {
            Some(Fault::Status(status, code)) => {
                self.whole(status, &[format!("X-Error-Code: {code}")], b"no")
            }
            Some(Fault::Garbage) => {
                self.stream.write_all(b"\0\x01\x02 this is no HTTP\r\n\r\n")?;
                self.close()
            }
            Some(Fault::Cut(bytes) | Fault::CutWhole(bytes)) => {
                self.head(status, &headers, body.len())?;
                self.stream.write_all(&body[..bytes.min(body.len())])?;
                self.close()
            }
            Some(Fault::Stall(bytes)) => {
                self.head(status, &headers, body.len())?;
                self.stream.write_all(&body[..bytes.min(body.len())])?;
                while !ended.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(())
            }
            Some(Fault::Shorter(bytes)) => self.whole(status, &headers, &body[..body.len() - bytes]),
            Some(Fault::Longer(bytes)) => self.whole(status, &headers, &[body, &vec![7; bytes]].concat()),
            _ => self.whole(status, &headers, body),
        }
    }

    /// Lets the client read to the end: a socket closed with input unread would be reset.
    fn close(&mut self) -> std::io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        _ = self.stream.read(&mut [0; 256]);
        Ok(())
    }
}
