//! Arrays and scalars of the host: copied when they are made, and once more by phase one; scalars live until phase two all the
//! same, since no document says that they are copied there.

use std::sync::{Arc, Mutex};

use crate::element::Element;
use crate::foreign;
use crate::handle::{Handle, Table};
use crate::runtime::error::{Failure, PARAMETER_INVALID, PARAMETER_NULL, answer, lock};

/// The values of an `aclIntArray`, an `aclFloatArray`, an `aclBoolArray` or an `aclScalar`.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Bools(Vec<bool>),
    Scalar(f64),
}

static ARRAYS: Mutex<Table<Arc<Values>>> = Mutex::new(Table::new("array or scalar", 10));

fn get(handle: Handle) -> Result<Arc<Values>, Failure> {
    let code = if handle == 0 { PARAMETER_NULL } else { PARAMETER_INVALID };
    lock(&ARRAYS).get(handle, code)
}

/// The values of an `aclIntArray`.
pub(crate) fn integers(handle: Handle) -> Result<Vec<i64>, Failure> {
    match &*get(handle)? {
        Values::Integers(values) => Ok(values.clone()),
        other => Err(Failure::new(PARAMETER_INVALID, format!("no aclIntArray but {other:?}"))),
    }
}

/// The value of an `aclScalar`.
pub(crate) fn scalar(handle: Handle) -> Result<f64, Failure> {
    match &*get(handle)? {
        Values::Scalar(value) => Ok(*value),
        other => Err(Failure::new(PARAMETER_INVALID, format!("no aclScalar but {other:?}"))),
    }
}

/// True until it is destroyed.
pub(crate) fn lives(handle: Handle) -> bool {
    lock(&ARRAYS).holds(handle)
}

/// Forgets all arrays; says how many nobody had destroyed.
pub(crate) fn clear() -> Option<String> {
    lock(&ARRAYS).clear()
}

fn add(function: &str, values: Result<Values, Failure>) -> Handle {
    match values {
        Ok(values) => lock(&ARRAYS).add(Arc::new(values)),
        Err(failure) => {
            answer(function, Err(failure));
            0
        }
    }
}

fn destroy(function: &str, handle: Handle) -> i32 {
    answer(function, lock(&ARRAYS).take(handle, PARAMETER_NULL).map(drop))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclCreateIntArray(values: *const i64, count: u64) -> Handle {
    add("aclCreateIntArray", foreign::array("value", values, count).map(Values::Integers))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclCreateFloatArray(values: *const f32, count: u64) -> Handle {
    add("aclCreateFloatArray", foreign::array("value", values, count).map(Values::Floats))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclCreateBoolArray(values: *const u8, count: u64) -> Handle {
    let bools = |values: Vec<u8>| Values::Bools(values.into_iter().map(|value| value != 0).collect());
    add("aclCreateBoolArray", foreign::array("value", values, count).map(bools))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclCreateScalar(value: *const u8, data_type: i32) -> Handle {
    let create = || {
        let unknown = || Failure::new(PARAMETER_INVALID, format!("dataType {data_type} is not modelled"));
        let element = Element::of(data_type).ok_or_else(unknown)?;
        let bytes = foreign::array("value", value, element.size() as u64)?;
        Ok(Values::Scalar(element.value(&bytes)))
    };
    add("aclCreateScalar", create())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclDestroyIntArray(array: Handle) -> i32 {
    destroy("aclDestroyIntArray", array)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclDestroyFloatArray(array: Handle) -> i32 {
    destroy("aclDestroyFloatArray", array)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclDestroyBoolArray(array: Handle) -> i32 {
    destroy("aclDestroyBoolArray", array)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclDestroyScalar(scalar: Handle) -> i32 {
    destroy("aclDestroyScalar", scalar)
}
