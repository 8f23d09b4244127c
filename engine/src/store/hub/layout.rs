//! A repository's folder in the hub's cache, which other programs use too.
//!
//! ```text
//! models--ORG--NAME/
//!   blobs/HASH                  a file's content
//!   snapshots/COMMIT/NAME       a link to it
//!   refs/BRANCH                 the commit that the branch was at
//!   .halite/COMMIT.json         which files make the model; written when all of them are here and checked
//! ```

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hf_hub::{Cache, CacheRepo, Repo, RepoType};
use serde::{Deserialize, Serialize};

use super::HubModel;
use super::listing::{RemoteFile, is_commit};

/// Longest content of a file that holds a commit.
const MAX_REF_BYTES: u64 = 256;

/// Paths in a repository's folder.
#[derive(Debug)]
pub(super) struct Layout {
    root: PathBuf,
    cache: CacheRepo,
}

/// The files of a complete model.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    files: Vec<ManifestFile>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ManifestFile {
    name: String,
    bytes: u64,
    content: String,
}

impl Layout {
    pub(super) fn new(folder: &Path, model: &HubModel) -> Self {
        let repo = Repo::with_revision(model.repo().into(), RepoType::Model, model.revision().into());
        let root = folder.join(repo.folder_name());
        Self { root, cache: Cache::new(folder.to_owned()).repo(repo) }
    }

    /// Where Halite's own notes are.
    pub(super) fn notes(&self) -> PathBuf {
        self.root.join(".halite")
    }

    pub(super) fn blob(&self, file: &RemoteFile) -> PathBuf {
        self.cache.blob_path(file.content.blob())
    }

    /// What has come of a blob. The name is no other program's, since they do not know our lock.
    pub(super) fn partial(&self, file: &RemoteFile) -> PathBuf {
        self.cache.blob_path(&format!("{}.halite-part", file.content.blob()))
    }

    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.cache.pointer_path(commit)
    }

    /// The commit that a revision was at when it was last asked for.
    pub(super) fn commit(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_owned());
        }
        let mut text = String::new();
        let file = fs::File::open(self.root.join("refs").join(revision)).ok()?;
        file.take(MAX_REF_BYTES).read_to_string(&mut text).ok()?;
        let commit = text.trim();
        is_commit(commit).then(|| commit.to_owned())
    }

    /// Remembers the commit that the model's revision is at.
    pub(super) fn set_commit(&self, revision: &str, commit: &str) -> io::Result<()> {
        if is_commit(revision) { Ok(()) } else { self.cache.create_ref(commit) }
    }

    /// Makes the snapshot's file a link to the blob.
    pub(super) fn link(&self, commit: &str, file: &RemoteFile) -> io::Result<()> {
        let link = self.snapshot(commit).join(&file.name);
        let depth = 2 + file.name.matches('/').count();
        let target = PathBuf::from(format!("{}blobs/{}", "../".repeat(depth), file.content.blob()));
        if fs::read_link(&link).is_ok_and(|found| found == target) {
            return Ok(());
        }
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => make_link(&target, &link, &self.blob(file)),
        }
    }

    /// True if the snapshot has this file, whole.
    pub(super) fn has(&self, commit: &str, name: &str, bytes: u64) -> bool {
        let file = fs::metadata(self.snapshot(commit).join(name));
        file.is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
    }

    /// The manifest of a model folder that was complete, if all of it still is.
    pub(super) fn complete(&self, commit: &str) -> Option<Manifest> {
        let json = fs::read(self.manifest(commit)).ok()?;
        let manifest: Manifest = serde_json::from_slice(&json).ok()?;
        manifest.files.iter().all(|file| self.has(commit, &file.name, file.bytes)).then_some(manifest)
    }

    /// Notes that these files make the model and are here.
    pub(super) fn write_manifest(&self, commit: &str, files: &[RemoteFile]) -> io::Result<()> {
        let manifest = Manifest { files: files.iter().map(ManifestFile::of).collect() };
        let (path, draft) = (self.manifest(commit), self.notes().join("draft"));
        fs::write(&draft, serde_json::to_vec_pretty(&manifest)?)?;
        fs::rename(draft, path)
    }

    /// The GGUF files of a snapshot, by name.
    pub(super) fn ggufs(&self, commit: &str) -> Vec<String> {
        let snapshot = self.snapshot(commit);
        let mut names = Vec::new();
        let mut folders = vec![(String::new(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(snapshot.join(&folder)).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let name = format!("{folder}{name}");
                match fs::metadata(entry.path()) {
                    Ok(found) if found.is_dir() && depth < 3 => folders.push((format!("{name}/"), depth + 1)),
                    Ok(found) if found.is_file() && name.ends_with(".gguf") => names.push(name),
                    // A link to nothing, or something else.
                    _ => {}
                }
            }
        }
        names.sort_unstable();
        names
    }

    fn manifest(&self, commit: &str) -> PathBuf {
        self.notes().join(format!("{commit}.json"))
    }
}

impl Manifest {
    /// True if the file was checked when the manifest was written.
    pub(super) fn covers(&self, file: &RemoteFile) -> bool {
        self.files.contains(&ManifestFile::of(file))
    }
}

impl ManifestFile {
    fn of(file: &RemoteFile) -> Self {
        Self { name: file.name.clone(), bytes: file.bytes, content: file.content.blob().to_owned() }
    }
}

#[cfg(unix)]
fn make_link(target: &Path, link: &Path, _blob: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Where links need a right that few have, the content itself goes into the snapshot.
#[cfg(not(unix))]
fn make_link(_target: &Path, link: &Path, blob: &Path) -> io::Result<()> {
    fs::hard_link(blob, link).or_else(|_| fs::copy(blob, link).map(drop))
}

/// The models of which something complete is in a hub's cache folder.
pub(super) fn models(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let repo = name.strip_prefix("models--")?.replacen("--", "/", 1);
        let model = HubModel::parse(&repo).ok()?;
        let layout = Layout::new(folder, &model);
        let commit = layout.commit(model.revision())?;
        (layout.complete(&commit).is_some() || !layout.ggufs(&commit).is_empty()).then_some(repo)
    };
    let mut models: Vec<_> = entries.filter_map(name).collect();
    models.sort_unstable();
    models
}
