//! Descriptors and executors: libnnopbase's part. Descriptors are copied when an operator's phase one takes them.

pub(crate) mod array;
pub(crate) mod executor;
pub(crate) mod list;
pub(crate) mod tensor;

/// Forgets all descriptors and executors; says how many nobody had destroyed or used.
pub(crate) fn clear() -> Option<String> {
    let left = [executor::clear(), list::clear(), tensor::clear(), array::clear()];
    let left: Vec<_> = left.into_iter().flatten().collect();
    (!left.is_empty()).then(|| left.join("; "))
}
