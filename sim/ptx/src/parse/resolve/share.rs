//! Registers that are never in use at the same time become one.
//!
//! Compilers name thousands of registers, each for one value. A warp's registers are 256 bytes each, and all of them fit
//! into a core's caches only if they are few. So they are allocated as a compiler would (Poletto and Sarkar 1999, "Linear
//! scan register allocation"): by the stretch of instructions over which a register's value is needed.
//!
//! That is right lane by lane, and lanes share no registers: a lane that is elsewhere keeps its own values in the same
//! registers' other lanes.

use crate::ir::{Instruction, Op, Register, Role};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Words of the sets of live registers, at most; beyond them registers stay as they are.
const LIMIT: usize = 1 << 21;
/// Times that the sets are gone over, at most: what compilers write needs a few.
const ROUNDS: usize = 64;

/// Renames the registers of `instructions`, which name `count`; how many are left.
pub(super) fn registers(instructions: &mut [Instruction], count: u32) -> u32 {
    let blocks = blocks(instructions);
    let words = (count as usize).div_ceil(64);
    if words.saturating_mul(blocks.len()) > LIMIT || count == 0 {
        return count;
    }
    let Some(stretches) = stretches(instructions, &blocks, count as usize, words) else { return count };
    let (names, left) = allocate(&stretches);
    for instruction in instructions {
        instruction.op.registers(|register, _| {
            if let Some(&name) = names.get(register.0 as usize) {
                *register = Register(name);
            }
        });
    }
    left
}

/// A stretch of instructions that only its first one is jumped to.
struct Block {
    start: usize,
    end: usize,
    /// Blocks that may follow it.
    next: Vec<usize>,
}

fn targets(op: &Op) -> &[usize] {
    match op {
        Op::Branch { target, .. } => std::slice::from_ref(target),
        Op::BranchIndexed { targets, .. } => targets,
        _ => &[],
    }
}

fn blocks(instructions: &[Instruction]) -> Vec<Block> {
    let ends = |op: &Op| matches!(op, Op::Branch { .. } | Op::BranchIndexed { .. } | Op::Exit | Op::Trap);
    let mut starts = vec![false; instructions.len() + 1];
    for (at, instruction) in instructions.iter().enumerate() {
        for &target in targets(&instruction.op) {
            starts[target.min(instructions.len())] = true;
        }
        starts[at + 1] |= ends(&instruction.op);
    }
    starts[0] = true;
    let firsts: Vec<usize> = (0..instructions.len()).filter(|&at| starts[at]).collect();
    // Where no block begins, nothing does: behind the end.
    let number = |at: usize| firsts.binary_search(&at).ok();
    let block = |(index, &start): (usize, &usize)| {
        let end = firsts.get(index + 1).copied().unwrap_or(instructions.len());
        let last = &instructions[end - 1];
        let mut next: Vec<usize> = targets(&last.op).iter().filter_map(|&target| number(target)).collect();
        if !ends(&last.op) || last.guard.is_some() {
            next.extend(number(end));
        }
        Block { start, end, next }
    };
    firsts.iter().enumerate().map(block).collect()
}

/// The first and last instruction over which each register is needed; `None` for one that is not named.
fn stretches(
    instructions: &mut [Instruction],
    blocks: &[Block],
    count: usize,
    words: usize,
) -> Option<Vec<Option<(usize, usize)>>> {
    // What a block needs from before it, and what it writes for every lane before it reads it.
    let mut needs = vec![0u64; words * blocks.len()];
    let mut gives = vec![0u64; words * blocks.len()];
    let mut stretches: Vec<Option<(usize, usize)>> = vec![None; count];
    let mut in_range = true;
    for (index, block) in blocks.iter().enumerate() {
        let (needs, gives) = (&mut needs[index * words..][..words], &mut gives[index * words..][..words]);
        for (at, instruction) in instructions.iter_mut().enumerate().take(block.end).skip(block.start) {
            let guarded = instruction.guard.is_some();
            // Reads come before writes of the same instruction.
            for wanted in [Role::Read, Role::Write] {
                instruction.op.registers(|register, role| {
                    let register = register.0 as usize;
                    if register >= count {
                        in_range = false;
                        return;
                    }
                    extend(&mut stretches[register], at);
                    let (word, bit) = (register / 64, 1 << (register % 64));
                    if role == wanted && role == Role::Read {
                        needs[word] |= bit & !gives[word];
                    } else if role == wanted && !guarded {
                        gives[word] |= bit;
                    } else if role == wanted {
                        // Lanes that the guard passes over keep what was there.
                        needs[word] |= bit & !gives[word];
                    }
                });
            }
        }
    }
    // What is needed before a block is what it needs, and what its followers need and it does not give.
    let mut changed = true;
    for _ in 0..ROUNDS {
        changed = false;
        for (index, block) in blocks.iter().enumerate().rev() {
            for word in 0..words {
                let behind = block.next.iter().fold(0, |sum, next| sum | needs[next * words + word]);
                let here = needs[index * words + word] | behind & !gives[index * words + word];
                changed |= here != needs[index * words + word];
                needs[index * words + word] = here;
            }
        }
        if !changed {
            break;
        }
    }
    if changed {
        return None;
    }
    for (index, block) in blocks.iter().enumerate() {
        for_each(&needs[index * words..][..words], |register| extend(&mut stretches[register], block.start));
        for next in &block.next {
            for_each(&needs[next * words..][..words], |register| {
                extend(&mut stretches[register], block.end - 1)
            });
        }
    }
    in_range.then_some(stretches)
}

