//! Names of experiments and files: descriptive, within Kubernetes' limits, and unique. A long or duplicate name ends in
//! a digest.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::names::is_label_value;
use sha2::{Digest, Sha256};

use crate::hex;

/// Maximum length of a label value and of an experiment's name.
const LONGEST: usize = 63;
/// Number of hexadecimal digits of a digest in a name.
const DIGEST: usize = 6;
/// Meaningless suffixes of the names of operators' workloads.
const COMMON_ENDINGS: [&str; 3] = ["-controller-manager", "-controller", "-operator"];

/// Lower-case letters, digits and single hyphens between them; a digest if nothing of the text remains.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { digest(text) } else { slug.to_owned() }
}

/// A component's name without a common suffix.
pub(super) fn short(component: &str) -> &str {
    let short = COMMON_ENDINGS.iter().find_map(|ending| component.strip_suffix(ending));
    short.filter(|short| !short.is_empty()).unwrap_or(component)
}

/// `FieldRemoved` as `field-removed`, `CRDRemoved` as `crd-removed`.
pub(super) fn kebab(words: &str) -> String {
    let mut kebab = String::new();
    let characters: Vec<char> = words.chars().collect();
    for (index, character) in characters.iter().enumerate() {
        let starts_word = character.is_ascii_uppercase()
            && index > 0
            && (characters[index - 1].is_ascii_lowercase()
                || characters.get(index + 1).is_some_and(char::is_ascii_lowercase));
        if starts_word {
            kebab.push('-');
        }
        kebab.push(character.to_ascii_lowercase());
    }
    kebab
}

/// A valid label value: other characters become `-`, and long text is cut.
pub(super) fn label_value(text: &str) -> String {
    if is_label_value(text) {
        return text.to_owned();
    }
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let is_end = |c: char| !c.is_ascii_alphanumeric();
    let clean: String = text.chars().map(allowed).skip_while(|c| is_end(*c)).take(LONGEST).collect();
    clean.trim_end_matches(is_end).to_owned()
}

/// The name of an upgrade's suite.
pub(super) fn suite(upgrade: &str) -> String {
    let wish = format!("upgrade-{}", slug(upgrade));
    fitting(&wish, upgrade, false)
}

/// A unique name for each wish, in the same order. The second string distinguishes wishes for the same name.
pub(super) fn unique(wishes: &[(String, String)]) -> Vec<String> {
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for (wish, _) in wishes {
        *asked.entry(fitting(wish, wish, false)).or_default() += 1;
    }
    let mut taken = BTreeSet::new();
    wishes
        .iter()
        .map(|(wish, identity)| {
            let plain = fitting(wish, wish, false);
            let mut name = if asked[&plain] > 1 { fitting(wish, &format!("{wish}\n{identity}"), true) } else { plain };
            let mut attempt = 0;
            while !taken.insert(name.clone()) {
                attempt += 1;
                name = fitting(wish, &format!("{wish}\n{identity}\n{attempt}"), true);
            }
            name
        })
        .collect()
}

/// The wish, cut if too long; ends in a digest if cut or if `with_digest`.
fn fitting(wish: &str, identity: &str, with_digest: bool) -> String {
    if wish.len() <= LONGEST && !with_digest {
        return wish.to_owned();
    }
    let room = (LONGEST - DIGEST - 1).min(wish.len());
    // Wishes are ASCII.
    let cut = wish.get(..room).unwrap_or_default().trim_end_matches('-');
    format!("{cut}-{}", digest(identity))
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..DIGEST / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_what_dns_takes() {
        for (text, slug_of) in [
            ("InferenceService", "inferenceservice"),
            ("validating.llmisvc.kserve.io", "validating-llmisvc-kserve-io"),
            ("--a__b..c--", "a-b-c"),
        ] {
            assert_eq!(slug(text), slug_of);
        }
        assert_eq!(slug("größe"), "gr-e");
        assert_eq!(slug("数").len(), DIGEST);
        assert_ne!(slug("数"), slug("据"));
    }

    #[test]
    fn common_endings_say_nothing() {
        for (component, expected) in [
            ("llmisvc-controller-manager", "llmisvc"),
            ("model-registry-operator", "model-registry"),
            ("web", "web"),
            ("-operator", "-operator"),
        ] {
            assert_eq!(short(component), expected);
        }
    }

    #[test]
    fn words_are_told_apart() {
        for (words, expected) in [
            ("FieldRemoved", "field-removed"),
            ("CRDRemoved", "crd-removed"),
            ("APIVersionRemoved", "api-version-removed"),
        ] {
            assert_eq!(kebab(words), expected);
        }
    }

    #[test]
    fn labels_hold_what_they_can() {
        assert_eq!(label_value("2.20.1-rc.1"), "2.20.1-rc.1");
        assert_eq!(label_value("v1.0+build/5 "), "v1.0-build-5");
        assert_eq!(label_value(&"x".repeat(80)).len(), LONGEST);
        assert_eq!(label_value("+++"), "");
        assert!(is_label_value(&label_value(&format!("{}-----", "a".repeat(60)))));
    }

    #[test]
    fn names_are_unique_and_fit_and_do_not_depend_on_the_order() {
        let long = "a".repeat(80);
        let wish = |name: &str, identity: &str| (name.to_owned(), identity.to_owned());
        let wishes = [wish("one", "1"), wish("two", "1"), wish("two", "2"), wish(&long, "1"), wish(&long, "2")];
        let names = unique(&wishes);
        assert_eq!(names[0], "one");
        assert!(names[1].starts_with("two-") && names[2].starts_with("two-"));
        assert!(names.iter().all(|name| name.len() <= LONGEST));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let reversed: Vec<_> = wishes.iter().rev().cloned().collect();
        assert_eq!(unique(&reversed).into_iter().rev().collect::<Vec<_>>(), names);
    }

    #[test]
    fn a_name_that_looks_like_a_digest_of_another_is_no_clash() {
        let first = unique(&[("a".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())]);
        let wishes =
            [("a".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned()), (first[1].clone(), "3".to_owned())];
        let names = unique(&wishes);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 3);
    }
}
