//! Whether a kernel is one that the machine can execute.
//!
//! The parser makes no others. But modules are public, and may have been changed by hand: what is asked here once, nothing
//! that executes instructions asks again.

use super::{Address, Base, Kernel, MatrixMultiply, Mbarrier, Module, Op, Type, Variable};

/// Most instructions of a kernel.
pub(crate) const MAX_INSTRUCTIONS: usize = 1 << 19;
/// Most registers of a warp, and most predicates.
const MAX_REGISTERS: u32 = 1 << 16;

impl Module {
    /// What is wrong with a variable: its name, and a sentence.
    pub(crate) fn check_variables(&self) -> Result<(), (&str, String)> {
        self.variables.iter().try_for_each(|variable| {
            self.check_variable(variable).map_err(|problem| (variable.name.as_str(), problem))
        })
    }

    fn check_variable(&self, variable: &Variable) -> Result<(), String> {
        let bytes = variable.bytes;
        if variable.initial.len() as u64 > bytes {
            return Err(format!("{} bytes of initial values for {bytes} bytes", variable.initial.len()));
        }
        for &(offset, target, _) in &variable.relocations {
            if target as usize >= self.variables.len() {
                return Err(format!("an address of variable {target}; there are {}", self.variables.len()));
            }
            if offset > bytes || bytes - offset < 8 {
                return Err(format!("an address at byte {offset} of {bytes}"));
            }
        }
        Ok(())
    }
}

impl Kernel {
    /// What is wrong with the kernel of a module with so many variables, in a sentence.
    pub(crate) fn check(&self, variables: usize) -> Result<(), String> {
        if self.instructions.len() > MAX_INSTRUCTIONS {
            return Err(format!("{} instructions; at most {MAX_INSTRUCTIONS}", self.instructions.len()));
        }
        for (count, what) in [(self.registers, "registers"), (self.predicates, "predicates")] {
            if count > MAX_REGISTERS {
                return Err(format!("{count} {what}; at most {MAX_REGISTERS}"));
            }
        }
        for param in &self.params {
            if param.offset.checked_add(param.bytes).is_none_or(|end| end > self.param_bytes) {
                let (name, bytes) = (&param.name, self.param_bytes);
                return Err(format!("parameter `{name}` lies outside of the {bytes} bytes of parameters"));
            }
        }
        self.instructions.iter().try_for_each(|instruction| {
            let guard = instruction.guard.map(|guard| guard.predicate);
            self.check_operation(&instruction.op, guard, variables)
                .map_err(|problem| format!("the instruction of PTX line {}: {problem}", instruction.line))
        })
    }

    fn check_operation(
        &self,
        op: &Op,
        guard: Option<super::Predicate>,
        variables: usize,
    ) -> Result<(), String> {
        let (mut register, mut predicate) = (None, guard.filter(|guard| guard.0 >= self.predicates));
        op.clone().registers(|named, _| {
            if named.0 >= self.registers {
                register = Some(named.0);
            }
        });
        op.predicates(|named| {
            if named.0 >= self.predicates {
                predicate = Some(named);
            }
        });
        if let Some(index) = register {
            return Err(format!("register {index}; the kernel has {}", self.registers));
        }
        if let Some(index) = predicate {
            return Err(format!("predicate {}; the kernel has {}", index.0, self.predicates));
        }
        let end = self.instructions.len();
        let mut targets = match op {
            Op::Branch { target, .. } => std::slice::from_ref(target),
            Op::BranchIndexed { targets, .. } => targets,
            _ => &[],
        }
        .iter();
        if let Some(target) = targets.find(|target| **target > end) {
            return Err(format!("a branch to instruction {target} of {end}"));
        }
        if let Some(index) = variable(op).filter(|index| *index as usize >= variables) {
            return Err(format!("variable {index}; the module has {variables}"));
        }
        if fits(op) { Ok(()) } else { Err(format!("operands or types that no such instruction has: {op:?}")) }
    }
}

