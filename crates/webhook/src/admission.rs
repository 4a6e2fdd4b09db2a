//! Admission: updates and deletions of CRDs are judged as `pushback check` judges them on files, by any user.
//! The verdict depends on the review, the policy, and for a deletion on the objects that the API server lists.

mod judgement;
mod review;
#[cfg(test)]
mod tests;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use pushback_crd::stack;
use pushback_events::stop::Stop;
use pushback_manifest::InputError;
use pushback_manifest::config::ExemptSubject;
use pushback_manifest::files::SourceFile;
use pushback_preflight::api_lifecycle::Release;
use pushback_preflight::{Selection, Waiver};
use tokio::sync::watch;

use self::judgement::ChangeVerdict;
use self::review::{Content, Operation, Response, Review, User};
use super::metrics::Outcome;
use super::notice::{Journal, Notice};
use super::reviews::{OverdueReply, Reply, ReviewKind, Reviews};
use super::server::{self, Settings, StartError};

pub use self::judgement::{ListedObjects, ObjectReader, ObjectsOf};

/// Annotation of a CRD that accepts the breaking change that it comes with; its value is the reason.
pub const ACCEPT_BREAKING: &str = "pushback.dev/accept-breaking";
/// Annotation of a CRD that accepts its deletion; its value is the reason.
pub const ACCEPT_DELETION: &str = "pushback.dev/accept-deletion";

/// Time for a request that does not say how long the API server waits.
const USUAL_DEADLINE: Duration = Duration::from_secs(9);
/// Time for the way of an answer back to the API server.
const WAY_BACK: Duration = Duration::from_millis(500);
/// Most CRDs that are judged at once: each needs some ten times the memory of its review.
const MOST_AT_ONCE: usize = 4;

/// The result of a review, as metrics and audit annotations name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdmissionResult {
    /// It concerns no stored object: a create, or a change outside of `spec`.
    NotJudged,
    Passed,
    Warned,
    Refused,
    /// It would be refused, and its user is exempt.
    Exempt,
    /// It would be refused, and an annotation accepts it.
    Accepted,
    /// It was not judged in time, or could not be read.
    Undecided,
}

impl AdmissionResult {
    const ALL: [(Self, &'static str); 7] = [
        (Self::NotJudged, "not_judged"),
        (Self::Passed, "passed"),
        (Self::Warned, "warned"),
        (Self::Refused, "refused"),
        (Self::Exempt, "exempt"),
        (Self::Accepted, "accepted"),
        (Self::Undecided, "undecided"),
    ];

    fn as_str(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Index among the results of [`KIND`].
    fn index(self, operation: Operation) -> usize {
        operation as usize * Self::ALL.len() + self as usize
    }
}

static KIND: ReviewKind = ReviewKind {
    name: "AdmissionReview",
    title: "admission reviews",
    done: "judged",
    prefix: "pushback_admission",
    requests: "Reviews of CRDs, by what was asked for and how they ended.",
    // In the order of `Operation` and of `AdmissionResult`; a test compares them.
    results: &[
        "operation=\"create\",result=\"not_judged\"",
        "operation=\"create\",result=\"passed\"",
        "operation=\"create\",result=\"warned\"",
        "operation=\"create\",result=\"refused\"",
        "operation=\"create\",result=\"exempt\"",
        "operation=\"create\",result=\"accepted\"",
        "operation=\"create\",result=\"undecided\"",
        "operation=\"update\",result=\"not_judged\"",
        "operation=\"update\",result=\"passed\"",
        "operation=\"update\",result=\"warned\"",
        "operation=\"update\",result=\"refused\"",
        "operation=\"update\",result=\"exempt\"",
        "operation=\"update\",result=\"accepted\"",
        "operation=\"update\",result=\"undecided\"",
        "operation=\"delete\",result=\"not_judged\"",
        "operation=\"delete\",result=\"passed\"",
        "operation=\"delete\",result=\"warned\"",
        "operation=\"delete\",result=\"refused\"",
        "operation=\"delete\",result=\"exempt\"",
        "operation=\"delete\",result=\"accepted\"",
        "operation=\"delete\",result=\"undecided\"",
    ],
    counters: &[],
    generation: ("policy_generation", "How often a policy was put to use."),
    files: "policy",
};

/// A user or a group that may make breaking changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemption {
    /// The user or group, named as in the API server's `userInfo`.
    pub subject: ExemptSubject,
    /// Reason that the policy gives.
    pub reason: Option<String>,
}

/// Basis of the judgement of reviews.
#[derive(Clone, Debug)]
pub struct AdmissionPolicy {
    /// The rules with their settings; only CRDUpgradeSafety is run.
    pub selection: Selection,
    /// The waivers in effect.
    pub waivers: Vec<Waiver>,
    /// Users and groups that may make breaking changes.
    pub exemptions: Vec<Exemption>,
    /// The Kubernetes version to judge by; the newest one that is known by default.
    pub kubernetes_version: Option<Release>,
    /// Description for the log: the files.
    pub description: String,
    /// Rules of the files that admission does not run.
    pub ignored: Vec<String>,
    /// True if the policy is in files: `check` needs them for the same verdict.
    pub is_from_files: bool,
}

/// Access to facts outside of policy and review.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Lists objects of a kind; `None` if the server may not.
    pub objects: Option<Arc<dyn ObjectReader>>,
    /// The date for waivers, `YYYY-MM-DD`.
    pub today: fn() -> String,
}

