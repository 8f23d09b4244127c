//! CANN's C interface as the Ascend backend has it: bindings made of its header, and the header held against CANN's own.
//!
//! What is needed comes as Python packages into `target/ascend`: libclang, which reads the header, and `torch-npu`, which
//! carries `acl/acl.h`. Neither is part of the repository. The descriptors and operators (`aclCreateTensor`, `aclnn...`) are in
//! headers that no public package has: those signatures are from the documentation alone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bindgen::{Builder, EnumVariation, Formatter};

use crate::command::Invocation;
use crate::compiled::{self, Kind};
use crate::peers::{digest, environment, interpreter, piece};
use crate::runner::every;
use crate::workspace::{Workspace, text};

/// The folder with the list of what is needed.
const REQUIREMENTS: &str = "backends/ascend/tests";
const HEADER: &str = "backends/ascend/include/cann.h";
const BINDINGS: &str = "backends/ascend/src/abi/bindings.rs";
/// Where the library that reads headers lies: told to bindgen by the environment of its process.
const LIBCLANG: &str = "LIBCLANG_PATH";
/// The package with CANN's headers.
const HEADERS: &str = "torch-npu==2.14.0";
/// Which documents the stand-in goes by: those of 2025-11, and of 2026-08.
const PROFILES: [&str; 2] = ["8.3", "9.0"];
const PROFILE: &str = "HALITE_CANN_PROFILE";
/// Says in the header that CANN's own was included before it.
const TOGETHER: &str = "HALITE_WITH_ACL";

/// Installs libclang and fetches the headers where they are not there.
pub(crate) fn tools(workspace: &Workspace) -> Result<()> {
    let (root, sources) = (workspace.root(), workspace.root().join(REQUIREMENTS));
    let python = folder(workspace, "python");
    piece(&python, &digest(&sources.join("requirements.txt"))?, || environment(root, &sources, &python))?;
    let headers = folder(workspace, "headers");
    piece(&headers, HEADERS, || {
        // The wheels differ in what was compiled and not in headers, so one of any machine does.
        let one =
            ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_28_x86_64"];
        let download =
            ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", text(&headers)?];
        interpreter(&python, &[&download[..], &one[..], &[HEADERS]].concat())?.run(root)?;
        let unpack = "import pathlib, sys, zipfile\n\
                      folder = pathlib.Path(sys.argv[1])\n\
                      wheel, = folder.glob('*.whl')\n\
                      with zipfile.ZipFile(wheel) as parts:\n\
                      \x20   names = [n for n in parts.namelist() if n.startswith('torch_npu/include/') and n.endswith('.h')]\n\
                      \x20   parts.extractall(folder, names)\n\
                      wheel.unlink()\n";
        interpreter(&python, &["-c", unpack, text(&headers)?])?.run(root)
    })
}

/// The backend's tests on the stand-in, by CANN's documents of either date: each refuses what the other allows.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let mut tests = compiled::all(workspace, Kind::Test)?;
    tests.retain(|test| test.package == "halite-ascend");
    let runs = PROFILES.iter().flat_map(|profile| tests.iter().map(move |test| (test, *profile)));
    every(runs.map(|(test, profile)| test.run(&[], &[(PROFILE, profile), ("CI", "true")])))
}

/// Makes the bindings anew.
pub(crate) fn bindgen(workspace: &Workspace) -> Result<()> {
    tools(workspace)?;
    let path = workspace.root().join(BINDINGS);
    in_environment(workspace, &path)
}

/// The bindings are those of the header, and the header agrees with CANN's own.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let anew = folder(workspace, "bindings.rs");
    in_environment(workspace, &anew)?;
    if fs::read_to_string(&anew)? != fs::read_to_string(workspace.root().join(BINDINGS))? {
        bail!("{BINDINGS} is not made of {HEADER}: run `cargo xtask bindgen-ascend`");
    }
    let header = fs::read_to_string(workspace.root().join(HEADER))?;
    let agrees = folder(workspace, "agrees.c");
    compile_together(workspace, &agrees, &header)?;
    // The check can fail: a parameter of another type, and an enumerator of another value.
    for (right, wrong) in [("uint32_t *count", "uint64_t *count"), ("ACL_BF16 = 27", "ACL_BF16 = 28")] {
        if !header.contains(right) {
            bail!("{HEADER} has no `{right}`, which the check of the check replaces");
        }
        let path = folder(workspace, "disagrees.c");
        if compile_together(workspace, &path, &header.replace(right, wrong)).is_ok() {
            bail!("a header with `{wrong}` compiles together with acl/acl.h: the check proves nothing");
        }
    }
    Ok(())
}

