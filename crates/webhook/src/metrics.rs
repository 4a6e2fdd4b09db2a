//! What the server counts, as text for Prometheus (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::reviews::{Count, Outcome, ReviewKind};

/// Upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 25.0];

impl Outcome {
    /// The outcomes of every kind of review.
    const COMMON: [(Self, &'static str); 5] = [
        (Self::Malformed, "malformed"),
        (Self::TooLarge, "too_large"),
        (Self::TimedOut, "timed_out"),
        (Self::Broken, "broken"),
        (Self::Panicked, "panicked"),
    ];
}

/// What is read again when its files change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Files,
    Certificate,
}

/// Number of sources.
const SOURCES: usize = 2;

/// All counters.
#[derive(Debug)]
pub(super) struct Metrics {
    kind: &'static ReviewKind,
    /// By the results of the kind.
    answered: Vec<AtomicU64>,
    failed: [AtomicU64; Outcome::COMMON.len()],
    /// By counter of the kind and label.
    counters: Vec<Vec<AtomicU64>>,
    /// Requests in each bucket alone.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
    generation: AtomicU64,
    reload_failures: [AtomicU64; SOURCES],
    /// 1 for what does not correspond to its files.
    stale: [AtomicU64; SOURCES],
    refused_handshakes: AtomicU64,
    /// Seconds since 1970; 0 if it is not known.
    expires: AtomicI64,
}

impl Metrics {
    pub(super) fn new(kind: &'static ReviewKind) -> Self {
        Self {
            kind,
            answered: kind.results.iter().map(|_| AtomicU64::default()).collect(),
            failed: Default::default(),
            counters: kind
                .counters
                .iter()
                .map(|counter| counter.labels.iter().map(|_| AtomicU64::default()).collect())
                .collect(),
            buckets: Default::default(),
            nanoseconds: AtomicU64::default(),
            generation: AtomicU64::default(),
            reload_failures: Default::default(),
            stale: Default::default(),
            refused_handshakes: AtomicU64::default(),
            expires: AtomicI64::default(),
        }
    }

    /// Counts a request.
    pub(super) fn request(&self, outcome: Outcome, took: Duration) {
        let counter = match outcome {
            Outcome::Answered(result) => self.answered.get(result),
            failed => {
                let index = Outcome::COMMON.iter().position(|(common, _)| *common == failed);
                index.and_then(|index| self.failed.get(index))
            }
        };
        counter.into_iter().for_each(|counter| add(counter, 1));
        let bucket = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound).unwrap_or(BOUNDS.len());
        add(&self.buckets[bucket], 1);
        add(&self.nanoseconds, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds to the counters of the kind.
    pub(super) fn count(&self, counts: &[Count]) {
        for Count { counter, label, by } in counts {
            let counter = self.counters.get(*counter).and_then(|counters| counters.get(*label));
            counter.into_iter().for_each(|counter| add(counter, *by));
        }
    }

    /// Counts files that are put to use; returns how many times that happened.
    pub(super) fn files_loaded(&self) -> u64 {
        self.stale[Source::Files as usize].store(0, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes a certificate that is put to use.
    pub(super) fn certificate_loaded(&self, expires: i64) {
        self.stale[Source::Certificate as usize].store(0, Ordering::Relaxed);
        self.expires.store(expires, Ordering::Relaxed);
    }

    /// Counts files that cannot be used.
    pub(super) fn reload_failed(&self, source: Source) {
        add(&self.reload_failures[source as usize], 1);
        self.stale[source as usize].store(1, Ordering::Relaxed);
    }

    /// Counts a TLS connection that was not made.
    pub(super) fn handshake_refused(&self) {
        add(&self.refused_handshakes, 1);
    }

    /// Everything as text.
    pub(super) fn text(&self) -> String {
        let kind = self.kind;
        let mut text = Text { prefix: kind.prefix, text: String::new() };
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        text.family("requests_total", "counter", kind.requests);
        for (labels, counter) in kind.results.iter().zip(&self.answered) {
            text.sample("requests_total", &format!("{{{labels}}}"), get(counter));
        }
        for ((_, name), counter) in Outcome::COMMON.iter().zip(&self.failed) {
            text.sample("requests_total", &format!("{{result=\"{name}\"}}"), get(counter));
        }
        for (counter, values) in kind.counters.iter().zip(&self.counters) {
            text.family(counter.name, "counter", counter.help);
            for (labels, value) in counter.labels.iter().zip(values) {
                let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                text.sample(counter.name, &labels, get(value));
            }
        }
        text.family("request_duration_seconds", "histogram", "Time that requests took, until the answer was ready.");
        let mut count = 0;
        for (bound, bucket) in BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]).zip(&self.buckets) {
            count += get(bucket);
            text.sample("request_duration_seconds_bucket", &format!("{{le=\"{bound}\"}}"), count);
        }
        let seconds = Duration::from_nanos(get(&self.nanoseconds)).as_secs_f64();
        text.sample("request_duration_seconds_sum", "", seconds);
        text.sample("request_duration_seconds_count", "", count);
        let (generation, help) = kind.generation;
        text.family(generation, "gauge", help);
        text.sample(generation, "", get(&self.generation));
        let sources = [(Source::Files, kind.files), (Source::Certificate, "certificate")];
        text.family("reload_failures_total", "counter", "Changed files that could not be used.");
        for (source, name) in sources {
            let failures = get(&self.reload_failures[source as usize]);
            text.sample("reload_failures_total", &format!("{{source=\"{name}\"}}"), failures);
        }
        text.family("stale", "gauge", "1 if what is in use is older than its files, because those cannot be used.");
        for (source, name) in sources {
            text.sample("stale", &format!("{{source=\"{name}\"}}"), get(&self.stale[source as usize]));
        }
        text.family("refused_handshakes_total", "counter", "TLS connections that were not made.");
        text.sample("refused_handshakes_total", "", get(&self.refused_handshakes));
        let expires = self.expires.load(Ordering::Relaxed);
        if expires != 0 {
            text.family(
                "certificate_expiry_seconds",
                "gauge",
                "End of the certificate's validity, seconds since 1970.",
            );
            text.sample("certificate_expiry_seconds", "", expires);
        }
        text.text
    }
}

fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// The text as far as it is written.
struct Text {
    prefix: &'static str,
    text: String,
}

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let prefix = self.prefix;
        let _ = write!(self.text, "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.text, "{}_{name}{labels} {value}", self.prefix);
    }
}

