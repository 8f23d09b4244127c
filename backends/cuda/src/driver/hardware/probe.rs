//! What there is: a driver, devices, and what they are. Nothing here panics where nothing is.

use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute};

use super::{Description, DriverError, Result, answer::answer};
use crate::compile::Architecture;

/// The driver of CUDA 12.0: older ones lack functions that are called here.
const OLDEST_DRIVER: i32 = 12_000;

/// Checks that there is a driver, once a process, and starts it.
fn driver() -> Result<()> {
    static FOUND: OnceLock<Result<()>> = OnceLock::new();
    let find = || {
        // SAFETY: loads a library by the driver's names and runs its initialisers, as every call after it does.
        if !unsafe { sys::is_culib_present() } {
            return Err(missing(
                "NVIDIA's driver was not found (libcuda)".to_owned(),
                "install the driver of the GPU; without one, choose another backend",
            ));
        }
        // SAFETY: the library is there; every other call comes after this one.
        answer("cuInit", unsafe { sys::cuInit(0) }).map_err(|error| {
            missing(error.to_string(), "see with `nvidia-smi` whether the driver works and shows a GPU")
        })?;
        let mut version = 0;
        // SAFETY: the driver was started, and the number has a place.
        answer("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
        if version < OLDEST_DRIVER {
            let what = format!("the driver is of CUDA {}.{}", version / 1000, version % 1000 / 10);
            return Err(missing(what, "install one of CUDA 12.0 or later"));
        }
        Ok(())
    };
    FOUND.get_or_init(find).clone()
}

fn missing(what: String, remedy: &'static str) -> DriverError {
    DriverError::Missing { what, remedy }
}

pub(super) fn device_count() -> Result<u32> {
    driver()?;
    let mut count = 0;
    // SAFETY: the driver was started, and the number has a place.
    answer("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
    Ok(count.try_into().unwrap_or(0))
}

/// A device by its number, and what it is.
pub(super) fn device(number: u32) -> Result<(CUdevice, Description)> {
    let count = device_count()?;
    if number >= count {
        let what = format!("there is no GPU {number}: the driver shows {count}");
        return Err(missing(what, "choose a lower number, or see CUDA_VISIBLE_DEVICES"));
    }
    let mut device = 0;
    // SAFETY: the driver was started, there is a device of this number, and its handle has a place.
    let result = unsafe { sys::cuDeviceGet(&raw mut device, number.try_into().unwrap_or(i32::MAX)) };
    answer("cuDeviceGet", result)?;
    let of = |attribute| attribute_of(device, attribute);
    let capability = (
        of(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        of(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let name = name(device)?;
    if capability < Architecture::OLDEST.capability() {
        let what = format!("{name} has compute capability {}.{}", capability.0, capability.1);
        return Err(missing(what, "the kernels need 8.0 (Ampere) or later: choose another GPU or backend"));
    }
    let mut memory = 0;
    // SAFETY: the device came from the driver, and the number has a place.
    answer("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&raw mut memory, device) })?;
    let description = Description::new(
        name,
        Architecture::of_device(capability.0, capability.1),
        of(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory as u64,
        of(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
    );
    Ok((device, description))
}

/// Whether it allocates in the order of streams.
pub(super) fn has_pools(device: CUdevice) -> Result<bool> {
    attribute_of(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
        .map(|value| value != 0)
}

fn attribute_of(device: CUdevice, attribute: CUdevice_attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the device came from the driver, and the value has a place.
    let result = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
    answer("cuDeviceGetAttribute", result)?;
    Ok(value.try_into().unwrap_or(0))
}

fn name(device: CUdevice) -> Result<String> {
    let mut bytes = [0_u8; 256];
    // SAFETY: the device came from the driver, which writes at most as many bytes as it is told, the last one a NUL.
    let result = unsafe { sys::cuDeviceGetName(bytes.as_mut_ptr().cast(), 256, device) };
    answer("cuDeviceGetName", result)?;
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned())
}
