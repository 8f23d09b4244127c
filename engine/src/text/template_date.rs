//! Dates in chat templates: the part of `strftime` they use, in UTC and English.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Formats `time`. `%-d` and its like leave the leading zero out.
pub(crate) fn format(time: SystemTime, format: &str) -> Result<String, String> {
    let seconds =
        time.duration_since(UNIX_EPOCH).map_err(|_| "the time is before 1970".to_owned())?.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day, day_of_year) = civil(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let pick = |names: &[&'static str], at: u64| names.get(at as usize).copied().unwrap_or_default();
    let month_name = pick(&MONTHS, month - 1);
    let day_name = pick(&DAYS, days % 7);

    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut code = chars.next();
        let padded = code != Some('-');
        if !padded {
            code = chars.next();
        }
        let number = |value: u64, width: usize| {
            if padded { format!("{value:0width$}") } else { value.to_string() }
        };
        out += &match code {
            Some('Y') => number(year, 4),
            Some('y') => number(year % 100, 2),
            Some('m') => number(month, 2),
            Some('d') => number(day, 2),
            Some('e') => format!("{day:2}"),
            Some('j') => number(day_of_year, 3),
            Some('H') => number(hour, 2),
            Some('I') => number((hour + 11) % 12 + 1, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second % 60, 2),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('B') => month_name.to_owned(),
            Some('b' | 'h') => month_name.chars().take(3).collect(),
            Some('A') => day_name.to_owned(),
            Some('a') => day_name.chars().take(3).collect(),
            Some('F') => format!("{year:04}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{:02}", second % 60),
            Some('Z') => "UTC".to_owned(),
            Some('z') => "+0000".to_owned(),
            Some('%') => "%".to_owned(),
            other => return Err(format!("strftime_now: unsupported code %{}", other.unwrap_or(' '))),
        };
    }
    Ok(out)
}

/// Year, month, day and day of the year (all from 1) of a number of days since 1970, in the Gregorian calendar.
fn civil(mut days: u64) -> (u64, u64, u64, u64) {
    // 400 years have 146,097 days, so the loop below runs at most 400 times.
    let mut year = 1970 + 400 * (days / 146_097);
    days %= 146_097;
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let day_of_year = days + 1;
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1, day_of_year)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64, f: &str) -> String {
        format(UNIX_EPOCH + Duration::from_secs(seconds), f).expect("a valid format")
    }

    #[test]
    fn known_dates() {
        // From `date -u -d @SECONDS`.
        assert_eq!(at(0, "%A %d %B %Y %H:%M:%S %j"), "Thursday 01 January 1970 00:00:00 001");
        assert_eq!(at(951_782_400, "%a %F %j"), "Tue 2000-02-29 060");
        assert_eq!(at(1_735_689_599, "%d %b %Y %-I%p %-d/%-m/%y %T"), "31 Dec 2024 11PM 31/12/24 23:59:59");
        assert_eq!(at(4_107_542_400, "%F %A"), "2100-03-01 Monday");
        assert_eq!(at(12_345_678_901, "%F %%"), "2361-03-21 %");
    }

    #[test]
    fn unknown_codes_are_errors() {
        assert!(format(UNIX_EPOCH, "%Q").is_err());
        assert!(format(UNIX_EPOCH, "%").is_err());
    }
}
