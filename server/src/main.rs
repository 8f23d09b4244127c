//! The `halite` program.
fn main() {}
