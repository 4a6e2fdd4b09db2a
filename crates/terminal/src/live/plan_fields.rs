//! The changed fields of an object as text: fields of schemas by the names that their objects have, descriptions
//! counted, values beside or below their path, as they fit.

use std::borrow::Cow;
use std::fmt::Write as _;

use console::measure_text_width;
use pushback_events::FieldLine;
use pushback_objects::text::{counted, shorten_around_difference};

use crate::escape::terminal_safe;
use crate::shorten::shorten_name;
use crate::theme::{Look, Role};
use crate::words::{column_width, pad, shorten};

/// Most field lines per object; the rest is counted.
const FIELD_LINES: usize = 20;
/// Most characters of a value.
const VALUE_LIMIT: usize = 120;
/// Widest path that others are aligned to.
const PATH_WIDTH: usize = 64;
/// Columns before a path, and before a value below it.
const MARGIN: usize = 8;
const BELOW: usize = 12;
/// Columns of the arrow and of ` (1234567 characters)`.
const LENGTH: usize = 26;
/// Narrowest column of values; the start of a value that is new or goes needs no line of its own.
const NARROWEST: usize = 20;

/// The changed fields, a line each; what is counted only at the end.
pub fn field_lines(fields: &[FieldLine], look: Look) -> String {
    let Look { theme, verbose, width } = look;
    let (told, descriptions): (Vec<&FieldLine>, Vec<&FieldLine>) =
        fields.iter().partition(|field| verbose || !is_description(&field.path));
    let limit = if verbose { usize::MAX } else { FIELD_LINES };
    // Show one line more than the limit rather than "and 1 more field", which takes a line too.
    let shown = if told.len() <= limit.saturating_add(1) { told.len() } else { limit };
    let columns = usize::from(width);
    let name = |field: &&FieldLine| {
        let path = if verbose { Cow::Borrowed(field.path.as_str()) } else { short_path(&field.path) };
        let path = terminal_safe(&path);
        if verbose { path.into_owned() } else { shorten_name(&path, columns.saturating_sub(MARGIN), theme.ellipsis()) }
    };
    let paths: Vec<String> = told[..shown].iter().map(name).collect();
    let path_width = column_width(paths.iter().map(String::as_str), PATH_WIDTH.min(columns / 2));
    let mut text = String::new();
    for (field, name) in told.iter().zip(&paths) {
        let room = columns.saturating_sub(BELOW).max(NARROWEST);
        let value = |text: &str| {
            let is_short = text.chars().count() <= room.min(VALUE_LIMIT);
            // What is cut has its length behind it.
            let limit = if verbose || is_short { VALUE_LIMIT } else { room.saturating_sub(LENGTH).max(NARROWEST) };
            terminal_safe(&shorten(text, limit, theme.ellipsis())).into_owned()
        };
        let (parts, role) = match (&field.old, &field.new) {
            (Some(old), Some(new)) => {
                let limit = if verbose { VALUE_LIMIT } else { room.saturating_sub(2).clamp(NARROWEST, VALUE_LIMIT) };
                let (old, new) = shorten_around_difference(old, new, limit, theme.ellipsis());
                (vec![terminal_safe(&old).into_owned(), format!("{} {}", theme.arrow(), terminal_safe(&new))], None)
            }
            (None, Some(new)) => (vec![format!("+ {}", value(new))], Some(Role::Good)),
            (Some(old), None) => (vec![format!("- {}", value(old))], Some(Role::Bad)),
            (None, None) => (vec!["(changed)".to_owned()], Some(Role::Quiet)),
        };
        let paint = |text: &String| role.map_or_else(|| text.clone(), |role| theme.paint(role, text));
        let path = theme.paint(Role::Pointer, &pad(name, path_width));
        let used = MARGIN + measure_text_width(&path) + 2;
        let one_line = parts.join(" ");
        let beside = columns.saturating_sub(used);
        if measure_text_width(&one_line) <= beside {
            let _ = writeln!(text, "{:MARGIN$}{path}  {}", "", paint(&one_line));
        } else if parts.len() == 1 && beside >= NARROWEST && !verbose {
            let value: String =
                field.old.iter().chain(&field.new).flat_map(|value| value.chars()).take(columns).collect();
            let room = beside - 2 - measure_text_width(theme.ellipsis());
            let start: String = terminal_safe(&value).chars().take(room).collect();
            let start = format!("{}{start}", &one_line[..2]);
            let _ = writeln!(text, "{:MARGIN$}{path}  {}", "", paint(&(start + theme.ellipsis())));
        } else if parts.len() == 1 && one_line[1..].starts_with(" {") && !verbose {
            let start = format!("{} {{{}}}", &one_line[..1], theme.ellipsis());
            let room = columns.saturating_sub(MARGIN + 2 + measure_text_width(&start));
            let path = theme.paint(Role::Pointer, &pad(&shorten_name(name, room, theme.ellipsis()), path_width));
            let _ = writeln!(text, "{:MARGIN$}{path}  {}", "", paint(&start));
        } else {
            let _ = writeln!(text, "{:MARGIN$}{}", "", path.trim_end());
            let fits = BELOW + measure_text_width(&one_line) <= columns;
            let below = if fits { vec![one_line] } else { parts };
            below.iter().for_each(|part| text += &format!("{:BELOW$}{}\n", "", paint(part)));
        }
    }
    let more = (told.len() > shown).then(|| counted(told.len() - shown, "more field"));
    let described = (!descriptions.is_empty()).then(|| counted(descriptions.len(), "description"));
    let left: Vec<String> = more.into_iter().chain(described).collect();
    if !left.is_empty() {
        let left = format!("{} and {}", theme.ellipsis(), left.join(", "));
        let _ = writeln!(text, "{:MARGIN$}{}", "", theme.paint(Role::Quiet, &left));
    }
    text
}

