//! A server that means no good: it gets neither the memory of this machine nor its time.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use crate::support::http::{self, kubeconfig, write_json};
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: an_answer_that_grows_when_it_is_unpacked_is_cut_off,
        Nothing: an_answer_without_an_end_is_cut_off,
        Nothing: headers_by_the_thousands_are_no_answer,
        Nothing: a_server_that_has_answered_before_is_left_as_soon_when_its_headers_have_no_end,
        Nothing: a_redirect_of_an_api_server_is_not_followed,
        Nothing: start_with_no_worker_threads_or_few_descriptors_does_not_panic,
        Nothing: plan_that_is_a_pipe_is_refused_by_every_command,
        Nothing: huge_file_is_refused_without_being_read,
    ]
}

/// Kilobytes of address space that a run gets: enough for every honest answer, far from what a bomb unpacks to.
/// Threads reserve some of it each, and a machine may have many cores.
const MEMORY: &str = "ulimit -v 1500000; export MALLOC_ARENA_MAX=2 TOKIO_WORKER_THREADS=2;
    exec $0 list --kubeconfig ../test.kubeconfig --request-timeout 120s";

/// A run in little memory, against a server of one's own.
fn run(answer: impl Fn(&http::Head, &mut dyn std::io::Write) -> std::io::Result<()> + Send + Sync + 'static) -> String {
    let (_, server) = http::start(answer);
    let pushback = Pushback::new();
    kubeconfig(&pushback, "test", &server, &json!({}), &json!({}));
    let ran = pushback.run_in_shell(MEMORY);
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    assert_eq!(ran.code, 13, "{ran:?}");
    ran.stderr
}

fn an_answer_that_grows_when_it_is_unpacked_is_cut_off() {
    // 200 MiB of blanks in 200 KiB.
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let blank = vec![b' '; 1 << 20];
    for _ in 0..200 {
        packer.write_all(&blank).expect("memory");
    }
    let bomb = packer.finish().expect("memory");
    let said = run(move |_, stream| {
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n",
            bomb.len()
        )?;
        stream.write_all(&bomb)
    });
    assert!(said.contains("the answer is longer than 64 MiB"), "{said}");
}

fn an_answer_without_an_end_is_cut_off() {
    let said = run(|_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n[")?;
        loop {
            stream.write_all(&[b' '; 1 << 16])?;
        }
    });
    assert!(said.contains("the answer is longer than 64 MiB"), "{said}");
}

fn headers_by_the_thousands_are_no_answer() {
    let said = run(|_, stream| {
        let warning = format!("warning: 299 - \"{}\"\r\n", "x".repeat(1000));
        write_json(stream, 200, &warning.repeat(50_000), &json!({"kind": "APIVersions", "versions": ["v1"]}))
    });
    assert!(said.contains("the headers of an answer of ") && said.len() < 5_000, "{said}");
}

fn a_server_that_has_answered_before_is_left_as_soon_when_its_headers_have_no_end() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let said = run(move |head, stream| {
        if head.first().is_some_and(|line| line.contains("/version")) {
            return write_json(stream, 200, "", &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"}));
        }
        counter.fetch_add(1, Ordering::Relaxed);
        write_json(stream, 200, &"x: y\r\n".repeat(20_000), &json!({}))
    });
    assert!(said.contains("the headers of an answer of "), "{said}");
    // Each of the first questions is asked once.
    assert!(asked.load(Ordering::Relaxed) < 10, "{asked:?}");
}

fn a_redirect_of_an_api_server_is_not_followed() {
    let followed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&followed);
    let said = run(move |head, stream| {
        if head.first().is_some_and(|line| line.contains("elsewhere")) {
            seen.store(true, Ordering::Relaxed);
        }
        write_json(stream, 302, "location: /elsewhere\r\n", &json!({}))
    });
    assert!(said.contains("the server answered 302 Found"), "{said}");
    assert!(!followed.load(Ordering::Relaxed), "{said}");
}

/// The commands that read files of others, each with this file.
fn readers(file: &str) -> [Vec<&str>; 9] {
    [
        vec!["apply", "--cluster", "dir:live", "--yes", "--plan", file],
        vec!["plan", "show", file],
        vec!["check", "--facts", file],
        vec!["verify", file],
        vec!["storage", "test", "--crd", "crd.yaml", "--plan", file],
        vec!["storage", "suggest", "--crd", file],
        vec!["storage", "golden", "goldens", "--crd", "crd.yaml", "--plan", file],
        vec!["serve-conversion", "--crd", "crd.yaml", "--plan", file, "--tls-cert", "tls", "--tls-key", "tls"],
        vec!["serve-conversion", "print-crd-patch", "--service", "a/b", "--ca-file", file],
    ]
}

/// Nothing is written to the pipe: a run that opened it would never end.
fn plan_that_is_a_pipe_is_refused_by_every_command() {
    let pushback = Pushback::new();
    pushback.shell("mkfifo", &["pipe"]);
    pushback.write("crd.yaml", "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\n");
    pushback.write("tls", "");
    for arguments in readers("pipe") {
        let ran = pushback.run(&arguments).expect(1);
        assert!(ran.stderr.contains("is not a regular file"), "{arguments:?}: {}", ran.stderr);
    }
}

fn huge_file_is_refused_without_being_read() {
    let pushback = Pushback::new();
    std::fs::File::create(pushback.directory().join("huge"))
        .and_then(|file| file.set_len(5 << 30))
        .expect("a sparse file");
    pushback.write("crd.yaml", "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\n");
    pushback.write("tls", "");
    for arguments in readers("huge") {
        // A run that read it would end for want of memory.
        let words = arguments.join(" ");
        let ran = pushback.run_in_shell(&format!("ulimit -v 1500000; export TOKIO_WORKER_THREADS=2; exec $0 {words}"));
        assert_eq!(ran.code, 1, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("MiB"), "{arguments:?}: {}", ran.stderr);
    }
}

fn start_with_no_worker_threads_or_few_descriptors_does_not_panic() {
    let pushback = Pushback::new();
    pushback.write("m.yaml", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).to_string());
    pushback.write("live/README", "");
    let diff = "exec $0 diff -a shop --cluster dir:live -f m.yaml";
    let ran = pushback.run_in_shell(&format!("export TOKIO_WORKER_THREADS=0; {diff}"));
    assert_eq!(ran.code, 0, "{ran:?}");
    for limit in 4..32 {
        let ran = pushback.run_in_shell(&format!("ulimit -n {limit}; {diff}"));
        assert!(!ran.stderr.contains("panicked"), "{limit}: {ran:?}");
        assert!([0, 1, 13].contains(&ran.code), "{limit}: {ran:?}");
        if limit == 8 {
            assert!(ran.stderr.contains("failed to start: too many open files"), "{ran:?}");
            assert!(ran.stderr.contains("ulimit -n"), "{ran:?}");
        }
    }
}
