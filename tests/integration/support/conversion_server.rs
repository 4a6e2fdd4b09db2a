//! `pushback serve-conversion` as a process, with a certificate of the test's own authority.

use std::time::Duration;

use regex::Regex;
use rustix::process::Signal;
use serde_json::Value;

use super::certificates::Authority;
use super::https_client::HttpsClient;
use super::{Pushback, Ran, Running, wait_until};

/// Long enough for a loaded machine.
const SOON: Duration = Duration::from_secs(60);

/// A running server. Its files are in the working directory of `place`.
pub(crate) struct ConversionServer {
    pub(crate) place: Pushback,
    pub(crate) authority: Authority,
    pub(crate) port: u16,
    running: Running,
}

impl ConversionServer {
    /// Starts it for a definition and a plan.
    pub(crate) fn start(definition: &Value, plan: &Value) -> Self {
        Self::start_with(definition, plan, &[])
    }

    /// The same with more arguments.
    pub(crate) fn start_with(definition: &Value, plan: &Value, more: &[&str]) -> Self {
        Self::start_named(definition, plan, more, &[])
    }

    /// The same under further names, such as those of a Service.
    pub(crate) fn start_named(definition: &Value, plan: &Value, more: &[&str], names: &[&str]) -> Self {
        let (place, authority) = (Pushback::new(), Authority::new().expect("an authority"));
        place.write("crd.yaml", definition.to_string()).write("plan.yaml", plan.to_string());
        let identity = authority.server_named(names).expect("a certificate");
        place.write("tls.crt", identity.certificate).write("tls.key", identity.key);
        place.write("ca.crt", authority.certificate());
        Self::started(place, authority, 0, more)
    }

    /// Starts it again on its port, after its end.
    pub(crate) fn again(self) -> Self {
        let Self { place, authority, port, running } = self;
        drop(running);
        Self::started(place, authority, port, &[])
    }

    fn started(place: Pushback, authority: Authority, port: u16, more: &[&str]) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let arguments = [
            &["serve-conversion", "--crd", "crd.yaml", "--plan", "plan.yaml", "--listen", &listen][..],
            &["--tls-cert", "tls.crt", "--tls-key", "tls.key", "--drain", "1s"],
            more,
        ];
        let running = Running::start(place.command(&arguments.concat()));
        let port = Regex::new("answered on https://127.0.0.1:([0-9]+)").expect("an expression");
        let port = wait_until("the server listens", SOON, || {
            Some(port.captures(&running.stderr())?[1].parse().expect("a port"))
        });
        Self { place, authority, port, running }
    }

    /// Gives it another certificate.
    pub(crate) fn certify(&self) {
        certify(&self.place, &self.authority);
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> HttpsClient {
        HttpsClient::connect(self.port, &self.authority.certificate()).expect("the server listens")
    }

    /// What a definition needs to be converted by it, as the product prints it.
    pub(crate) fn patch(&self) -> Value {
        let url = format!("https://127.0.0.1:{}/convert", self.port);
        let print = ["serve-conversion", "print-crd-patch", "--url", &url, "--ca-file", "ca.crt", "-o", "json"];
        self.place.run(&print).expect(0).json()
    }

    /// The value of one of its metrics.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.connect().request("GET", "/metrics", b"").expect("an answer").text();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("pushback_conversion_{name} ")));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        self.running.stderr()
    }

    /// Waits for a line of its log.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(&format!("the log has {text:?}"), SOON, || self.log().contains(text).then_some(()));
    }

    /// Most kibibytes of memory that the process has had.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.running.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.running.signal(Signal::TERM);
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Ran {
        self.running.finish()
    }

    /// Ends it, and keeps what is needed to start it again.
    pub(crate) fn end(&mut self) {
        self.terminate();
        wait_until("the server ends", SOON, || self.running.has_ended().then_some(()));
    }
}

/// Writes a new certificate with its key.
fn certify(place: &Pushback, authority: &Authority) {
    let identity = authority.server().expect("a certificate");
    place.write("tls.crt", identity.certificate).write("tls.key", identity.key);
}
