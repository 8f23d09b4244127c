//! Handles: numbers that stand for objects, never addresses of them, and never used again.

use std::collections::BTreeMap;

use crate::runtime::error::Failure;

/// What callers hold: a `void *` that leads nowhere. 0 is null.
pub(crate) type Handle = usize;

/// The highest byte of every handle: no address of a process looks so, and reading from it faults.
const MARK: usize = 0x7E << 56;

/// The live objects of one kind.
pub(crate) struct Table<T> {
    /// The kind's name in messages.
    kind: &'static str,
    tag: usize,
    made: usize,
    live: BTreeMap<Handle, T>,
}

impl<T: Clone> Table<T> {
    /// An empty table; `tag` tells its handles from those of other kinds.
    pub(crate) const fn new(kind: &'static str, tag: usize) -> Self {
        Self { kind, tag, made: 0, live: BTreeMap::new() }
    }

    fn handle(&self, number: usize) -> Handle {
        MARK | self.tag << 48 | number << 4
    }

    /// Keeps an object and gives its handle.
    pub(crate) fn add(&mut self, object: T) -> Handle {
        self.made += 1;
        let handle = self.handle(self.made);
        self.live.insert(handle, object);
        handle
    }

    /// The object, or why there is none: null, destroyed, or no handle of this kind.
    pub(crate) fn get(&self, handle: Handle, code: i32) -> Result<T, Failure> {
        self.live.get(&handle).cloned().ok_or_else(|| self.missing(handle, code))
    }

    /// The object, for good.
    pub(crate) fn take(&mut self, handle: Handle, code: i32) -> Result<T, Failure> {
        self.live.remove(&handle).ok_or_else(|| self.missing(handle, code))
    }

    /// True while the object lives.
    pub(crate) fn holds(&self, handle: Handle) -> bool {
        self.live.contains_key(&handle)
    }

    fn missing(&self, handle: Handle, code: i32) -> Failure {
        let kind = self.kind;
        let number = (handle & 0xFFFF_FFFF_FFFF) >> 4;
        let text = if handle == 0 {
            format!("{kind} is null")
        } else if handle == self.handle(number) && number <= self.made {
            format!("{kind} {handle:#x} was destroyed or used up before")
        } else {
            format!("{handle:#x} is no {kind} of this library")
        };
        Failure::new(code, text)
    }

    /// All objects, in the order of their making.
    pub(crate) fn objects(&self) -> Vec<T> {
        self.live.values().cloned().collect()
    }

    /// Counts what is left and forgets it: for the end.
    pub(crate) fn clear(&mut self) -> Option<String> {
        let left = self.live.len();
        self.live.clear();
        (left > 0).then(|| format!("{left} of {}", self.kind))
    }
}