/// The module's variable that an operation names.
fn variable(op: &Op) -> Option<u32> {
    let of = |addresses: &[&Address]| {
        addresses.iter().find_map(|address| match address.base {
            Base::Variable(index) => Some(index),
            Base::Register(_) | Base::Space => None,
        })
    };
    match op {
        Op::AddressOf { address, .. }
        | Op::Load { address, .. }
        | Op::Store { address, .. }
        | Op::Prefetch { address, .. }
        | Op::Atomic { address, .. }
        | Op::LoadMatrix { address, .. }
        | Op::StoreMatrix { address, .. }
        | Op::CopyAsyncArrive { barrier: address, .. } => of(&[address]),
        Op::CopyAsync { dst, src, .. } => of(&[dst, src]),
        Op::Mbarrier(operation) => match operation.as_ref() {
            Mbarrier::Initialize { barrier, .. }
            | Mbarrier::Invalidate { barrier }
            | Mbarrier::Arrive { barrier, .. }
            | Mbarrier::Test { barrier, .. }
            | Mbarrier::TestParity { barrier, .. } => of(&[barrier]),
            Mbarrier::PendingCount { .. } => None,
        },
        _ => None,
    }
}

/// Whether types and counts of operands are such that every lane has a result. Of an instruction that PTX does not have, but
/// that does no harm, a launch tells that it is not modelled.
fn fits(op: &Op) -> bool {
    let values = |types: &[Type]| types.iter().all(|ty| (8..=64).contains(&ty.bits()));
    let vector = |ty: &Type, count: usize| values(&[*ty]) && matches!(count, 1 | 2 | 4 | 8);
    let parts = |count: usize, bits: u32| matches!(bits, 8 | 16 | 32) && count <= (64 / bits) as usize;
    match op {
        Op::Unary { ty, .. }
        | Op::Binary { ty, .. }
        | Op::Ternary { ty, .. }
        | Op::BitFieldInsert { ty, .. }
        | Op::Carry { ty, .. }
        | Op::Compare { ty, .. }
        | Op::TestFloat { ty, .. }
        | Op::SelectBySign { ty, .. }
        | Op::Atomic { ty, .. }
        | Op::Match { ty, .. }
        | Op::WarpReduce { ty, .. } => values(&[*ty]),
        Op::CompareInto { to, ty, .. } => values(&[*to, *ty]),
        Op::Convert { to, from, .. } => values(&[*to, *from]),
        Op::ConvertPack { to, .. } => matches!(to.bits(), 8 | 16),
        Op::Pack { parts: sources, bits, .. } => parts(sources.len(), *bits),
        Op::Unpack { dst, bits, .. } => parts(dst.len(), *bits),
        Op::Load { ty, into, dst, .. } => values(&[*into]) && vector(ty, dst.len()),
        Op::Store { ty, src, .. } => vector(ty, src.len()),
        Op::CopyAsync { bytes, .. } => matches!(bytes, 4 | 8 | 16),
        Op::LoadMatrix { dst, .. } => matches!(dst.len(), 1 | 2 | 4),
        Op::StoreMatrix { src, .. } => matches!(src.len(), 1 | 2 | 4),
        Op::MatrixMultiply(multiply) => registers_fit(multiply),
        _ => true,
    }
}

/// Whether the operands of a matrix product have the registers that its shape needs.
fn registers_fit(mma: &MatrixMultiply) -> bool {
    if [mma.m, mma.n, mma.k].iter().any(|&size| size > 256) {
        return false;
    }
    let register = if mma.a_type == Type::F64 { 64 } else { 32 };
    let count =
        |rows: u32, columns: u32, ty: Type| (rows * columns * ty.bits()).div_ceil(32 * register) as usize;
    mma.a.len() == count(mma.m, mma.k, mma.a_type)
        && mma.b.len() == count(mma.k, mma.n, mma.b_type)
        && mma.c.len() == count(mma.m, mma.n, mma.c_type)
        && mma.d.len() == count(mma.m, mma.n, mma.d_type)
}
