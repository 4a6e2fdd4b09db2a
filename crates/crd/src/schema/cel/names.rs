//! How rules write field names: characters that CEL does not allow are escaped between underscores.
//!
//! Follows k8s.io/apiserver `pkg/cel/escaping.go`.

/// Field names, each below the previous one; the first is below the value that the claims concern.
pub type FieldPath = Vec<String>;

/// Words that cannot be variable names.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Keywords that are not names.
const MEANINGFUL: [&str; 4] = ["true", "false", "null", "in"];

/// Whether CEL reserves the word, so that a field of this name is escaped.
fn is_kept(word: &str) -> bool {
    RESERVED.contains(&word) || MEANINGFUL.contains(&word)
}

/// The escaped name of a field; `None` if rules cannot name it.
pub(super) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if is_kept(name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::new();
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        if let Some(tail) = rest.strip_prefix("__") {
            escaped.push_str("__underscores__");
            rest = tail;
            continue;
        }
        match next {
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            '_' => escaped.push('_'),
            letter if letter.is_ascii_alphanumeric() => escaped.push(letter),
            _ => return None,
        }
        rest = &rest[next.len_utf8()..];
    }
    Some(escaped)
}

/// The field name for an escaped one; `None` if no field has this escaped form.
pub(super) fn unescape(escaped: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = escaped;
    while let Some(start) = rest.find("__") {
        let inner = &rest[start + 2..];
        let length = inner.find('_').unwrap_or(inner.len());
        if length == 0 || !inner[length..].starts_with("__") {
            // Not an escape sequence: continue after its first underscore.
            name.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        }
        name.push_str(&rest[..start]);
        name.push_str(match &inner[..length] {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            word if is_kept(word) && length + 4 == escaped.len() => word,
            _ => return None,
        });
        rest = &inner[length + 2..];
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_reads_back() {
        for (name, written) in [
            ("plain", "plain"),
            ("a.b", "a__dot__b"),
            ("a-b/c", "a__dash__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("___", "__underscores___"),
            ("namespace", "__namespace__"),
            ("_x_", "_x_"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(written));
            assert_eq!(unescape(written).as_deref(), Some(name), "{written}");
        }
        assert_eq!(escape("1a"), None);
        assert_eq!(escape("a b"), None);
        assert_eq!(unescape("a__if__"), None);
        assert_eq!(unescape("__nothing__"), None);
    }
}
