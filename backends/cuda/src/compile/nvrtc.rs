//! NVRTC, the compiler as a library: found at run time, or not.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    fmt,
    ptr::null,
    sync::OnceLock,
};

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};

use super::{Architecture, CompileError, Program, source::headers};

/// The version of an NVRTC: `13.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct NvrtcVersion {
    /// The toolkit's major version.
    pub major: u32,
    /// The toolkit's minor version.
    pub minor: u32,
}

impl fmt::Display for NvrtcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The version of NVRTC on this machine; `None` where there is none.
pub fn nvrtc_version() -> Option<NvrtcVersion> {
    static FOUND: OnceLock<Option<NvrtcVersion>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: loads a library by NVRTC's names and runs its initialisers, as every call below does.
        if !unsafe { sys::is_culib_present() } {
            return None;
        }
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library is there, and both pointers are to integers that outlive the call.
        let result = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
        let version = NvrtcVersion { major: major.try_into().ok()?, minor: minor.try_into().ok()? };
        (result == nvrtcResult::NVRTC_SUCCESS).then_some(version)
    })
}

/// What to make of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Machine code for exactly one architecture.
    Cubin,
    /// PTX with the lines of the source, for the interpreter.
    Ptx,
}

/// What NVRTC made, and what it said.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) code: Vec<u8>,
    /// Warnings; empty where there are none. The kernels have none: a test reads it.
    #[cfg_attr(not(test), allow(dead_code, reason = "the test that no kernel has a warning"))]
    pub(crate) log: String,
}

/// Compiles a program.
pub(crate) fn compile(
    program: &Program,
    architecture: Architecture,
    output: Output,
) -> Result<Compiled, CompileError> {
    if nvrtc_version().is_none() {
        return Err(CompileError::NvrtcMissing { program: program.to_string() });
    }
    let refused = |code: String, log: String| CompileError::Refused {
        program: program.to_string(),
        architecture: architecture.to_string(),
        code,
        log,
    };
    let mut options = program.options();
    options.push(format!("--gpu-architecture={architecture}"));
    if output == Output::Ptx {
        options.push("--generate-line-info".to_owned());
    }
    let source = program.source();
    let headers = headers(source.text)
        .map_err(|header| CompileError::Header { program: program.to_string(), header })?;
    let c_string =
        |text: &str| CString::new(text).map_err(|_| refused("a text with a NUL".to_owned(), text.to_owned()));
    let c_strings = |texts: Vec<&str>| texts.into_iter().map(c_string).collect::<Result<Vec<_>, _>>();
    let (file, text) = (c_string(source.file)?, c_string(source.text)?);
    let names = c_strings(headers.iter().map(|header| header.file).collect())?;
    let texts = c_strings(headers.iter().map(|header| header.text).collect())?;
    let options = c_strings(options.iter().map(String::as_str).collect())?;

    let unit = Unit::new(&text, &file, &texts, &names)
        .map_err(|code| refused(format!("{code:?}"), String::new()))?;
    let result = unit.compile(&options);
    let log = unit.log();
    result.map_err(|code| refused(format!("{code:?}"), log.clone()))?;
    let code = unit.code(output).map_err(|code| refused(format!("{code:?}"), log.clone()))?;
    if code.is_empty() {
        return Err(refused("it made nothing".to_owned(), log));
    }
    Ok(Compiled { code, log })
}

/// A program of NVRTC's, destroyed when it is dropped. (`Unit`, a translation unit: `Program` is ours.)
struct Unit(nvrtcProgram);

impl Unit {
    fn new(text: &CStr, file: &CStr, headers: &[CString], names: &[CString]) -> Result<Self, nvrtcResult> {
        let (headers, names) = (pointers(headers), pointers(names));
        let mut unit = std::ptr::null_mut();
        // SAFETY: every text ends with a NUL and outlives the call, which copies what it keeps; the two lists are equally
        // long, as the count says.
        let result = unsafe {
            sys::nvrtcCreateProgram(
                &raw mut unit,
                text.as_ptr(),
                file.as_ptr(),
                count(headers.len()),
                if headers.is_empty() { null() } else { headers.as_ptr() },
                if names.is_empty() { null() } else { names.as_ptr() },
            )
        };
        success(result).map(|()| Unit(unit))
    }

    fn compile(&self, options: &[CString]) -> Result<(), nvrtcResult> {
        let options = pointers(options);
        // SAFETY: the program lives; the options are as many texts as the count says.
        success(unsafe { sys::nvrtcCompileProgram(self.0, count(options.len()), options.as_ptr()) })
    }

