//! The format library: named formats for names, labels and the like. `validate` returns messages; only whether there
//! are any is known here.
//!
//! Follows k8s.io/apiserver `pkg/cel/library/format.go`.

use std::rc::Rc;

use super::super::stop::Stop;
use super::super::time;
use super::super::value::{Outcome, Value};
use super::Call;
use crate::names::{is_dns_1035_label, is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name};

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

pub(in super::super) fn call<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { evaluator, function, arguments, .. } = *call;
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
                // The messages are the server's own; the result of a rule that reads them is unknown.
                Some(false) => Ok(Value::some(Value::Opaque("the messages of a format"))),
                None => Err(Stop::unknown(format!("format.{format}() of {text:?}"))),
            }
        }
        _ => return None,
    })
}

/// Whether the text has the format; `None` if that is unknown.
fn valid(format: &str, text: &str) -> Option<bool> {
    // A prefix may end in a character that only the rest of the name makes valid.
    let (format, text) = match format.strip_suffix("Prefix") {
        Some(format) => (format, text.strip_suffix('-').map_or(text.to_owned(), |rest| format!("{rest}a"))),
        None => (format, text.to_owned()),
    };
    let text = text.as_str();
    Some(match format {
        "dns1123Label" => is_dns_label(text),
        "dns1123Subdomain" => is_dns_subdomain(text),
        "dns1035Label" => is_dns_1035_label(text),
        "qualifiedName" => is_qualified_name(text),
        "labelValue" => is_label_value(text),
        "uri" => return super::network::is_url(text),
        "uuid" => uuid(text),
        "date" => time::date(text).is_some(),
        "byte" if !text.is_empty() && super::super::base64::base64(text).is_some() => true,
        _ => return None,
    })
}

/// Hexadecimal digits in groups; the hyphens between them are optional.
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
