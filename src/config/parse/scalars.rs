//! The few texts with a grammar of their own: versions, Go durations, dates, labels.

use std::cmp::Ordering;
use std::time::Duration;

use pushback_crd::names::{is_dns_subdomain, is_label_value, is_name_part};

/// `1.2.3`, `1.2`, `1.2.3-rc.1`; build metadata is read and ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    numbers: [u64; 3],
    pre_release: Option<String>,
}

impl Version {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.split('+').next().unwrap_or_default();
        let (core, pre_release) = match text.split_once('-') {
            Some((core, pre_release)) => (core, Some(pre_release)),
            None => (text, None),
        };
        let mut numbers = [0; 3];
        let parts: Vec<&str> = core.split('.').collect();
        if parts.len() > numbers.len() || pre_release.is_some_and(str::is_empty) {
            return None;
        }
        for (number, part) in numbers.iter_mut().zip(parts) {
            // `parse` alone would take a sign.
            if !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            *number = part.parse().ok()?;
        }
        Some(Self { numbers, pre_release: pre_release.map(str::to_owned) })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Precedence of semver.org §11: a pre-release comes before its release.
impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (&self.pre_release, &other.pre_release) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(left), Some(right)) => compare_pre_releases(left, right),
        })
    }
}

fn compare_pre_releases(left: &str, right: &str) -> Ordering {
    let numeric = |part: &str| part.parse::<u64>().ok();
    for (left, right) in left.split('.').zip(right.split('.')) {
        let ordering = match (numeric(left), numeric(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => left.cmp(right),
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    left.split('.').count().cmp(&right.split('.').count())
}

/// `1h30m`, `1.5s`, `300ms`: the grammar of Go's `time.ParseDuration`, without signs.
pub(super) fn go_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u128); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    // Go counts nanoseconds in an i64; what it refuses, we refuse.
    let limit = u128::from(i64::MAX.unsigned_abs());
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let nanoseconds = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let whole: u128 = if whole.is_empty() { 0 } else { u128::from(whole.parse::<u64>().ok()?) };
        let mut part = whole.checked_mul(nanoseconds)?;
        let mut scale = nanoseconds;
        for digit in fraction.bytes() {
            scale /= 10;
            part += scale * u128::from(digit - b'0');
        }
        total += part;
        if total > limit {
            return None;
        }
        rest = after;
    }
    if text.is_empty() { None } else { u64::try_from(total).ok().map(Duration::from_nanos) }
}

/// Whether a text is a calendar day, `2026-12-31`, and nothing else.
pub(super) fn is_date(text: &str) -> bool {
    // The date type itself takes more spellings (no dashes, with a time); one is enough.
    let spelled = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    spelled && text.parse::<jiff::civil::Date>().is_ok()
}

/// What is wrong with a label key: `name` or `dns.subdomain/name` (Kubernetes, "Labels and Selectors", syntax).
pub(super) fn label_key_error(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if !is_name_part(name) {
        return Some(
            "expected a label key: at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends",
        );
    }
    if prefix.is_some_and(|prefix| !is_dns_subdomain(prefix)) {
        return Some("expected a DNS name of lower-case letters before the `/` of a label key");
    }
    None
}

/// What is wrong with a label value.
pub(super) fn label_value_error(value: &str) -> Option<&'static str> {
    if is_label_value(value) {
        return None;
    }
    Some("expected a label value: at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_as_semver_says() {
        let ordered =
            ["0.9", "0.64.2", "0.65.0-alpha", "0.65.0-alpha.2", "0.65.0-alpha.10", "0.65.0-beta", "0.65.0", "1"];
        for pair in ordered.windows(2) {
            assert!(Version::parse(pair[0]) < Version::parse(pair[1]), "{pair:?}");
        }
        assert_eq!(Version::parse("1.2.0+build"), Version::parse("1.2"));
        for bad in ["", "v1.2.3", "1.2.3.4", "1..2", "1.2.x", "+1", "1.-2", "1.2-", "99999999999999999999"] {
            assert_eq!(Version::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_follow_go() {
        let seconds = |text| go_duration(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("1h30m"), Some(5400.0));
        assert_eq!(seconds("1.5s"), Some(1.5));
        assert_eq!(seconds(".5m"), Some(30.0));
        assert_eq!(seconds("300ms20us"), Some(0.30002));
        assert_eq!(seconds("0"), Some(0.0));
        for bad in ["", "5", "s", ".s", "1.2.3s", "-1s", "+1s", "1 s", "1d", "2562048h", "99999999999999999999s"] {
            assert_eq!(go_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_date_has_one_spelling() {
        assert!(is_date("2026-12-31"));
        for bad in ["2026-02-30", "20261231", "2026-12-31T00:00:00", "2026-1-1", "-026-12-31", ""] {
            assert!(!is_date(bad), "{bad}");
        }
    }

    #[test]
    fn labels_follow_kubernetes() {
        for good in ["team", "app.kubernetes.io/name", "a", "A_b-c.d"] {
            assert_eq!(label_key_error(good), None, "{good}");
        }
        for bad in ["", "-a", "a/", "/a", "A.b/c", "a/b/c", "ä", &"a".repeat(64)] {
            assert!(label_key_error(bad).is_some(), "{bad}");
        }
        assert_eq!(label_value_error(""), None);
        assert!(label_value_error("a b").is_some());
    }
}
