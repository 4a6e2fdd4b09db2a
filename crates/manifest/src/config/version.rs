//! Versions, ordered by the precedence of semver.org.

use std::cmp::Ordering;

/// `1.2.3`, `1.2`, `1.2.3-rc.1`; build metadata is accepted and ignored.
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
            // `parse` alone would accept a sign.
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

/// The higher of two versions, which have both been checked.
pub(super) fn higher(one: Option<String>, other: Option<String>) -> Option<String> {
    fn parsed(version: &Option<String>) -> Option<Version> {
        Version::parse(version.as_deref()?)
    }
    if parsed(&one) < parsed(&other) { other } else { one }
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
}
