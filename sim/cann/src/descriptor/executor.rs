//! Executors: made by an operator's phase one, used up by its phase two (OT: two_phase_api.md, 2026-08-21).

use std::sync::{Arc, Mutex};

use super::array;
use super::tensor::{self, Tensor};
use crate::handle::{Handle, Table};
use crate::runtime::context::current;
use crate::runtime::error::{
    Failure, PARAMETER_INVALID, PARAMETER_NULL, RUNTIME_ERROR, STREAM_CONTEXT, answer, lock,
};
use crate::runtime::memory::{self, POISON};
use crate::runtime::queue::Task;
use crate::runtime::stream;

/// What phase one leaves for phase two.
pub(crate) struct Executor {
    pub(crate) operator: &'static str,
    pub(crate) context: Handle,
    /// Bytes.
    pub(crate) workspace: u64,
    /// The descriptors: they must live until phase two, and so must what they describe.
    pub(crate) tensors: Vec<(&'static str, Handle, Arc<Tensor>)>,
    /// Scalars: no document says that phase one copies them, so they must live as long.
    pub(crate) scalars: Vec<(&'static str, Handle)>,
    pub(crate) task: Task,
    pub(crate) repeatable: Mutex<bool>,
}

static EXECUTORS: Mutex<Table<Arc<Executor>>> = Mutex::new(Table::new("executor", 11));

/// Keeps an executor.
pub(crate) fn add(executor: Executor) -> Handle {
    lock(&EXECUTORS).add(Arc::new(executor))
}

/// Forgets all executors; says how many no phase two had used.
pub(crate) fn clear() -> Option<String> {
    lock(&EXECUTORS).clear()
}

/// Phase two of every operator.
pub(crate) fn run(
    operator: &'static str,
    workspace: usize,
    size: u64,
    executor: Handle,
    stream: Handle,
) -> i32 {
    answer(operator, launch(operator, workspace, size, executor, stream))
}

fn launch(
    operator: &'static str,
    workspace: usize,
    size: u64,
    handle: Handle,
    stream: Handle,
) -> Result<(), Failure> {
    let code = if handle == 0 { PARAMETER_NULL } else { PARAMETER_INVALID };
    let executor = lock(&EXECUTORS).get(handle, code)?;
    let wrong = |code, text: String| Err(Failure::new(code, text));
    if executor.operator != operator {
        return wrong(PARAMETER_INVALID, format!("executor is of {}", executor.operator));
    }
    let context = current()?;
    if executor.context != context {
        return wrong(STREAM_CONTEXT, "executor was made in another context than this thread's".to_owned());
    }
    let stream = stream::find(stream)?;
    if !*lock(&executor.repeatable) {
        lock(&EXECUTORS).take(handle, code)?;
    }
    let needed = executor.workspace;
    if size < needed {
        return wrong(PARAMETER_INVALID, format!("workspaceSize {size}, limit {needed} bytes or more"));
    }
    let told =
        |name: &str, failure: Failure| Failure::new(RUNTIME_ERROR, format!("{name}: {}", failure.text));
    if needed > 0 {
        if workspace == 0 {
            return wrong(PARAMETER_NULL, format!("workspace is null, {needed} bytes are needed"));
        }
        memory::with(workspace, needed as usize, |_| ()).map_err(|failure| told("workspace", failure))?;
    }
    for (name, handle, tensor) in &executor.tensors {
        if !tensor::lives(*handle) {
            return wrong(RUNTIME_ERROR, format!("{name}: aclTensor was destroyed before phase two"));
        }
        tensor.check_memory().map_err(|failure| told(name, failure))?;
    }
    for (name, handle) in &executor.scalars {
        if !array::lives(*handle) {
            return wrong(RUNTIME_ERROR, format!("{name}: aclScalar was destroyed before phase two"));
        }
    }
    let task = executor.task.clone();
    let scribbling: Task = Arc::new(move || {
        task().map_err(|failure| failure.within(operator))?;
        if needed > 0 {
            // Whoever keeps something there learns it soon.
            memory::with(workspace, needed as usize, |bytes| bytes.fill(POISON))?;
        }
        Ok(())
    });
    stream.launch(operator, scribbling)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclSetAclOpExecutorRepeatable(executor: Handle) -> i32 {
    let set = || {
        *lock(&lock(&EXECUTORS).get(executor, PARAMETER_NULL)?.repeatable) = true;
        Ok(())
    };
    answer("aclSetAclOpExecutorRepeatable", set())
}

/// For executors that were made repeatable; others go with their phase two (aclDestroyAclOpExecutor.md, read 2026-12-01).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclDestroyAclOpExecutor(executor: Handle) -> i32 {
    let destroy = || {
        let mut executors = lock(&EXECUTORS);
        if !*lock(&executors.get(executor, PARAMETER_NULL)?.repeatable) {
            let text = format!("executor {executor:#x} was not made repeatable: it goes with its phase two");
            return Err(Failure::new(PARAMETER_INVALID, text));
        }
        executors.take(executor, PARAMETER_NULL).map(drop)
    };
    answer("aclDestroyAclOpExecutor", destroy())
}
