//! Every program of the backend, for those who compile them all: `precompile` and the tests.

use crate::compile::Program;

/// Every program that the backend may ask for, each once. A launch of another is refused, so that none is forgotten here.
pub fn programs() -> Vec<Program> {
    [
        crate::activation::programs(),
        crate::attention::programs(),
        crate::cache::programs(),
        crate::collectives::programs(),
        crate::copy::programs(),
        crate::embedding::programs(),
        crate::linear::programs(),
        crate::logits::programs(),
        crate::mla::programs(),
        crate::moe::programs(),
        crate::norm::programs(),
        crate::quantize::programs(),
        crate::rope::programs(),
        crate::sampling::programs(),
        crate::top_k::programs(),
    ]
    .concat()
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
