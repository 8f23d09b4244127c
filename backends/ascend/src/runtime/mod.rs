//! CANN's run time as the backend uses it: one device's context, its objects as counted handles, and errors that name the call.
//!
//! CANN has a current context for each thread, so every call sets it first. A device that broke says so once, in CANN's own
//! words; every call after that answers that it is lost.

mod attention;
mod copies;
mod descriptor;
mod elementwise;
mod error;
mod grouped_matmul;
mod handles;
mod list;
mod operation;
mod operators;
mod quant_matmul;
mod select;
mod staging;

use std::{
    path::PathBuf,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use halite_hal::Result;

use crate::abi::{Cann, bindings, function};

pub(crate) use attention::{FusedInferAttention, QueryLayout};
pub(crate) use descriptor::Descriptor;
pub(crate) use elementwise::Elementwise;
pub(crate) use error::RuntimeError;
pub(crate) use handles::{Event, Memory, Pinned, Queue, Recording};
pub(crate) use operation::Operation;
pub(crate) use operators::Operator;
pub(crate) use quant_matmul::QuantMatmul;
pub(crate) use staging::{Download, Staging};

type Answer<T> = std::result::Result<T, RuntimeError>;

/// Calls a function of CANN's in a device's context, and makes its code an error.
macro_rules! call {
    ($runtime:expr, $name:ident($($argument:expr),* $(,)?)) => {
        $runtime.enter().and_then(|cann| {
            let function = $crate::abi::function!(cann, $name)?;
            // SAFETY: arguments are as the header declares them: objects that CANN made in this context and their handles
            // hold, host memory that outlives what is done with it, and places of this frame for results.
            match unsafe { function($($argument),*) } {
                0 => Ok(()),
                code => Err(cann.error(stringify!($name), code)),
            }
        })
    };
}
use call;

/// A device's context. Cloning gives another handle to it.
#[derive(Clone)]
pub(crate) struct Runtime(Arc<Inner>);

struct Inner {
    cann: Arc<Cann>,
    /// A handle of CANN's.
    context: usize,
    description: Description,
    lost: AtomicBool,
}

/// What a device tells of itself.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    /// Of the chip, and its number.
    pub(crate) name: String,
    /// The release of the run time.
    pub(crate) version: String,
    pub(crate) cores: usize,
    /// In bytes.
    pub(crate) memory: u64,
}

impl Runtime {
    /// The device of a number, from the libraries of a path where one is given.
    pub(crate) fn open(path: Option<PathBuf>, number: u32) -> Answer<Self> {
        let cann = Cann::open(path)?;
        let description = Description { name: String::new(), version: String::new(), cores: 1, memory: 0 };
        let mut inner = Inner { cann, context: 0, description, lost: AtomicBool::new(false) };
        let devices = inner.count()?;
        let device = i32::try_from(number).ok().filter(|_| number < devices).ok_or_else(|| {
            let what = format!("there is no device {number}: CANN tells of {devices}");
            RuntimeError::Missing { what, remedy: "choose another, see `npu-smi info`" }
        })?;
        let mut context = ptr::null_mut();
        let cann = &inner.cann;
        let (set, get) = (function!(cann, aclrtSetDevice)?, function!(cann, aclrtGetCurrentContext)?);
        // SAFETY: there is such a device.
        check(cann, "aclrtSetDevice", unsafe { set(device) })?;
        // SAFETY: the result's place is of this frame.
        check(cann, "aclrtGetCurrentContext", unsafe { get(&mut context) })?;
        inner.context = context as usize;
        inner.describe(number)?;
        Ok(Runtime(Arc::new(inner)))
    }

    /// What the device is.
    pub(crate) fn description(&self) -> &Description {
        &self.0.description
    }

    /// The functions, with this device's context set for the thread.
    fn enter(&self) -> Answer<&Cann> {
        if self.0.lost.load(Ordering::Acquire) {
            return Err(RuntimeError::Lost);
        }
        self.0.enter()
    }

    /// Whether this release has a function.
    pub(crate) fn has<T>(&self, get: impl Fn(&bindings::Functions) -> Option<T>) -> bool {
        self.0.cann.find(get).is_some()
    }

    /// The error as that of all devices. The first of a device that broke is told as it is, and from then on the device is lost.
    pub(crate) fn told<T>(&self, answer: Answer<T>) -> Result<T> {
        answer.map_err(|error| {
            if error.is_sticky() && self.0.lost.swap(true, Ordering::AcqRel) {
                return RuntimeError::Lost.on(&self.0.description.name);
            }
            error.on(&self.0.description.name)
        })
    }
}

fn check(cann: &Cann, call: &'static str, code: i32) -> Answer<()> {
    if code == 0 { Ok(()) } else { Err(cann.error(call, code)) }
}

impl Inner {
    fn enter(&self) -> Answer<&Cann> {
        let set = function!(self.cann, aclrtSetCurrentContext)?;
        // SAFETY: CANN made the context, and it lives as long as the process: the device is never reset.
        check(&self.cann, "aclrtSetCurrentContext", unsafe { set(self.context as *mut _) })?;
        Ok(&self.cann)
    }

    fn count(&self) -> Answer<u32> {
        let (count, mut devices) = (function!(self.cann, aclrtGetDeviceCount)?, 0);
        // SAFETY: the result's place is of this frame.
        check(&self.cann, "aclrtGetDeviceCount", unsafe { count(&mut devices) })?;
        Ok(devices)
    }

    fn describe(&mut self, number: u32) -> Answer<()> {
        let cann = self.enter()?;
        let chip = function!(cann, aclrtGetSocName)?;
        // SAFETY: it takes nothing.
        let chip = unsafe { chip() };
        let chip = if chip.is_null() {
            "unknown chip".to_owned()
        } else {
            // SAFETY: it is a C string of CANN's own, which lives as long as the process.
            unsafe { std::ffi::CStr::from_ptr(chip) }.to_string_lossy().into_owned()
        };
        let (version, [mut major, mut minor, mut patch]) = (function!(cann, aclrtGetVersion)?, [0; 3]);
        // SAFETY: the results' places are of this frame.
        check(cann, "aclrtGetVersion", unsafe { version(&mut major, &mut minor, &mut patch) })?;
        let (info, [mut free, mut total]) = (function!(cann, aclrtGetMemInfo)?, [0; 2]);
        // SAFETY: as above.
        check(cann, "aclrtGetMemInfo", unsafe { info(bindings::ACL_HBM_MEM, &mut free, &mut total) })?;
        // Releases that do not tell how many cores there are still compute.
        let mut cores = 1;
        if let Ok(info) = function!(cann, aclrtGetDeviceInfo) {
            // SAFETY: as above.
            let code = unsafe { info(number, bindings::ACL_DEV_ATTR_AICORE_CORE_NUM, &mut cores) };
            cores = if code == 0 { cores } else { 1 };
        }
        self.description = Description {
            name: format!("{chip} {number}"),
            version: format!("{major}.{minor}.{patch}"),
            cores: usize::try_from(cores).unwrap_or(1).max(1),
            memory: total as u64,
        };
        Ok(())
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Runtime({})", self.0.description.name)
    }
}
