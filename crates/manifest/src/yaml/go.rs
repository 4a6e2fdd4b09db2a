//! Values as the YAML library that kapp uses writes them (`gopkg.in/yaml.v2`), byte for byte: kapp digests its output and
//! shows it. No library for Rust quotes, wraps and sorts in the same way.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

/// Longer lines are wrapped at the next space.
const WIDTH: usize = 80;

/// Writes a value as a document.
#[must_use]
pub fn document(value: &Value) -> String {
    let mut writer = Writer::default();
    match value {
        Value::Object(map) if !map.is_empty() => writer.map(map, 0, false),
        Value::Array(items) if !items.is_empty() => writer.items(items, 0, false),
        other => writer.leaf(other, 2),
    }
    writer.text.push('\n');
    writer.text
}

/// Writes a list of maps, whose keys keep their order, as a document.
#[must_use]
pub fn list(items: &[Map<String, Value>]) -> String {
    if items.is_empty() {
        return "[]\n".to_owned();
    }
    let mut writer = Writer::default();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            writer.line(0);
        }
        writer.text.push_str("- ");
        for (index, (key, value)) in item.iter().enumerate() {
            if index > 0 {
                writer.line(2);
            }
            writer.text.push_str(key);
            writer.text.push(':');
            writer.value(value, 2);
        }
    }
    writer.text.push('\n');
    writer.text
}

/// Writes a text as a document of its own.
#[must_use]
pub fn scalar(text: &str) -> String {
    let mut writer = Writer::default();
    writer.string(text, 2, false);
    writer.text
}

