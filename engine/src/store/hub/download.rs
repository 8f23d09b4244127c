//! Fetching files: what is missing of each, with another try when a connection breaks.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::http::{Answer, Http};
use super::layout::{Layout, Manifest};
use super::listing::{RemoteFile, refusal};
use super::partial::{Partial, check_blob};
use super::{HubError, HubModel};
use crate::store::error::{StoreError, folder_error};
use crate::store::progress::Phase;

/// Bytes read between two reports of progress.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes that show that tries get somewhere. A server that sends less a connection would keep a pull for ever.
const HEADWAY_BYTES: u64 = 256 << 10;
/// The wait before the second try; the third waits twice as long, and so on.
const PAUSE: Duration = Duration::from_millis(500);

/// Fetches the files of one model.
pub(super) struct Download<'a> {
    pub(super) http: &'a Http,
    pub(super) model: &'a HubModel,
    pub(super) layout: &'a Layout,
    /// What was found complete before.
    pub(super) checked: Option<Manifest>,
    /// Tries without [`HEADWAY_BYTES`] before giving up, beside the first.
    pub(super) retries: u32,
    pub(super) tally: Tally,
}

/// What is done of all files.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    file: usize,
    files: usize,
    /// Of the files before this one.
    bytes: u64,
    total: u64,
    resumed: u64,
}

impl Tally {
    /// Files that are to be fetched, too.
    pub(super) fn expect(&mut self, files: &[RemoteFile]) {
        self.files += files.len();
        self.total = files.iter().fold(self.total, |sum, file| sum.saturating_add(file.bytes));
    }

    fn phase(&self, bytes: u64) -> Phase {
        Phase::Fetching {
            file: self.file,
            files: self.files,
            bytes: self.bytes.saturating_add(bytes),
            total: self.total,
            resumed: self.resumed,
        }
    }
}

/// An error, and whether another try may help.
struct Failure {
    error: Box<StoreError>,
    again: bool,
}

impl<E: Into<StoreError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: Box::new(error.into()), again: false }
    }
}

impl Download<'_> {
    /// True if the content of `file` is here and right.
    pub(super) fn is_here(
        &self,
        file: &RemoteFile,
        progress: &mut dyn FnMut(Phase),
    ) -> Result<bool, StoreError> {
        let blob = self.layout.blob(file);
        let checked = self.checked.as_ref().is_some_and(|manifest| manifest.covers(file));
        if checked && fs::metadata(&blob).is_ok_and(|metadata| metadata.len() == file.bytes) {
            return Ok(true);
        }
        let mut report = |bytes| progress(Phase::Verifying { bytes, total: file.bytes });
        match check_blob(&blob, file, &mut report) {
            Ok(Ok(())) => Ok(true),
            Ok(Err(_)) => {
                tracing::warn!(
                    file = file.name, blob = %blob.display(),
                    "the cached file has the wrong size or SHA-256 and is fetched again"
                );
                fs::remove_file(&blob).map_err(folder_error("remove", &blob))?;
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(folder_error("read", &blob)(error)),
        }
    }

    /// Bytes of a file that an earlier attempt left.
    pub(super) fn left_over(&self, file: &RemoteFile) -> u64 {
        fs::metadata(self.layout.partial(file)).map_or(0, |metadata| metadata.len().min(file.bytes))
    }

    /// Fetches a file and makes it a blob.
    pub(super) fn fetch(
        &mut self,
        file: &RemoteFile,
        progress: &mut dyn FnMut(Phase),
    ) -> Result<(), StoreError> {
        self.tally.file += 1;
        let path = self.layout.partial(file);
        let mut report = |bytes| progress(Phase::Verifying { bytes, total: file.bytes });
        let mut partial =
            Partial::open(path.clone(), file, &mut report).map_err(folder_error("write", &path))?;
        self.tally.resumed += partial.bytes();
        let (mut tries, mut reached) = (0, partial.bytes());
        while let Err(Failure { error, again }) = self.attempt(file, &mut partial, progress) {
            if partial.bytes() >= reached.saturating_add(HEADWAY_BYTES) {
                (tries, reached) = (0, partial.bytes());
            } else {
                tries += 1;
            }
            if !again || tries > self.retries || self.retries == 0 {
                return Err(*error);
            }
            tracing::warn!("{error}; trying again");
            thread::sleep(PAUSE * tries.max(1));
        }
        if let Err(wrong) = partial.check(file) {
            fs::remove_file(partial.path()).map_err(folder_error("remove", &path))?;
            return Err(wrong.into());
        }
        let blob = self.layout.blob(file);
        partial.keep(&blob).map_err(folder_error("write", &blob))?;
        self.tally.bytes = self.tally.bytes.saturating_add(file.bytes);
        Ok(())
    }

    /// One request for what is missing.
    fn attempt(
        &mut self,
        file: &RemoteFile,
        partial: &mut Partial,
        progress: &mut dyn FnMut(Phase),
    ) -> Result<(), Failure> {
        progress(self.tally.phase(partial.bytes()));
        if partial.bytes() == file.bytes {
            return Ok(());
        }
        let from = Some(partial.bytes()).filter(|bytes| *bytes > 0);
        let answer = self.http.get(&file.url, from).map_err(|error| Failure {
            again: matches!(error, HubError::Unreachable { .. }),
            error: Box::new(error.into()),
        })?;
        let path = partial.path().to_owned();
        let write = || folder_error("write", &path);
        match answer.status() {
            206 if begins_at(&answer, partial.bytes()) => {}
            // All of it, whatever was asked for.
            200 => {
                self.tally.resumed -= self.tally.resumed.min(partial.bytes());
                partial.restart().map_err(write())?;
            }
            206 | 416 => {
                partial.restart().map_err(write())?;
                let reason = "it answers with another part of the file".into();
                let error = HubError::BadAnswer { url: file.url.clone(), reason };
                return Err(Failure { error: Box::new(error.into()), again: true });
            }
            status => {
                let error = refusal(self.http, self.model, &file.url, &answer);
                return Err(Failure {
                    error: Box::new(error.into()),
                    again: matches!(status, 429 | 500..=599),
                });
            }
        }
        let mut body = answer.response.into_body().into_reader();
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let count = match body.read(&mut buffer) {
                Ok(0) if partial.bytes() == file.bytes => return Ok(()),
                Ok(0) => return Err(interrupted(file, partial, "the connection ended")),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(interrupted(file, partial, &error.to_string())),
            };
            let piece = buffer.get(..count).unwrap_or_default();
            if partial.bytes().saturating_add(count as u64) > file.bytes {
                remove(&path)?;
                let (expected, got) = (format!("{} bytes", file.bytes), "more".to_owned());
                let name = file.name.clone();
                return Err(HubError::Mismatch { file: name, property: "size", expected, got }.into());
            }
            partial.write(piece).map_err(write())?;
            progress(self.tally.phase(partial.bytes()));
        }
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    fs::remove_file(path).map_err(folder_error("remove", path))
}

fn interrupted(file: &RemoteFile, partial: &Partial, reason: &str) -> Failure {
    let error = HubError::Interrupted {
        file: file.name.clone(),
        bytes: partial.bytes(),
        total: file.bytes,
        reason: reason.to_owned(),
    };
    Failure { error: Box::new(error.into()), again: true }
}

/// True if a partial answer begins at byte `from`.
fn begins_at(answer: &Answer, from: u64) -> bool {
    let range = answer.response.headers().get("content-range").and_then(|range| range.to_str().ok());
    let start = range.and_then(|range| range.strip_prefix("bytes ")?.split('-').next()?.parse().ok());
    start == Some(from)
}
