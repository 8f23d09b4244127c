//! The memories of a device: global, shared, local, parameters and constants.
//!
//! An address of 64 bits tells where it points. Global memory and constants begin at [`window::GLOBAL`]; below it lie windows
//! through which a generic address reaches a block's shared memory, a thread's local memory and the parameters.

mod access;
mod allocation;
mod atomic;
mod copy_async;
mod global;
mod load;
mod local;
mod matrix;
mod mbarrier;
mod race;
mod shadow;
mod shared;
mod store;
mod tag;
pub(crate) mod window;

pub(crate) use allocation::Contents;
pub(crate) use atomic::Atomic;
pub(crate) use copy_async::Copies;
pub(crate) use global::GlobalMemory;
pub(crate) use local::Local;
pub(crate) use shared::Shared;

/// Whether an address is a multiple of `align`, a power of two.
#[inline(always)]
fn is_aligned(address: u64, align: u32) -> bool {
    address & u64::from(align.wrapping_sub(1)) == 0
}
