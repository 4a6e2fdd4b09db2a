//! Functions on addresses, networks and URLs.
//!
//! Follows k8s.io/apiserver `pkg/cel/library/ip.go`, `cidr.go` and `urls.go`.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use super::super::stop::Stop;
use super::super::value::network::{Cidr, Reading, Url, masked, parse_address};
use super::super::value::{Map, Outcome, Value};
use super::Call;

pub(in super::super) fn call<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { function, is_member, arguments, .. } = *call;
    Some(Ok(match (function, arguments) {
        ("isIP", [Value::String(text)]) if !is_member => Value::Bool(parse_address(text).is_some()),
        ("isCIDR", [Value::String(text)]) if !is_member => Value::Bool(Cidr::parse(text).is_some()),
        ("ip", [Value::String(text)]) if !is_member => return Some(address_of(text).map(Value::Ip)),
        ("cidr", [Value::String(text)]) if !is_member => return Some(network_of(text).map(Value::Cidr)),
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
        ("ip", [Value::Cidr(network)]) if is_member => Value::Ip(network.address),
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

/// Whether the text is a URL; `None` if that is unknown.
pub(super) fn is_url(text: &str) -> Option<bool> {
    match Url::read(text) {
        Reading::Url(_) => Some(true),
        Reading::Refused => Some(false),
        Reading::Unclear => None,
    }
}

pub(in super::super) fn url<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { function, is_member, arguments, .. } = *call;
    match (function, arguments) {
        ("url" | "isURL", [Value::String(text)]) if !is_member => Some(match (Url::read(text), function) {
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
