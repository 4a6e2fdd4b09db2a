//! How long the conversion webhook takes for a list, as a client on this machine sees it that keeps its TLS connection, and
//! the processor time of the server for it: how busy the machine is has little part in that.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::certificates::Authority;
use super::support::https_client::HttpsClient;
use super::table::seconds;
use super::{chain, progress};

/// Objects of a request.
const OBJECTS: usize = 100;

/// Requests that are not counted.
const WARM_UP: usize = 50;

const TARGET: Duration = Duration::from_millis(5);

/// The table, from so many requests a row.
pub(crate) fn table(requests: usize) -> String {
    let mut text = format!(
        "| conversion of {OBJECTS} objects of 1 KiB over TLS, {requests} requests | p50 | p99 | longest | CPU of a request | \
         target of p99 |\n|---|---:|---:|---:|---:|---|\n"
    );
    for versions in [2, 10] {
        progress(&format!("  {versions} versions"));
        let server = Server::start(versions);
        let first: Vec<Value> = (0..OBJECTS).map(|number| chain::object(&format!("object-{number}"))).collect();
        let hub = format!("example.com/v{versions}");
        let (stored, up) = server.measure(&first, &hub, requests);
        let (back, down) = server.measure(&stored, "example.com/v1", requests);
        assert_eq!(back, first, "every object comes back");
        for (way, Measured { times, cpu }) in [("to the storage version", up), ("from the storage version", down)] {
            let cpu = cpu.map_or_else(|| "–".to_owned(), seconds);
            let at = |percent: usize| seconds(times[(times.len() - 1) * percent / 100]);
            let kept = if times[(times.len() - 1) * 99 / 100] < TARGET { "kept" } else { "missed" };
            let _ = writeln!(
                text,
                "| {way}, {versions} versions | {} | {} | {} | {cpu} | < {} ms: {kept} |",
                at(50),
                at(99),
                at(100),
                TARGET.as_millis()
            );
        }
    }
    text
}

/// What requests took.
struct Measured {
    /// From the first byte of each to the last of its answer, the shortest first.
    times: Vec<Duration>,
    /// Processor time of the server for one of them, where the system tells it.
    cpu: Option<Duration>,
}

/// A running server; ended when dropped.
struct Server {
    child: Child,
    port: u16,
    authority: Authority,
    _place: tempfile::TempDir,
}

impl Server {
    fn start(versions: usize) -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        let authority = Authority::new().expect("an authority");
        let identity = authority.server().expect("a certificate");
        for (name, content) in [
            ("crd.json", chain::definition(versions).to_string()),
            ("plan.json", chain::plan(versions).to_string()),
            ("tls.crt", identity.certificate),
            ("tls.key", identity.key),
        ] {
            std::fs::write(place.path().join(name), content).expect("a file");
        }
        let mut command = Command::new(super::measure::binary());
        command.args(["serve-conversion", "--crd", "crd.json", "--plan", "plan.json", "--listen", "127.0.0.1:0"]);
        command.args(["--tls-cert", "tls.crt", "--tls-key", "tls.key"]).current_dir(place.path());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
        let port = log.find_map(|line| line.split_once("answered on https://127.0.0.1:")?.1.parse().ok());
        Self { child, port: port.expect("the server listens"), authority, _place: place }
    }

    /// What the objects are converted to, and what that takes.
    fn measure(&self, objects: &[Value], to: &str, requests: usize) -> (Vec<Value>, Measured) {
        let request = json!({"uid": "u", "desiredAPIVersion": to, "objects": objects});
        let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
        let body = review.to_string().into_bytes();
        let mut client = HttpsClient::connect(self.port, &self.authority.certificate()).expect("a connection");
        let (mut times, mut last, mut before) = (Vec::new(), Vec::new(), None);
        for number in 0..WARM_UP + requests {
            if number == WARM_UP {
                before = self.cpu();
            }
            let began = Instant::now();
            let answer = client.request("POST", "/convert", &body).expect("an answer");
            if number >= WARM_UP {
                times.push(began.elapsed());
            }
            last = answer.body;
        }
        let used = before.and_then(|before| Some(self.cpu()?.saturating_sub(before)));
        let cpu = used.and_then(|used| used.checked_div(u32::try_from(requests).ok()?));
        times.sort();
        let mut answer: Value = serde_json::from_slice(&last).expect("JSON");
        let converted = answer["response"]["convertedObjects"].as_array_mut().map(std::mem::take);
        (converted.unwrap_or_else(|| panic!("{answer}")), Measured { times, cpu })
    }

    /// Processor time so far. Linux counts it in hundredths of a second, whatever the processor (`man 5 proc`).
    fn cpu(&self) -> Option<Duration> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name of the program, which may hold spaces, is in brackets; `utime` and `stime` are fields 14 and 15.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let hundredths = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(Duration::from_millis(10 * hundredths))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
