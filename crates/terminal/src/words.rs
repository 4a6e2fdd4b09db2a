//! Formatting of times, numbers and objects, the same in every output.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use console::measure_text_width;
use jiff::Timestamp;
use pushback_events::{ChangeOutcome, Counts, Millis};
use pushback_objects::ObjectRef;
use pushback_preflight::Operation;

use crate::escape::terminal_safe;
use crate::shorten::{NARROWEST_NAME, shorten_name};

/// A duration: `0.1s`, `21.4s`, `1m 12s`, `2h 05m`.
#[must_use]
pub fn took(elapsed: Millis) -> String {
    let tenths = elapsed.0.saturating_add(50) / 100;
    if tenths < 600 {
        return format!("{}.{}s", tenths / 10, tenths % 10);
    }
    let seconds = tenths / 10;
    if seconds < 3600 {
        format!("{}m {}s", seconds / 60, seconds % 60)
    } else {
        format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60)
    }
}

/// How long ago something was created, as kubectl prints it: `45s`, `5m30s`, `3h`, `2d4h`, `3y`.
#[must_use]
pub fn age(created: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    // Clocks differ by a second or two: what was created just now is not in the future.
    let seconds = (now.as_second() - created.as_second()).max(0);
    let with_rest = |unit: i64, name: &str, smaller: i64, smaller_name: &str| match seconds % unit / smaller {
        0 => format!("{}{name}", seconds / unit),
        rest => format!("{}{name}{rest}{smaller_name}", seconds / unit),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => with_rest(MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => with_rest(HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => with_rest(DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => with_rest(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// A running clock: `0:48`, `12:05`, `1:00:07`.
#[must_use]
pub fn stopwatch(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// An object in one word: `deployment/shop/web`, `widget.example.com/shop/a`.
#[must_use]
pub fn object_slug(object: &ObjectRef) -> String {
    let mut slug = object.kind.to_lowercase();
    if object.group.contains('.') && !object.group.ends_with(".k8s.io") {
        let _ = write!(slug, ".{}", object.group);
    }
    slug.push('/');
    if !object.namespace.is_empty() {
        let _ = write!(slug, "{}/", object.namespace);
    }
    slug.push_str(&object.name);
    terminal_safe(&slug).into_owned()
}

/// An object in two columns: its kind, with the group if ambiguous, and its namespace and name.
#[must_use]
pub fn object_columns(object: &ObjectRef) -> (String, String) {
    let text = object.to_string();
    let (kind, name) = text.split_once(' ').unwrap_or((&text, ""));
    (terminal_safe(kind).into_owned(), terminal_safe(name).into_owned())
}

/// Past tense of an operation: `created`.
#[must_use]
pub fn done_word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "created",
        Operation::Update => "updated",
        Operation::Replace => "replaced",
        Operation::Delete => "deleted",
        Operation::Noop => "unchanged",
        Operation::Exists => "exists",
    }
}

/// Widest kind and name that others are aligned to.
const KIND_WIDTH: usize = 32;
const NAME_WIDTH: usize = 48;

/// Most characters of a server's message on a terminal, and those that stay at its start if it is longer.
const MESSAGE: usize = 600;
const MESSAGE_START: usize = 200;

/// A message for a terminal. A long one is shortened in the middle: servers name the cause last.
#[must_use]
pub fn shortened_message(message: &str) -> Cow<'_, str> {
    let count = message.chars().count();
    if count <= MESSAGE {
        return Cow::Borrowed(message);
    }
    let start = message.char_indices().nth(MESSAGE_START).map_or(message.len(), |(index, _)| index);
    let end = message.char_indices().nth(count - (MESSAGE - MESSAGE_START)).map_or(message.len(), |(index, _)| index);
    Cow::Owned(format!("{} … {}", message[..start].trim_end(), message[end..].trim_start()))
}

/// Result of a change: `created`, `deleting`, `failed`.
#[must_use]
pub fn change_word(operation: Operation, outcome: ChangeOutcome) -> &'static str {
    match outcome {
        ChangeOutcome::Ok => done_word(operation),
        ChangeOutcome::Requested => doing_word(operation),
        ChangeOutcome::Failed | ChangeOutcome::Skipped => outcome.as_str(),
    }
}

/// Present tense of an operation: `creating`.
#[must_use]
pub fn doing_word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "creating",
        Operation::Update => "updating",
        Operation::Replace => "replacing",
        Operation::Delete => "deleting",
        Operation::Noop | Operation::Exists => "checking",
    }
}

/// `1 to create, 2 to update, 18 unchanged`; zeros are left out.
#[must_use]
pub fn counts_to_do(counts: &Counts) -> String {
    list_counts(
        &[
            (counts.create, "to create"),
            (counts.update, "to update"),
            (counts.replace, "to replace"),
            (counts.delete, "to delete"),
            (counts.orphaned, "to orphan"),
            (counts.noop, "unchanged"),
            (counts.exists, "must exist"),
        ],
        (counts.writes() == 0).then_some("nothing to change"),
    )
}

/// `1 created, 2 updated, 18 unchanged`; zeros are left out.
#[must_use]
pub fn counts_done(counts: &Counts) -> String {
    list_counts(
        &[
            (counts.create, "created"),
            (counts.update, "updated"),
            (counts.replace, "replaced"),
            (counts.delete, "deleted"),
            (counts.orphaned, "orphaned"),
            (counts.deleting, "deleting"),
            (counts.noop, "unchanged"),
            (counts.exists, "checked to exist"),
        ],
        (counts.writes() == 0).then_some("nothing written"),
    )
}

fn list_counts(parts: &[(usize, &str)], lead: Option<&str>) -> String {
    let counted = parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    lead.map(str::to_owned).into_iter().chain(counted).collect::<Vec<_>>().join(", ")
}

/// Pads to a width on the screen; longer text is unchanged.
#[must_use]
pub fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(measure_text_width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Width of the widest text, at most `cap`.
pub fn column_width<'a>(texts: impl Iterator<Item = &'a str>, cap: usize) -> usize {
    texts.map(measure_text_width).filter(|width| *width <= cap).max().unwrap_or(0)
}

/// Widths of two columns with the kinds and names of objects. What is wider than its column overflows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectColumns {
    kind: usize,
    name: usize,
}

