//! Continuous batching over a paged KV cache: pure logic, without a device, a clock, a thread or any randomness
//! that is not handed in. The same calls give the same plans.
//!
//! A [`Scheduler`] is driven by one loop: [`Scheduler::schedule`] says what the next forward pass computes,
//! somebody computes it, and [`Scheduler::complete`] takes the sampled tokens back.
//!
//! ```
//! use halite_engine::schedule::{Request, Scheduler, SchedulerConfig, StepEvent};
//!
//! let mut scheduler = Scheduler::new(SchedulerConfig::new(64, 16, 512))?;
//! scheduler.add(Request::new(vec![1, 2, 3], 8).stop_tokens([0]))?;
//! let mut answer = Vec::new();
//! while scheduler.has_unfinished() {
//!     let step = scheduler.schedule();
//!     // The forward pass goes here: it runs `step.sequences` and samples where `wants_logits`.
//!     let sampled: Vec<_> = step.sequences.iter().filter(|s| s.wants_logits).map(|s| (s.id, 7)).collect();
//!     for event in scheduler.complete(step.id, &sampled)? {
//!         if let StepEvent::Token { token, .. } = event {
//!             answer.push(token);
//!         }
//!     }
//! }
//! assert_eq!(answer, [7; 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What holds, and where it is made to hold:
//!
//! - free + cached + used blocks = all blocks, and reference counts are exact: `block_pool`, whose references are
//!   values that are moved, so that one cannot be given back twice.
//! - A block is shared only when it is full, and only after the step that wrote it has completed: `complete`.
//! - A prefix is reused only after its tokens, its whole history and its [`CacheDomain`] have been compared:
//!   `prefix_cache`.
//! - The oldest unfinished sequence computes at least one token in every step, so every request finishes:
//!   `planning`.
//! - A sequence that ends, however it ends, ceases to exist and gives its blocks back; there is no state in which
//!   a finished sequence holds memory.

mod block_hash;
mod block_pool;
mod config;
mod event;
mod invariants;
mod kv_blocks;
mod plan;
mod planning;
mod prefix_cache;
mod request;
mod scheduler;
mod sequence;

pub use block_hash::{CacheDomain, CacheKey};
pub use block_pool::BlockCounts;
pub use config::{ConfigError, PrefixCaching, SchedulerConfig};
pub use event::{FinishReason, Finished, StepError, StepEvent};
pub use invariants::InvariantViolation;
pub use plan::{ScheduledSequence, StepId, StepPlan};
pub use request::{AdmissionError, PrefixReuse, Request};
pub use scheduler::Scheduler;
pub use sequence::{SequenceId, SequenceStatus};
