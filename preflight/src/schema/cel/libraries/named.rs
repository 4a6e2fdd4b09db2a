//! The format library: names, labels and the like that a rule checks by the name of the format.
//! `validate` answers with messages; only whether there are any is known here.

use std::rc::Rc;

use super::super::evaluate::{Evaluator, Outcome, Stop};
use super::super::time;
use super::super::value::Value;

const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

pub(in super::super) fn call<'a>(
    evaluator: &Evaluator<'a>,
    function: &str,
    _member: bool,
    arguments: &[Value<'a>],
) -> Option<Outcome<'a>> {
    let named = |wanted: &str| NAMES.into_iter().find(|name| *name == wanted).map(Value::Format);
    Some(match (function, arguments) {
        ("format.named", [Value::String(name)]) => Ok(Value::Optional(named(name).map(Rc::new))),
        (function, []) => Ok(named(function.strip_prefix("format.")?)?),
        ("validate", [Value::Format(format), Value::String(text)]) => {
            if let Err(stop) = evaluator.charge_text(text.len()) {
                return Some(Err(stop));
            }
            match valid(format, text) {
                Some(true) => Ok(Value::Optional(None)),
                // The messages are the server's own; a rule that looks at them gets no answer.
                Some(false) => Ok(Value::some(Value::Opaque("the messages of a format"))),
                None => Err(Stop::unknown(format!("format.{format}() of {text:?}"))),
            }
        }
        _ => return None,
    })
}

/// Whether the text is of the format; `None` where that is not known.
fn valid(format: &str, text: &str) -> Option<bool> {
    // A prefix may end in what only the rest of the name would end well.
    let (format, text) = match format.strip_suffix("Prefix") {
        Some(format) => (format, text.strip_suffix('-').map_or(text.to_owned(), |rest| format!("{rest}a"))),
        None => (format, text.to_owned()),
    };
    let text = text.as_str();
    Some(match format {
        "dns1123Label" => label(text) && text.len() <= 63,
        "dns1123Subdomain" => text.split('.').all(label) && text.len() <= 253,
        "dns1035Label" => label(text) && text.starts_with(|first: char| first.is_ascii_lowercase()) && text.len() <= 63,
        "qualifiedName" => match text.split_once('/') {
            Some((prefix, name)) => prefix.split('.').all(label) && prefix.len() <= 253 && word(name),
            None => word(text),
        },
        "labelValue" => text.is_empty() || word(text),
        "uri" => return super::network::is_url(text),
        "uuid" => uuid(text),
        "date" => time::date(text).is_some(),
        "byte" if !text.is_empty() && super::base64(text).is_some() => true,
        _ => return None,
    })
}

/// Lower-case letters, digits and inner hyphens.
fn label(text: &str) -> bool {
    let end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(end)
        && bytes.last().is_some_and(end)
        && bytes.iter().all(|byte| end(byte) || *byte == b'-')
}

/// Hexadecimal digits in groups, the hyphens between which may be left out.
fn uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (position, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if position > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        match rest.split_at_checked(length) {
            Some((group, tail)) if group.iter().all(u8::is_ascii_hexdigit) => rest = tail,
            _ => return false,
        }
    }
    rest.is_empty()
}

/// Up to 63 letters, digits, and inner hyphens, dots and underscores.
fn word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
