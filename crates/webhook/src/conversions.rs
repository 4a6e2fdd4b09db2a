//! Conversions: reviews that are answered by conversion plans.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use pushback_conversion::Why;
use pushback_conversion::review::{self, Answer, Done, Reviewer};
use pushback_events::stop::Stop;
use pushback_manifest::InputError;
use pushback_manifest::files::SourceFile;
use tokio::sync::watch;

use super::notice::{Journal, Notice};
use super::reviews::{Count, Counter, Outcome, OverdueReply, Reply, ReviewKind, Reviews};
use super::server::{self, Settings, StartError};

/// The API server waits 30 s for a conversion webhook.
const DEADLINE: Duration = Duration::from_secs(25);

/// Index of each result.
const CONVERTED: usize = 0;
const FAILED: usize = 1;

/// Index of each counter.
const OBJECTS: usize = 0;
const LOST_FIELDS: usize = 1;

const LOST: [Why; 5] = [Why::Unknown, Why::Dropped, Why::NotKept, Why::BagLost, Why::BagEdited];

static KIND: ReviewKind = ReviewKind {
    name: "ConversionReview",
    title: "conversions",
    done: "converted",
    prefix: "pushback_conversion",
    requests: "Requests for conversions, by how they ended.",
    results: &["result=\"converted\"", "result=\"failed\""],
    counters: &[
        Counter { name: "objects_total", help: "Objects in converted requests.", labels: &[""] },
        Counter {
            name: "lost_fields_total",
            help: "Fields that are not in converted objects, by the reason.",
            labels: &[
                "reason=\"unknown\"",
                "reason=\"dropped\"",
                "reason=\"not_kept\"",
                "reason=\"bag_lost\"",
                "reason=\"bag_edited\"",
            ],
        },
    ],
    generation: ("plan_generation", "How often plans were put to use."),
    files: "plans",
};

/// Serves conversions until a signal comes. `compile` makes them of the files with plans and CRDs.
///
/// # Errors
/// A file cannot be used, or a port cannot be opened.
pub async fn serve(
    settings: Settings,
    compile: impl Fn(&[SourceFile]) -> Result<Reviewer, Vec<InputError>> + Send + Sync + 'static,
    journal: Arc<dyn Journal>,
    stop: watch::Receiver<Stop>,
) -> Result<(), StartError> {
    let compile = move |files: &[SourceFile]| Ok(Arc::new(Conversions(compile(files)?)) as Arc<dyn Reviews>);
    server::serve(settings, Arc::new(compile), journal, stop).await
}

/// The conversions in use.
#[derive(Debug)]
pub(super) struct Conversions(pub(super) Reviewer);

impl Reviews for Conversions {
    fn kind(&self) -> &'static ReviewKind {
        &KIND
    }

    fn deadline(&self, _query: &str) -> Duration {
        DEADLINE
    }

    fn reply(&self, body: Vec<u8>, _overdue: &OverdueReply) -> Reply {
        reply(body, |request| self.0.answer(request))
    }

    fn in_use(&self, generation: u64) -> Notice {
        let definitions = self.0.converters().iter().map(|converter| converter.name().to_owned()).collect();
        Notice::PlansLoaded { generation, definitions }
    }
}

fn reply(body: Vec<u8>, answer: impl FnOnce(review::Request) -> Answer) -> Reply {
    let size = body.len();
    let request = match review::Request::read(&body) {
        Ok(request) => request,
        Err(reason) => return Reply::text(Outcome::Malformed, StatusCode::BAD_REQUEST, reason),
    };
    // Not in memory beside its answer.
    drop(body);
    let envelope = request.envelope().clone();
    let (outcome, review, result) = match catch_unwind(AssertUnwindSafe(|| answer(request))) {
        Ok(Answer { review, result: Ok(done) }) => (Outcome::Answered(CONVERTED), review, Ok(done)),
        Ok(Answer { review, result: Err(refusal) }) => (Outcome::Answered(FAILED), review, Err(refusal.about)),
        Err(_) => {
            let reason = format!("a defect in pushback {}: its log says where", env!("CARGO_PKG_VERSION"));
            (Outcome::Panicked, envelope.failed(&reason), Err(reason))
        }
    };
    // Most answers are a little longer than what was asked; one that grew piece by piece would be copied on the way.
    let mut body = Vec::with_capacity(size + size / 4);
    match serde_json::to_writer(&mut body, &review) {
        Ok(()) => {
            let counts = result.as_ref().map(counts).unwrap_or_default();
            Reply { counts, failure: result.err(), ..Reply::review(outcome, body) }
        }
        Err(error) => Reply::text(Outcome::Panicked, StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// Counts the objects and lost fields of a request.
fn counts(done: &Done) -> Vec<Count> {
    let lost = done.lost.iter().filter_map(|(why, count)| {
        let label = LOST.iter().position(|known| known == why)?;
        Some(Count { counter: LOST_FIELDS, label, by: *count as u64 })
    });
    std::iter::once(Count { counter: OBJECTS, label: 0, by: done.objects as u64 }).chain(lost).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::metrics::Metrics;
    use super::*;

    #[test]
    fn a_panic_is_answered_like_any_failure() {
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u-1", "desiredAPIVersion": "example.com/v2", "objects": [{"secret": "hunter2"}]},
        });
        let reply = reply(review.to_string().into_bytes(), |_| std::panic::resume_unwind(Box::new("hunter2")));
        assert_eq!((reply.outcome, reply.status), (Outcome::Panicked, StatusCode::OK));
        let answer: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(answer["response"]["uid"], "u-1");
        assert_eq!(answer["response"]["result"]["status"], "Failure");
        let message = answer["response"]["result"]["message"].as_str().unwrap();
        assert!(message.starts_with("a defect in pushback "), "{message}");
        assert_eq!(reply.failure.as_deref(), Some(message));
    }

    #[test]
    fn everything_is_counted_under_its_name() {
        let metrics = Metrics::new(&KIND);
        metrics.request(Outcome::Answered(CONVERTED), Duration::from_millis(2));
        metrics.request(Outcome::Answered(FAILED), Duration::from_secs(60));
        metrics.count(&counts(&Done { objects: 7, lost: [(Why::BagEdited, 2)].into() }));
        assert_eq!((metrics.files_loaded(), metrics.files_loaded()), (1, 2));
        let text = metrics.text();
        for line in [
            "pushback_conversion_requests_total{result=\"converted\"} 1",
            "pushback_conversion_requests_total{result=\"failed\"} 1",
            "pushback_conversion_requests_total{result=\"panicked\"} 0",
            "pushback_conversion_objects_total 7",
            "pushback_conversion_lost_fields_total{reason=\"bag_edited\"} 2",
            "pushback_conversion_plan_generation 2",
            "pushback_conversion_stale{source=\"plans\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