impl ObjectColumns {
    /// Widths that fit these objects, except for outliers that would push everything away.
    pub fn new<'o>(objects: impl Iterator<Item = &'o ObjectRef>) -> Self {
        let cells: Vec<(String, String)> = objects.map(object_columns).collect();
        Self {
            kind: column_width(cells.iter().map(|(kind, _)| kind.as_str()), KIND_WIDTH),
            name: column_width(cells.iter().map(|(_, name)| name.as_str()), NAME_WIDTH),
        }
    }

    /// Width of the kinds.
    #[must_use]
    pub fn kind(self) -> usize {
        self.kind
    }

    /// Columns that leave room beside them; the kind takes at most a third of it.
    #[must_use]
    pub fn within(self, room: usize) -> Self {
        let kind = self.kind.min(room / 3);
        Self { kind, name: self.name.min(room.saturating_sub(kind + 2).max(NARROWEST_NAME)) }
    }

    /// Kind and name of an object, padded to their columns. A name that does not fit is shortened in the middle.
    #[must_use]
    pub fn cells(self, object: &ObjectRef, room: usize, ellipsis: &str) -> String {
        let (kind, name) = object_columns(object);
        if room < 2 * NARROWEST_NAME + 2 {
            return pad(&shorten_name(&name, room.max(NARROWEST_NAME), ellipsis), room);
        }
        // A wide kind uses the room that its name does not need, and at least half of it.
        let name_share = measure_text_width(&name).clamp(NARROWEST_NAME, (room / 2).max(NARROWEST_NAME));
        let kind = pad(&shorten_name(&kind, room.saturating_sub(2 + name_share), ellipsis), self.kind);
        let left = room.saturating_sub(measure_text_width(&kind) + 2);
        let name = shorten_name(&name, left.max(NARROWEST_NAME), ellipsis);
        let both = self.kind + 2 + self.name;
        pad(&format!("{kind}  {name}"), both.min(room))
    }
}

