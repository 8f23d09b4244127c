//! A source with its constants: what is compiled, and what a file on disk is known by.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};

use super::{Architecture, Source};

/// One kernel source with the constants that choose among its forms. Two equal programs are the same machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    source: &'static Source,
    defines: Vec<(&'static str, String)>,
}

/// The language, and arithmetic as it is written: nothing is contracted, flushed or approximated behind the source's back.
const RULES: &[&str] = &["--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"];

impl Program {
    /// A source without constants.
    pub fn new(source: &'static Source) -> Self {
        Program { source, defines: Vec::new() }
    }

    /// Adds a constant: `#define NAME VALUE`.
    #[must_use]
    pub fn define(mut self, name: &'static str, value: impl ToString) -> Self {
        self.defines.push((name, value.to_string()));
        self
    }

    /// The source.
    pub fn source(&self) -> &'static Source {
        self.source
    }

    /// The options of the compiler, but for the architecture.
    pub(super) fn options(&self) -> Vec<String> {
        let defines = self.defines.iter().map(|(name, value)| format!("--define-macro={name}={value}"));
        RULES.iter().map(|&rule| rule.to_owned()).chain(defines).collect()
    }

    /// SHA-256 over everything that the machine code depends on, in hexadecimal. `compiler` is empty where any will do.
    pub(super) fn key(&self, headers: &[&Source], architecture: Architecture, compiler: &str) -> String {
        let mut hash = Sha256::new();
        // Each text with its length before it, so that no two lists of texts are the same bytes.
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        for source in std::iter::once(&self.source).chain(headers) {
            add(source.file);
            add(source.text);
        }
        self.options().iter().for_each(|option| add(option));
        add(&architecture.to_string());
        add(compiler);
        hash.finalize().iter().fold(String::new(), |mut text, byte| {
            // A String takes every write.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// `linear/int8.cu (BLOCK_M=64, OUT=f32)`.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.file)?;
        for (index, (name, value)) in self.defines.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { " (" } else { ", " })?;
        }
        if self.defines.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static A: Source = Source::new("a.cu", "int a;");
    static B: Source = Source::new("a.cu", "int b;");
    static HEADER: Source = Source::new("h.cuh", "int h;");

    #[test]
    fn a_key_changes_with_everything_that_machine_code_depends_on() {
        let (sm_80, sm_90a) = (Architecture::of_device(8, 0), Architecture::of_device(9, 0));
        let plain = Program::new(&A);
        let keys = [
            plain.key(&[], sm_80, "13.5"),
            Program::new(&B).key(&[], sm_80, "13.5"),
            plain.clone().define("X", 1).key(&[], sm_80, "13.5"),
            plain.clone().define("X", 2).key(&[], sm_80, "13.5"),
            plain.key(&[&HEADER], sm_80, "13.5"),
            plain.key(&[], sm_90a, "13.5"),
            plain.key(&[], sm_80, "13.4"),
            plain.key(&[], sm_80, ""),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(key.len(), 64);
            assert!(!keys[..index].contains(key), "key {index}");
        }
        assert_eq!(keys[0], Program::new(&A).key(&[], sm_80, "13.5"));
    }

    #[test]
    fn a_program_is_told_by_its_constants() {
        assert_eq!(Program::new(&A).to_string(), "a.cu");
        let defined = Program::new(&A).define("BLOCK_M", 64).define("OUT", "f32");
        assert_eq!(defined.to_string(), "a.cu (BLOCK_M=64, OUT=f32)");
        assert!(defined.options().contains(&"--define-macro=BLOCK_M=64".to_owned()));
    }
}
