//! `aclTensorList`: tensors in order; the list owns them from then on, as two_phase_api.md of 2026-08 has it.

use std::sync::{Arc, Mutex};

use super::tensor::{self, Tensor};
use crate::foreign;
use crate::handle::{Handle, Table};
use crate::runtime::error::{Failure, PARAMETER_INVALID, PARAMETER_NULL, answer, lock};

/// More tensors no list of the documents has.
const LIMIT: u64 = 1024;

/// The handles of a list's tensors, in order.
pub(crate) type Members = Arc<Vec<Handle>>;

static LISTS: Mutex<Table<Members>> = Mutex::new(Table::new("aclTensorList", 9));

/// The tensors of a list, with their handles.
pub(crate) fn find(handle: Handle) -> Result<Vec<(Handle, Arc<Tensor>)>, Failure> {
    let code = if handle == 0 { PARAMETER_NULL } else { PARAMETER_INVALID };
    let members = lock(&LISTS).get(handle, code)?;
    members.iter().map(|&member| Ok((member, tensor::find(member)?))).collect()
}

/// Forgets all lists; says how many nobody had destroyed.
pub(crate) fn clear() -> Option<String> {
    lock(&LISTS).clear()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclCreateTensorList(tensors: *const Handle, count: u64) -> Handle {
    let create = || {
        if count > LIMIT {
            return Err(Failure::new(PARAMETER_INVALID, format!("size {count}, limit {LIMIT}")));
        }
        let members = foreign::array("value", tensors, count)?;
        for &member in &members {
            tensor::find(member)?;
        }
        Ok(lock(&LISTS).add(Arc::new(members)))
    };
    match create() {
        Ok(handle) => handle,
        Err(failure) => {
            answer("aclCreateTensorList", Err(failure));
            0
        }
    }
}

/// Destroys the list and its tensors.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclDestroyTensorList(list: Handle) -> i32 {
    let destroy = || {
        let members = lock(&LISTS).take(list, PARAMETER_NULL)?;
        for &member in members.iter() {
            if tensor::aclDestroyTensor(member) != 0 {
                let text = format!("tensor {member:#x} of the list was destroyed before: the list owns it");
                return Err(Failure::new(PARAMETER_INVALID, text));
            }
        }
        Ok(())
    };
    answer("aclDestroyTensorList", destroy())
}
