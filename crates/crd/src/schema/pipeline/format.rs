//! The string formats that the API server enforces, each checked the way its libraries check it.
//!
//! Which formats: k8s.io/apiextensions-apiserver `pkg/apiserver/validation/formats.go`; how each is checked:
//! k8s.io/kube-openapi `pkg/validation/strfmt/default.go`.

mod digits;
mod email;
mod network;
mod time;
mod uri;

use std::sync::OnceLock;
pub(in crate::schema) use uri::{UriParts, uri_parts};

pub(super) use self::time::is_date_time;
use super::Server;
use crate::names::{is_dns_label, is_dns_subdomain};
use crate::schema::pattern::Pattern;
use crate::schema::releases;
use digits::{is_base64, is_hex};
use network::is_mac_without_separators as is_plain_mac;

/// A string format that the server knows.
#[derive(Debug)]
pub(super) struct StringFormat {
    /// Its name without hyphens.
    pub(super) name: &'static str,
    /// The minor version of the server that checks it in this way, if another way came before.
    since: u32,
    /// Whether a text has this format; `None` if that is unknown.
    pub(super) is_valid: fn(&str) -> Option<bool>,
}

const fn format(name: &'static str, is_valid: fn(&str) -> Option<bool>) -> StringFormat {
    StringFormat { name, since: 0, is_valid }
}

static FORMATS: [StringFormat; 27] = [
    format("bsonobjectid", |text| Some(text.len() == 24 && is_hex(text))),
    format("uri", |text| Some(uri::is_request_uri(text))),
    format("email", email::is_address),
    format("hostname", is_hostname),
    format("ipv4", |text| Some(network::is_ip_sloppy(text) && text.contains('.'))),
    format("ipv6", |text| Some(text.parse::<std::net::Ipv6Addr>().is_ok())),
    format("cidr", |text| Some(network::is_cidr_sloppy(text))),
    StringFormat { since: 36, ..format("mac", |text| Some(network::is_mac(text) || is_plain_mac(text))) },
    // The version of a server before 1.36 does not tell which Go it was built with: since 1.26 it accepts digits without
    // separators.
    format("mac", |text| (!is_plain_mac(text)).then(|| network::is_mac(text))),
    format("uuid", |text| Some(is_uuid(text, None))),
    format("uuid3", |text| Some(is_uuid(text, Some(b'3')))),
    format("uuid4", |text| Some(is_uuid(text, Some(b'4')))),
    format("uuid5", |text| Some(is_uuid(text, Some(b'5')))),
    format("isbn", |text| Some(is_isbn10(text) || is_isbn13(text))),
    format("isbn10", |text| Some(is_isbn10(text))),
    format("isbn13", |text| Some(is_isbn13(text))),
    format("creditcard", |text| Some(is_credit_card(text))),
    format("ssn", |text| Some(is_social_security_number(text))),
    format("hexcolor", |text| Some(is_hex_color(text))),
    format("rgbcolor", |text| Some(is_rgb_color(text))),
    format("byte", |text| Some(is_base64(text))),
    format("password", |_| Some(true)),
    format("date", |text| Some(time::is_date(text))),
    format("duration", |text| Some(time::is_duration(text))),
    format("datetime", |text| Some(is_date_time(text))),
    format("k8sshortname", |text| Some(is_dns_label(text))),
    format("k8slongname", |text| Some(is_dns_subdomain(text))),
];

/// Host names of letters and symbols of any script; if there is a dot, the top-level domain consists of letters.
const HOSTNAME_PATTERN: &str = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";

/// Whether the server accepts `text` in this format; `None` if that is unknown. An unknown format accepts everything.
#[must_use]
pub fn format_is_valid(name: &str, text: &str, server: Server) -> Option<bool> {
    StringFormat::named(name, server).map_or(Some(true), |format| (format.is_valid)(text))
}

/// Whether the server knows a string format of this name.
#[must_use]
pub fn is_known_format(name: &str, server: Server) -> bool {
    StringFormat::named(name, server).is_some()
}

/// Whether the text matches; `None` if the pattern cannot be evaluated. A pattern that the server cannot compile
/// matches nothing.
pub(super) fn pattern_matches(pattern: &str, text: &str) -> Option<bool> {
    match Pattern::shared(pattern) {
        Ok(pattern) => pattern.try_match(text),
        Err(error) => error.refused.then_some(false),
    }
}

fn is_hostname(text: &str) -> Option<bool> {
    static HOSTNAME: OnceLock<Option<Pattern>> = OnceLock::new();
    let pattern = HOSTNAME.get_or_init(|| Pattern::parse(HOSTNAME_PATTERN).ok()).as_ref()?;
    Some(text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && pattern.is_match(text))
}

impl StringFormat {
    pub(super) fn named(name: &str, server: Server) -> Option<&'static Self> {
        let name = name.replace('-', "");
        let since = |format: &StringFormat| releases::of_format(format.name).unwrap_or(format.since);
        FORMATS.iter().find(|format| format.name == name && since(format) <= server.minor)
    }
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

/// Each hyphen is optional. Versions 4 and 5 require the variant of RFC 4122, version 3 accepts any.
fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text;
    let mut digits = Vec::new();
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((part, remainder)) = rest.split_at_checked(length) else { return false };
        digits.extend_from_slice(part.as_bytes());
        rest = remainder;
    }
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| {
            digits.get(12) == Some(&version)
                && (version == b'3' || digits.get(16).is_some_and(|digit| b"89abAB".contains(digit)))
        })
}

fn isbn_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !b"\t\n\x0c\r -".contains(byte)).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let [digits @ .., last] = digits.as_slice() else { return false };
    if digits.len() != 9 || !digits.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let last = if *last == b'X' { 10 } else { u32::from(last - b'0') };
    let sum: u32 = (1..).zip(digits).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    digits.len() == 13
        && digits.iter().all(u8::is_ascii_digit)
        && digits
            .iter()
            .zip([1, 3].into_iter().cycle())
            .map(|(digit, weight)| u32::from(digit - b'0') * weight)
            .sum::<u32>()
            % 10
            == 0
}

/// Other characters than digits are ignored; checks the prefixes and lengths of the known issuers, and the Luhn sum.
fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
    let text = String::from_utf8_lossy(&digits);
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    let is_known = match digits.len() {
        13 => starts(&["4"]),
        14 => starts(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => starts(&["34", "37", "2131", "1800"]),
        16 => starts(&["4", "51", "52", "53", "54", "55", "6011", "65", "35"]),
        _ => false,
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| match (index % 2, u32::from(digit - b'0')) {
            (0, digit) => digit,
            (_, digit) if digit < 5 => digit * 2,
            (_, digit) => digit * 2 - 9,
        })
        .sum();
    is_known && sum.is_multiple_of(10)
}

/// `123-45-6789`, with hyphens or spaces.
fn is_social_security_number(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(index, byte)| match index {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let is_part = |part: &str| {
        let digits = part.trim_matches(['\t', '\n', '\x0c', '\r', ' ']);
        !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.len() == 1 || !digits.starts_with('0'))
            && digits.parse::<u8>().is_ok()
    };
    inner.split(',').count() == 3 && inner.split(',').all(is_part)
}

#[cfg(test)]
mod tests;