/// Cuts a value that is too long for a line, and gives its full length.
#[must_use]
pub fn shorten(text: &str, limit: usize, ellipsis: &str) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}{ellipsis} ({} characters)", &text[..end], text.chars().count()),
    }
}

/// Breaks a text into lines of a width: between words, and within a word that is wider, after a separator if there is
/// one.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_within(text, width.max(20))
}

/// [`wrap`] into a column, however narrow it is.
#[must_use]
pub fn wrap_within(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for (place, word) in text.split(' ').enumerate() {
        let word_width = measure_text_width(word);
        if place > 0 && used + 1 + word_width > width && (used > 0 || word_width > 0) {
            lines.push(String::new());
            used = 0;
        } else if place > 0 {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
            used += 1;
        }
        let mut rest = word;
        while used + measure_text_width(rest) > width {
            let cut = cut_within(rest, width - used.min(width - 1));
            lines.last_mut().into_iter().for_each(|line| line.push_str(&rest[..cut]));
            lines.push(String::new());
            used = 0;
            rest = &rest[cut..];
        }
        lines.last_mut().into_iter().for_each(|line| line.push_str(rest));
        used += measure_text_width(rest);
    }
    lines
}

/// Where to break a word that is wider than this: after its last separator that fits, if that is not too early.
fn cut_within(word: &str, width: usize) -> usize {
    let mut used = 0;
    let mut cut = 0;
    let mut after_separator = 0;
    for (at, c) in word.char_indices() {
        used += measure_text_width(c.encode_utf8(&mut [0; 4]));
        if used > width && cut > 0 {
            break;
        }
        cut = at + c.len_utf8();
        if matches!(c, '.' | '/' | ',' | ']') {
            after_separator = cut;
        }
    }
    if 2 * after_separator > cut { after_separator } else { cut }
}

