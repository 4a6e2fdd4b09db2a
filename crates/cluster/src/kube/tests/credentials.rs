//! Credentials of a plugin: renewed shortly before they expire, and once after a 401.
//! Against a server that accepts one token.

use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::kube::{ConnectOptions, KubeCluster, RetryLimits};
use crate::{Cluster, ErrorKind};

/// Answers every request with the version, or with 401 unless the token is the accepted one.
async fn serve(listener: TcpListener, accepted: &'static str) {
    while let Ok((mut connection, _)) = listener.accept().await {
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") && connection.read_buf(&mut asked).await.is_ok_and(|read| read > 0) {}
        let asked = String::from_utf8_lossy(&asked).to_ascii_lowercase();
        let (status, body) = if asked.contains(&format!("authorization: bearer {accepted}\r\n")) {
            ("200 OK", "{\"gitVersion\":\"v1.36.3\"}")
        } else {
            ("401 Unauthorized", "{\"kind\":\"Status\",\"message\":\"Unauthorized\",\"code\":401}")
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        let _ = connection.write_all(answer.as_bytes()).await;
    }
}

/// A kubeconfig whose plugin returns `token-1`, `token-2`… and records each run in a file.
fn kubeconfig(server: &str, folder: &Path, expires: &str) -> ConnectOptions {
    let runs = folder.join("runs");
    let script = format!(
        "echo run >> {0}; n=$(wc -l < {0} | tr -d ' '); \
         echo '{{\"status\":{{\"token\":\"token-'$n'\",\"expirationTimestamp\":\"{expires}\"}}}}'",
        runs.display()
    );
    let yaml = serde_json::json!({
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "/bin/sh", "args": ["-c", script],
        }}}],
    });
    ConnectOptions {
        kubeconfig_yaml: Some(yaml.to_string()),
        environment: |_| None,
        now: || jiff::Timestamp::UNIX_EPOCH,
        ..ConnectOptions::default()
    }
}

fn runs(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("runs")).unwrap().lines().count()
}

async fn version_with(accepted: &'static str, expires: &str) -> (Result<String, ErrorKind>, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let options = kubeconfig(&server, folder.path(), expires);
    let serving = tokio::spawn(serve(listener, accepted));
    let cluster = KubeCluster::connect(&options, None, &|_| ()).await.unwrap();
    let version = cluster.version().await;
    serving.abort();
    (version.map(|version| version.unwrap().text).map_err(|error| error.kind), runs(folder.path()))
}

#[tokio::test]
async fn a_plugin_is_run_once_to_connect() {
    let (version, runs) = version_with("token-1", "2030-01-01T00:00:00Z").await;
    assert_eq!((version, runs), (Ok("v1.36.3".to_owned()), 1));
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let (version, runs) = version_with("token-2", "2030-01-01T00:00:00Z").await;
    assert_eq!((version, runs), (Ok("v1.36.3".to_owned()), 2));
    let (version, runs) = version_with("another", "2030-01-01T00:00:00Z").await;
    assert_eq!((version, runs), (Err(ErrorKind::Unauthorized), 2));
}

#[tokio::test]
async fn a_token_that_is_about_to_expire_is_renewed_before_it_is_used() {
    let (version, runs) = version_with("token-2", "1970-01-01T00:00:10Z").await;
    assert_eq!((version, runs), (Ok("v1.36.3".to_owned()), 2));
}

#[tokio::test]
async fn a_server_that_takes_connections_and_is_silent_at_first_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let millisecond = std::time::Duration::from_millis(1);
    // One attempt uses up the time for a wrong address.
    let retry = RetryLimits { first_contact_budget: millisecond, first_delay: millisecond, ..RetryLimits::default() };
    let options = ConnectOptions {
        retry,
        request_timeout: millisecond * 500,
        ..kubeconfig(&server, folder.path(), "2030-01-01T00:00:00Z")
    };
    let serving = tokio::spawn(async move {
        // The first attempt, the connection check, and the second attempt.
        let mut silent = Vec::new();
        while silent.len() < 3 {
            silent.push(listener.accept().await.unwrap());
        }
        serve(listener, "token-1").await;
    });
    let cluster = KubeCluster::connect(&options, None, &|_| ()).await.unwrap();
    let version = cluster.version().await.map(|version| version.unwrap().text).map_err(|error| error.to_string());
    serving.abort();
    assert_eq!(version, Ok("v1.36.3".to_owned()));
    assert!(cluster.request_count() > 2);
}

#[tokio::test]
async fn a_port_where_nothing_listens_is_unreachable_and_surely_untouched() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let folder = tempfile::tempdir().unwrap();
    let retry = RetryLimits { budget: std::time::Duration::ZERO, ..RetryLimits::default() };
    let options = ConnectOptions { retry, ..kubeconfig(&server, folder.path(), "2030-01-01T00:00:00Z") };
    let cluster = KubeCluster::connect(&options, None, &|_| ()).await.unwrap();
    assert_eq!(cluster.description(), format!("a ({server})"));
    let error = cluster.version().await.unwrap_err();
    assert_eq!((error.kind, error.ambiguous), (ErrorKind::Unreachable, false));
    assert!(error.message.starts_with(&format!("no connection to {server}: ")), "{}", error.message);
}