#[cfg(test)]
mod tests {
    use super::super::reviews::Counter;
    use super::*;

    static KIND: ReviewKind = ReviewKind {
        name: "TestReview",
        title: "tests",
        done: "tested",
        prefix: "pushback_test",
        requests: "Requests.",
        results: &["result=\"good\"", "result=\"bad\""],
        counters: &[Counter { name: "things_total", help: "Things.", labels: &["a=\"b\"", "a=\"c\""] }],
        generation: ("generation", "How often."),
        files: "files",
    };

    #[test]
    fn everything_is_counted_under_its_name() {
        let metrics = Metrics::new(&KIND);
        metrics.request(Outcome::Answered(0), Duration::from_millis(2));
        metrics.request(Outcome::Answered(1), Duration::from_secs(60));
        metrics.request(Outcome::TimedOut, Duration::from_millis(2));
        // An index that does not exist is ignored.
        metrics.request(Outcome::Answered(2), Duration::from_millis(2));
        metrics.count(&[Count { counter: 0, label: 1, by: 3 }, Count { counter: 1, label: 0, by: 1 }]);
        assert_eq!((metrics.files_loaded(), metrics.files_loaded()), (1, 2));
        metrics.reload_failed(Source::Certificate);
        metrics.handshake_refused();
        let text = metrics.text();
        for line in [
            "pushback_test_requests_total{result=\"good\"} 1",
            "pushback_test_requests_total{result=\"bad\"} 1",
            "pushback_test_requests_total{result=\"timed_out\"} 1",
            "pushback_test_requests_total{result=\"panicked\"} 0",
            "pushback_test_things_total{a=\"b\"} 0",
            "pushback_test_things_total{a=\"c\"} 3",
            "pushback_test_request_duration_seconds_bucket{le=\"0.001\"} 0",
            "pushback_test_request_duration_seconds_bucket{le=\"0.0025\"} 3",
            "pushback_test_request_duration_seconds_bucket{le=\"25\"} 3",
            "pushback_test_request_duration_seconds_bucket{le=\"+Inf\"} 4",
            "pushback_test_request_duration_seconds_sum 60.006",
            "pushback_test_request_duration_seconds_count 4",
            "pushback_test_generation 2",
            "pushback_test_reload_failures_total{source=\"certificate\"} 1",
            "pushback_test_stale{source=\"files\"} 0",
            "pushback_test_stale{source=\"certificate\"} 1",
            "pushback_test_refused_handshakes_total 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("certificate_expiry_seconds"));
        metrics.certificate_loaded(1_900_000_000);
        assert!(metrics.text().contains("\npushback_test_certificate_expiry_seconds 1900000000\n"));
    }
}
