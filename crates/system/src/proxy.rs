//! Selects the proxy for a server: the API server, or one that manifests are fetched from. Done here because the client library matches `NO_PROXY` against the proxy
//! instead of the server (kube 5.0) and fails on entries that every other tool skips.

use std::ffi::OsString;
use std::net::IpAddr;

use http::Uri;

/// The proxy for a server: the kubeconfig's `proxy-url`, which always applies, or the environment's, by the rules of
/// Go's
/// `golang.org/x/net/http/httpproxy`, which kubectl follows; `ALL_PROXY` has the lowest precedence.
///
/// # Errors
/// The address is not one of a proxy. It is not quoted: it can hold a password.
pub fn choose(
    server: &Uri,
    configured: Option<&str>,
    environment: fn(&str) -> Option<OsString>,
) -> Result<Option<Uri>, String> {
    if let Some(proxy) = configured.filter(|proxy| !proxy.is_empty()) {
        return parse(proxy, "proxy-url in the kubeconfig").map(Some);
    }
    let read =
        |name: &str| environment(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
    let names: &[&str] = if server.scheme_str() == Some("http") {
        &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
    } else {
        &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    };
    let Some((name, proxy)) = names.iter().find_map(|name| read(name).map(|value| (name, value))) else {
        return Ok(None);
    };
    let host = bare_host(server.host().unwrap_or_default());
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let no_proxy = read("NO_PROXY").or_else(|| read("no_proxy")).unwrap_or_default();
    if is_local(&host) || is_excepted(&host, port, &no_proxy) {
        return Ok(None);
    }
    parse(&proxy, name).map(Some)
}

/// Parses a proxy's address. It can contain a password, so no message shows it.
fn parse(proxy: &str, origin: &str) -> Result<Uri, String> {
    let proxy = if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    // `socks5h` differs only in who resolves names; the client library knows only `socks5`.
    let proxy = proxy.strip_prefix("socks5h://").map_or(proxy.clone(), |rest| format!("socks5://{rest}"));
    let uri: Uri = proxy.parse().map_err(|_| format!("{origin} is not an address of a proxy"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https" | "socks5"), Some(_)) => Ok(uri),
        (scheme, _) => {
            Err(format!("{origin} has the scheme \"{}\"; known: http, https, socks5", scheme.unwrap_or_default()))
        }
    }
}

fn bare_host(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_excepted(host: &str, port: u16, no_proxy: &str) -> bool {
    let address = host.parse::<IpAddr>().ok();
    no_proxy.split(',').map(|entry| entry.trim().to_ascii_lowercase()).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let Some((network, length)) = entry.split_once('/') {
            return address.is_some_and(|address| is_in_network(address, network, length));
        }
        let (name, entry_port) = split_port(&entry);
        if entry_port.is_some_and(|entry_port| entry_port != port) {
            return false;
        }
        if let Ok(excepted) = bare_host(name).parse::<IpAddr>() {
            return address == Some(excepted);
        }
        let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
        match name.strip_prefix('.') {
            Some(domain) => is_below(host, domain),
            None => host == name || is_below(host, name),
        }
    })
}

fn is_below(host: &str, domain: &str) -> bool {
    !domain.is_empty() && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// Splits `example.com:8443` and `[::1]:6443`; an IPv6 address without brackets has no port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if entry.parse::<IpAddr>().is_ok() {
        return (entry, None);
    }
    match entry.rsplit_once(':') {
        Some((name, port)) => port.parse().map_or((entry, None), |port| (name, Some(port))),
        None => (entry, None),
    }
}

fn is_in_network(address: IpAddr, network: &str, length: &str) -> bool {
    let (Ok(network), Ok(length)) = (network.parse::<IpAddr>(), length.parse::<u32>()) else { return false };
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if length <= 32 => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if length <= 128 => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<OsString> {
        match name {
            "HTTPS_PROXY" => Some("http://user:hunter2@proxy.corp:3128".into()),
            "NO_PROXY" => Some("10.0.0.0/8, ,.svc,*.internal,example.com:6443,fe80::/10,[fd00::1]:443,1.2.3.4,".into()),
            _ => None,
        }
    }

    fn chosen(server: &str) -> Option<String> {
        choose(&server.parse().unwrap(), None, environment).unwrap().map(|uri| uri.host().unwrap().to_owned())
    }

    #[test]
    fn no_proxy_is_matched_against_the_server() {
        for direct in [
            "https://10.0.0.5:6443",
            "https://kubernetes.default.svc",
            "https://a.b.INTERNAL",
            "https://example.com:6443",
            "https://sub.example.com:6443",
            "https://[fe80::1]:6443",
            "https://[fd00::1]",
            "https://1.2.3.4:8443",
            "https://localhost:6443",
            "https://127.0.0.1:6443",
            "https://[::1]:6443",
        ] {
            assert_eq!(chosen(direct), None, "{direct}");
        }
        for proxied in [
            "https://11.0.0.5:6443",
            "https://example.com",
            "https://svc",
            "https://internal",
            "https://notexample.com:6443",
            "https://[fd00::1]:6443",
        ] {
            assert_eq!(chosen(proxied).as_deref(), Some("proxy.corp"), "{proxied}");
        }
    }

    #[test]
    fn the_kubeconfigs_proxy_wins_over_environment_and_exceptions() {
        let server: Uri = "https://10.0.0.5:6443".parse().unwrap();
        let proxy = choose(&server, Some("socks5h://jump:1080"), environment).unwrap();
        assert_eq!(proxy.map(|uri| uri.to_string()).as_deref(), Some("socks5://jump:1080/"));
        assert_eq!(choose(&server, Some(""), environment).unwrap(), None);
    }

    #[test]
    fn a_proxy_without_a_scheme_is_an_http_proxy() {
        let server: Uri = "https://api.example.org".parse().unwrap();
        let proxy = choose(&server, Some("proxy:3128"), |_| None).unwrap();
        assert_eq!(proxy.map(|uri| uri.to_string()).as_deref(), Some("http://proxy:3128/"));
    }

    #[test]
    fn a_wrong_proxy_is_refused_without_showing_its_password() {
        let server: Uri = "https://api.example.org".parse().unwrap();
        for wrong in ["ftp://user:hunter2@proxy", "http://user:hunter2@pro xy"] {
            let error = choose(&server, Some(wrong), |_| None).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
