//! Semantic versions, strictly 2.0.0 unless the rule asks for lenient parsing.
//!
//! Follows semver.org 2.0.0 and k8s.io/apiserver `pkg/cel/library/semverlib.go`.

use std::cmp::Ordering;

/// A version; build metadata after a `+` is left out, since it never affects comparison.
#[derive(Clone, Debug)]
pub(in super::super) struct Semver {
    pub(in super::super) numbers: [u64; 3],
    before: Vec<Part>,
}

/// One identifier of the pre-release after a `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Semver {
    pub(in super::super) fn parse(text: &str) -> Option<Self> {
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
        let word =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if build.is_some_and(|build| !build.split('.').all(word)) {
            return None;
        }
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            (digits && (part == "0" || !part.starts_with('0'))).then(|| part.parse::<u64>().ok()).flatten()
        };
        let mut parts = core.split('.');
        let numbers = [number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?];
        if parts.next().is_some() {
            return None;
        }
        let part = |part: &str| {
            if !word(part) {
                None
            } else if part.bytes().all(|byte| byte.is_ascii_digit()) {
                number(part).map(Part::Number)
            } else {
                Some(Part::Word(part.to_owned()))
            }
        };
        let before = match before {
            Some(before) => before.split('.').map(part).collect::<Option<Vec<_>>>()?,
            None => Vec::new(),
        };
        Some(Self { numbers, before })
    }

    /// Parses a version leniently: strips a `v` and leading zeros, and fills in missing numbers.
    pub(in super::super) fn parse_leniently(text: &str) -> Option<Self> {
        let mut parts: Vec<String> =
            text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(ToOwned::to_owned).collect();
        for part in parts.iter_mut().filter(|part| part.len() > 1) {
            let stripped = part.trim_start_matches('0');
            *part = if stripped.starts_with(|first: char| first.is_ascii_digit()) {
                stripped.to_owned()
            } else {
                format!("0{stripped}")
            };
        }
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return None;
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
    }

    pub(in super::super) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.before.is_empty(), other.before.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => self.before.cmp(&other.before),
        })
    }
}
