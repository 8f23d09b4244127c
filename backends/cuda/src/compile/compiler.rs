//! The one door to machine code: precompiled, kept from earlier, or compiled now.

use std::path::PathBuf;

use super::{
    Architecture, CompileError, Image, Program,
    folder::Folder,
    nvrtc::{Output, compile, nvrtc_version},
    source::headers,
};

/// Where machine code may lie. By default nowhere: all of it is compiled, in every process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    cache: Option<PathBuf>,
    precompiled: Option<PathBuf>,
}

impl Options {
    /// Keeps what was compiled in this folder, for the next process. Nothing that is wrong with it is an error.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Takes machine code from a folder that [`precompile`](super::precompile) made, so that no NVRTC is needed.
    #[must_use]
    pub fn precompiled(mut self, folder: impl Into<PathBuf>) -> Self {
        self.precompiled = Some(folder.into());
        self
    }
}

/// Gives machine code for programs.
#[derive(Debug)]
pub struct Compiler {
    cache: Option<Folder>,
    precompiled: Option<Folder>,
}

impl Compiler {
    /// A compiler with these folders.
    pub fn new(options: Options) -> Self {
        Compiler { cache: options.cache.map(Folder::new), precompiled: options.precompiled.map(Folder::new) }
    }

    /// Machine code of a program: precompiled where there is such a folder and it has a whole file for it, else by NVRTC.
    ///
    /// # Errors
    /// [`CompileError::NotPrecompiled`] and [`CompileError::NvrtcMissing`] where NVRTC is not on this machine;
    /// [`CompileError::Refused`] with NVRTC's log.
    pub fn cubin(&self, program: &Program, architecture: Architecture) -> Result<Image, CompileError> {
        let image = |code| Image::cubin(program.to_string(), architecture, code);
        let precompiled = self.precompiled.as_ref();
        if let Some(folder) = precompiled
            && let Some(code) = folder.read(&precompiled_name(program, architecture)?)
        {
            return Ok(image(code));
        }
        match (self.make(program, architecture, Output::Cubin), precompiled) {
            (Err(CompileError::NvrtcMissing { program }), Some(folder)) => {
                let (architecture, folder) = (architecture.to_string(), folder.path().to_owned());
                Err(CompileError::NotPrecompiled { program, architecture, folder })
            }
            (made, _) => made.map(image),
        }
    }

    /// PTX of a program, with the lines of its source: for the interpreter, never for a driver.
    ///
    /// # Errors
    /// As [`cubin`](Self::cubin).
    pub fn ptx(&self, program: &Program, architecture: Architecture) -> Result<Image, CompileError> {
        let ptx = self.make(program, architecture, Output::Ptx)?;
        Ok(Image::ptx(program.to_string(), architecture, String::from_utf8_lossy(&ptx).into_owned()))
    }

    fn make(
        &self,
        program: &Program,
        architecture: Architecture,
        output: Output,
    ) -> Result<Vec<u8>, CompileError> {
        let Some((folder, version)) = self.cache.as_ref().zip(nvrtc_version()) else {
            return Ok(compile(program, architecture, output)?.code);
        };
        let name = file_name(program, architecture, output, &version.to_string())?;
        if let Some(code) = folder.read(&name) {
            return Ok(code);
        }
        let code = compile(program, architecture, output)?.code;
        // A folder that cannot be written makes the next start slower, no more.
        let _ = folder.write(&name, &code);
        Ok(code)
    }
}

/// The file of a program in a folder of precompiled ones; which NVRTC made it does not matter there.
pub(super) fn precompiled_name(
    program: &Program,
    architecture: Architecture,
) -> Result<String, CompileError> {
    file_name(program, architecture, Output::Cubin, "")
}

/// `linear-int8-sm_90a-KEY.cubin`: for people the first part, for the program the key.
fn file_name(
    program: &Program,
    architecture: Architecture,
    output: Output,
    compiler: &str,
) -> Result<String, CompileError> {
    let source = program.source();
    let headers = headers(source.text)
        .map_err(|header| CompileError::Header { program: program.to_string(), header })?;
    let key = program.key(&headers, architecture, compiler);
    let stem = source.file.trim_end_matches(".cu").replace('/', "-");
    let kind = match output {
        Output::Cubin => "cubin",
        Output::Ptx => "ptx",
    };
    Ok(format!("{stem}-{architecture}-{key}.{kind}"))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{
        compile::{Code, Source},
        testing,
    };

    static ONE: Source =
        Source::new("test/one.cu", "#include \"prelude.cuh\"\nKERNEL void one(i32* x) { *x = N; }\n");

    fn one() -> Program {
        Program::new(&ONE).define("N", 1)
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect()
    }

    #[test]
    fn what_was_compiled_is_kept_and_read_and_nothing_damaged() {
        if !testing::nvrtc("the cache") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let compiler = Compiler::new(Options::default().cache(folder.path()));
        let code = compiler.cubin(&one(), Architecture::OLDEST).unwrap();
        let [file] = &files(folder.path())[..] else { panic!("one file") };
        assert!(file.file_name().unwrap().to_str().unwrap().starts_with("test-one-sm_80-"));

        // What lies there is what is given: another code under this name would come back.
        let kept = Folder::new(folder.path().to_owned());
        let name = file.file_name().unwrap().to_str().unwrap();
        kept.write(name, b"other code").unwrap();
        assert_eq!(compiler.cubin(&one(), Architecture::OLDEST).unwrap().bytes(), b"other code");
        // Another program, architecture or kind is another file.
        let (two, newer) = (one().define("M", 2), Architecture::of_device(9, 0));
        assert!(compiler.cubin(&two, Architecture::OLDEST).unwrap().bytes().starts_with(b"\x7fELF"));
        assert!(compiler.cubin(&one(), newer).unwrap().bytes().starts_with(b"\x7fELF"));
        let ptx = compiler.ptx(&one(), Architecture::OLDEST).unwrap();
        let Code::Ptx(text) = ptx.code() else { panic!("PTX") };
        assert!(text.contains(".entry one("));
        assert_eq!(files(folder.path()).len(), 4);

        let mut bytes = fs::read(file).unwrap();
        bytes.pop();
        fs::write(file, bytes).unwrap();
        assert_eq!(compiler.cubin(&one(), Architecture::OLDEST).unwrap(), code);
        assert_eq!(kept.read(name).unwrap(), code.bytes(), "and it is whole again");
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_no_error() {
        if !testing::nvrtc("a cache that cannot be written") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "no folder").unwrap();
        let compiler = Compiler::new(Options::default().cache(file.join("cache")));
        compiler.cubin(&one(), Architecture::OLDEST).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"no folder");
    }
}
