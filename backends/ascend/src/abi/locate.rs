//! Where CANN's libraries lie.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use libloading::Library;

use super::bindings::Functions;
use crate::runtime::RuntimeError;

/// The run time: without it there is nothing.
const RUNTIME: &str = "libascendcl.so";
/// Descriptors, operators in one library or in several, those of earlier releases, and a user's own. A release has some.
const OTHERS: &[&str] = &[
    "libnnopbase.so",
    "libopapi.so",
    "libopapi_math.so",
    "libopapi_nn.so",
    "libopapi_transformer.so",
    "libaclnn_math.so",
    "libaclnn_ops_infer.so",
    "libcust_opapi.so",
];
/// Variables that CANN's set-up scripts set to the toolkit's folder.
const TOOLKIT: &[&str] = &["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"];

/// Opens them: the one file that is given, or those of the folder that is given, or of the toolkit, or of the loader's path.
pub(super) fn open(path: Option<&Path>) -> Result<Vec<Functions>, RuntimeError> {
    let places = match path {
        Some(file) if file.is_file() => {
            return open_one(file).map(|library| vec![library]).map_err(|error| missing(&error));
        }
        Some(folder) => vec![folder.to_path_buf()],
        None => places(|name| std::env::var_os(name).map(PathBuf::from)),
    };
    let mut failures = Vec::new();
    for place in places {
        match open_one(&place.join(RUNTIME)) {
            Ok(runtime) => {
                // Another library than the run time is missing only where something of it is called.
                let others = OTHERS.iter().filter_map(|name| open_one(&place.join(name)).ok());
                return Ok(std::iter::once(runtime).chain(others).collect());
            }
            Err(error) => failures.push(error),
        }
    }
    Err(missing(&failures.join("; ")))
}

/// Folders to look in; the empty one is the loader's path.
fn places(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let toolkits = TOOLKIT.iter().filter_map(|name| variable(name)).map(|folder| folder.join("lib64"));
    toolkits.chain([PathBuf::new()]).collect()
}

fn open_one(path: &Path) -> Result<Functions, String> {
    // What the loader says is the cause of the error.
    let told = |error: libloading::Error| {
        let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("{}: {cause}", path.display())
    };
    // SAFETY: the user has named it, or it has the name of a library of CANN's; what it does when it is opened is its own.
    let library = unsafe { Library::new(path) }.map_err(told)?;
    // SAFETY: functions of these names have the types that CANN documents.
    unsafe { Functions::from_library(library) }.map_err(told)
}

fn missing(why: &str) -> RuntimeError {
    let what = format!("CANN's run time was not found ({why})");
    let remedy =
        "install CANN and source its `set_env.sh`, or give its folder of libraries (`Options::library`)";
    RuntimeError::Missing { what, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toolkit_comes_before_the_loaders_path() {
        let variable = |name: &str| (name == "ASCEND_TOOLKIT_HOME").then(|| PathBuf::from("/toolkit"));
        assert_eq!(places(variable), [PathBuf::from("/toolkit/lib64"), PathBuf::new()]);
        let both = places(|name| Some(PathBuf::from("/").join(name)));
        assert_eq!(both[0], PathBuf::from("/ASCEND_HOME_PATH/lib64"));
        assert_eq!(both.len(), 3);
    }

    #[test]
    fn without_cann_the_error_says_what_to_do() {
        let folder = Path::new("no such folder");
        let error = open(Some(folder)).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("no such folder") && error.contains("set_env.sh"), "{error}");
    }
}
