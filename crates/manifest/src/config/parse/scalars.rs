//! The few strings with a grammar of their own: dates, labels.

use pushback_crd::names::{is_dns_subdomain, is_label_value, is_name_part};

/// Whether a text is a calendar day, `2026-12-31`, and nothing else.
pub(super) fn is_date(text: &str) -> bool {
    // The date type itself accepts more spellings (no dashes, with a time); one is enough.
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
