//! Comparisons: of results with bounds, of quantised rows, of bits, and of errors.

use crate::{
    case::{Fault, Verdict, ensure},
    ledger,
    tolerance::{Bound, TINY, quantised},
};
use halite_hal::Error;

/// Every element within its bound.
///
/// # Errors
/// The first element that is not, with its index, and how many there are.
pub fn judge(what: &str, dims: &[usize], actual: &[f64], expected: &[Bound]) -> Verdict {
    ensure(actual.len() == expected.len(), || {
        format!("{what}: {} elements where {} were expected", actual.len(), expected.len())
    })?;
    let wrong = |&place: &usize| !expected[place].holds(actual[place]);
    let Some(first) = (0..actual.len()).find(wrong) else {
        actual.iter().zip(expected).for_each(|(&actual, &bound)| ledger::compared(actual, bound));
        return Ok(());
    };
    let count = (first..actual.len()).filter(wrong).count();
    let (got, Bound { value, error }) = (actual[first], expected[first]);
    let place = index(first, dims);
    Err(Fault(format!(
        "{what}{place:?}: expected {value:e} ± {error:.2e}, got {got:e} ({count} of {} elements are wrong)",
        actual.len()
    )))
}

/// Rows quantised per token: `y` before quantisation, `q` and `scales` as they came.
///
/// # Errors
/// The first element or scale that is wrong.
pub fn judge_quantised(columns: usize, y: &[Bound], q: &[f64], scales: &[f64]) -> Verdict {
    ensure(q.len() == y.len() && scales.len() * columns == y.len(), || "another number of elements".into())?;
    for (row, &scale) in scales.iter().enumerate() {
        let (y, q) = (&y[row * columns..][..columns], &q[row * columns..][..columns]);
        if y.iter().any(|y| !y.value.is_finite()) {
            ensure(scale.is_nan() && q.iter().all(|&q| q == 0.0), || {
                format!("row {row} holds NaN or infinity: expected zeros and a NaN scale, got scale {scale}")
            })?;
            continue;
        }
        let largest = y.iter().map(|y| y.value.abs()).fold(0.0, f64::max);
        let error = y.iter().map(|y| y.error).fold(0.0, f64::max);
        let mut expected = Bound { value: largest, error }.over(127.0);
        expected.value = expected.value.max(TINY);
        ensure(expected.holds(scale) && scale >= TINY, || {
            format!(
                "scale of row {row}: expected {:e} ± {:.2e}, got {scale:e}",
                expected.value, expected.error
            )
        })?;
        for (column, (&y, &q)) in y.iter().zip(q).enumerate() {
            let real = y.value / expected.value;
            let far = quantised(y, expected);
            ensure((q - real).abs() <= far && q.abs() <= 127.0, || {
                format!("q[{row}, {column}]: expected {real} rounded, at most {far} away, got {q}")
            })?;
            ledger::compared(q, Bound { value: real, error: far });
        }
    }
    Ok(())
}

/// The same bytes.
///
/// # Errors
/// The first byte that differs.
pub fn same_bits(what: &str, left: &[u8], right: &[u8]) -> Verdict {
    ensure(left.len() == right.len(), || format!("{what}: {} bytes against {}", left.len(), right.len()))?;
    match left.iter().zip(right).position(|(left, right)| left != right) {
        Some(place) => Err(Fault(format!("{what}: bits differ from byte {place} of {} on", left.len()))),
        None => Ok(()),
    }
}

/// The error of a bad argument: [`Error::Argument`] or [`Error::Limit`] of this operator and argument.
///
/// # Errors
/// No error, or another one.
pub fn refused<T>(operator: &str, argument: &str, result: Result<T, Error>) -> Verdict {
    let error = match result {
        Ok(_) => return Err(Fault(format!("{operator}: a wrong `{argument}` was accepted"))),
        Err(error) => error,
    };
    let right = match &error {
        Error::Argument { operator: o, argument: a, .. } | Error::Limit { operator: o, argument: a, .. } => {
            (*o, *a) == (operator, argument)
        }
        _ => false,
    };
    ensure(right, || format!("expected an error of {operator}'s `{argument}`, got {error:?}"))
}

/// The error of a specification that the backend cannot run.
///
/// # Errors
/// No error, or another one.
pub fn unsupported<T>(operator: &str, result: Result<T, Error>) -> Verdict {
    match result {
        Err(Error::Unsupported { operator: o, .. }) if o == operator => Ok(()),
        Err(error) => Err(Fault(format!("expected {operator}: not supported, got {error:?}"))),
        Ok(_) => Err(Fault(format!("{operator}: `supports` says no, and yet it ran"))),
    }
}

fn index(mut place: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (axis, &dim) in dims.iter().enumerate().rev() {
        index[axis] = place % dim.max(1);
        place /= dim.max(1);
    }
    index
}