#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn line(&mut self, indent: usize) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', indent));
    }

    fn column(&self) -> usize {
        let start = self.text.rfind('\n').map_or(0, |at| at + 1);
        self.text[start..].chars().count()
    }

    /// What follows the colon of a key in a map at `indent`.
    fn value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => self.map(map, indent + 2, true),
            Value::Array(items) if !items.is_empty() => self.items(items, indent, true),
            other => {
                self.text.push(' ');
                self.leaf(other, indent + 2);
            }
        }
    }

    fn map(&mut self, map: &Map<String, Value>, indent: usize, on_new_line: bool) {
        let mut keys: Vec<&String> = map.keys().collect();
        keys.sort_by(|left, right| natural(left, right));
        for (index, key) in keys.into_iter().enumerate() {
            if index > 0 || on_new_line {
                self.line(indent);
            }
            self.string(key, indent + 2, true);
            self.text.push(':');
            self.value(&map[key], indent);
        }
    }

    fn items(&mut self, items: &[Value], indent: usize, on_new_line: bool) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 || on_new_line {
                self.line(indent);
            }
            self.text.push_str("- ");
            match item {
                Value::Object(map) if !map.is_empty() => self.map(map, indent + 2, false),
                Value::Array(items) if !items.is_empty() => self.items(items, indent + 2, false),
                other => self.leaf(other, indent + 2),
            }
        }
    }

    fn leaf(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) => self.string(text, indent, false),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => self.text.push_str(&shortest(float)),
                None => self.text.push_str(&number.to_string()),
            },
            Value::Object(_) => self.text.push_str("{}"),
            Value::Array(_) => self.text.push_str("[]"),
            Value::Null | Value::Bool(_) => self.text.push_str(&value.to_string()),
        }
    }

    fn string(&mut self, text: &str, indent: usize, is_key: bool) {
        let found = Analysis::of(text);
        let wanted = if text.contains('\n') {
            Style::Literal
        } else if reads_as_other(text) {
            Style::Double
        } else {
            Style::Plain
        };
        let style = match wanted {
            Style::Literal if is_key || !found.literal => Style::Double,
            Style::Plain if is_key && found.multiline => Style::Double,
            Style::Plain if !found.plain || (is_key && text.is_empty()) => {
                if found.single {
                    Style::Single
                } else {
                    Style::Double
                }
            }
            style => style,
        };
        match style {
            Style::Plain => self.plain(text, indent, is_key),
            Style::Single => self.single(text, indent, is_key),
            Style::Double => self.double(text, indent, is_key),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn plain(&mut self, text: &str, indent: usize, is_key: bool) {
        let mut after_space = false;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let wraps = character == ' ' && !is_key && !after_space && characters.peek() != Some(&' ');
            if wraps && self.column() > WIDTH {
                self.line(indent);
            } else {
                self.text.push(character);
            }
            after_space = character == ' ';
        }
    }

    fn single(&mut self, text: &str, indent: usize, is_key: bool) {
        self.text.push('\'');
        let mut after_space = false;
        let mut characters = text.chars().enumerate().peekable();
        while let Some((index, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            let inside = index > 0 && next.is_some_and(|next| next != ' ');
            if character == ' ' && !is_key && !after_space && inside && self.column() > WIDTH {
                self.line(indent);
            } else if character == '\'' {
                self.text.push_str("''");
            } else {
                self.text.push(character);
            }
            after_space = character == ' ';
        }
        self.text.push('\'');
    }

    fn double(&mut self, text: &str, indent: usize, is_key: bool) {
        self.text.push('"');
        let mut after_space = false;
        let mut characters = text.chars().enumerate().peekable();
        while let Some((index, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            if !is_printable(character) || is_break(character) || matches!(character, '"' | '\\') {
                self.escape(character);
            } else if character == ' '
                && !is_key
                && !after_space
                && index > 0
                && next.is_some()
                && self.column() > WIDTH
            {
                self.line(indent);
                if next == Some(' ') {
                    self.text.push('\\');
                }
            } else {
                self.text.push(character);
            }
            after_space = character == ' ';
        }
        self.text.push('"');
    }

    fn escape(&mut self, character: char) {
        let short = match character {
            '\0' => "0",
            '\x07' => "a",
            '\x08' => "b",
            '\t' => "t",
            '\n' => "n",
            '\x0b' => "v",
            '\x0c' => "f",
            '\r' => "r",
            '\x1b' => "e",
            '"' => "\"",
            '\\' => "\\",
            '\u{85}' => "N",
            '\u{a0}' => "_",
            '\u{2028}' => "L",
            '\u{2029}' => "P",
            _ => "",
        };
        self.text.push('\\');
        // Writing to a string cannot fail.
        let _ = match (short, character as u32) {
            ("", code @ 0..=0xff) => write!(self.text, "x{code:02X}"),
            ("", code @ 0x100..=0xffff) => write!(self.text, "u{code:04X}"),
            ("", code) => write!(self.text, "U{code:08X}"),
            (short, _) => write!(self.text, "{short}"),
        };
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.text.push('|');
        if text.starts_with([' ', '\n']) {
            self.text.push('2');
        }
        match text.strip_suffix('\n') {
            None => self.text.push('-'),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.text.push('+'),
            Some(_) => {}
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.line(if line.is_empty() { 0 } else { indent });
            self.text.push_str(line);
        }
    }
}

#[derive(Clone, Copy)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The styles in which a text can be written.
struct Analysis {
    multiline: bool,
    plain: bool,
    single: bool,
    literal: bool,
}

impl Analysis {
    fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self { multiline: false, plain: true, single: true, literal: false };
        }
        let characters: Vec<char> = text.chars().collect();
        let last = characters.len() - 1;
        let blank_after = |index: usize| characters.get(index + 1).is_none_or(|next| matches!(next, ' ' | '\t'));
        let mut indicator = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut breaks, mut break_then_space, mut space_then_break) = (false, false, false, false);
        for (index, &character) in characters.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| characters[before]);
            indicator |= match (before, character) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
                ) => true,
                (None, '?' | '-') | (_, ':') => blank_after(index),
                (Some(before), '#') => before == ' ' || before == '\t' || is_break(before),
                _ => false,
            };
            special |= !is_printable(character);
            breaks |= is_break(character);
            break_then_space |= character == ' ' && before.is_some_and(is_break);
            space_then_break |= is_break(character) && before == Some(' ');
        }
        let is_edge = |character: char| character == ' ' || is_break(character);
        let on_edge = is_edge(characters[0]) || is_edge(characters[last]);
        let unusual = special || space_then_break;
        Self {
            multiline: breaks,
            plain: !(on_edge || break_then_space || unusual || breaks || indicator),
            single: !(break_then_space || unusual),
            literal: !(unusual || characters[last] == ' '),
        }
    }
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && character != '\u{feff}'
}

