//! The memory that bodies may take together.
//!
//! Many connections times the largest body is more than a machine has, and a body waits for a thread that reads it. So
//! every piece takes its share as it comes and gives it back when the request was read. Where there is no room the
//! request is refused: bodies that waited for each other's shares would wait for ever.

use super::error::ApiError;
use super::limits::Limits;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes for the bodies of all requests; a permit a byte.
#[derive(Debug)]
pub(super) struct BodyRoom {
    free: Arc<Semaphore>,
    all: usize,
}

/// A body, and its share of the room.
#[derive(Debug)]
pub(super) struct HeldBody {
    room: Arc<Semaphore>,
    all: usize,
    bytes: Vec<u8>,
    share: Option<OwnedSemaphorePermit>,
}

impl BodyRoom {
    pub(super) fn new(limits: &Limits) -> Self {
        // One body of the largest size always has room.
        let all = limits.all_body_bytes.max(limits.body_bytes).min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(all)), all }
    }

    /// A body without a byte.
    pub(super) fn empty(&self) -> HeldBody {
        HeldBody { room: Arc::clone(&self.free), all: self.all, bytes: Vec::new(), share: None }
    }
}

impl HeldBody {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a piece, if there is room for it.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), ApiError> {
        let share = u32::try_from(piece.len()).ok();
        let share = share.and_then(|bytes| Arc::clone(&self.room).try_acquire_many_owned(bytes).ok());
        let Some(share) = share else {
            let all = self.all;
            let message = format!("the bodies of requests at hand fill the server's {all} bytes for them");
            return Err(ApiError::unavailable("bodies_full", message));
        };
        match &mut self.share {
            Some(held) => held.merge(share),
            None => self.share = Some(share),
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_the_room_and_give_it_back() {
        let room = BodyRoom::new(&Limits::new().body_bytes(6).all_body_bytes(10));
        let (mut first, mut second) = (room.empty(), room.empty());
        first.push(b"abc").unwrap();
        second.push(b"abcd").unwrap();
        first.push(b"def").unwrap();
        assert_eq!(first.bytes(), b"abcdef");
        let error = second.push(b"e").unwrap_err();
        assert_eq!((error.status, error.code, error.retry_after), (503, Some("bodies_full"), Some(1)));
        assert_eq!(second.bytes(), b"abcd");
        drop(first);
        second.push(b"ef").unwrap();
        drop(second);
        assert_eq!(room.free.available_permits(), 10);
        // The largest body always has room.
        let mut alone = BodyRoom::new(&Limits::new().body_bytes(6).all_body_bytes(1)).empty();
        alone.push(b"abcdef").unwrap();
        alone.push(b"").unwrap();
    }
}
