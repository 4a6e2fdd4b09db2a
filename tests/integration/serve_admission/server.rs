//! The server as a process, with a certificate of the test's own authority.

use std::path::Path;
use std::time::Duration;

use regex::Regex;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::certificates::Authority;
use crate::support::https_client::HttpsClient;
use crate::support::{Pushback, Running, wait_until};

/// Long enough for a loaded machine.
pub(super) const SOON: Duration = Duration::from_secs(60);

/// A running server. Its files are in the working directory of `place`.
pub(super) struct AdmissionServer {
    pub(super) place: Pushback,
    authority: Authority,
    port: u16,
    running: Running,
}

impl AdmissionServer {
    /// Starts it with a policy and more arguments.
    pub(super) fn start(policy: Option<&str>, kubeconfig: Option<&Path>, more: &[&str]) -> Self {
        let place = kubeconfig.map_or_else(Pushback::new, Pushback::with_kubeconfig);
        let authority = Authority::new().expect("an authority");
        let identity = authority.server().expect("a certificate");
        place.write("tls.crt", identity.certificate).write("tls.key", identity.key);
        place.write("ca.crt", authority.certificate());
        let mut arguments = more.to_vec();
        if let Some(policy) = policy {
            place.write("policy.yaml", policy);
            arguments.extend(["--config", "policy.yaml"]);
        }
        Self::started(place, authority, 0, &arguments)
    }

    fn started(place: Pushback, authority: Authority, port: u16, more: &[&str]) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let arguments = ["serve-admission", "--listen", &listen, "--tls-cert", "tls.crt", "--tls-key", "tls.key"];
        let running = Running::start(place.command(&[&arguments[..], &["--drain", "1s"], more].concat()));
        let port = Regex::new("answered on https://127.0.0.1:([0-9]+)").expect("an expression");
        let port = wait_until("the server listens", SOON, || {
            Some(port.captures(&running.stderr())?[1].parse().expect("a port"))
        });
        Self { place, authority, port, running }
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        self.running.signal(Signal::TERM);
        wait_until("the server ends", SOON, || self.running.has_ended().then_some(()));
    }

    pub(super) fn connect(&self) -> HttpsClient {
        HttpsClient::connect(self.port, &self.authority.certificate()).expect("the server listens")
    }

    /// The response to a review.
    #[track_caller]
    pub(super) fn ask(&self, review: &[u8]) -> Value {
        let answer = self.connect().request("POST", "/admit?timeout=10s", review).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer: Value = serde_json::from_str(&answer.text()).expect("JSON");
        answer["response"].clone()
    }

    /// The configuration of the webhook as the product prints it.
    #[track_caller]
    pub(super) fn configuration(&self, more: &[&str]) -> Value {
        let url = format!("https://127.0.0.1:{}/admit", self.port);
        let print = ["serve-admission", "print-manifests", "--image", "none", "--url", &url, "--ca-file", "ca.crt"];
        self.place.run(&[&print[..], &["-o", "json"], more].concat()).expect(0).json()["items"][0].clone()
    }

    #[track_caller]
    pub(super) fn metrics(&self) -> String {
        self.connect().request("GET", "/metrics", b"").expect("an answer").text()
    }

    pub(super) fn log(&self) -> String {
        self.running.stderr()
    }

    /// Waits for a line of its log.
    #[track_caller]
    pub(super) fn wait_for(&self, text: &str) {
        wait_until(&format!("the log has {text:?}"), SOON, || self.log().contains(text).then_some(()));
    }
}
