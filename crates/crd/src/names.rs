//! Which names Kubernetes accepts for objects, labels and label values.

/// Maximum length of an object name, in bytes.
pub const LONGEST_NAME: usize = 253;

/// Lower-case letters, digits and inner hyphens, of any length: the common part of all DNS names.
#[must_use]
pub fn is_dns_part(text: &str) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_inner)
        && bytes.last().is_some_and(is_inner)
        && bytes.iter().all(|byte| is_inner(byte) || *byte == b'-')
}

/// A DNS label of RFC 1123, such as the name of a namespace.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

/// A DNS label of RFC 1035, which must begin with a letter.
#[must_use]
pub fn is_dns_1035_label(text: &str) -> bool {
    is_dns_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// A DNS subdomain of RFC 1123, such as the name of most objects.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= LONGEST_NAME && text.split('.').all(is_dns_part)
}

/// Whether the API server accepts this `generateName`. It masks a trailing hyphen by replacing the last two bytes with
/// one letter, so that any character before the hyphen is accepted.
#[must_use]
pub fn is_start_of_a_subdomain(text: &str) -> bool {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let kept = rest.char_indices().next_back().filter(|(_, last)| last.is_ascii()).map(|(at, _)| &rest[..at]);
            kept.is_some_and(|kept| is_dns_subdomain(&format!("{kept}a")))
        }
        _ => is_dns_subdomain(text),
    }
}

/// A label key, such as `example.com/name`.
#[must_use]
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        None => is_name_part(text),
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name_part(name),
    }
}

/// A label value, which may be empty.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// A label value that is not empty, or the name part of a label key.
#[must_use]
pub fn is_name_part(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