fn for_each(set: &[u64], mut visit: impl FnMut(usize)) {
    for (index, &word) in set.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            visit(index * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

fn extend(stretch: &mut Option<(usize, usize)>, at: usize) {
    let (first, last) = stretch.unwrap_or((at, at));
    *stretch = Some((first.min(at), last.max(at)));
}

/// New names, and how many. A register is free again behind the last instruction that needs it: so no instruction writes
/// over what it still reads.
fn allocate(stretches: &[Option<(usize, usize)>]) -> (Vec<u32>, u32) {
    let mut order: Vec<(usize, usize, usize)> = stretches
        .iter()
        .enumerate()
        .filter_map(|(register, stretch)| stretch.map(|(first, last)| (first, last, register)))
        .collect();
    order.sort_unstable();
    let mut names = vec![0; stretches.len()];
    let (mut in_use, mut free) = (BinaryHeap::new(), BinaryHeap::new());
    let mut count = 0;
    for (first, last, register) in order {
        while let Some(&Reverse((end, name))) = in_use.peek()
            && end < first
        {
            in_use.pop();
            free.push(Reverse(name));
        }
        let name = free.pop().map_or_else(
            || {
                count += 1;
                count - 1
            },
            |Reverse(name)| name,
        );
        names[register] = name;
        in_use.push(Reverse((last, name)));
    }
    (names, count)
}

#[cfg(test)]
mod tests {
    use crate::ir::{Module, Op, Register, Source};

    fn kernel(body: &str) -> crate::ir::Kernel {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {{ .reg .b32 %r<9>; .reg .pred %p<9>; {body} }}"
        );
        crate::ir::Kernel::clone(&Module::parse(&text).unwrap().kernels[0])
    }

    #[test]
    fn values_that_follow_each_other_share_a_register() {
        let kernel =
            kernel("mov.u32 %r0, 1; mov.u32 %r1, %r0; mov.u32 %r2, %r1; mov.u32 %r3, %r2; mov.u32 %r4, %r3;");
        assert_eq!(kernel.registers, 2);
        for instruction in &kernel.instructions[1..5] {
            let Op::Move { dst, src: Source::Register(src), .. } = instruction.op else { panic!() };
            assert_ne!(dst, src);
        }
    }

    #[test]
    fn a_value_that_a_loop_needs_again_is_kept() {
        // %r0 is read at the loop's start only, but each time around.
        let kernel = kernel(
            "mov.u32 %r0, 7; L: add.u32 %r1, %r0, 1; add.u32 %r2, %r1, 1; setp.eq.u32 %p0, %r2, 9; @%p0 bra L;",
        );
        let Op::Move { dst: kept, .. } = kernel.instructions[0].op else { panic!() };
        for instruction in &kernel.instructions[1..3] {
            let Op::Binary { dst, .. } = instruction.op else { panic!() };
            assert_ne!(dst, kept);
        }
        assert_eq!(kernel.registers, 3);
    }

    #[test]
    fn lanes_that_a_guard_passes_over_keep_their_values() {
        // %r0 is needed by the last move in lanes where %p0 does not hold.
        let kernel = kernel(
            "mov.u32 %r0, 1; mov.u32 %r1, 2; mov.u32 %r2, %r1; @%p0 mov.u32 %r0, 3; mov.u32 %r3, %r0;",
        );
        let dst = |at: usize| match kernel.instructions[at].op {
            Op::Move { dst, .. } => dst,
            _ => panic!(),
        };
        assert_eq!(dst(0), dst(3));
        assert!(dst(1) != dst(0) && dst(2) != dst(0) && dst(1) != dst(2));
    }

    #[test]
    fn a_branch_over_a_value_s_second_writing_keeps_the_first() {
        let kernel = kernel(
            "mov.u32 %r0, 1; @%p0 bra L; mov.u32 %r1, 5; add.u32 %r2, %r1, 1; mov.u32 %r0, %r2; L: mov.u32 %r3, %r0;",
        );
        let dst = |at: usize| match kernel.instructions[at].op {
            Op::Move { dst, .. } | Op::Binary { dst, .. } => dst,
            _ => panic!(),
        };
        assert_eq!(dst(0), dst(4));
        assert!(dst(2) != dst(0) && dst(3) != dst(0));
        assert_eq!(dst(0), Register(0));
    }
}
