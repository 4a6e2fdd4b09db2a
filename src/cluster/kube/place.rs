//! Where the server should be, and whether anybody takes connections there: a server that is silent is waited for, while
//! an address at which nothing is, is told soon.

use std::time::Duration;

use tokio::net::TcpStream;

/// A connection within one data centre or across the world takes far less.
const LONGEST: Duration = Duration::from_secs(3);

/// Host and port of the server, or of the proxy before it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    host: String,
    port: u16,
}

impl Place {
    /// `None` where the configuration names no host.
    pub(super) fn of(config: &kube::Config) -> Option<Self> {
        let uri = config.proxy_url.as_ref().unwrap_or(&config.cluster_url);
        // An IPv6 address stands in brackets.
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let usual = match uri.scheme_str() {
            Some("http") => 80,
            Some("socks5") => 1080,
            _ => 443,
        };
        Some(Self { host, port: uri.port_u16().unwrap_or(usual) })
    }

    /// Whether a connection is taken. Nothing is sent through it.
    pub(super) async fn takes_connections(&self) -> bool {
        let connection = TcpStream::connect((self.host.as_str(), self.port));
        tokio::time::timeout(LONGEST, connection).await.is_ok_and(|connected| connected.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn place(server: &str, proxy: Option<&str>) -> Place {
        let mut config = kube::Config::new(server.parse().unwrap());
        config.proxy_url = proxy.map(|proxy| proxy.parse().unwrap());
        Place::of(&config).unwrap()
    }

    #[test]
    fn a_place_is_the_servers_or_its_proxys() {
        let shown = |server: &str, proxy| {
            let place = place(server, proxy);
            format!("{} {}", place.host, place.port)
        };
        assert_eq!(shown("https://a.example:6443/path", None), "a.example 6443");
        assert_eq!(shown("https://a.example", None), "a.example 443");
        assert_eq!(shown("http://[::1]", None), "::1 80");
        assert_eq!(shown("https://a.example:6443", Some("http://u:p@proxy.example:3128")), "proxy.example 3128");
    }

    #[tokio::test]
    async fn a_listener_that_says_nothing_takes_connections_and_a_closed_port_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = place(&format!("https://{}", listener.local_addr().unwrap()), None);
        assert!(place.takes_connections().await);
        drop(listener);
        assert!(!place.takes_connections().await);
    }
}
