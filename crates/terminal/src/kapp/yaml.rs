//! YAML as kapp prints objects: keys sorted, lists not set in, strings quoted only where YAML would read something else.

use serde_json::Value;

/// An object as YAML text; empty for nothing.
#[must_use]
pub fn text(value: Option<&Value>) -> String {
    let Some(value) = value else { return String::new() };
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => fields(value, 0, &mut text),
        Value::Array(items) if !items.is_empty() => list(items, 0, &mut text),
        scalar => {
            text += &inline(scalar, 0);
            text.push('\n');
        }
    }
    text
}

fn fields(value: &Value, indent: usize, text: &mut String) {
    let Some(map) = value.as_object() else { return };
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by(|left, right| natural(left.0, right.0));
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 || text.is_empty() || text.ends_with('\n') {
            *text += &" ".repeat(indent);
        }
        *text += &scalar(key);
        text.push(':');
        match value {
            Value::Object(map) if !map.is_empty() => {
                text.push('\n');
                fields(value, indent + 2, text);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push('\n');
                list(items, indent, text);
            }
            other => {
                text.push(' ');
                *text += &inline(other, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn list(items: &[Value], indent: usize, text: &mut String) {
    for item in items {
        *text += &" ".repeat(indent);
        *text += "- ";
        match item {
            Value::Object(map) if !map.is_empty() => fields(item, indent + 2, text),
            Value::Array(items) if !items.is_empty() => {
                let mut below = String::new();
                list(items, indent + 2, &mut below);
                *text += below.trim_start();
            }
            other => {
                *text += &inline(other, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn inline(value: &Value, indent: usize) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(string) if string.contains('\n') && is_plain_block(string) => block(string, indent),
        Value::String(string) => scalar(string),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// A literal block, with the mark that keeps its last line breaks.
fn block(text: &str, indent: usize) -> String {
    let mark = match text.trim_end_matches('\n').len() {
        length if length == text.len() => "|-",
        length if length + 1 == text.len() => "|",
        _ => "|+",
    };
    let first = if text.starts_with([' ', '\n']) { "2" } else { "" };
    let mut lines = format!("|{first}{}", &mark[1..]);
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        lines.push('\n');
        if !line.is_empty() {
            lines += &" ".repeat(indent);
            lines += line;
        }
    }
    lines
}

fn is_plain_block(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()) && !text.lines().any(|line| line.ends_with(' '))
}

fn scalar(text: &str) -> String {
    if text.chars().any(char::is_control) {
        return double_quoted(text);
    }
    if is_read_as_something_else(text) {
        return double_quoted(text);
    }
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\r' => quoted += "\\r",
            c if c.is_control() => quoted += &format!("\\x{:02X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Whether a plain scalar of this text would be a number, a boolean, null, a time or a merge key.
fn is_read_as_something_else(text: &str) -> bool {
    let word = ["", "~", "null", "Null", "NULL", "<<", "true", "True", "TRUE", "false", "False", "FALSE"];
    let old_word = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"];
    let special = [".inf", ".Inf", ".INF", "+.inf", "-.inf", ".nan", ".NaN", ".NAN"];
    if word.contains(&text) || old_word.contains(&text) || special.contains(&text) {
        return true;
    }
    let digits = text.replace('_', "");
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
    let radix = |prefix: &str, radix: u32| {
        unsigned.strip_prefix(prefix).is_some_and(|rest| i128::from_str_radix(rest, radix).is_ok())
    };
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))
        && unsigned.parse::<f64>().is_ok();
    is_number || radix("0x", 16) || radix("0o", 8) || radix("0b", 2) || is_time(text)
}

fn is_time(text: &str) -> bool {
    let is_date = |date: &str| {
        let parts: Vec<&str> = date.split('-').collect();
        parts.len() == 3
            && parts[0].len() == 4
            && parts[1..].iter().all(|part| (1..=2).contains(&part.len()))
            && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (date, rest) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
    is_date(date) && (rest.is_empty() || rest.contains(':'))
}

fn is_plain(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next().unwrap_or(' ');
    let second = characters.next();
    let starts = match first {
        '-' | '?' | ':' => second.is_some_and(|c| c != ' '),
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' | ' ' => false,
        _ => true,
    };
    let is_document_mark = text.starts_with("---") || text.starts_with("...");
    starts && !is_document_mark && !text.ends_with([' ', ':']) && !text.contains(": ") && !text.contains(" #")
}

/// Go's order of keys: letters after other characters, and numbers within keys by their value.
fn natural(left: &str, right: &str) -> std::cmp::Ordering {
    let (left_chars, right_chars): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut digits = false;
    for (index, (&one, &other)) in left_chars.iter().zip(&right_chars).enumerate() {
        if one == other {
            digits = one.is_ascii_digit();
            continue;
        }
        let (one_is_letter, other_is_letter) = (one.is_alphabetic(), other.is_alphabetic());
        if one_is_letter && other_is_letter {
            return one.cmp(&other);
        }
        if one_is_letter || other_is_letter {
            return if digits {
                one_is_letter.cmp(&other_is_letter)
            } else {
                other_is_letter.cmp(&one_is_letter).reverse()
            };
        }
        let number = |characters: &[char]| {
            let text: String = characters[index..].iter().take_while(|c| c.is_ascii_digit()).collect();
            (text.parse::<u64>().unwrap_or_default(), text.len())
        };
        let ((one_value, one_length), (other_value, other_length)) = (number(&left_chars), number(&right_chars));
        return one_value.cmp(&other_value).then(one_length.cmp(&other_length)).then(one.cmp(&other));
    }
    left_chars.len().cmp(&right_chars.len())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_reads_as_kapp_prints_it() {
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a", "labels": {"app": "1795247847288667866"}, "annotations": {}},
            "data": {"a": "1", "yes": "true", "text": "one\ntwo\n", "odd": "a: b", "word": "plain words"},
            "spec": {"ports": [{"port": 80, "name": "x"}], "empty": [], "nested": [["a"], {"b": null}]},
        });
        assert_snapshot!(text(Some(&object)), @r#"
        apiVersion: v1
        data:
          a: "1"
          odd: 'a: b'
          text: |
            one
            two
          word: plain words
          "yes": "true"
        kind: ConfigMap
        metadata:
          annotations: {}
          labels:
            app: "1795247847288667866"
          name: a
        spec:
          empty: []
          nested:
          - - a
          - b: null
          ports:
          - name: x
            port: 80
        "#);
    }
}
