//! What the parser makes of texts, and of texts that are wrong.

use crate::ir::Module;

#[test]
fn a_text_begins_with_its_version() {
    let error = Module::parse(".target sm_80").unwrap_err();
    assert_eq!((error.line, error.column), (1, 1));
}
