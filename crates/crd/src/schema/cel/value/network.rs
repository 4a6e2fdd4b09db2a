//! Addresses, networks and URLs. Addresses are parsed as in Go: no zones, no leading zeros, no IPv4-mapped IPv6.
//!
//! Follows k8s.io/apiserver `pkg/cel/library/ip.go`, `cidr.go` and `urls.go`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address with a prefix length; bits after the prefix may be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Cidr {
    pub(in super::super) address: IpAddr,
    pub(in super::super) length: u32,
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

impl Cidr {
    pub(in super::super) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.rsplit_once('/')?;
        let address = parse_address(address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let plain = length.bytes().all(|digit| digit.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
        let length = length.parse().ok().filter(|length| plain && *length <= most)?;
        Some(Self { address, length })
    }

    pub(in super::super) fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(self.address, self.length) == masked(address, self.length)
    }
}

pub(in super::super) fn masked(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
        }
    }
}

pub(in super::super) fn parse_address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    match address {
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => None,
        address => Some(address),
    }
}

/// A URL, split into its parts.
#[derive(Clone, Debug)]
pub(in super::super) struct Url {
    pub(in super::super) text: String,
    pub(in super::super) scheme: String,
    pub(in super::super) host: String,
    pub(in super::super) path: String,
    pub(in super::super) query: String,
}

/// The result of parsing a URL.
pub(in super::super) enum Reading {
    Url(Url),
    Refused,
    /// It contains characters whose treatment by the server is unknown here.
    Unclear,
}

impl Url {
    pub(in super::super) fn text(&self) -> &str {
        &self.text
    }

    pub(in super::super) fn read(text: &str) -> Reading {
        if text == "*" {
            return Reading::Unclear;
        }
        if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Reading::Refused;
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?&=+,;@!$'()*#[]".contains(&byte);
        let scheme_end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || "+-.".contains(letter)));
        let starts_with_letter = text.starts_with(|first: char| first.is_ascii_alphabetic());
        let (scheme, rest) = match scheme_end {
            Some(0) if text.starts_with(':') => return Reading::Refused,
            Some(end) if text[end..].starts_with(':') && starts_with_letter => {
                (text[..end].to_ascii_lowercase(), &text[end + 1..])
            }
            // Without a scheme, only an absolute path is a URL.
            _ if !text.starts_with('/') => return Reading::Refused,
            _ => (String::new(), text),
        };
        if !rest.starts_with('/') && scheme.is_empty() {
            return Reading::Refused;
        }
        if !text.bytes().all(plain) || rest.contains(['#', '@', '[', ']']) {
            return Reading::Unclear;
        }
        if !rest.starts_with('/') {
            return Reading::Unclear;
        }
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match before.strip_prefix("//") {
            Some(authority) if !scheme.is_empty() || !before.starts_with("///") => {
                let end = authority.find('/').unwrap_or(authority.len());
                authority.split_at(end)
            }
            _ => ("", before),
        };
        if let Some((_, port)) = host.rsplit_once(':')
            && !port.bytes().all(|digit| digit.is_ascii_digit())
        {
            return Reading::Refused;
        }
        if host.matches(':').count() > 1 || path.contains(['*', '!', '\'', '(', ')', ';', ',']) {
            return Reading::Unclear;
        }
        Reading::Url(Self {
            text: text.to_owned(),
            scheme,
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }
}
