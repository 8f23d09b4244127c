//! The shared library as a loader sees it: every function is a symbol, and the simplest life goes through C's calls.

#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_void};
use std::path::{Path, PathBuf};

/// Cargo puts the library beside the tests.
fn library() -> *mut c_void {
    let file = std::env::current_exe().unwrap().with_file_name("libhalite_cann.so");
    let path = CString::new(file.to_str().unwrap()).unwrap();
    // SAFETY: the library has no initialisers that ask for anything.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null(), "{} is not loaded", file.display());
    library
}

fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap();
    // SAFETY: the library is loaded, and the name ends in 0.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// The names of the C functions in the sources.
fn names() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        for line in text.lines() {
            let function =
                line.strip_prefix("pub(crate) extern \"C\" fn ").and_then(|rest| rest.split_once('('));
            let second = line.strip_prefix("phase_two!(").and_then(|rest| rest.split_once(')'));
            names.extend(function.or(second).map(|(name, _)| name.to_owned()));
        }
    }
    names
}

#[test]
fn every_function_is_a_symbol() {
    let library = library();
    let names = names();
    assert!(names.len() > 100, "{names:?}");
    for name in &names {
        assert!(!symbol(library, name).is_null(), "{name}");
    }
    // An operator has both phases.
    let operators = names.iter().filter(|name| name.starts_with("aclnn") && !name.contains("Init"));
    for name in operators.filter(|name| *name != "aclnnFinalize" && !name.ends_with("GetWorkspaceSize")) {
        assert!(names.contains(&format!("{name}GetWorkspaceSize")), "{name}");
    }
    assert!(symbol(library, "aclnnNoSuchOperator").is_null());
}

type Init = unsafe extern "C" fn(*const c_char) -> i32;
type SetDevice = unsafe extern "C" fn(i32) -> i32;
type Malloc = unsafe extern "C" fn(*mut *mut c_void, usize, i32) -> i32;
type Memcpy = unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize, i32) -> i32;
type Free = unsafe extern "C" fn(*mut c_void) -> i32;
type Finalize = unsafe extern "C" fn() -> i32;

#[test]
fn bytes_go_there_and_back() {
    let library = library();
    macro_rules! function {
        ($name:literal, $kind:ty) => {{
            let address = symbol(library, $name);
            assert!(!address.is_null());
            // SAFETY: the function is of that type, as CANN's headers have it.
            unsafe { std::mem::transmute::<*mut c_void, $kind>(address) }
        }};
    }
    let (from, mut to) = ([1_u8, 2, 3, 4], [0_u8; 4]);
    let mut device = std::ptr::null_mut();
    let (init, set_device) = (function!("aclInit", Init), function!("aclrtSetDevice", SetDevice));
    let (malloc, free) = (function!("aclrtMalloc", Malloc), function!("aclrtFree", Free));
    let (copy, finalize) = (function!("aclrtMemcpy", Memcpy), function!("aclFinalize", Finalize));
    // SAFETY: pointers are null or lead to memory of the sizes that are told.
    let codes = unsafe {
        [
            init(std::ptr::null()),
            set_device(0),
            malloc(&mut device, 4, 0),
            malloc(std::ptr::null_mut(), 4, 0),
            copy(device, 4, from.as_ptr().cast(), 4, 1),
            copy(to.as_mut_ptr().cast(), 4, device, 4, 2),
            free(device),
            finalize(),
        ]
    };
    assert_eq!(codes, [0, 0, 0, 107_000, 0, 0, 0, 0]);
    assert_eq!(to, from);
}
