//! What the server counts, as text for Prometheus (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use pushback_conversion::Why;
use pushback_conversion::review::Done;

/// Upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 25.0];

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Converted,
    /// An object cannot be converted.
    Failed,
    /// It was no review.
    Malformed,
    TooLarge,
    TimedOut,
    /// The client went away, or sent no body.
    Broken,
    Panicked,
}

impl Outcome {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Converted, "converted"),
        (Self::Failed, "failed"),
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
    Plans,
    Certificate,
}

impl Source {
    const ALL: [(Self, &'static str); 2] = [(Self::Plans, "plans"), (Self::Certificate, "certificate")];
}

const LOST: [(Why, &str); 5] = [
    (Why::Unknown, "unknown"),
    (Why::Dropped, "dropped"),
    (Why::NotKept, "not_kept"),
    (Why::BagLost, "bag_lost"),
    (Why::BagEdited, "bag_edited"),
];

/// All counters.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    requests: [AtomicU64; Outcome::ALL.len()],
    objects: AtomicU64,
    lost: [AtomicU64; LOST.len()],
    /// Requests in each bucket alone.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
    generation: AtomicU64,
    reload_failures: [AtomicU64; Source::ALL.len()],
    /// 1 for what does not correspond to its files.
    stale: [AtomicU64; Source::ALL.len()],
    refused_handshakes: AtomicU64,
    /// Seconds since 1970; 0 if it is not known.
    expires: AtomicI64,
}

impl Metrics {
    /// Counts a request.
    pub(super) fn request(&self, outcome: Outcome, took: Duration) {
        self.requests[outcome as usize].fetch_add(1, Ordering::Relaxed);
        let bucket = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Counts what a request converted.
    pub(super) fn converted(&self, done: &Done) {
        self.objects.fetch_add(done.objects as u64, Ordering::Relaxed);
        for (why, count) in &done.lost {
            if let Some(index) = LOST.iter().position(|(known, _)| known == why) {
                self.lost[index].fetch_add(*count as u64, Ordering::Relaxed);
            }
        }
    }

    /// Counts plans that are put to use; returns how many that were.
    pub(super) fn plans_loaded(&self) -> u64 {
        self.stale[Source::Plans as usize].store(0, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes a certificate that is put to use.
    pub(super) fn certificate_loaded(&self, expires: i64) {
        self.stale[Source::Certificate as usize].store(0, Ordering::Relaxed);
        self.expires.store(expires, Ordering::Relaxed);
    }

    /// Counts files that cannot be used.
    pub(super) fn reload_failed(&self, source: Source) {
        self.reload_failures[source as usize].fetch_add(1, Ordering::Relaxed);
        self.stale[source as usize].store(1, Ordering::Relaxed);
    }

    /// Counts a TLS connection that was not made.
    pub(super) fn handshake_refused(&self) {
        self.refused_handshakes.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything as text.
    pub(super) fn text(&self) -> String {
        let mut text = Text(String::new());
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        text.family("requests_total", "counter", "Requests for conversions, by how they ended.");
        for (outcome, name) in Outcome::ALL {
            text.sample("requests_total", &format!("{{result=\"{name}\"}}"), get(&self.requests[outcome as usize]));
        }
        text.family("objects_total", "counter", "Objects in converted requests.");
        text.sample("objects_total", "", get(&self.objects));
        text.family("lost_fields_total", "counter", "Fields that are not in converted objects, by the reason.");
        for ((_, name), count) in LOST.iter().zip(&self.lost) {
            text.sample("lost_fields_total", &format!("{{reason=\"{name}\"}}"), get(count));
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
        text.family("plan_generation", "gauge", "How often plans were put to use.");
        text.sample("plan_generation", "", get(&self.generation));
        text.family("reload_failures_total", "counter", "Changed files that could not be used.");
        for (source, name) in Source::ALL {
            let failures = get(&self.reload_failures[source as usize]);
            text.sample("reload_failures_total", &format!("{{source=\"{name}\"}}"), failures);
        }
        text.family("stale", "gauge", "1 if what is in use is older than its files, because those cannot be used.");
        for (source, name) in Source::ALL {
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
        text.0
    }
}

/// The text as far as it is written.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP pushback_conversion_{name} {help}\n# TYPE pushback_conversion_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "pushback_conversion_{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_under_its_name() {
        let metrics = Metrics::default();
        for (index, (outcome, _)) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, index);
        }
        metrics.request(Outcome::Converted, Duration::from_millis(2));
        metrics.request(Outcome::Failed, Duration::from_secs(60));
        metrics.converted(&Done { objects: 7, lost: [(Why::BagEdited, 2)].into() });
        assert_eq!((metrics.plans_loaded(), metrics.plans_loaded()), (1, 2));
        metrics.reload_failed(Source::Certificate);
        metrics.handshake_refused();
        let text = metrics.text();
        for line in [
            "pushback_conversion_requests_total{result=\"converted\"} 1",
            "pushback_conversion_requests_total{result=\"failed\"} 1",
            "pushback_conversion_requests_total{result=\"panicked\"} 0",
            "pushback_conversion_objects_total 7",
            "pushback_conversion_lost_fields_total{reason=\"bag_edited\"} 2",
            "pushback_conversion_request_duration_seconds_bucket{le=\"0.001\"} 0",
            "pushback_conversion_request_duration_seconds_bucket{le=\"0.0025\"} 1",
            "pushback_conversion_request_duration_seconds_bucket{le=\"25\"} 1",
            "pushback_conversion_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "pushback_conversion_request_duration_seconds_sum 60.002",
            "pushback_conversion_request_duration_seconds_count 2",
            "pushback_conversion_plan_generation 2",
            "pushback_conversion_reload_failures_total{source=\"certificate\"} 1",
            "pushback_conversion_stale{source=\"plans\"} 0",
            "pushback_conversion_stale{source=\"certificate\"} 1",
            "pushback_conversion_refused_handshakes_total 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("certificate_expiry_seconds"));
        metrics.certificate_loaded(1_900_000_000);
        assert!(metrics.text().contains("\npushback_conversion_certificate_expiry_seconds 1900000000\n"));
    }
}