    fn log(&self) -> String {
        // SAFETY: both are called with the program, which lives, as `read` demands.
        let log = unsafe { self.read(sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog) };
        String::from_utf8_lossy(&text(log.unwrap_or_default())).trim_end().to_owned()
    }

    fn code(&self, output: Output) -> Result<Vec<u8>, nvrtcResult> {
        // SAFETY: each pair is of a size and of that many bytes, as `read` demands.
        unsafe {
            match output {
                Output::Cubin => self.read(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN),
                Output::Ptx => self.read(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX).map(text),
            }
        }
    }

    /// # Safety
    /// `size` writes how many bytes `get` writes for the same program.
    unsafe fn read(
        &self,
        size: unsafe fn(nvrtcProgram, *mut usize) -> nvrtcResult,
        get: unsafe fn(nvrtcProgram, *mut c_char) -> nvrtcResult,
    ) -> Result<Vec<u8>, nvrtcResult> {
        let mut bytes = 0;
        // SAFETY: the program lives, and the size has a place.
        success(unsafe { size(self.0, &raw mut bytes) })?;
        let mut read = vec![0_u8; bytes];
        if bytes > 0 {
            // SAFETY: there is room for as many bytes as it said.
            success(unsafe { get(self.0, read.as_mut_ptr().cast()) })?;
        }
        Ok(read)
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // SAFETY: it was created by NVRTC, and nobody uses it after this. What it answers changes nothing any more.
        let _ = unsafe { sys::nvrtcDestroyProgram(&raw mut self.0) };
    }
}

/// A text without the NUL that C puts at its end.
fn text(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

/// Some dozens of options and headers at most.
fn count(length: usize) -> c_int {
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

fn success(result: nvrtcResult) -> Result<(), nvrtcResult> {
    if result == nvrtcResult::NVRTC_SUCCESS { Ok(()) } else { Err(result) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compile::Source, testing};

    #[test]
    fn a_mistake_is_told_with_program_line_and_compiler_log() {
        static WRONG: Source =
            Source::new("some/wrong.cu", "#include \"prelude.cuh\"\nKERNEL void f() {\n    i32 x = y;\n}\n");
        if !testing::nvrtc("a mistake in a source") {
            return;
        }
        let error = compile(&Program::new(&WRONG), Architecture::OLDEST, Output::Cubin).unwrap_err();
        assert!(matches!(error, CompileError::Refused { .. }));
        let text = error.to_string();
        for part in ["some/wrong.cu for sm_80", "some/wrong.cu(3)", "identifier \"y\" is undefined"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn an_architecture_that_the_compiler_does_not_know_is_its_error() {
        static EMPTY: Source = Source::new("empty.cu", "");
        if !testing::nvrtc("an unknown architecture") {
            return;
        }
        let future = Architecture::of_device(99, 9);
        let text = compile(&Program::new(&EMPTY), future, Output::Cubin).unwrap_err().to_string();
        assert!(text.contains("empty.cu for sm_999a") && text.contains("gpu-architecture"), "{text}");
    }

    #[test]
    fn what_cannot_be_given_to_the_compiler_is_an_error() {
        static HEADERLESS: Source = Source::new("a.cu", "#include \"gone.cuh\"\n");
        static EMPTY: Source = Source::new("b.cu", "");
        if !testing::nvrtc("texts that NVRTC cannot be given") {
            return;
        }
        let error = compile(&Program::new(&HEADERLESS), Architecture::OLDEST, Output::Ptx).unwrap_err();
        assert_eq!(error.to_string(), "a.cu: includes \"gone.cuh\", which is no header of the crate");
        let nul = Program::new(&EMPTY).define("X", "1\0");
        assert!(compile(&nul, Architecture::OLDEST, Output::Ptx).is_err());
    }

    #[test]
    fn ptx_is_text_with_the_lines_of_the_source() {
        static ONE: Source =
            Source::new("one.cu", "#include \"prelude.cuh\"\nKERNEL void one(i32* x) { *x = LEAST; }\n");
        if !testing::nvrtc("PTX") {
            return;
        }
        let program = Program::new(&ONE).define("LEAST", 4711);
        let compiled = compile(&program, Architecture::OLDEST, Output::Ptx).unwrap();
        let text = String::from_utf8(compiled.code).unwrap();
        for part in [".target sm_80", ".entry one(", "4711", "one.cu\"", ".loc"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\0'));
        let cubin = compile(&program, Architecture::OLDEST, Output::Cubin).unwrap();
        assert!(cubin.code.starts_with(b"\x7fELF") && cubin.log.is_empty(), "{}", cubin.log);
    }
}
