//! Admission: updates and deletions of CRDs are judged as `pushback check` judges them on files, by any user.
//! The verdict depends on the review, the policy, and for a deletion on the objects that the API server lists.

mod bounded;
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

use self::judgement::{Acceptance, ChangeVerdict};
use self::review::{Content, Envelope, Operation, Response, Review, User};
use super::notice::{Journal, Notice};
use super::reviews::{Outcome, OverdueReply, Reply, ReviewKind, Reviews};
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

/// Reasons to allow a change that would be refused, also one that could not be judged.
struct Permission<'a> {
    exemption: Option<&'a Exemption>,
    acceptance: Acceptance,
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
        let warnings = warning.into_iter().map(|warning| bounded::warning(&warning)).collect();
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
        let (envelope, permission) = (review.envelope.clone(), self.permission(&review));
        overdue.set(envelope.reply(self.undecided(&envelope, &permission, "it could not be judged in time")));
        let decided = catch_unwind(AssertUnwindSafe(|| stack::with_room(|| self.decide(review, &permission))));
        envelope.reply(decided.unwrap_or_else(|_| {
            let reason = format!("a defect in pushback {}; its log has the place", env!("CARGO_PKG_VERSION"));
            self.undecided(&envelope, &permission, &reason)
        }))
    }

    fn in_use(&self, generation: u64) -> Notice {
        let AdmissionPolicy { description, ignored, .. } = &self.policy;
        Notice::PolicyLoaded { generation, policy: description.clone(), ignored: ignored.clone() }
    }
}

impl Admission {
    fn permission(&self, review: &Review) -> Permission<'_> {
        Permission {
            exemption: self.policy.exemptions.iter().find(|exemption| exemption.covers(&review.user)),
            acceptance: match &review.content {
                Content::Crd { old, new } => judgement::acceptance(review.envelope.operation, old, new),
                Content::Other(_) | Content::Unreadable(_) => Acceptance::Absent,
            },
        }
    }

    fn decide(&self, review: Review, permission: &Permission<'_>) -> Decision {
        let Review { envelope, content, .. } = review;
        let (old, new) = match content {
            Content::Crd { old, new } => (old, new),
            Content::Other(kind) => {
                let warning =
                    format!("pushback judges CRDs and was asked about {kind}: correct the rules of the webhook");
                return Decision::not_judged(Some(warning));
            }
            Content::Unreadable(reason) => return self.undecided(&envelope, permission, &reason),
        };
        let has_objects = match envelope.operation {
            Operation::Create => true,
            Operation::Update => old.is_object() && new.is_object(),
            Operation::Delete => old.is_object(),
        };
        if !has_objects {
            return self.undecided(&envelope, permission, "the review does not have the CRD");
        }
        if !judgement::concerns_objects(envelope.operation, &old, &new) {
            return Decision::not_judged(None);
        }
        match judgement::judge(&self.policy, &self.surroundings, old, new) {
            Ok(judged) => self.weigh(&envelope, &judged, true, permission),
            Err(reason) => self.undecided(&envelope, permission, &reason),
        }
    }

    /// The answer without a judgement: like the verdict `unknown`, by the policy.
    fn undecided(&self, envelope: &Envelope, permission: &Permission<'_>, reason: &str) -> Decision {
        let cause = format!("{}: whether the change is safe is not known: {reason}", envelope.name);
        let refuses = judgement::unknown_refuses(&self.policy);
        let unknown = ChangeVerdict { refuses, causes: vec![cause], ..ChangeVerdict::default() };
        self.weigh(envelope, &unknown, false, permission)
    }

    fn weigh(
        &self,
        envelope: &Envelope,
        verdict: &ChangeVerdict,
        is_judged: bool,
        permission: &Permission<'_>,
    ) -> Decision {
        let texts = words::Texts { envelope, judged: verdict, has_policy: self.policy.is_from_files };
        let cause = verdict.causes.first().map(|cause| bounded::sentence(cause));
        let decision = |result: AdmissionResult, because: Option<(&'static str, String)>, response: Response| {
            let because = because.map(|(key, reason)| (key, bounded::sentence(&reason)));
            let reasons: Vec<&str> =
                because.iter().map(|(_, reason)| reason).chain(&cause).map(String::as_str).collect();
            let reason = Some(reasons.join(": ")).filter(|reason| !reason.is_empty());
            let mut audit = vec![("result", result.as_str().to_owned())];
            audit.extend(cause.iter().map(|cause| ("cause", cause.clone())));
            audit.extend(because);
            Decision { result, response: Response { audit, ..response }, reason }
        };
        let allowed = |warnings: Vec<String>| Response { allowed: true, warnings, ..Response::default() };
        if !verdict.refuses {
            let result = match (is_judged, verdict.causes.is_empty()) {
                (false, _) => AdmissionResult::Undecided,
                (true, true) => AdmissionResult::Passed,
                (true, false) => AdmissionResult::Warned,
            };
            return decision(result, None, allowed(texts.warnings()));
        }
        if let Some(exemption) = permission.exemption {
            let because = exemption.to_string();
            let warnings = texts.allowed(&format!("allowed, since {because} is exempt"));
            return decision(AdmissionResult::Exempt, Some(("exempt", because)), allowed(warnings));
        }
        let remark = match &permission.acceptance {
            Acceptance::Accepted(reason) => {
                let warnings = texts.allowed(&format!("accepted by annotation, {reason:?}"));
                return decision(AdmissionResult::Accepted, Some(("accepted", reason.clone())), allowed(warnings));
            }
            Acceptance::Void(remark) => Some(remark.as_str()),
            Acceptance::Absent => None,
        };
        let result = if is_judged { AdmissionResult::Refused } else { AdmissionResult::Undecided };
        decision(result, None, Response { message: Some(texts.refusal(remark)), ..Response::default() })
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
