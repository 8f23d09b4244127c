//! `cp.async` and `mbarrier`.

use super::super::error::{Problem, Result};
use super::super::syntax::{Operand, OperandKind};
use super::form::Form;
use super::scope::Symbol;
use super::{access, operands};
use crate::ir::{Address, Mbarrier, Op, Space, Type};

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    if form.written.mnemonic.text == "mbarrier" {
        return barrier(form);
    }
    form.must("async")?;
    if form.flag("commit_group") {
        return form.done(Op::CopyAsyncCommit);
    }
    if form.flag("wait_all") {
        return form.done(Op::CopyAsyncWait { pending: None });
    }
    if form.flag("wait_group") {
        let pending = form.constant("how many groups may be under way", 1 << 20)?;
        return form.done(Op::CopyAsyncWait { pending: Some(pending as u32) });
    }
    if form.flag("mbarrier") {
        form.must("arrive")?;
        let no_increment = form.flag("noinc");
        form.choose(&[("shared", ()), ("shared::cta", ())]);
        form.must("b64")?;
        let barrier = object(&mut form)?;
        return form.done(Op::CopyAsyncArrive { barrier, no_increment });
    }
    let whole_lines = form.require(&[("ca", false), ("cg", true)])?;
    form.require(&[("shared", ()), ("shared::cta", ())])?;
    form.must("global")?;
    let policy = access::cache_advice(&mut form);
    let (_, dst) = form.address(Space::Shared)?;
    let (_, src) = form.address(Space::Global)?;
    let at = form.peek_operand().map_or(form.written.end, |operand| operand.at);
    let bytes = form.constant("4, 8 or 16 bytes", 16)? as u32;
    if !matches!((bytes, whole_lines), (16, _) | (4 | 8, false)) {
        return Err(Problem::new(at, "4, 8 or 16 bytes, and 16 with `.cg`", bytes.to_string()));
    }
    let (mut source_bytes, mut ignore_source) = (None, None);
    if form.operands_left() > usize::from(policy) {
        match form.peek_symbol()? {
            Some(Symbol::Predicate(_)) => ignore_source = Some(form.src_predicate()?),
            _ => source_bytes = Some(form.src(Type::U32)?),
        }
    }
    access::advice_operand(&mut form, policy)?;
    form.done(Op::CopyAsync { bytes, dst, src, source_bytes, ignore_source })
}

/// The address of a barrier's object, which lies in shared memory.
fn object(form: &mut Form<'_, '_, '_>) -> Result<Address> {
    form.address(Space::Shared).map(|(_, address)| address)
}

fn barrier(mut form: Form<'_, '_, '_>) -> Result<()> {
    #[derive(Clone, Copy)]
    enum What {
        Initialize,
        Invalidate,
        Arrive { drop: bool },
        Test { may_wait: bool },
        PendingCount,
    }
    let what = form.require(&[
        ("init", What::Initialize),
        ("inval", What::Invalidate),
        ("arrive", What::Arrive { drop: false }),
        ("arrive_drop", What::Arrive { drop: true }),
        ("test_wait", What::Test { may_wait: false }),
        ("try_wait", What::Test { may_wait: true }),
        ("pending_count", What::PendingCount),
    ])?;
    if let What::PendingCount = what {
        form.must("b64")?;
        let (dst, state) = (form.dst(Type::U32)?, form.src(Type::B64)?);
        return form.done(Op::Mbarrier(Box::new(Mbarrier::PendingCount { dst, state })));
    }
    let mut parity = false;
    match what {
        What::Arrive { .. } => {
            let counted = form.flag("noComplete");
            if !counted {
                form.choose(&[("release", ()), ("relaxed", ())]);
                form.choose(&[("cta", ()), ("cluster", ())]);
            }
        }
        What::Test { .. } => {
            parity = form.flag("parity");
            form.choose(&[("acquire", ()), ("relaxed", ())]);
            form.choose(&[("cta", ()), ("cluster", ())]);
        }
        _ => {}
    }
    form.choose(&[("shared", ()), ("shared::cta", ())]);
    form.must("b64")?;
    let operation = match what {
        What::Initialize => Mbarrier::Initialize { barrier: object(&mut form)?, count: form.src(Type::U32)? },
        What::Invalidate => Mbarrier::Invalidate { barrier: object(&mut form)? },
        What::Arrive { drop } => {
            let state = match form.peek_operand() {
                Some(Operand { kind: OperandKind::Sink, .. }) => {
                    form.operand("a register")?;
                    None
                }
                Some(Operand { kind: OperandKind::Address { .. }, .. }) => None,
                _ => Some(form.dst(Type::B64)?),
            };
            let barrier = object(&mut form)?;
            let count = if form.operands_left() > 0 { Some(form.src(Type::U32)?) } else { None };
            Mbarrier::Arrive { barrier, state, count, drop }
        }
        What::Test { may_wait } => {
            let dst = form.dst_predicate()?;
            let barrier = object(&mut form)?;
            let operation = if parity {
                Mbarrier::TestParity { dst, barrier, parity: form.src(Type::U32)?, may_wait }
            } else {
                Mbarrier::Test { dst, barrier, state: form.src(Type::B64)?, may_wait }
            };
            // How long a thread may be suspended.
            if may_wait && form.operands_left() > 0 {
                form.src(Type::U32)?;
            }
            operation
        }
        What::PendingCount => {
            let found = form.peek_operand().map_or_else(|| "`;`".to_owned(), operands::describe);
            return Err(Problem::new(form.written.mnemonic.at, "an operation of a barrier", found));
        }
    };
    form.done(Op::Mbarrier(Box::new(operation)))
}