/// Serves admission reviews until a signal comes. `compile` reads the policy from the files of the settings.
///
/// # Errors
/// A file cannot be used, or a port cannot be opened.
pub async fn serve(
    settings: Settings,
    compile: impl Fn(&[SourceFile]) -> Result<AdmissionPolicy, Vec<InputError>> + Send + Sync + 'static,
    surroundings: Surroundings,
    journal: Arc<dyn Journal>,
    stop: watch::Receiver<Stop>,
) -> Result<(), StartError> {
    let compile = move |files: &[SourceFile]| {
        let admission = Admission { policy: compile(files)?, surroundings: surroundings.clone() };
        Ok(Arc::new(admission) as Arc<dyn Reviews>)
    };
    server::serve(settings, Arc::new(compile), journal, stop).await
}

/// The policy in use.
#[derive(Debug)]
struct Admission {
    policy: AdmissionPolicy,
    surroundings: Surroundings,
}

/// An answer, and how the log and the metrics name it.
struct Decision {
    result: AdmissionResult,
    response: Response,
    /// The reason for the log; nothing is logged without one.
    reason: Option<String>,
}

impl Decision {
    fn not_judged(warning: Option<String>) -> Self {
        let warnings = warning.into_iter().map(|warning| words::warning(&warning)).collect();
        let response = Response { allowed: true, warnings, ..Response::default() };
        Self { result: AdmissionResult::NotJudged, response, reason: None }
    }
}

impl Reviews for Admission {
    fn kind(&self) -> &'static ReviewKind {
        &KIND
    }

    /// The API server says in the query how long it waits.
    fn deadline(&self, query: &str) -> Duration {
        let waits = query.split('&').find_map(|part| part.strip_prefix("timeout=")?.strip_suffix('s')?.parse().ok());
        waits.filter(|seconds| (1..=30).contains(seconds)).map_or(USUAL_DEADLINE, Duration::from_secs) - WAY_BACK
    }

    fn most_at_once(&self) -> usize {
        MOST_AT_ONCE
    }

    fn reply(&self, body: Vec<u8>, overdue: &OverdueReply) -> Reply {
        let review = match Review::parse(&body) {
            Ok(review) => review,
            Err(reason) => return Reply::text(Outcome::Malformed, StatusCode::BAD_REQUEST, reason),
        };
        // Not in memory beside its objects.
        drop(body);
        let envelope = review.envelope.clone();
        overdue.set(envelope.reply(self.undecided("it could not be judged in time")));
        let decided = catch_unwind(AssertUnwindSafe(|| stack::with_room(|| self.decide(review))));
        envelope.reply(decided.unwrap_or_else(|_| {
            let version = env!("CARGO_PKG_VERSION");
            self.undecided(&format!("a defect in pushback {version}; its log has the place"))
        }))
    }

    fn in_use(&self, generation: u64) -> Notice {
        let AdmissionPolicy { description, ignored, .. } = &self.policy;
        Notice::PolicyLoaded { generation, policy: description.clone(), ignored: ignored.clone() }
    }
}