/// Wraps lines at words to the terminal's width; continuation lines are indented.
#[must_use]
pub fn hang(text: &str, columns: u16) -> String {
    let columns = usize::from(columns);
    let mut result = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len() + 2;
        if measure_text_width(line) <= columns || indent + 20 > columns {
            result.push_str(line);
            result.push('\n');
            continue;
        }
        let mut width = 0;
        for (place, word) in line.split(' ').enumerate() {
            let word_width = measure_text_width(word);
            if place > 0 && width + 1 + word_width > columns && width > indent {
                result.push('\n');
                result.push_str(&" ".repeat(indent));
                width = indent;
            } else if place > 0 {
                result.push(' ');
                width += 1;
            }
            result.push_str(word);
            width += word_width;
        }
        result.push('\n');
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_message_keeps_its_start_and_its_end() {
        assert_eq!(shortened_message("short"), "short");
        let text = shortened_message(&format!("start {} end", "é".repeat(5_000))).into_owned();
        assert!(text.starts_with("start é") && text.ends_with("é end") && text.contains(" … "), "{text}");
        assert!(text.chars().count() < 610);
    }

    #[test]
    fn long_lines_are_broken_between_words_and_short_ones_kept() {
        let text = "error: it failed\n      - pod a: 0/1 nodes are available for this pod\n";
        assert_eq!(hang(text, 80), text);
        assert_eq!(hang(text, 36), "error: it failed\n      - pod a: 0/1 nodes are\n        available for this pod\n");
        assert_eq!(hang(text, 20), text, "a window too narrow to indent anything");
        let word = "x".repeat(50);
        assert_eq!(hang(&format!("  {word} y\n"), 40), format!("  {word}\n    y\n"));
    }

    #[test]
    fn what_is_too_wide_is_broken_between_words_and_after_separators() {
        assert_eq!(wrap("keep the value, or serve a new version", 20), ["keep the value, or", "serve a new version"]);
        assert_eq!(wrap("spec.template.spec.sourceHydrator", 20), ["spec.template.spec.", "sourceHydrator"]);
        assert_eq!(wrap(&"x".repeat(45), 20), ["x".repeat(20), "x".repeat(20), "x".repeat(5)]);
        assert_eq!(wrap("", 20), [""]);
        assert_eq!(wrap("a  b", 20), ["a  b"]);
        assert!(wrap(&"画像 ".repeat(30), 21).iter().all(|line| measure_text_width(line) <= 21));
    }

    #[test]
    fn times_read_like_people_say_them() {
        let cases = [
            (0, "0.0s"),
            (49, "0.0s"),
            (96, "0.1s"),
            (21_449, "21.4s"),
            (59_949, "59.9s"),
            (59_951, "1m 0s"),
            (72_300, "1m 12s"),
            (3_599_951, "1h 00m"),
            (7_500_000, "2h 05m"),
            (u64::MAX, "5124095576030h 25m"),
        ];
        for (millis, expected) in cases {
            assert_eq!(took(Millis(millis)), expected, "{millis} ms");
        }
        assert_eq!(stopwatch(Duration::from_secs(48)), "0:48");
        assert_eq!(stopwatch(Duration::from_secs(3607)), "1:00:07");
    }

    #[test]
    fn ages_are_those_that_kubectl_prints() {
        const DAY: i64 = 86_400;
        let cases = [
            (-3, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (330, "5m30s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (28_800, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 3600, "3d1h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (731 * DAY, "2y1d"),
            (8 * 365 * DAY, "8y"),
        ];
        let created = Timestamp::from_second(1_700_000_000).expect("a time");
        for (seconds, expected) in cases {
            let now = Timestamp::from_second(1_700_000_000 + seconds).expect("a time");
            assert_eq!(age(created, now), expected, "{seconds} s");
        }
    }

    #[test]
    fn counts_leave_out_zeros_and_say_when_nothing_is_written() {
        let counts = Counts { create: 1, update: 2, noop: 18, ..Counts::default() };
        assert_eq!(counts_to_do(&counts), "1 to create, 2 to update, 18 unchanged");
        assert_eq!(counts_done(&Counts { noop: 3, ..Counts::default() }), "nothing written, 3 unchanged");
        assert_eq!(counts_to_do(&Counts::default()), "nothing to change");
    }

    #[test]
    fn columns_ignore_outliers_that_would_push_everything_away() {
        assert_eq!(column_width(["a", "bcd", "far too long"].into_iter(), 5), 3);
        assert_eq!(pad("äö", 4), "äö  ");
        assert_eq!(pad("画", 4), "画  ");
    }

    #[test]
    fn long_values_are_cut_with_their_length() {
        assert_eq!(shorten("äöü", 3, "…"), "äöü");
        assert_eq!(shorten("äöüß", 3, "…"), "äöü… (4 characters)");
    }

    #[test]
    fn wide_kind_and_long_name_share_the_room() {
        let object = ObjectRef {
            group: "monitoring.coreos.com".to_owned(),
            version: "v1".to_owned(),
            kind: "ServiceMonitor".to_owned(),
            namespace: "monitoring".to_owned(),
            name: "prometheus-operator".to_owned(),
        };
        let columns = ObjectColumns::new([&object].into_iter());
        assert_eq!(
            columns.within(46).cells(&object, 46, "…").trim_end(),
            "ServiceMon…coreos.com  monitoring/…us-operator"
        );
        for room in 26..120 {
            let cells = columns.within(room).cells(&object, room, "…");
            assert!(measure_text_width(&cells) <= room, "{room}: {cells}");
        }
    }

    #[test]
    fn slugs_name_group_where_a_kind_is_not_kubernetes_own() {
        let mut object = ObjectRef {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        assert_eq!(object_slug(&object), "deployment/shop/web");
        object.group = "example.com".to_owned();
        object.namespace = String::new();
        assert_eq!(object_slug(&object), "deployment.example.com/web");
    }
}
