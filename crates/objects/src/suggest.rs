//! "did you mean": the known word most similar to a misspelt one.
//! One function, so that rules, settings and flags make the same suggestions.

/// Minimum Jaro-Winkler similarity (0 to 1) for a suggestion.
const MIN_SIMILARITY: f64 = 0.8;

/// Longer words cost time and never resemble a candidate.
const LONGEST: usize = 100;

/// The candidate most similar to `word`, if any is similar enough. Ignores letter case.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let wanted = word.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let similarity = strsim::jaro_winkler(&wanted, &candidate.to_lowercase());
        if similarity >= MIN_SIMILARITY && best.is_none_or(|(so_far, _)| similarity > so_far) {
            best = Some((similarity, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// `; did you mean "X"?`, or nothing: the end of an error message.
#[must_use]
pub fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default()
}

/// [`hint`], or the known words if none is similar: `; known are A, B`.
#[must_use]
pub fn hint_or_known(suggestion: Option<&str>, known: &[&str]) -> String {
    if suggestion.is_none() && !known.is_empty() {
        return format!("; known are {}", known.join(", "));
    }
    hint(suggestion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["CRDUpgradeSafety", "PermissionValidation"];
        assert_eq!(nearest("crdupgradesafety", known), Some("CRDUpgradeSafety"));
        assert_eq!(nearest("CRDUpgrade", known), Some("CRDUpgradeSafety"));
        assert_eq!(nearest("PermisionValidaton", known), Some("PermissionValidation"));
        assert_eq!(nearest("Kubeconform", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("warning", ["error", "warn"]), Some("warn"));
        assert_eq!(nearest("close", ["closed", "open"]), Some("closed"));
    }
}
