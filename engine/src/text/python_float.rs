//! Floating-point numbers as Python prints them.

/// The shortest digits that give the number back; an exponent from 1e16 on and below 1e-4.
pub(crate) fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        // Written out, and with a fraction even if that is 0.
        _ => format!("{value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::python_float;

    #[test]
    fn as_python_prints_them() {
        // From Python 3: repr(x).
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (2.5, "2.5"),
            (0.1, "0.1"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (123_456_789.125, "123456789.125"),
            (1e15, "1000000000000000.0"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (1.234e22, "1.234e+22"),
            (-1e300, "-1e+300"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, expected) in cases {
            assert_eq!(python_float(value), expected);
        }
    }
}
