//! Work that is collected once and launched as often as one likes.

use std::{fmt, mem, sync::Arc};

use halite_hal::{Error, Result};

use crate::{
    memory::AscendBuffer,
    runtime::{Queue, Recording, Runtime},
    stream::AscendStream,
};

/// Work that was collected. It holds the memory that it uses.
pub struct AscendGraph {
    recording: Recording,
    held: Vec<AscendBuffer>,
    runtime: Runtime,
    /// Where it was collected: the memory of operators that it uses is that stream's, one call after the other.
    queue: Arc<Queue>,
}

impl AscendStream {
    /// From now on what is queued is not done but collected, until [`AscendStream::end_capture`]. It waits for what was queued
    /// before: while it collects, CANN lets nobody wait for the stream. Uploads and read-backs are refused meanwhile, and
    /// operators get no more memory of their own: run the same work once before, so that they have theirs.
    ///
    /// # Errors
    /// It collects already; CANN's.
    pub fn begin_capture(&mut self) -> Result<()> {
        self.not_while_captured("begin_capture", "end that first")?;
        self.finish()?;
        let runtime = self.device.runtime();
        runtime.told(runtime.begin_capture(&self.queue))?;
        self.capturing = true;
        Ok(())
    }

    /// What was collected.
    ///
    /// # Errors
    /// It does not collect; CANN's.
    pub fn end_capture(&mut self) -> Result<AscendGraph> {
        if !self.capturing {
            let (operator, argument) = ("end_capture", "stream");
            let expected = "a stream that is being captured".to_owned();
            return Err(Error::Argument { operator, argument, expected, got: "one that is not".to_owned() });
        }
        let runtime = self.device.runtime().clone();
        let recording = runtime.told(runtime.end_capture(&self.queue))?;
        self.capturing = false;
        // Only what was collected: there was nothing when it began.
        let held = mem::take(&mut self.held);
        Ok(AscendGraph { recording, held, runtime, queue: self.queue.clone() })
    }

    /// Queues all that was collected.
    ///
    /// # Errors
    /// The graph is another stream's; this stream collects itself; CANN's.
    pub fn launch_graph(&mut self, graph: &AscendGraph) -> Result<()> {
        self.not_while_captured("launch_graph", "graphs have no graphs in them")?;
        if !Arc::ptr_eq(&self.queue, &graph.queue) {
            let (operator, argument) = ("launch_graph", "graph");
            let expected = "a graph that this stream has collected".to_owned();
            return Err(Error::Argument { operator, argument, expected, got: "another's".to_owned() });
        }
        let runtime = self.device.runtime();
        runtime.told(runtime.replay(&self.queue, &graph.recording))?;
        self.hold(graph.held.iter().cloned())
    }
}

impl Drop for AscendGraph {
    fn drop(&mut self) {
        // It must not run when it goes. What went wrong there is heard of by the next call on the device.
        let _ = self.runtime.synchronize(&self.queue);
    }
}

impl fmt::Debug for AscendGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AscendGraph").field("held", &self.held.len()).finish_non_exhaustive()
    }
}
