//! The server's endpoint, and whether anything accepts connections there: a silent server is waited for, while a dead
//! address is reported soon.

use std::time::Duration;

use tokio::net::TcpStream;

/// Maximum time to connect; far more than within one data centre or across the world.
const LONGEST: Duration = Duration::from_secs(3);

/// Host and port of the server, or of the proxy in front of it.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// `None` if the configuration names no host.
    pub(super) fn of(config: &kube::Config) -> Option<Self> {
        let uri = config.proxy_url.as_ref().unwrap_or(&config.cluster_url);
        // An IPv6 address is in brackets.
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let usual = match uri.scheme_str() {
            Some("http") => 80,
            Some("socks5") => 1080,
            _ => 443,
        };
        Some(Self { host, port: uri.port_u16().unwrap_or(usual) })
    }

    /// Whether a connection is accepted. Sends nothing.
    pub(super) async fn accepts_connections(&self) -> bool {
        let connection = TcpStream::connect((self.host.as_str(), self.port));
        tokio::time::timeout(LONGEST, connection).await.is_ok_and(|connected| connected.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn endpoint(server: &str, proxy: Option<&str>) -> Endpoint {
        let mut config = kube::Config::new(server.parse().unwrap());
        config.proxy_url = proxy.map(|proxy| proxy.parse().unwrap());
        Endpoint::of(&config).unwrap()
    }

    #[test]
    fn a_place_is_the_servers_or_its_proxys() {
        let shown = |server: &str, proxy| {
            let endpoint = endpoint(server, proxy);
            format!("{} {}", endpoint.host, endpoint.port)
        };
        assert_eq!(shown("https://a.example:6443/path", None), "a.example 6443");
        assert_eq!(shown("https://a.example", None), "a.example 443");
        assert_eq!(shown("http://[::1]", None), "::1 80");
        assert_eq!(shown("https://a.example:6443", Some("http://u:p@proxy.example:3128")), "proxy.example 3128");
    }

    #[tokio::test]
    async fn a_listener_that_says_nothing_accepts_connections_and_a_closed_port_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = endpoint(&format!("https://{}", listener.local_addr().unwrap()), None);
        assert!(endpoint.accepts_connections().await);
        drop(listener);
        assert!(!endpoint.accepts_connections().await);
    }
}