/// Compiles a header of ours after CANN's, and compares the values of its enumerators.
fn compile_together(workspace: &Workspace, path: &Path, header: &str) -> Result<()> {
    let mut source = format!("#define {TOGETHER}\n#include <acl/acl.h>\n{header}");
    for (name, value) in enumerators(header) {
        source.push_str(&format!("_Static_assert({name} == {value}, \"{name}\");\n"));
    }
    fs::write(path, source).with_context(|| path.display().to_string())?;
    let include = folder(workspace, "headers").join("torch_npu").join("include");
    let arguments =
        ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", text(&include)?, text(path)?];
    Invocation::new("cc", &arguments, "install a C compiler").capture(workspace.root()).map(drop)
}

/// Lines `ACL_NAME = value,` of a header.
fn enumerators(header: &str) -> Vec<(&str, &str)> {
    header
        .lines()
        .filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "))
        .filter(|(name, _)| name.starts_with("ACL_"))
        .collect()
}

/// Bindgen finds libclang by a variable of its own process, so this program is started once more.
fn in_environment(workspace: &Workspace, to: &Path) -> Result<()> {
    let script = "import pathlib, clang; print(pathlib.Path(clang.__file__).parent / 'native')";
    let python = folder(workspace, "python");
    let library = interpreter(&python, &["-c", script])?.capture_line(workspace.root())?;
    let program = std::env::current_exe()?;
    let arguments = ["bindgen-ascend", "--to", text(to)?];
    Invocation::at(program.into_os_string(), "cargo xtask", &arguments, "run `cargo xtask`")
        .env(LIBCLANG, library)
        .run(workspace.root())
}

/// The bindings of the header: a structure of functions that are looked up in a library when it is opened.
pub(crate) fn generate(workspace: &Workspace, to: &Path) -> Result<()> {
    let header = workspace.root().join(HEADER);
    // libclang comes without the headers of a compiler.
    let compiler = Invocation::new("cc", &["-print-file-name=include"], "install a C compiler");
    let include = compiler.capture_line(workspace.root())?;
    let bindings = Builder::default()
        .header(text(&header)?)
        .clang_args(["-isystem", include.as_str()])
        .allowlist_file(".*cann\\.h")
        .dynamic_library_name("Functions")
        .default_enum_style(EnumVariation::Consts)
        .prepend_enum_name(false)
        .ctypes_prefix("core::ffi")
        .use_core()
        .generate_comments(false)
        .layout_tests(false)
        .wrap_unsafe_ops(true)
        .disable_header_comment()
        .raw_line(format!("// Made of {HEADER} by `cargo xtask bindgen-ascend`.\n"))
        .formatter(Formatter::None)
        .generate()
        .with_context(|| header.display().to_string())?;
    bindings.write_to_file(to).with_context(|| to.display().to_string())?;
    Invocation::new("rustfmt", &[text(to)?], "run `rustup component add rustfmt`").run(workspace.root())?;
    let made = fs::read_to_string(to)?;
    fs::write(to, without_methods(&made)?).with_context(|| to.display().to_string())
}

/// Only the method that looks functions up in a library. The others panic where a function is not there, or open a library as
/// an earlier release of `libloading` did; the backend asks the fields.
fn without_methods(bindings: &str) -> Result<String> {
    let place =
        |mark| bindings.find(mark).with_context(|| format!("bindgen makes something else: no `{mark}`"));
    let [open, look_up, call] = [
        place("    pub unsafe fn new<")?,
        place("    pub unsafe fn from_library<")?,
        place("    pub unsafe fn acl")?,
    ];
    Ok(format!("{}{}\n}}\n", &bindings[..open], bindings[look_up..call].trim_end()))
}

fn folder(workspace: &Workspace, part: &str) -> PathBuf {
    workspace.root().join("target").join("ascend").join(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_taken_off() {
        let (kept, end) = ("impl F {\n", "    pub unsafe fn from_library<L>() {}\n");
        let made =
            format!("{kept}    pub unsafe fn new<P>() {{}}\n\n{end}\n    pub unsafe fn aclInit() {{}}\n}}\n");
        assert_eq!(without_methods(&made).unwrap(), format!("{kept}{end}}}\n"));
        let error = without_methods(kept).unwrap_err().to_string();
        assert!(error.contains("pub unsafe fn new<"), "{error}");
    }

    #[test]
    fn enumerators_are_found_and_nothing_else() {
        let header = "typedef enum e {\n    ACL_A = 0,\n    ACL_B = -1,\n} e;\nint f(int a,\n      int b);\n#define ACL_C 3\n";
        assert_eq!(enumerators(header), [("ACL_A", "0"), ("ACL_B", "-1")]);
    }
}
