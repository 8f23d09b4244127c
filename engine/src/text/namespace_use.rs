//! A template's namespaces hold values, and must not be values themselves.
//!
//! A namespace is the one value of the language that can be changed after it was made. One that comes to hold itself has
//! no end when it is compared, sorted or turned into text, and minijinja's operators recurse into it without a bound:
//! the stack overflows, and with it the process ends. So a template is refused in which a namespace's name stands for
//! anything but access to its attributes. The templates of published models only ever do that.

use super::error::TextError;
use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use std::collections::BTreeSet;

/// The function that makes a namespace.
const MAKER: &str = "namespace";

/// Checks every name of a namespace in a template.
///
/// # Errors
/// One is used as a value, or made elsewhere than in `{% set name = namespace(...) %}`: with its line.
pub(super) fn check(template: &str, syntax: SyntaxConfig) -> Result<(), TextError> {
    // What cannot be read is told by the compiler, better.
    let tokens: Vec<_> = tokenize(template, false, syntax).map_while(Result::ok).collect();
    let ident = |index: usize| match tokens.get(index) {
        Some((Token::Ident(name), _)) => Some(*name),
        _ => None,
    };
    let is = |index: Option<usize>, wanted: fn(&Token<'_>) -> bool| {
        index.and_then(|index| tokens.get(index)).is_some_and(|(token, _)| wanted(token))
    };
    let dot: fn(&Token<'_>) -> bool = |token| matches!(token, Token::Dot);
    let assign: fn(&Token<'_>) -> bool = |token| matches!(token, Token::Assign);
    // `set name =`, seen from the name.
    let is_set =
        |index: usize| index.checked_sub(1).and_then(ident) == Some("set") && is(Some(index + 1), assign);
    let makes = |index: usize| is_set(index) && ident(index + 2) == Some(MAKER);
    let names: BTreeSet<&str> = (0..tokens.len()).filter(|&index| makes(index)).filter_map(ident).collect();
    for (index, (_, span)) in tokens.iter().enumerate() {
        let Some(name) = ident(index) else { continue };
        let is_attribute = is(index.checked_sub(1), dot);
        let sound = match name {
            _ if is_attribute => true,
            MAKER => {
                let called = is(Some(index + 1), |token| matches!(token, Token::ParenOpen));
                called && index.checked_sub(2).is_some_and(makes)
            }
            name if names.contains(name) => is(Some(index + 1), dot) || is_set(index),
            _ => true,
        };
        if !sound {
            let message = format!(
                "line {}: `{name}` is used as a value; of a namespace only the attributes may be used, and it is made by \
                 `{{% set name = namespace(...) %}}`",
                span.start_line
            );
            return Err(TextError::Template { message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(template: &str) -> Result<(), TextError> {
        check(template, SyntaxConfig::default())
    }

    #[test]
    fn attributes_are_what_namespaces_are_for() {
        for template in [
            "{%- set ns = namespace(a=1, b=[], c=messages|length - 1) -%}{% set ns.a = ns.a + 1 %}{{ ns.a ~ ns.b }}",
            "{% set n = namespace() %}a namespace n{{ 'n namespace' }}{# n #}{% raw %}{{ n }}{% endraw %}{{ x.n }}",
            "{% set n = namespace(x=1) %}{% set n = 2 %}{% if n.x is defined %}{{ n . x }}{% endif %}",
            "{{ tool.namespace }}{{ {'namespace': 1}['namespace'] }}",
        ] {
            assert!(checked(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn a_namespace_goes_nowhere() {
        for rest in [
            "{% set n.x = n %}",
            "{% set n.x = [n] %}",
            "{% set n.x = {'a': n} %}",
            "{% set m = n %}{% set n.x = m %}",
            "{% for m in [n] %}{% set n.x = m %}{% endfor %}",
            "{% with m = n %}{% set n.x = m %}{% endwith %}",
            "{% macro f(m) %}{% set m.x = m %}{% endmacro %}{{ f(n) }}",
            "{{ n ~ '' }}",
            "{{ n == n }}",
            "{{ [n] | sort }}",
            "{{ dict(a=n) }}",
            "{{ n['x'] }}",
            "{% set m = namespace %}{% set k = m() %}",
            "{% set m = [namespace()] %}",
            "{% set m, k = namespace(), namespace() %}",
            "{% set m = namespace(a=namespace()) %}",
            "{% set m = namespace(a=n) %}",
            "{% set m = (namespace()) %}",
            "{% set m = namespace | first %}",
            "{% set m = x or namespace() %}",
            "{% for m in [1] if namespace() %}{% endfor %}",
        ] {
            let template = format!("{{% set n = namespace() %}}\n{rest}");
            let error = checked(&template).expect_err(rest).to_string();
            assert!(error.contains("line 2: `n"), "{rest}: {error}");
        }
    }

    /// What follows the call may give the namespace on, but the name it goes to is watched all the same.
    #[test]
    fn whatever_is_made_of_a_namespace_is_watched_too() {
        let made = "{% set n = namespace(a=1) | default(2) if x else 3 %}";
        assert!(checked(&format!("{made}{{{{ n.a }}}}")).is_ok());
        assert!(checked(&format!("{made}{{% set n.a = n %}}")).is_err());
    }
}
