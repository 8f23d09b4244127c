//! What the parser makes of texts, and of texts that are wrong.

mod calls;
mod directives;
mod errors;
mod forms;
mod hostile;
mod operands;
mod random;
mod sharing;

use super::ParseError;
use crate::ir::{Instruction, Kernel, Module, Op};

/// A module with one kernel, which has registers of every kind, a parameter, a shared and a local variable.
fn text(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .global .align 4 .u32 counter = 7;\n\
         .visible .entry kernel(.param .u64 pointer, .param .u32 count)\n{{\n\
         .reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<99>;\n.reg .f32 %f<9>;\n.reg .b64 %d<9>;\n.reg .f64 %e<9>;\n\
         .shared .align 16 .b8 tile[256];\n.local .align 8 .b8 stack[64];\n{body}\n}}\n"
    )
}

/// The kernel of [`text`].
fn kernel(body: &str) -> Kernel {
    let module = Module::parse(&text(body)).unwrap();
    Kernel::clone(&module.kernels[0])
}

/// Its instructions before the end.
fn instructions(body: &str) -> Vec<Instruction> {
    let mut instructions = kernel(body).instructions;
    assert_eq!(instructions.pop().unwrap().op, Op::Exit);
    instructions
}

/// The only operation of a body.
fn op(body: &str) -> Op {
    let mut found = instructions(body);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0).op
}

/// The error of a body.
fn error(body: &str) -> ParseError {
    Module::parse(&text(body)).expect_err(body)
}
