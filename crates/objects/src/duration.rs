//! Durations in Go's format: `300s`, `1h30m`, `1.5h`. Flags, Config, model files and experiments use them.

use std::time::Duration;

use pushback_crd::duration::nanoseconds;

/// What is expected where a text is not a duration.
pub const EXPECTED: &str = "a duration such as 90s, 5m or 1h30m";

/// One year; no recovery takes longer.
const LONGEST: u64 = 366 * 24 * 3600;

/// A duration; `None` if the text is not one, or negative.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let nanoseconds = if text.starts_with('-') { None } else { nanoseconds(text) };
    u64::try_from(nanoseconds?).ok().map(Duration::from_nanos)
}

/// Whole seconds, rounded up.
#[must_use]
pub fn rounded_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Whole seconds, rounded up; `None` if the text is not a duration, is negative, or exceeds a year.
#[must_use]
pub fn seconds(text: &str) -> Option<u64> {
    parse(text).map(rounded_up).filter(|seconds| *seconds <= LONGEST)
}

/// The shortest form that Go reads: `300s`, `5m`, `1h30m`.
#[must_use]
pub fn written(seconds: u64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    for (count, unit) in [(hours, 'h'), (minutes, 'm'), (rest, 's')] {
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let read = [
            ("300s", Some(300)),
            ("5m", Some(300)),
            ("1h30m", Some(5400)),
            ("1.5h", Some(5400)),
            (".5m", Some(30)),
            ("500ms", Some(1)),
            ("1us", Some(1)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("+10s", Some(10)),
            ("", None),
            ("+", None),
            ("10", None),
            ("s", None),
            ("1x", None),
            ("-1s", None),
            ("1s ", None),
            ("1 s", None),
            ("1.2.3s", None),
            ("99999999999999999999h", None),
        ];
        for (text, expected) in read {
            assert_eq!(seconds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_reads_the_same() {
        for count in [0, 1, 59, 60, 61, 300, 3600, 5400, 86_399] {
            assert_eq!(seconds(&written(count)), Some(count));
        }
        assert_eq!(written(5400), "1h30m");
    }
}
