//! Names and places that are shortened to a width: in the middle, or at folders.

use console::measure_text_width;

/// Narrowest width that a name is shortened to.
pub const NARROWEST_NAME: usize = 12;

/// Shortens a name in the middle: its start and its end stay, `ingress-ngin…r-admission`.
#[must_use]
pub fn shorten_name(name: &str, width: usize, ellipsis: &str) -> String {
    if measure_text_width(name) <= width {
        return name.to_owned();
    }
    let room = width.saturating_sub(measure_text_width(ellipsis));
    let end = room / 2;
    format!("{}{ellipsis}{}", start_within(name, room - end), end_within(name, end))
}

/// Shortens a place to its last folders, `…/web/deployment.yaml:12`; a file's name that is too long in the middle.
#[must_use]
pub fn shorten_place(place: &str, width: usize, ellipsis: &str) -> String {
    if measure_text_width(place) <= width {
        return place.to_owned();
    }
    let mut ends = place.match_indices('/').map(|(at, _)| &place[at..]);
    let fits = |end: &&str| measure_text_width(ellipsis) + measure_text_width(end) <= width;
    if let Some(end) = ends.find(fits) {
        return format!("{ellipsis}{end}");
    }
    let file = place.rfind('/').map_or_else(|| place.to_owned(), |at| format!("{ellipsis}{}", &place[at..]));
    shorten_name(&file, width.max(NARROWEST_NAME), ellipsis)
}

/// The longest start of a text that fits.
fn start_within(text: &str, width: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += measure_text_width(c.encode_utf8(&mut [0; 4]));
        used > width
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// The longest end of a text that fits.
fn end_within(text: &str, width: usize) -> &str {
    let mut used = 0;
    let before = text.char_indices().rev().find(|(_, c)| {
        used += measure_text_width(c.encode_utf8(&mut [0; 4]));
        used > width
    });
    before.map_or(text, |(at, c)| &text[at + c.len_utf8()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_is_too_long_keeps_start_and_end() {
        assert_eq!(shorten_name("shop/web", 8, "…"), "shop/web");
        assert_eq!(shorten_name("ingress-nginx/ingress-nginx-controller", 20, "…"), "ingress-ng…ontroller");
        assert_eq!(shorten_name("画像画像画像画像", 9, "…"), "画像…画像");
        for width in 1..40 {
            let shown = shorten_name("ingress-nginx/ingress-nginx-controller", width, "…");
            assert!(measure_text_width(&shown) <= width, "{width}: {shown}");
        }
    }

    #[test]
    fn place_that_is_too_long_keeps_its_last_folders_and_the_file() {
        let place = "apps/ingress-nginx/controller-v1.11.3/deploy.yaml:22";
        assert_eq!(shorten_place(place, 52, "…"), place);
        assert_eq!(shorten_place(place, 40, "…"), "…/controller-v1.11.3/deploy.yaml:22");
        assert_eq!(shorten_place(place, 20, "…"), "…/deploy.yaml:22");
        assert_eq!(shorten_place("deploy.yaml:22", 12, "…"), "deploy…ml:22");
        assert_eq!(
            shorten_place("a/0alertmanagerConfigCustomResourceDefinition.yaml:1", 24, "…"),
            "…/0alertmana…tion.yaml:1"
        );
    }
}
