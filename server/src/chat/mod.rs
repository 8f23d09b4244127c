//! What `halite chat` is made of: lines in, a conversation, and what a line may ask for besides an answer.

mod conversation;
mod input;
mod line;
mod session;

pub(crate) use conversation::Conversation;
pub(crate) use input::Input;
use line::{HELP, Line};
pub(crate) use session::{Next, Session};