/// What follows the version in the path of a field of a definition's schema.
const SCHEMA: &str = "].schema.openAPIV3Schema";

/// The version and the rest of the path of something within a definition's schema.
fn within_schema(path: &str) -> Option<(&str, &str)> {
    let (version, rest) = path.strip_prefix("spec.versions[name=")?.split_once(SCHEMA)?;
    (!version.contains(['[', ']', '.'])).then_some((version, rest))
}

fn is_description(path: &str) -> bool {
    // A field of that name is `.properties.description`.
    within_schema(path)
        .is_some_and(|(_, rest)| rest.ends_with(".description") && !rest.ends_with(".properties.description"))
}

/// `v1 spec.targets[*].name: maxLength` for
/// `spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.targets.items.properties.name.maxLength`; other
/// paths as they are.
fn short_path(path: &str) -> Cow<'_, str> {
    let Some((version, mut rest)) = within_schema(path) else { return Cow::Borrowed(path) };
    let mut field = String::new();
    loop {
        if let Some(after) = rest.strip_prefix(".properties") {
            let Some((name, after)) = first_key(after) else { break };
            let name = if field.is_empty() { name.strip_prefix('.').unwrap_or(name) } else { name };
            field.push_str(name);
            rest = after;
        } else if let Some(after) = [".items", ".additionalProperties"].iter().find_map(|key| after_key(rest, key)) {
            field.push_str("[*]");
            rest = after;
        } else {
            break;
        }
    }
    let keyword = rest.strip_prefix('.').unwrap_or(rest);
    match (field.is_empty(), keyword.is_empty()) {
        (true, _) => Cow::Borrowed(path),
        (false, true) => Cow::Owned(format!("{version} {field}")),
        (false, false) => Cow::Owned(format!("{version} {field}: {keyword}")),
    }
}

/// What follows a key, if it is the first of a path.
fn after_key<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    path.strip_prefix(key).filter(|after| after.is_empty() || after.starts_with(['.', '[']))
}

/// The first key of `.a.b` or `["a.b"].c`, with what leads to it, and the rest.
fn first_key(path: &str) -> Option<(&str, &str)> {
    let end = if path.starts_with("[\"") {
        path.find("\"]")? + 2
    } else {
        let name = path.strip_prefix('.')?;
        1 + name.find(['.', '[']).unwrap_or(name.len())
    };
    Some(path.split_at(end))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::theme::Theme;

    const LOOK: Look = Look { theme: Theme { color: false, unicode: true }, width: 100, verbose: false };

    fn field(path: &str, old: Option<&str>, new: Option<&str>) -> FieldLine {
        FieldLine { path: path.to_owned(), old: old.map(str::to_owned), new: new.map(str::to_owned) }
    }

    #[test]
    fn fields_of_schemas_have_the_names_that_their_objects_have() {
        let shown = [
            "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.targets.items.properties.name.maxLength",
            "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties[\"a.b/c\"].additionalProperties.type",
            "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.new",
            "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.mode.enum[1]",
            "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.items.properties.properties.type",
            "spec.versions[name=v1].schema.openAPIV3Schema.required[0]",
            "spec.versions[name=v1].served",
            "spec.template.spec.containers[name=a].image",
        ];
        assert_snapshot!(shown.map(short_path).join("\n"), @r#"
        v1 spec.targets[*].name: maxLength
        v1 spec["a.b/c"][*]: type
        v1 spec.new
        v1 spec.mode: enum[1]
        v1 spec.items.properties: type
        spec.versions[name=v1].schema.openAPIV3Schema.required[0]
        spec.versions[name=v1].served
        spec.template.spec.containers[name=a].image
        "#);
    }

    #[test]
    fn descriptions_of_schemas_are_counted_and_fields_of_that_name_are_not() {
        let schema = "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec";
        let fields = [
            field(&format!("{schema}.description"), Some("a"), Some("b")),
            field(&format!("{schema}.properties.a.description"), None, Some("b")),
            field(&format!("{schema}.properties.description"), None, Some("{type: string}")),
            field("metadata.annotations.description", Some("a"), Some("b")),
        ];
        assert_snapshot!(field_lines(&fields, LOOK), @"
        v1 spec.description               + {type: string}
        metadata.annotations.description  a → b
        … and 2 descriptions
        ");
        let verbose = field_lines(&fields, Look { verbose: true, ..LOOK });
        assert!(verbose.contains(".properties.a.description") && !verbose.contains('…'), "{verbose}");
    }

    #[test]
    fn what_does_not_fit_beside_its_path_stands_below_it() {
        let long = "a".repeat(85);
        let fields = [
            field("data.short", Some("1"), Some("2")),
            field("data.list", Some(&long), Some(&"b".repeat(130))),
            field(&format!("data.{long}"), Some("old"), Some("new")),
            field("spec.rule", None, Some(&format!("{{name: {long}}}"))),
            field(&format!("spec[{long}]"), Some(&format!("{{name: {long}}}")), None),
        ];
        assert_snapshot!(field_lines(&fields, LOOK), @"
        data.short  1 → 2
        data.list
            aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
            → bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…
        data.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
            old → new
        spec.rule   + {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
        spec[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]  - {…}
        ");
        let narrow = field_lines(&fields[..2], Look { width: 60, ..LOOK });
        assert!(narrow.lines().all(|line| measure_text_width(line) <= 60), "{narrow}");
    }
}
