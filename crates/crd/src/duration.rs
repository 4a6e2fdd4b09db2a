//! Durations as Go's `time.ParseDuration` reads them: `300s`, `1h30m`, `-1.5h`.

const SECOND: i128 = 1_000_000_000;

/// The duration in nanoseconds; `None` if the text is not a duration or overflows.
#[must_use]
pub fn nanoseconds(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let count = |text: &str| text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        let (whole, tail) = rest.split_at(count(rest));
        let (fraction, tail) = match tail.strip_prefix('.') {
            Some(tail) => tail.split_at(count(tail)),
            None => ("", tail),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (unit, tail) =
            tail.split_at(tail.find(|next: char| next == '.' || next.is_ascii_digit()).unwrap_or(tail.len()));
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return None,
        };
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.into() };
        // Further digits are less than a nanosecond.
        let shown: String = fraction.chars().take(18).collect();
        let scale = 10_i128.checked_pow(u32::try_from(shown.len()).ok()?)?;
        let part: i128 = if shown.is_empty() { 0 } else { shown.parse().ok()? };
        total += whole * unit + part * unit / scale;
        if total > 1 << 63 {
            return None;
        }
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}