impl Admission {
    fn decide(&self, review: Review) -> Decision {
        let Review { envelope, user, content } = review;
        let (old, new) = match content {
            Content::Crd { old, new } => (old, new),
            Content::Other(kind) => {
                let warning =
                    format!("pushback judges CRDs and was asked about {kind}: correct the rules of the webhook");
                return Decision::not_judged(Some(warning));
            }
            Content::Unreadable(reason) => return self.undecided(&reason),
        };
        let has_objects = match envelope.operation {
            Operation::Create => true,
            Operation::Update => old.is_object() && new.is_object(),
            Operation::Delete => old.is_object(),
        };
        if !has_objects {
            return self.undecided("the review does not have the CRD");
        }
        if !judgement::concerns_objects(envelope.operation, &old, &new) {
            return Decision::not_judged(None);
        }
        let exemption = self.policy.exemptions.iter().find(|exemption| exemption.covers(&user));
        let acceptance = judgement::acceptance(envelope.operation, &old, &new);
        let judged = judgement::judge(&self.policy, &self.surroundings, old, new);
        self.weigh(&envelope, &judged, exemption, acceptance)
    }

    fn weigh(
        &self,
        envelope: &review::Envelope,
        judged: &ChangeVerdict,
        exemption: Option<&Exemption>,
        acceptance: judgement::Acceptance,
    ) -> Decision {
        let texts = words::Texts { envelope, judged, has_policy: self.policy.is_from_files };
        let cause = judged.causes.first().cloned();
        let audited = |result: AdmissionResult| {
            let mut audit = vec![("result", result.as_str().to_owned())];
            audit.extend(cause.iter().map(|cause| ("cause", words::shortened(cause))));
            audit
        };
        let allowed = |result: AdmissionResult, warnings: Vec<String>, because: Option<(&'static str, String)>| {
            let reason = because.as_ref().map(|(_, reason)| reason).into_iter().chain(&cause);
            let reason = reason.map(|part| words::shortened(part)).collect::<Vec<_>>().join(": ");
            let mut audit = audited(result);
            audit.extend(because.map(|(key, reason)| (key, words::shortened(&reason))));
            let response = Response { allowed: true, warnings, audit, ..Response::default() };
            Decision { result, response, reason: Some(reason).filter(|reason| !reason.is_empty()) }
        };
        if !judged.refuses {
            let result = if judged.causes.is_empty() { AdmissionResult::Passed } else { AdmissionResult::Warned };
            return allowed(result, texts.warnings(), None);
        }
        if let Some(exemption) = exemption {
            let because = exemption.to_string();
            let warnings = texts.allowed(&format!("allowed, since {because} is exempt"));
            return allowed(AdmissionResult::Exempt, warnings, Some(("exempt", because)));
        }
        let remark = match acceptance {
            judgement::Acceptance::Accepted(reason) => {
                let warnings = texts.allowed(&format!("accepted by annotation, {reason:?}"));
                return allowed(AdmissionResult::Accepted, warnings, Some(("accepted", reason)));
            }
            judgement::Acceptance::Void(remark) => Some(remark),
            judgement::Acceptance::Absent => None,
        };
        let response = Response {
            allowed: false,
            message: Some(texts.refusal(remark)),
            audit: audited(AdmissionResult::Refused),
            ..Response::default()
        };
        Decision { result: AdmissionResult::Refused, response, reason: cause.as_deref().map(words::shortened) }
    }

    /// The answer without a judgement: like the verdict `unknown`, by the policy.
    fn undecided(&self, reason: &str) -> Decision {
        let allowed = !judgement::unknown_refuses(&self.policy);
        let text = words::shortened(&format!("whether the change is safe is not known: {reason}"));
        let audit =
            vec![("result", AdmissionResult::Undecided.as_str().to_owned()), ("cause", words::shortened(&text))];
        let (message, warnings) = match allowed {
            true => (None, vec![words::warning(&text)]),
            false => (Some(text.clone()), Vec::new()),
        };
        let response = Response { allowed, message, warnings, audit };
        Decision { result: AdmissionResult::Undecided, response, reason: Some(words::shortened(&text)) }
    }
}

impl Exemption {
    fn covers(&self, user: &User) -> bool {
        match &self.subject {
            ExemptSubject::User(name) => user.username == *name,
            ExemptSubject::Group(name) => user.groups.contains(name),
        }
    }
}

impl std::fmt::Display for Exemption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.subject {
            ExemptSubject::User(name) => write!(f, "user {name}")?,
            ExemptSubject::Group(name) => write!(f, "group {name}")?,
        }
        self.reason.iter().try_for_each(|reason| write!(f, " ({reason})"))
    }
}
