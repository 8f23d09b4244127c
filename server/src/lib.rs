//! The library behind the `halite` program.
