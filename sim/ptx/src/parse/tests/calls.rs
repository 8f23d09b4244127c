use crate::ir::{Address, Base, Module, Op, Space};

const FUNCTIONS: &str = ".version 9.5\n.target sm_80\n.address_size 64\n\
    .func (.param .b32 result) triple(.param .b32 value)\n{\n.reg .b32 %r<4>;\n.reg .pred %p;\n\
    ld.param.u32 %r1, [value];\nsetp.eq.u32 %p, %r1, 0;\n@%p ret;\nmul.lo.u32 %r2, %r1, 3;\nst.param.b32 [result+0], %r2;\nret;\n}\n";

fn with_kernel(body: &str) -> Result<Module, super::ParseError> {
    let kernel = format!(".entry k() {{ .reg .b32 %r<9>; .reg .pred %p<3>; {body} }}");
    Module::parse(&format!("{FUNCTIONS}{kernel}"))
}

const CALL: &str = "{ .param .b32 param0; st.param.b32 [param0+0], %r1; .param .b32 retval0;\n\
    call.uni (retval0), triple, (param0);\nld.param.b32 %r2, [retval0+0]; }";

#[test]
fn functions_are_put_in_where_they_are_called() {
    let module = with_kernel(&format!("{CALL}\n{CALL}")).unwrap();
    let kernel = &module.kernels[0];
    // Each of both: the store, five instructions, of which two leave, and the load.
    assert_eq!(kernel.instructions.len(), 2 * 8 + 1);
    assert_eq!(kernel.local_bytes, 16);
    let Op::Store { space: Space::Local, address: stored, .. } = kernel.instructions[0].op else { panic!() };
    let Op::Load { space: Space::Local, address: loaded, .. } = kernel.instructions[1].op else { panic!() };
    assert_eq!((stored, stored), (loaded, Address { base: Base::Space, offset: 0 }));
    assert_eq!(kernel.instructions[3].op, Op::Branch { target: 7, uniform: false });
    assert!(kernel.instructions[3].guard.is_some());
    assert_eq!(kernel.instructions[6].op, Op::Branch { target: 7, uniform: false });
    let Op::Load { space: Space::Local, address, .. } = kernel.instructions[7].op else { panic!() };
    assert_eq!(address.offset, 4);
}

#[test]
fn a_guarded_call_is_passed_by_the_others() {
    let call = CALL.replace("call.uni", "@!%p1 call");
    let module = with_kernel(&call).unwrap();
    let passing = &module.kernels[0].instructions[1];
    assert_eq!(passing.op, Op::Branch { target: 8, uniform: false });
    assert!(!passing.guard.unwrap().negated);
}

#[test]
fn a_failed_assertion_traps() {
    let module = with_kernel("call.uni __assertfail, (a, b);").unwrap();
    assert_eq!(module.kernels[0].instructions[0].op, Op::Trap);
}

#[test]
fn wrong_calls() {
    for call in [
        CALL.replace("(param0)", "(param0, param0)"),
        CALL.replace("(retval0),", ""),
        CALL.replace(".b32 param0", ".b64 param0"),
        CALL.replace("triple", "unknown"),
        CALL.replace("triple", "k"),
        CALL.replace("(param0)", "(%r1)"),
        CALL.replace("(param0)", "(7)"),
        "call;".to_owned(),
        "call (;".to_owned(),
    ] {
        assert!(with_kernel(&call).is_err(), "{call}");
    }
}

#[test]
fn recursion_is_an_error_and_growth_has_a_limit() {
    let head = ".version 9.5\n.target sm_80\n.address_size 64\n";
    let error = Module::parse(&format!(
        "{head}.func a() {{ call b; ret; }}\n.func b() {{ call a; ret; }}\n.entry k() {{ call a; }}"
    ));
    assert!(error.unwrap_err().expected.contains("recursion"));
    // Each function calls the one before it twice: 2^40 instructions, were there no limit.
    let mut text = format!("{head}.func f0() {{ trap; ret; }}\n");
    for level in 1..=40 {
        let below = level - 1;
        text.push_str(&format!(".func f{level}() {{ call f{below}; call f{below}; ret; }}\n"));
    }
    let error = Module::parse(&format!("{text}.entry k() {{ call f40; }}")).unwrap_err();
    assert!(error.expected.contains("instructions"), "{error}");
    // A chain of calls, each within the one before it.
    for (length, right) in [(60, true), (20_000, false)] {
        let mut text = format!("{head}.func f0() {{ ret; }}\n");
        for level in 1..length {
            text.push_str(&format!(".func f{level}() {{ call f{}; ret; }}\n", level - 1));
        }
        let module = Module::parse(&format!("{text}.entry k() {{ call f{}; }}", length - 1));
        assert_eq!(module.is_ok(), right, "{length}");
    }
}

/// A text with a kernel that calls a function.
pub(super) fn whole() -> String {
    format!("{FUNCTIONS}.entry k() {{ .reg .b32 %r<9>; .reg .pred %p<3>; @%p1 bra E; {CALL} E: }}")
}
