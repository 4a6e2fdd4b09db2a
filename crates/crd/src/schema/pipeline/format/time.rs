//! `date`, `date-time` and `duration`.
//!
//! Follows k8s.io/kube-openapi `pkg/validation/strfmt` (`date.go`, `time.go`, `duration.go`).

/// `2006-01-02`; the day must exist.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let number = |range: std::ops::Range<usize>| text.get(range).and_then(|digits| digits.parse::<u32>().ok());
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else { return false };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    is_shaped && (1..=days).contains(&day)
}

/// A date, `t`, a time of day and a zone, in any case. Anything after a second `t` is ignored.
pub(in crate::schema::pipeline) fn is_date_time(text: &str) -> bool {
    let lower: String = text.chars().flat_map(|character| character.to_lowercase().next()).collect();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let two_digits = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() == 2 && bytes.iter().all(u8::is_ascii_digit)
    };
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let fields: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = fields.as_slice() else { return false };
    if ![hour, minute, second].iter().all(|field| two_digits(field)) {
        return false;
    }
    let is_zone = |text: &str| match text.strip_prefix(['+', '-']) {
        Some(offset) => offset.split_once(':').is_some_and(|(hour, minute)| two_digits(hour) && two_digits(minute)),
        None => text == "z",
    };
    // The decimal point may be any character.
    let is_fraction_and_zone = |text: &str| {
        let mut rest = text.chars();
        let after = rest.next().filter(|first| *first != '\n').map(|_| rest.as_str());
        after.is_some_and(|after| {
            let zone = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
            zone.len() < after.len() && is_zone(zone)
        })
    };
    *hour <= "23" && *minute <= "59" && *second <= "59" && (is_zone(rest) || is_fraction_and_zone(rest))
}

/// A Go duration, or numbers with a unit anywhere in the text.
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || has_amounts(text)
}

/// `1h30m`, `-1.5s`; at most 64 bits of nanoseconds.
fn is_go_duration(text: &str) -> bool {
    let (is_negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned == "0" {
        return true;
    }
    if unsigned.is_empty() {
        return false;
    }
    const LIMIT: u64 = 1 << 63;
    let mut total: u64 = 0;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let Some((amount, remainder)) = amount(rest, LIMIT) else { return false };
        let Some(sum) = total.checked_add(amount).filter(|sum| *sum <= LIMIT) else { return false };
        (total, rest) = (sum, remainder);
    }
    is_negative || total < LIMIT
}

/// The first number with its unit, in nanoseconds, and the rest of the text.
fn amount(text: &str, limit: u64) -> Option<(u64, &str)> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|character: char| character == '.' || character.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok().filter(|whole| *whole <= limit)? };
    let nanoseconds = whole.checked_mul(unit).filter(|amount| *amount <= limit)?;
    // Digits beyond 63 bits are dropped.
    let (mut numerator, mut scale) = (0_u64, 1.0_f64);
    for digit in fraction.bytes() {
        let Some(next) = numerator
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')))
            .filter(|value| *value <= limit)
        else {
            break;
        };
        numerator = next;
        scale *= 10.0;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the same arithmetic as the server's"
    )]
    let part = (numerator as f64 * (unit as f64 / scale)) as u64;
    nanoseconds.checked_add(part).filter(|amount| *amount <= limit).map(|amount| (amount, rest))
}

/// `3 days`, `1 wk 2 hours`: digits, white space and letters anywhere, with at least one known unit and no number too
/// large before any word.
fn has_amounts(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    let mut found = false;
    let mut index = 0;
    while index < characters.len() {
        let span = |start: usize, is_in: &dyn Fn(char) -> bool| {
            start + characters[start..].iter().take_while(|character| is_in(**character)).count()
        };
        let digits_end = span(index, &|character| character.is_ascii_digit());
        if digits_end == index {
            index += 1;
            continue;
        }
        let word_start = span(digits_end, &|character| matches!(character, '\t' | '\n' | '\x0c' | '\r' | ' '));
        let word_end = span(word_start, &|character| character.is_ascii_alphabetic() || character == '\u{b5}');
        if word_end > word_start {
            let number: String = characters[index..digits_end].iter().collect();
            if number.parse::<i64>().is_err() {
                return false;
            }
            let unit: String = characters[word_start..word_end].iter().collect();
            found |= is_unit(&unit.to_ascii_lowercase());
        }
        index = word_end.max(digits_end);
    }
    found
}

/// The last name of each unit also matches as the prefix of a longer word.
fn is_unit(word: &str) -> bool {
    const EXACT: [&str; 12] = ["ns", "us", "\u{b5}s", "ms", "s", "m", "h", "hr", "d", "w", "wk", "sec"];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    EXACT.contains(&word) || PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}
