//! Compiled code.

use super::Architecture;

/// Code that NVRTC made, now or earlier: only the compiler makes one, so that a driver is given nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    program: String,
    architecture: Architecture,
    code: Code,
}

/// The kinds of code. A GPU's driver takes cubins, an interpreter takes PTX, and neither takes the other's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// Machine code, an ELF file.
    Cubin(Vec<u8>),
    /// PTX, with the lines of its source.
    Ptx(String),
}

impl Image {
    pub(crate) fn cubin(program: String, architecture: Architecture, code: Vec<u8>) -> Self {
        Image { program, architecture, code: Code::Cubin(code) }
    }

    pub(crate) fn ptx(program: String, architecture: Architecture, text: String) -> Self {
        Image { program, architecture, code: Code::Ptx(text) }
    }

    /// What it was made of, for messages.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// What it was made for.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.code {
            Code::Cubin(code) => code,
            Code::Ptx(text) => text.as_bytes(),
        }
    }
}
