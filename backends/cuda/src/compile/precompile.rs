//! Machine code of every program in a folder, for machines without NVRTC.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::{
    Architecture, CompileError, Program,
    compiler::precompiled_name,
    folder::Folder,
    nvrtc::{Output, compile},
};

/// What [`precompile`] has made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Precompiled {
    /// The program, with its constants.
    pub program: String,
    /// The file.
    pub file: PathBuf,
    /// Size of its machine code in bytes.
    pub bytes: usize,
}

/// Compiles programs for one architecture into a folder, with all host threads; gives what was made, in the programs' order.
/// Files of other architectures and versions may lie there too.
///
/// `programs` are [`crate::programs()`] but in tests.
///
/// # Errors
/// The first program's that fails: NVRTC's, or [`CompileError::Write`].
pub fn precompile(
    programs: &[Program],
    architecture: Architecture,
    folder: &Path,
) -> Result<Vec<Precompiled>, CompileError> {
    let to = Folder::new(folder.to_owned());
    let one = |program: &Program| {
        let code = compile(program, architecture, Output::Cubin)?.code;
        let name = precompiled_name(program, architecture)?;
        let file = folder.join(&name);
        match to.write(&name, &code) {
            Ok(()) => Ok(Precompiled { program: program.to_string(), file, bytes: code.len() }),
            Err(cause) => Err(CompileError::Write { path: file, cause: cause.to_string() }),
        }
    };
    for_all(programs, one).into_iter().collect()
}

/// `work` for each program, on as many threads as the machine has; the results in the programs' order.
pub(crate) fn for_all<T: Send>(programs: &[Program], work: impl Fn(&Program) -> T + Sync) -> Vec<T> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(programs.len())));
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(program) = programs.get(index) else { return };
            let result = work(program);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(programs.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        compile::{Compiler, Options, Source},
        testing,
    };

    static ONE: Source =
        Source::new("one.cu", "#include \"prelude.cuh\"\nKERNEL void one(i32* x) { *x = N; }\n");

    #[test]
    fn a_precompiled_folder_is_read_by_the_compiler() {
        if !testing::nvrtc("precompiled kernels") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let programs = [1, 2, 3].map(|n| Program::new(&ONE).define("N", n));
        let made = precompile(&programs, Architecture::OLDEST, folder.path()).unwrap();
        assert_eq!(made.len(), 3);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        let compiler = Compiler::new(Options::default().precompiled(folder.path()));
        for (program, made) in programs.iter().zip(&made) {
            assert_eq!(made.program, program.to_string());
            assert_eq!(compiler.cubin(program, Architecture::OLDEST).unwrap().bytes().len(), made.bytes);
        }
        // It is the file that is read: another code in it comes back.
        let name = made[0].file.file_name().unwrap().to_str().unwrap();
        Folder::new(folder.path().to_owned()).write(name, b"from the file").unwrap();
        assert_eq!(compiler.cubin(&programs[0], Architecture::OLDEST).unwrap().bytes(), b"from the file");
        // A damaged one is compiled where that can be done.
        fs::write(&made[0].file, "damaged").unwrap();
        assert_eq!(compiler.cubin(&programs[0], Architecture::OLDEST).unwrap().bytes().len(), made[0].bytes);
    }

    #[test]
    fn what_fails_is_named() {
        if !testing::nvrtc("a failing precompilation") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let wrong = [Program::new(&ONE).define("N", 1), Program::new(&ONE).define("N", "nothing")];
        let error = precompile(&wrong, Architecture::OLDEST, folder.path()).unwrap_err();
        assert!(error.to_string().contains("one.cu (N=nothing)"), "{error}");
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = precompile(&wrong[..1], Architecture::OLDEST, &file.join("out")).unwrap_err();
        assert!(matches!(error, CompileError::Write { .. }), "{error}");
    }

    #[test]
    fn all_are_worked_on_in_order() {
        let programs: Vec<_> = (0..100).map(|n| Program::new(&ONE).define("N", n)).collect();
        let expected: Vec<_> = programs.iter().map(ToString::to_string).collect();
        assert_eq!(for_all(&programs, ToString::to_string), expected);
        assert!(for_all(&[], ToString::to_string).is_empty());
    }
}
