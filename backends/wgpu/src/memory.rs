//! Device memory: small allocations are ranges of slabs, large ones have a buffer of their own.
//!
//! A dispatch binds whole slabs, so a step's few hundred dispatches share a handful of bind groups (`bindings`), and a
//! tensor's place in its slab is a number in the immediates.

use crate::{bindings::Bindings, device::NAME, failure::caught};
use halite_hal::{Error, Result, Storage};
use std::{
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Bytes of a slab: below the 128 MiB that every adapter binds, and few enough that an idle device, which keeps one, holds
/// little.
pub(crate) const SLAB: u64 = 32 << 20;
/// Allocations from this size on have a buffer of their own.
const LARGE: u64 = 8 << 20;
/// Allocations begin at multiples of this: what bindings need on every adapter, and whole vectors of shaders.
pub(crate) const ALIGNMENT: u64 = 256;

/// A counted handle to device memory.
#[derive(Clone)]
pub struct WgpuBuffer(Arc<Allocation>);

struct Allocation {
    memory: Arc<Memory>,
    backing: Arc<Backing>,
    /// In the backing's bytes: what was asked for.
    start: u64,
    len: u64,
}

/// One buffer of the driver's.
pub(crate) struct Backing {
    /// Distinct for every buffer that there ever was, unlike the driver's addresses.
    pub(crate) id: u64,
    pub(crate) buffer: wgpu::Buffer,
}

/// All memory of a device.
pub(crate) struct Memory {
    device: wgpu::Device,
    slabs: Mutex<Vec<Slab>>,
    next_id: AtomicU64,
    pub(crate) bindings: Bindings,
}

struct Slab {
    backing: Arc<Backing>,
    /// Ascending, none touching the next.
    free: Vec<Range<u64>>,
}

impl Memory {
    pub(crate) fn new(device: wgpu::Device) -> Self {
        let bindings = Bindings::new(device.clone());
        Memory { device, slabs: Mutex::default(), next_id: AtomicU64::new(0), bindings }
    }

    pub(crate) fn alloc(self: &Arc<Self>, len: u64) -> Result<WgpuBuffer> {
        // Nothing can be bound that has no bytes, and shaders touch whole words.
        let size = len.max(1).checked_next_multiple_of(ALIGNMENT).ok_or_else(|| no_room(len))?;
        let (backing, start) =
            if size >= LARGE { (self.backing(size, len)?, 0) } else { self.of_a_slab(size, len)? };
        Ok(WgpuBuffer(Arc::new(Allocation { memory: self.clone(), backing, start, len })))
    }

    fn of_a_slab(&self, size: u64, asked: u64) -> Result<(Arc<Backing>, u64)> {
        let mut slabs = self.slabs();
        for slab in slabs.iter_mut() {
            if let Some(place) = slab.free.iter().position(|free| free.end - free.start >= size) {
                let free = &mut slab.free[place];
                let start = free.start;
                free.start += size;
                if free.is_empty() {
                    slab.free.remove(place);
                }
                return Ok((slab.backing.clone(), start));
            }
        }
        let backing = self.backing(SLAB, asked)?;
        let rest = size..SLAB;
        slabs.push(Slab { backing: backing.clone(), free: vec![rest] });
        Ok((backing, 0))
    }

    fn give_back(&self, backing: &Arc<Backing>, start: u64, len: u64) {
        let mut slabs = self.slabs();
        if let Some(place) = slabs.iter().position(|slab| slab.backing.id == backing.id) {
            let size = len.max(1).next_multiple_of(ALIGNMENT);
            give(&mut slabs[place].free, start..start + size);
            // One empty slab stays for what comes next.
            let empty = |slab: &Slab| slab.free.first() == Some(&(0..SLAB));
            if !empty(&slabs[place]) || slabs.iter().filter(|slab| empty(slab)).count() < 2 {
                return;
            }
            slabs.swap_remove(place);
        }
        drop(slabs);
        // Bind groups would keep the buffer alive.
        self.bindings.forget(backing.id);
    }

    fn backing(&self, size: u64, asked: u64) -> Result<Arc<Backing>> {
        if size > self.device.limits().max_buffer_size {
            return Err(no_room(asked));
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let buffer =
            caught(&self.device, || self.device.create_buffer(&descriptor)).map_err(|_| no_room(asked))?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Backing { id, buffer }))
    }

    fn slabs(&self) -> MutexGuard<'_, Vec<Slab>> {
        // The lists are whole between any two statements, so a panic elsewhere leaves them usable.
        self.slabs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_room(requested: u64) -> Error {
    Error::OutOfMemory { device: NAME.to_owned(), requested }
}

/// Puts a range back among the free ones, which stay ascending and apart.
fn give(free: &mut Vec<Range<u64>>, back: Range<u64>) {
    let place = free.partition_point(|other| other.end <= back.start);
    free.insert(place, back);
    // The one behind first: joining it moves nobody before it.
    for left in [Some(place), place.checked_sub(1)].into_iter().flatten() {
        if free.get(left + 1).is_some_and(|right| free[left].end == right.start) {
            free[left].end = free.remove(left + 1).end;
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.memory.give_back(&self.backing, self.start, self.len);
    }
}

impl WgpuBuffer {
    /// Refuses memory of another device, which a driver would take for its own.
    pub(crate) fn check_is_of(
        &self,
        memory: &Arc<Memory>,
        operator: &'static str,
        argument: &'static str,
    ) -> Result<()> {
        if Arc::ptr_eq(&self.0.memory, memory) {
            return Ok(());
        }
        let expected = "memory of the stream's own device".to_owned();
        Err(Error::Argument { operator, argument, expected, got: "memory of another".to_owned() })
    }

    pub(crate) fn backing(&self) -> &Backing {
        &self.0.backing
    }

    /// Where the allocation begins in its backing, in bytes.
    pub(crate) fn start(&self) -> u64 {
        self.0.start
    }
}

impl Storage for WgpuBuffer {
    fn len(&self) -> u64 {
        self.0.len
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for WgpuBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WgpuBuffer({} bytes)", self.0.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn ranges(mut free: Vec<Range<u64>>, back: Range<u64>) -> Vec<Range<u64>> {
        give(&mut free, back);
        free
    }

    #[test]
    fn slabs_that_nobody_uses_go_but_for_one() -> Result<()> {
        // A device of its own: other tests would fill its slabs.
        let Some(gpu) = testing::gpu("empty slabs") else { return Ok(()) };
        let memory = gpu.memory();
        let before = memory.slabs().len();
        let many = (0..20).map(|_| memory.alloc(LARGE - ALIGNMENT)).collect::<Result<Vec<_>>>()?;
        assert!(memory.slabs().len() > before + 3);
        drop(many);
        assert!(memory.slabs().len() <= before + 1);
        let again = memory.alloc(LARGE - ALIGNMENT)?;
        drop(again);
        assert!(memory.slabs().len() <= before + 1);
        Ok(())
    }

    #[test]
    fn what_comes_back_joins_its_neighbours() {
        let (only, whole) = (256..512, 0..2048);
        assert_eq!(ranges(vec![], 256..512), std::slice::from_ref(&only));
        assert_eq!(ranges(vec![0..256, 1024..2048], 512..768), [0..256, 512..768, 1024..2048]);
        assert_eq!(ranges(vec![0..256, 1024..2048], 256..512), [0..512, 1024..2048]);
        assert_eq!(ranges(vec![0..256, 1024..2048], 768..1024), [0..256, 768..2048]);
        assert_eq!(ranges(vec![0..256, 1024..2048], 256..1024), std::slice::from_ref(&whole));
    }
}
