//! Every program of the backend, for those who compile them all: `precompile` and the tests.

use crate::{compile::Program, linear};

/// Every program that the backend may ask for, each once.
pub fn programs() -> Vec<Program> {
    linear::programs()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_program_is_listed_twice() {
        let all = programs();
        let names: BTreeSet<String> = all.iter().map(|program| program.to_string()).collect();
        assert_eq!(names.len(), all.len());
    }
}