/// Whether a text without quotes would be read as something else than a text.
fn reads_as_other(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "yes", "n", "no", "true", "false", "on", "off", "null"];
    const NUMBERS: [&str; 10] = [".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "~"];
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(concat!(
            r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
            r"|[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+))$"
        ))
        .ok()
    });
    static SEXAGESIMAL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$").ok());
    static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(concat!(
            r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}",
            r"([Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})",
            r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?)?$"
        ))
        .ok()
    });
    let is = |pattern: &Option<Regex>, text: &str| pattern.as_ref().is_some_and(|pattern| pattern.is_match(text));
    let cased = |word: &str| {
        let upper = word.to_uppercase();
        let title = format!("{}{}", &upper[..1], &word[1..]);
        text == word || text == upper || text == title
    };
    text.is_empty()
        || NUMBERS.contains(&text)
        || matches!(text, "-.inf" | "-.Inf" | "-.INF")
        || WORDS.into_iter().any(cased)
        || is(&SEXAGESIMAL, text)
        || is(&TIME, text)
        || (text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.'))
            && is(&NUMBER, &text.replace('_', "")))
}

/// Go's shortest form of a number.
fn shortest(float: f64) -> String {
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => float.to_string(),
    }
}

/// The order of keys: numbers within them count as numbers.
fn natural(left: &str, right: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    for index in 0..left.len().min(right.len()) {
        let (one, other) = (left[index], right[index]);
        if one == other {
            continue;
        }
        match (one.is_alphabetic(), other.is_alphabetic()) {
            (true, true) => return one.cmp(&other),
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        let mut start = 0;
        if one == '0' || other == '0' {
            let digits = left[..index].iter().rev().take_while(|character| character.is_ascii_digit());
            start = i64::from(digits.into_iter().any(|digit| *digit != '0'));
        }
        let number = |characters: &[char]| {
            let digits = characters[index..].iter().map_while(|character| character.to_digit(10));
            digits.fold((start, 0), |(value, length), digit| {
                (value.wrapping_mul(10).wrapping_add(i64::from(digit)), length + 1)
            })
        };
        return number(&left).cmp(&number(&right)).then(one.cmp(&other));
    }
    left.len().cmp(&right.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As kapp prints it.
    const PRINTED: &str = r##"apiVersion: v1
data:
  crlf: "a\r\nb"
  ctrl: "\x01"
  date: "2020-01-01"
  empty: ""
  lead: ' x'
  long: aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo
    pppp qqqq rrrr ssss tttt uuuu vvvv
  nl3: |+
    a


  oct: "0o17"
  qlong: 'it''s: aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm
    nnnn oooo pppp qqqq rrrr ssss'
  quote: 'it''s # x'
  sexa: "12:30:45"
  tab: "\ta\n"
  tilde: "~"
  trail: "a \nb\n"
  "true": "true"
  uni: "é日本\U0001F600"
  v9: "9"
  v12: "12"
  v100: "100"
kind: ConfigMap
metadata:
  name: a
"##;

    #[test]
    fn object_is_written_as_kapp_prints_it() {
        let long = "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp qqqq rrrr ssss";
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {
                "v9": "9", "v12": "12", "v100": "100", "long": format!("{long} tttt uuuu vvvv"), "true": "true",
                "date": "2020-01-01", "oct": "0o17", "sexa": "12:30:45", "trail": "a \nb\n", "tab": "\ta\n",
                "uni": "é日本😀", "ctrl": "\u{1}", "crlf": "a\r\nb", "quote": "it's # x", "qlong": format!("it's: {long}"),
                "nl3": "a\n\n\n", "empty": "", "tilde": "~", "lead": " x",
            },
        });
        assert_eq!(document(&object), PRINTED);
    }
}
