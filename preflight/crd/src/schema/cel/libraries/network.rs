//! Addresses, networks and URLs. Addresses read as Go reads them: no zones, no leading zeros, and no IPv4 written as IPv6.
//!
//! Follows k8s.io/apiserver `pkg/cel/library/ip.go`, `cidr.go` and `urls.go`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use super::super::evaluate::{Evaluator, Outcome, Stop};
use super::super::value::{Map, Value};

/// An address with the length of its network part; bits behind that may be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Cidr {
    address: IpAddr,
    length: u32,
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

impl Cidr {
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.rsplit_once('/')?;
        let address = parse_address(address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let plain = length.bytes().all(|digit| digit.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
        let length = length.parse().ok().filter(|length| plain && *length <= most)?;
        Some(Self { address, length })
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(self.address, self.length) == masked(address, self.length)
    }
}

fn masked(address: IpAddr, length: u32) -> IpAddr {
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

fn parse_address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    match address {
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => None,
        address => Some(address),
    }
}

pub(in super::super) fn call<'a>(
    _evaluator: &Evaluator<'a>,
    function: &str,
    member: bool,
    arguments: &[Value<'a>],
) -> Option<Outcome<'a>> {
    Some(Ok(match (function, arguments) {
        ("isIP", [Value::String(text)]) if !member => Value::Bool(parse_address(text).is_some()),
        ("isCIDR", [Value::String(text)]) if !member => Value::Bool(Cidr::parse(text).is_some()),
        ("ip", [Value::String(text)]) if !member => return Some(address_of(text).map(Value::Ip)),
        ("cidr", [Value::String(text)]) if !member => return Some(network_of(text).map(Value::Cidr)),
        ("ip.isCanonical", [Value::String(text)]) => {
            return Some(address_of(text).map(|address| Value::Bool(address.to_string() == **text)));
        }
        ("family", [Value::Ip(address)]) => Value::Int(if address.is_ipv4() { 4 } else { 6 }),
        ("isUnspecified", [Value::Ip(address)]) => Value::Bool(address.is_unspecified()),
        ("isLoopback", [Value::Ip(address)]) => Value::Bool(address.is_loopback()),
        ("isLinkLocalMulticast", [Value::Ip(address)]) => Value::Bool(link_local_multicast(*address)),
        ("isLinkLocalUnicast", [Value::Ip(address)]) => Value::Bool(link_local(*address)),
        ("isGlobalUnicast", [Value::Ip(address)]) => Value::Bool(
            !(address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || link_local(*address)
                || *address == IpAddr::V4(Ipv4Addr::BROADCAST)),
        ),
        ("containsIP", [Value::Cidr(network), Value::Ip(address)]) => Value::Bool(network.contains(*address)),
        ("containsIP", [Value::Cidr(network), Value::String(text)]) => {
            return Some(address_of(text).map(|address| Value::Bool(network.contains(address))));
        }
        ("containsCIDR", [Value::Cidr(network), Value::Cidr(inner)]) => Value::Bool(covers(network, inner)),
        ("containsCIDR", [Value::Cidr(network), Value::String(text)]) => {
            return Some(network_of(text).map(|inner| Value::Bool(covers(network, &inner))));
        }
        ("ip", [Value::Cidr(network)]) if member => Value::Ip(network.address),
        ("prefixLength", [Value::Cidr(network)]) => Value::Int(i64::from(network.length)),
        ("masked", [Value::Cidr(network)]) => {
            Value::Cidr(Cidr { address: masked(network.address, network.length), length: network.length })
        }
        _ => return None,
    }))
}

fn covers(network: &Cidr, inner: &Cidr) -> bool {
    network.length <= inner.length && network.contains(inner.address)
}

fn address_of(text: &str) -> Result<IpAddr, Stop> {
    parse_address(text).ok_or_else(|| Stop::error(format!("IP address {text:?} parse error")))
}

fn network_of(text: &str) -> Result<Cidr, Stop> {
    Cidr::parse(text).ok_or_else(|| Stop::error(format!("network address {text:?} parse error")))
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
        IpAddr::V6(six) => six.segments()[0] & 0xff0f == 0xff02,
    }
}

/// A URL in its parts.
#[derive(Clone, Debug)]
pub(in super::super) struct Url {
    text: String,
    scheme: String,
    host: String,
    path: String,
    query: String,
}

/// Whether the text is a URL; `None` where that is not known.
pub(super) fn is_url(text: &str) -> Option<bool> {
    match Url::read(text) {
        Reading::Url(_) => Some(true),
        Reading::Refused => Some(false),
        Reading::Unclear => None,
    }
}

/// What reading a URL came to.
enum Reading {
    Url(Url),
    Refused,
    /// Characters whose treatment by the server is not known here.
    Unclear,
}

impl Url {
    pub(in super::super) fn text(&self) -> &str {
        &self.text
    }

    fn read(text: &str) -> Reading {
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
            // Without a scheme, only a rooted path is one.
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

pub(in super::super) fn url<'a>(
    _evaluator: &Evaluator<'a>,
    function: &str,
    member: bool,
    arguments: &[Value<'a>],
) -> Option<Outcome<'a>> {
    match (function, arguments) {
        ("url" | "isURL", [Value::String(text)]) if !member => Some(match (Url::read(text), function) {
            (Reading::Unclear, _) => Err(Stop::unknown(format!("the URL {text:?}"))),
            (Reading::Refused, "url") => Err(Stop::error(format!("{text:?} is not a URL"))),
            (Reading::Refused, _) => Ok(Value::Bool(false)),
            (Reading::Url(url), "url") => Ok(Value::Url(Rc::new(url))),
            (Reading::Url(_), _) => Ok(Value::Bool(true)),
        }),
        (_, [Value::Url(url)]) => {
            let (name, port) = url.host.rsplit_once(':').unwrap_or((&url.host, ""));
            Some(Ok(Value::text(match function {
                "getScheme" => &url.scheme,
                "getHost" => &url.host,
                "getHostname" => name,
                "getPort" => port,
                "getEscapedPath" => &url.path,
                "getQuery" => return Some(query(&url.query)),
                _ => return None,
            })))
        }
        _ => None,
    }
}

fn query<'a>(text: &str) -> Outcome<'a> {
    if text.contains(['+', ';', '?']) {
        return Err(Stop::unknown(format!("the query {text:?}")));
    }
    let mut entries: Vec<(String, Vec<Value<'a>>)> = Vec::new();
    for part in text.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(Value::text(value)),
            None => entries.push((key.to_owned(), vec![Value::text(value)])),
        }
    }
    let entries = entries.into_iter().map(|(key, values)| (Value::text(&key), Value::list(values))).collect();
    Ok(Value::Map(Map::Built(Rc::new(entries))))
}
