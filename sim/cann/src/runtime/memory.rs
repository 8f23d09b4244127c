//! Device memory: addresses that nobody can read from the host, with the bytes elsewhere, in a table of allocations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::context::current;
use super::error::{Failure, INVALID_PARAM, OUT_OF_MEMORY, RUNTIME_PARAMETER, answer, lock, out};
use crate::handle::Handle;
use crate::settings::{Counted, strikes};

/// What fresh memory is full of: an f16 of -15.6, an f32 of -2.7e7, an INT8 of -53.
pub(crate) const POISON: u8 = 0xCB;
/// What the device claims to have, in bytes.
const CAPACITY: usize = 8 << 30;
/// Address space for all allocations of a process: no address is used twice.
const SPACE: usize = 16 << 40;
/// Between allocations nothing is anybody's.
const GUARD: usize = 4096;
/// "Aligned to 64 bytes" in CANN's documents; here to more.
const ALIGNMENT: usize = 512;

/// An allocation's bytes, lent to one at a time.
type Bytes = Arc<Mutex<Vec<u8>>>;

struct Allocation {
    length: usize,
    bytes: Bytes,
}

struct Memory {
    /// Where the reserved addresses begin, and how many were given away.
    base: usize,
    given: usize,
    used: usize,
    live: BTreeMap<usize, Allocation>,
    freed: BTreeMap<usize, usize>,
    pinned: BTreeMap<usize, Pinned>,
    /// How many allocations of the host were made: the host's addresses come back, these numbers do not.
    numbers: u64,
}

/// An allocation of the host's.
struct Pinned {
    number: u64,
    bytes: Vec<u8>,
}

/// Which allocation a place of the host's lies in.
#[derive(Clone, Copy)]
pub(crate) struct PinnedRange {
    base: usize,
    number: u64,
}

static MEMORY: Mutex<Memory> = Mutex::new(Memory {
    base: 0,
    given: 0,
    used: 0,
    live: BTreeMap::new(),
    freed: BTreeMap::new(),
    pinned: BTreeMap::new(),
    numbers: 0,
});

/// Addresses without memory: whoever reads or writes there faults.
fn reserve() -> Result<usize, Failure> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at a place of the system's choice touches nothing that exists.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), SPACE, libc::PROT_NONE, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(Failure::new(OUT_OF_MEMORY, "the host refuses to reserve addresses"));
    }
    Ok(at as usize)
}

impl Memory {
    fn allocate(&mut self, size: usize) -> Result<usize, Failure> {
        if size == 0 {
            return Err(Failure::new(INVALID_PARAM, "size 0, at least 1 byte is allocated"));
        }
        if size > CAPACITY - self.used {
            let free = CAPACITY - self.used;
            return Err(Failure::new(
                OUT_OF_MEMORY,
                format!("size {size}, limit {free} bytes that are free"),
            ));
        }
        if self.base == 0 {
            self.base = reserve()?;
        }
        let address = self.base + self.given;
        self.given += size.next_multiple_of(ALIGNMENT) + GUARD;
        if self.given > SPACE {
            return Err(Failure::new(OUT_OF_MEMORY, "this process has used all addresses up"));
        }
        self.used += size;
        let bytes = Arc::new(Mutex::new(vec![POISON; size]));
        self.live.insert(address, Allocation { length: size, bytes });
        Ok(address)
    }

    fn find(&self, address: usize, length: usize) -> Result<(usize, Bytes), Failure> {
        let wrong = |text: String| Err(Failure::new(RUNTIME_PARAMETER, text));
        if let Some((base, allocation)) = self.live.range(..=address).next_back()
            && address < base + allocation.length.max(1) + GUARD / 2
        {
            let offset = address - base;
            if length > allocation.length.saturating_sub(offset) {
                return wrong(format!(
                    "out of bounds: {length} bytes at offset {offset} of an allocation of {} bytes at {base:#x}",
                    allocation.length
                ));
            }
            return Ok((offset, allocation.bytes.clone()));
        }
        match self.freed.range(..=address).next_back() {
            Some((base, freed)) if address < base + freed => {
                wrong(format!("use after free: {length} bytes at {address:#x}, freed before"))
            }
            _ => wrong(format!("{address:#x} is no address of device memory")),
        }
    }
}

/// Lends bytes of device memory.
pub(crate) fn with<R>(
    address: usize,
    length: usize,
    work: impl FnOnce(&mut [u8]) -> R,
) -> Result<R, Failure> {
    let (offset, bytes) = lock(&MEMORY).find(address, length)?;
    let mut bytes = lock(&bytes);
    let gone = || Failure::new(RUNTIME_PARAMETER, format!("{address:#x} is gone"));
    bytes.get_mut(offset..offset + length).map(work).ok_or_else(gone)
}

/// True for an address that belongs to the device, alive or not.
pub(crate) fn is_device(address: usize) -> bool {
    let memory = lock(&MEMORY);
    memory.base != 0 && (memory.base..memory.base + SPACE).contains(&address)
}

