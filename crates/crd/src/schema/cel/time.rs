//! Dates, timestamps and durations, parsed as in Go, in nanoseconds.
//!
//! Follows cel-go `common/types/timestamp.go` and `duration.go`.

use crate::duration::nanoseconds;

const SECOND: i128 = 1_000_000_000;

/// Days from 1970-01-01 to a Gregorian date.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    // If years start in March, the leap day is their last day.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day from days since 1970-01-01.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// A number of exactly `count` digits at the start, and the rest.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let digits = text.get(..count)?;
    let number = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()?;
    Some((number, &text[count..]))
}

fn calendar(text: &str) -> Option<(i64, &str)> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let most = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    (1..=most).contains(&day).then(|| (days(year, month, day), rest))
}

/// `2006-01-02`.
pub(super) fn date(text: &str) -> Option<i128> {
    let (days, rest) = calendar(text)?;
    rest.is_empty().then_some(i128::from(days) * 86_400 * SECOND)
}

/// `2006-01-02T15:04:05Z` with a fraction and a zone.
pub(super) fn rfc3339(text: &str) -> Option<i128> {
    let (seconds, nanos, rest) = clock(text)?;
    let offset = match rest {
        "Z" => 0,
        zone => {
            let sign = if zone.starts_with('+') { 1 } else { -1 };
            let (hours, zone) = digits(zone.strip_prefix(['+', '-'])?, 2)?;
            let (minutes, zone) = digits(zone.strip_prefix(':')?, 2)?;
            (zone.is_empty() && hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))?
        }
    };
    Some(i128::from(seconds - offset) * SECOND + nanos)
}

/// Unix seconds, nanoseconds, and the rest of the text, which is the zone.
fn clock(text: &str) -> Option<(i64, i128, &str)> {
    let (days, rest) = calendar(text)?;
    let (hour, rest) = digits(rest.strip_prefix('T')?, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = digits(rest.strip_prefix(':')?, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanos, rest) = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => {
            let length = fraction.len() - fraction.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
            let nine: String = fraction[..length].chars().chain(std::iter::repeat('0')).take(9).collect();
            (length > 0).then(|| nine.parse().ok()).flatten().map(|nanos| (nanos, &fraction[length..]))?
        }
        None => (0, rest),
    };
    Some((days * 86_400 + hour * 3600 + minute * 60 + second, nanos, rest))
}

/// `format: date-time`; a missing zone is UTC, and the empty text is the start of 1970.
pub(super) fn timestamp(text: &str) -> Option<i128> {
    if text.is_empty() {
        return Some(0);
    }
    rfc3339(text).or_else(|| {
        let (seconds, nanos, rest) = clock(text)?;
        rest.is_empty().then_some(i128::from(seconds) * SECOND + nanos)
    })
}

/// `format: duration`, which accepts `1h` and lists such as `3 days` anywhere in the text.
pub(super) fn duration(text: &str) -> Option<i64> {
    if let Some(nanos) = nanoseconds(text) {
        return Some(nanos);
    }
    let (amount, unit) =
        text.split_at(text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len());
    let unit = unit.trim_start_matches([' ', '\t']).to_ascii_lowercase();
    // Only one amount with one unit: more would be ambiguous.
    if unit.is_empty() || !unit.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let factor: i64 = match unit.as_str() {
        "d" | "day" | "days" => 86_400_000_000_000,
        "w" | "wk" | "week" | "weeks" => 604_800_000_000_000,
        "hr" | "hour" | "hours" => 3_600_000_000_000,
        "min" | "minute" | "minutes" => 60_000_000_000,
        "sec" | "second" | "seconds" => 1_000_000_000,
        _ => return None,
    };
    amount.parse::<i64>().ok()?.checked_mul(factor)
}
