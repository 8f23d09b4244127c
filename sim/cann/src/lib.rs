#![doc = include_str!("../README.md")]
// Elsewhere there is no CANN either.
#![cfg(target_os = "linux")]
#![allow(non_snake_case, reason = "the names are those of a C interface")]
#![allow(clippy::too_many_arguments, reason = "the lists of arguments are those of a C interface")]

mod descriptor;
mod element;
mod foreign;
mod handle;
#[cfg(test)]
mod misuse;
mod operator;
mod runtime;
mod settings;
#[cfg(test)]
mod testing;
