//! What the case that runs on this thread leaves behind beside its verdict: what was granted, and how near to its bounds
//! the answers came.

use crate::tolerance::Bound;
use halite_kernels::Support;
use std::cell::RefCell;

thread_local! {
    static LEDGER: RefCell<Ledger> = const { RefCell::new(Ledger::new()) };
}

/// One case's entries.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The greatest error, as a share of what its bound allows; `None` where nothing was compared.
    pub(crate) worst: Option<f64>,
    /// What the backend said of the specifications it was asked about.
    pub(crate) supports: Vec<Support>,
}

impl Ledger {
    const fn new() -> Self {
        Ledger { worst: None, supports: Vec::new() }
    }
}

/// Begins a case's ledger, and gives the one before.
pub(crate) fn begin() -> Ledger {
    LEDGER.with(|ledger| ledger.replace(Ledger::new()))
}

/// Whether the backend does not run what it was asked about.
pub(crate) fn denied(support: Support) -> bool {
    let denied = matches!(support, Support::No(_));
    LEDGER.with_borrow_mut(|ledger| ledger.supports.push(support));
    denied
}

/// An answer and its bound.
pub(crate) fn compared(actual: f64, Bound { value, error }: Bound) {
    let distance = (actual - value).abs();
    // Without an allowance, and for NaN and infinity, there is right and wrong and nothing between.
    let share = if error > 0.0 && distance.is_finite() { distance / error } else { 0.0 };
    LEDGER.with_borrow_mut(|ledger| ledger.worst = Some(ledger.worst.unwrap_or(0.0).max(share)));
}
