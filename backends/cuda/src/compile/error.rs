//! What can go wrong between a source and machine code.

use std::path::PathBuf;

/// Why there is no machine code. Every message names the program and the way out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The text names no architecture that the kernels run on.
    #[error(
        "`{text}` is no architecture that can be compiled for: expected sm_80 or later, such as sm_89, sm_90a, sm_100a"
    )]
    Architecture {
        /// What was asked for.
        text: String,
    },
    /// NVRTC is not on this machine.
    #[error(
        "{program}: NVRTC was not found, which compiles kernels: install the CUDA toolkit 12.8 or later, or its wheel \
         `nvidia-cuda-nvrtc`, and put the folder of libnvrtc.so into the library path; or use kernels that were \
         precompiled elsewhere"
    )]
    NvrtcMissing {
        /// What should have been compiled.
        program: String,
    },
    /// NVRTC refused the source or an option.
    #[error("{program} for {architecture}: NVRTC failed ({code}):\n{log}")]
    Refused {
        /// What should have been compiled.
        program: String,
        /// For which architecture.
        architecture: String,
        /// NVRTC's code.
        code: String,
        /// NVRTC's log.
        log: String,
    },
    /// A source includes what the crate does not have.
    #[error("{program}: includes \"{header}\", which is no header of the crate")]
    Header {
        /// What should have been compiled.
        program: String,
        /// The header's name.
        header: String,
    },
    /// The folder of precompiled kernels lacks this one, or it is damaged.
    #[error(
        "{program} for {architecture}: {} has no whole file for it: precompile again with this version of Halite \
         (`halite kernels precompile --arch {architecture} --out {}`)",
        folder.display(), folder.display()
    )]
    NotPrecompiled {
        /// The program.
        program: String,
        /// The architecture.
        architecture: String,
        /// The folder that was looked into.
        folder: PathBuf,
    },
    /// A precompiled kernel could not be written.
    #[error("{}: {cause}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's message.
        cause: String,
    },
}
