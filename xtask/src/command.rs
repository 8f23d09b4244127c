//! Runs other programs: their output goes straight to the terminal, and a failure says what to do about it.

use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, anyhow, bail};

/// One command line, with what to install when its program is missing.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    program: OsString,
    shown: String,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    install: &'static str,
}

impl Invocation {
    /// A program found through `PATH`; `install` completes the sentence "`program` was not found: ...".
    pub(crate) fn new(program: &str, arguments: &[&str], install: &'static str) -> Self {
        Self::at(program.into(), program, arguments, install)
    }

    /// A program at a known place, printed as `shown`.
    pub(crate) fn at(program: OsString, shown: &str, arguments: &[&str], install: &'static str) -> Self {
        Self {
            program,
            shown: shown.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
            install,
        }
    }

    /// The cargo that started this program, so that every step uses one toolchain.
    pub(crate) fn cargo(arguments: &[&str]) -> Self {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self::at(program, "cargo", arguments, "install Rust from https://rustup.rs")
    }

    /// Adds one environment variable.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Prints the command line and runs it in `folder`, its output inherited.
    ///
    /// Standard input is closed: no step may wait for an answer.
    pub(crate) fn run(&self, folder: &Path) -> Result<()> {
        eprintln!("    $ {self}");
        let status = self.command(folder).status().map_err(|error| self.not_started(error))?;
        self.check(status)
    }

    /// Runs the command and returns what it wrote to standard output; its errors become part of ours.
    pub(crate) fn capture(&self, folder: &Path) -> Result<Vec<u8>> {
        let output = self.command(folder).output().map_err(|error| self.not_started(error))?;
        self.check(output.status)
            .with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())?;
        Ok(output.stdout)
    }

    /// Prints the command line and returns what the command wrote to standard output, while its progress is seen.
    pub(crate) fn capture_stdout(&self, folder: &Path) -> Result<Vec<u8>> {
        eprintln!("    $ {self}");
        let child = self.command(folder).stdout(Stdio::piped()).spawn();
        let output =
            child.and_then(std::process::Child::wait_with_output).map_err(|error| self.not_started(error))?;
        self.check(output.status)?;
        Ok(output.stdout)
    }

    /// Like [`capture`](Self::capture), for programs that answer with one line, such as a version.
    pub(crate) fn capture_line(&self, folder: &Path) -> Result<String> {
        let output = self.capture(folder)?;
        Ok(String::from_utf8_lossy(&output).lines().next().unwrap_or_default().trim().to_owned())
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(folder).stdin(Stdio::null());
        command
    }

    fn not_started(&self, error: std::io::Error) -> anyhow::Error {
        if error.kind() == ErrorKind::NotFound {
            anyhow!("`{}` was not found: {}", self.shown, self.install)
        } else {
            anyhow!("`{self}` could not be started: {error}")
        }
    }

    fn check(&self, status: ExitStatus) -> Result<()> {
        match status.code() {
            Some(0) => Ok(()),
            Some(code) => bail!("`{self}` ended with exit code {code}"),
            None => bail!("`{self}` was ended by a signal ({status}); signal 9 is often a lack of memory"),
        }
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "{}", quoted(&self.shown))?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

/// Quotes an argument where a shell would split it, so that a printed line can be pasted.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,+@".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_line_can_be_pasted() {
        let line = Invocation::new("cargo", &["doc", "a b", "it's"], "").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(line.to_string(), r"RUSTDOCFLAGS='-D warnings' cargo doc 'a b' 'it'\''s'");
    }

    #[test]
    fn a_missing_program_is_named_with_its_remedy() {
        let missing = Invocation::new("halite-no-such-program", &[], "install it from the moon");
        for result in [missing.run(Path::new(".")), missing.capture(Path::new(".")).map(drop)] {
            let text = result.unwrap_err().to_string();
            assert_eq!(text, "`halite-no-such-program` was not found: install it from the moon");
        }
    }

    #[test]
    fn a_failure_names_the_command_and_its_exit_code() {
        let error = Invocation::cargo(&["no-such-subcommand"]).capture(Path::new(".")).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("`cargo no-such-subcommand` ended with exit code 101"), "{text}");
        assert!(text.contains("no such command"), "the program's own words are kept: {text}");
    }
}
