//! Globs with one wildcard: `*` matches any characters, everything else matches itself.

/// Whether `text` matches `glob`, in which `*` matches zero or more characters.
/// Linear in practice: after a mismatch it backtracks to the last `*` only.
pub(crate) fn matches(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut glob_at, mut text_at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while text_at < text.len() {
        match glob.get(glob_at) {
            Some(b'*') => {
                retry = Some((glob_at + 1, text_at));
                glob_at += 1;
            }
            Some(byte) if *byte == text[text_at] => {
                glob_at += 1;
                text_at += 1;
            }
            _ => {
                let Some((after_star, from)) = retry else { return false };
                retry = Some((after_star, from + 1));
                glob_at = after_star;
                text_at = from + 1;
            }
        }
    }
    glob[glob_at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_characters_and_everything_else_is_literal() {
        for (glob, text) in [("*", ""), ("a*c", "abbc"), ("*.ex.com", "foos.ex.com"), ("a*b*c", "a-b-b-c"), ("", "")] {
            assert!(matches(glob, text), "{glob} {text}");
        }
        for (glob, text) in [("a", "ab"), ("a*c", "abcd"), ("?", "a"), ("", "a"), ("[0]", "0")] {
            assert!(!matches(glob, text), "{glob} {text}");
        }
        assert!(!matches("*a*a*a*a*a*a*a*a*b", &"a".repeat(2000)));
    }

    /// The definition of glob matching, in exponential time.
    fn matches_by_definition(glob: &[u8], text: &[u8]) -> bool {
        match (glob.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => (0..=text.len()).any(|from| matches_by_definition(rest, &text[from..])),
            (Some((byte, glob)), Some((other, text))) => byte == other && matches_by_definition(glob, text),
            _ => false,
        }
    }

    proptest::proptest! {
        #[test]
        fn globs_match_by_definition(glob in "[ab*]{0,7}", text in "[ab]{0,9}") {
            assert_eq!(matches(&glob, &text), matches_by_definition(glob.as_bytes(), text.as_bytes()));
        }
    }
}
