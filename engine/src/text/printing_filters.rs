//! The template engine's own filters and tests that turn what they are given into text, each behind a check that the
//! text has bounds. The engine charges for such a text once it is made, which for lists that share their parts is too
//! late.

use minijinja::value::{Kwargs, Rest, StringInput, Value, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, State, filters, tests};

use super::bounded_printing::printable;
use super::python_methods::replaced;

/// Puts the check before every one of them.
pub(crate) fn register(environment: &mut Environment<'static>) {
    let own = [
        ("capitalize", Value::from_function(filters::capitalize)),
        ("e", Value::from_function(filters::escape)),
        ("escape", Value::from_function(filters::escape)),
        ("format", Value::from_function(filters::format)),
        ("join", Value::from_function(filters::join)),
        ("lower", Value::from_function(filters::lower)),
        ("pprint", Value::from_function(filters::pprint)),
        ("safe", Value::from_function(filters::safe)),
        ("title", Value::from_function(filters::title)),
        ("trim", Value::from_function(filters::trim)),
        ("upper", Value::from_function(filters::upper)),
    ];
    for (name, filter) in own {
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            filter.call(state, &checked(state, args)?)
        });
    }
    let own = [
        ("endingwith", Value::from_function(tests::is_endingwith)),
        ("startingwith", Value::from_function(tests::is_startingwith)),
    ];
    for (name, test) in own {
        environment.add_test(
            name,
            move |state: &mut State, args: Rest<ValueOrKwargs>| -> Result<bool, Error> {
                Ok(test.call(state, &checked(state, args)?)?.is_true())
            },
        );
    }
    // The engine's own of these two charge for what they make, but not in a form that can be called.
    environment.add_filter("indent", indent);
    environment.add_filter("replace", replace);
    // It prints everything there is.
    environment.remove_global("debug");
}

fn checked(state: &State, args: Rest<ValueOrKwargs>) -> Result<Vec<Value>, Error> {
    let args = args.into_values();
    args.iter().try_for_each(|value| printable(state, value))?;
    Ok(args)
}

fn indent(state: &mut State, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = checked(state, args)?;
    type Args<'a> = (StringInput<'a>, Option<usize>, Option<bool>, Option<bool>, Kwargs);
    let (text, width, first, blank, named): Args<'_> = from_args(&args)?;
    let asked = width.map_or_else(|| named.get::<Option<usize>>("width"), |width| Ok(Some(width)))?;
    let lines = text.as_str().lines().count().max(1);
    state.consume_fuel(lines.saturating_mul(asked.unwrap_or(0)) as u64 / 64)?;
    filters::indent(text, width, first, blank, named)
}

fn replace(state: &mut State, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = checked(state, args)?;
    type Args<'a> = (StringInput<'a>, StringInput<'a>, StringInput<'a>, Option<i64>, Kwargs);
    let (text, old, new, most, named): Args<'_> = from_args(&args)?;
    let most = most.map_or_else(|| named.get("count"), |most| Ok(Some(most)))?;
    named.assert_all_used()?;
    replaced(state, text.as_str(), old.as_str(), new.as_str(), most).map(Value::from)
}
