//! The run time: libascendcl's part.

pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod device;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod memory;
pub(crate) mod queue;
pub(crate) mod stream;