/// The allocation of `aclrtMallocHost` that these bytes lie in; none if the memory is the caller's own.
pub(crate) fn find_pinned(address: usize, length: usize) -> Result<Option<PinnedRange>, Failure> {
    let memory = lock(&MEMORY);
    let below = memory.pinned.range(..=address).next_back();
    let Some((&base, pinned)) = below.filter(|(base, pinned)| address - **base < pinned.bytes.len()) else {
        return Ok(None);
    };
    let (offset, size) = (address - base, pinned.bytes.len());
    if length > size - offset {
        let text = format!("out of bounds: {length} bytes at offset {offset} of {size} of host memory");
        return Err(Failure::new(RUNTIME_PARAMETER, text));
    }
    Ok(Some(PinnedRange { base, number: pinned.number }))
}

/// Does something with host memory that must be there still if it is `range`'s; it is not freed meanwhile.
pub(crate) fn while_pinned<R>(range: Option<PinnedRange>, work: impl FnOnce() -> R) -> Result<R, Failure> {
    let Some(range) = range else { return Ok(work()) };
    let memory = lock(&MEMORY);
    if memory.pinned.get(&range.base).is_none_or(|pinned| pinned.number != range.number) {
        let text =
            format!("use after free: host memory at {:#x} was freed before its copy was done", range.base);
        return Err(Failure::new(RUNTIME_PARAMETER, text));
    }
    Ok(work())
}

/// Frees everything; says what nobody had freed.
pub(crate) fn clear() -> Option<String> {
    let mut memory = lock(&MEMORY);
    let mut left = Vec::new();
    for (count, bytes, kind) in [
        (memory.live.len(), memory.used, "device"),
        (memory.pinned.len(), memory.pinned.values().map(|pinned| pinned.bytes.len()).sum(), "host"),
    ] {
        if count > 0 {
            let s = if count == 1 { "" } else { "s" };
            left.push(format!("{count} {kind} allocation{s} of {bytes} bytes"));
        }
    }
    let ended: Vec<_> = memory.live.iter().map(|(&base, allocation)| (base, allocation.length)).collect();
    memory.freed.extend(ended);
    memory.live.clear();
    memory.pinned.clear();
    memory.used = 0;
    (!left.is_empty()).then(|| left.join("; "))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtMalloc(address: Option<&mut Handle>, size: usize, policy: i32) -> i32 {
    let allocate = || {
        current()?;
        if !(0..=7).contains(&policy) {
            return Err(Failure::new(INVALID_PARAM, format!("policy {policy}, 0 to 7 are known")));
        }
        let place = out("devPtr", address)?;
        if strikes(Counted::Malloc) {
            return Err(Failure::new(OUT_OF_MEMORY, format!("size {size}: the fault that was asked for")));
        }
        *place = lock(&MEMORY).allocate(size)?;
        Ok(())
    };
    answer("aclrtMalloc", allocate())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtFree(address: usize) -> i32 {
    let free = || {
        current()?;
        let mut memory = lock(&MEMORY);
        let Some(allocation) = memory.live.remove(&address) else {
            let text = match memory.freed.contains_key(&address) {
                true => format!("double free of {address:#x}"),
                false => format!("{address:#x} is not where an allocation of device memory begins"),
            };
            return Err(Failure::new(RUNTIME_PARAMETER, text));
        };
        memory.used -= allocation.length;
        memory.freed.insert(address, allocation.length);
        Ok(())
    };
    answer("aclrtFree", free())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtMallocHost(address: Option<&mut Handle>, size: usize) -> i32 {
    let allocate = || {
        current()?;
        if size == 0 {
            return Err(Failure::new(INVALID_PARAM, "size 0, at least 1 byte is allocated"));
        }
        let place = out("hostPtr", address)?;
        let mut bytes = vec![POISON; size];
        let at = bytes.as_mut_ptr() as usize;
        let mut memory = lock(&MEMORY);
        memory.numbers += 1;
        let number = memory.numbers;
        memory.pinned.insert(at, Pinned { number, bytes });
        *place = at;
        Ok(())
    };
    answer("aclrtMallocHost", allocate())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtFreeHost(address: usize) -> i32 {
    let missing =
        || Failure::new(RUNTIME_PARAMETER, format!("{address:#x} is no host memory of aclrtMallocHost"));
    answer("aclrtFreeHost", lock(&MEMORY).pinned.remove(&address).map(drop).ok_or_else(missing))
}

/// Bytes of the device; which kind of memory is asked for (`attr`) does not matter here.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtGetMemInfo(
    attr: i32,
    free: Option<&mut usize>,
    total: Option<&mut usize>,
) -> i32 {
    let get = || {
        current()?;
        if !(0..=17).contains(&attr) {
            return Err(Failure::new(INVALID_PARAM, format!("attr {attr}, 0 to 17 are known")));
        }
        *out("free", free)? = CAPACITY - lock(&MEMORY).used;
        *out("total", total)? = CAPACITY;
        Ok(())
    };
    answer("aclrtGetMemInfo", get())
}
