//! Phrases that several modules share.

use std::fmt::Display;

/// `1 finding`, `2 findings`.
#[must_use]
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `3 experiments written to suite`.
#[must_use]
pub fn written_experiments(count: usize, folder: &str) -> String {
    format!("{} written to {folder}", counted(count, "experiment"))
}

/// Shortens two values to a width each, so that the part in which they differ is visible in both.
#[must_use]
pub fn shorten_around_difference(old: &str, new: &str, width: usize, ellipsis: &str) -> (String, String) {
    let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    let same_start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let shorter = old.len().min(new.len());
    let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let same_end = same_end.min(shorter - same_start);
    let longest = old.len().max(new.len()) - same_start - same_end;
    // A long difference shows its start, with the words that lead to it.
    let room = width.saturating_sub(longest + 2 * ellipsis.chars().count()).max(width / 3);
    // Two thirds of the context in front: names are written from left to right.
    let before = same_start.min(room - room.min(same_end).min(room / 3));
    let excerpt = |text: &[char]| {
        if text.len() <= width {
            return text.iter().collect();
        }
        let start = if same_start <= before + ellipsis.chars().count() { 0 } else { same_start - before };
        let lead = if start > 0 { ellipsis } else { "" };
        let rest = &text[start..];
        let room = width.saturating_sub(lead.chars().count());
        if rest.len() <= room {
            return format!("{lead}{}", rest.iter().collect::<String>());
        }
        let shown = room.saturating_sub(ellipsis.chars().count());
        format!("{lead}{}{ellipsis}", rest[..shown].iter().collect::<String>())
    };
    (excerpt(&old), excerpt(&new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_too_long_show_their_difference() {
        let image = |tag: &str| format!("registry.k8s.io/ingress-nginx/controller:{tag}@sha256:{}", "a".repeat(64));
        let (old, new) = shorten_around_difference(&image("v1.11.3"), &image("v1.15.1"), 40, "…");
        assert!(old.contains("1.3@") && new.contains("5.1@"), "{old} {new}");
        assert!(old.chars().count() <= 40 && new.chars().count() <= 40, "{old} {new}");
        let digests = ["v1.11.3@sha256:d56f", "v1.15.1@sha256:594c"]
            .map(|it| format!("ingress-nginx/controller:{it}{}", "0".repeat(60)));
        let (old, new) = shorten_around_difference(&digests[0], &digests[1].replace('0', "1"), 66, "…");
        assert!(old.contains(":v1.11.3@") && new.contains(":v1.15.1@"), "{old} {new}");
        let at = |place: usize, c: char| format!("{}{c}{}", "x".repeat(place), "y".repeat(100 - place));
        for place in 0..=100 {
            for width in 20..90 {
                let (old, new) = shorten_around_difference(&at(place, 'a'), &at(place, 'b'), width, "...");
                assert!(old.contains('a') && new.contains('b'), "{place} {width}: {old} {new}");
                assert!(old.chars().count() <= width && new.chars().count() <= width, "{width}: {old} {new}");
            }
        }
        assert_eq!(shorten_around_difference("a", "b", 20, "…"), ("a".to_owned(), "b".to_owned()));
        // A value that only grows shows where.
        let (old, new) = shorten_around_difference(&"x".repeat(50), &format!("{}!", "x".repeat(50)), 20, "…");
        assert!(old.ends_with("xx") && new.ends_with("x!"), "{old} {new}");
    }
}
