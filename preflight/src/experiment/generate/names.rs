//! Names of experiments and files: descriptive, within Kubernetes' limits, and unique. A long or duplicate name ends in
//! a digest.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::names::is_label_value;
use pushback_objects::hex;
use sha2::{Digest, Sha256};

/// Maximum length of a label value and of an experiment's name.
pub(super) const LONGEST: usize = 63;
/// Maximum length of a file's name, without its ending.
pub(super) const LONGEST_FILE: usize = 100;
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
    fitting(&wish, upgrade, false, LONGEST)
}

/// A unique name for each list of wishes, in the same order: the first wish that nobody else has. The second string
/// distinguishes those that have the same wishes.
pub(super) fn unique(wishes: &[(Vec<String>, String)], longest: usize) -> Vec<String> {
    let told = told_apart(wishes);
    let plain = |wish: &String| fitting(wish, wish, false, longest);
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for wish in &told {
        *asked.entry(plain(wish)).or_default() += 1;
    }
    let mut taken = BTreeSet::new();
    told.iter()
        .zip(wishes)
        .map(|(wish, (_, identity))| {
            let with_digest = |identity: String| fitting(wish, &identity, true, longest);
            let plain = plain(wish);
            let mut name = if asked[&plain] > 1 { with_digest(format!("{wish}\n{identity}")) } else { plain };
            let mut attempt = 0;
            while !taken.insert(name.clone()) {
                attempt += 1;
                name = with_digest(format!("{wish}\n{identity}\n{attempt}"));
            }
            name
        })
        .collect()
}

/// The wish of each: all that have the same one go on to their next, as long as they have one.
fn told_apart(wishes: &[(Vec<String>, String)]) -> Vec<String> {
    let mut at = vec![0; wishes.len()];
    loop {
        let current: Vec<&str> =
            wishes.iter().zip(&at).map(|((all, _), at)| all.get(*at).map(String::as_str).unwrap_or_default()).collect();
        let mut same: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, wish) in current.iter().enumerate() {
            same.entry(wish).or_default().push(index);
        }
        let clashing = same.into_values().filter(|those| those.len() > 1).flatten();
        let further: Vec<usize> = clashing.filter(|index| at[*index] + 1 < wishes[*index].0.len()).collect();
        if further.is_empty() {
            return current.into_iter().map(ToOwned::to_owned).collect();
        }
        further.into_iter().for_each(|index| at[index] += 1);
    }
}

/// The wish, cut if too long; ends in a digest if cut or if `with_digest`.
fn fitting(wish: &str, identity: &str, with_digest: bool, longest: usize) -> String {
    if wish.len() <= longest && !with_digest {
        return wish.to_owned();
    }
    let room = (longest - DIGEST - 1).min(wish.len());
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
        let wish = |name: &str, identity: &str| (vec![name.to_owned()], identity.to_owned());
        let wishes = [wish("one", "1"), wish("two", "1"), wish("two", "2"), wish(&long, "1"), wish(&long, "2")];
        let names = unique(&wishes, LONGEST);
        assert_eq!(names[0], "one");
        assert!(names[1].starts_with("two-") && names[2].starts_with("two-"));
        assert!(names.iter().all(|name| name.len() <= LONGEST));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let reversed: Vec<_> = wishes.iter().rev().cloned().collect();
        assert_eq!(unique(&reversed, LONGEST).into_iter().rev().collect::<Vec<_>>(), names);
    }

    #[test]
    fn a_name_that_looks_like_a_digest_of_another_is_no_clash() {
        let wish = |name: &str, identity: &str| (vec![name.to_owned()], identity.to_owned());
        let first = unique(&[wish("a", "1"), wish("a", "2")], LONGEST);
        let names = unique(&[wish("a", "1"), wish("a", "2"), wish(&first[1], "3")], LONGEST);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn those_of_the_same_name_are_told_apart_by_words_before_a_digest() {
        let wish = |words: &[&str]| (words.iter().map(|word| (*word).to_owned()).collect(), words.concat());
        let wishes = [wish(&["path", "app-path"]), wish(&["path", "set-path"]), wish(&["size", "app-size"])];
        assert_eq!(unique(&wishes, LONGEST), ["app-path", "set-path", "size"]);
    }
}
