//! `uri`: what Go's `net/url` accepts as the target of a request.
//!
//! Follows Go's `net/url`, `ParseRequestURI`.

use std::net::Ipv6Addr;

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
}

/// The parts of an absolute URI or an absolute path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schema) struct UriParts<'a> {
    pub(in crate::schema) scheme: &'a str,
    pub(in crate::schema) user: Option<&'a str>,
    /// The host, with the port.
    pub(in crate::schema) host: &'a str,
    pub(in crate::schema) query: &'a str,
}

/// The parts of a text; `None` if it is not an absolute URI or an absolute path.
pub(in crate::schema) fn uri_parts(text: &str) -> Option<UriParts<'_>> {
    let (scheme, rest) = scheme(text).filter(|_| is_request_uri(text))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.strip_prefix("//").filter(|_| !scheme.is_empty()).unwrap_or_default();
    let authority = &authority[..authority.find('/').unwrap_or(authority.len())];
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    Some(UriParts { scheme, user, host, query })
}

/// Returns whether it is an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = scheme(text) else { return false };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            if !is_authority(&scheme.to_ascii_lowercase(), authority) {
                return false;
            }
            path
        }
        None => rest,
    };
    is_escaped(path, Part::Path)
}

/// The scheme, empty if there is none, and the rest; `None` if there is a colon but no scheme before it.
fn scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return Some((&text[..index], &text[index + 1..])),
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let Some((user, host)) = authority.rsplit_once('@') else { return is_host(scheme, authority) };
    let is_user =
        user.chars().all(|character| character.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(character));
    is_host(scheme, host) && is_user && user.splitn(2, ':').all(|part| is_escaped(part, Part::User))
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {
            let Some((literal, port)) = host[1..].rsplit_once(']') else { return false };
            is_port(port) && is_escaped(port, Part::Host) && is_ip_literal(literal)
        }
        Some(_) => false,
        None => {
            if let Some(first) = host.find(':') {
                let is_strict = matches!(scheme, "http" | "https");
                let port = if is_strict { first } else { host.rfind(':').unwrap_or(first) };
                if !is_port(&host[port..]) {
                    return false;
                }
            }
            is_escaped(host, Part::Host)
        }
    }
}

/// An IPv6 address, optionally with a zone after `%25`.
fn is_ip_literal(literal: &str) -> bool {
    let (address, zone) = match literal.find("%25") {
        Some(index) => literal.split_at(index),
        None => (literal, ""),
    };
    if !is_escaped(address, Part::Host) || !is_escaped(zone, Part::Zone) {
        return false;
    }
    // The escapes that a host allows encode bytes that no address contains.
    address.parse::<Ipv6Addr>().is_ok() && zone != "%25"
}

fn is_port(port: &str) -> bool {
    port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether all escapes are complete and every byte that must be escaped is.
fn is_escaped(text: &str, part: Part) -> bool {
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte);
    let bytes = text.as_bytes();
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        if *byte != b'%' {
            if matches!(part, Part::Host | Part::Zone) && *byte < 0x80 && !is_host_byte(*byte) {
                return false;
            }
            index += 1;
            continue;
        }
        let digit = |offset: usize| bytes.get(index + offset).and_then(|byte| char::from(*byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(1), digit(2)) else { return false };
        let escaped = u8::try_from(high * 16 + low).unwrap_or_default();
        let is_fine = match part {
            Part::Path | Part::User => true,
            Part::Host => high >= 8 || escaped == b'%',
            Part::Zone => escaped == b'%' || escaped == b' ' || is_host_byte(escaped),
        };
        if !is_fine {
            return false;
        }
        index += 3;
    }
    true
}
