//! What a test has the proxy do: which requests are meant, what happens to them, and what runs beside them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::request::{Request, Verb};

type Test = Arc<dyn Fn(&Request) -> bool + Send + Sync>;
type Action = Arc<dyn Fn(&Request) + Send + Sync>;
type Choice = Arc<dyn Fn(&Request) -> Option<Fault> + Send + Sync>;
type Editor = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Which requests are meant: all that pass every test, or some of these by their order.
#[derive(Clone, Default)]
pub(crate) struct Matching {
    tests: Vec<Test>,
    skip: usize,
    times: Option<usize>,
}

/// Every request.
pub(crate) fn any() -> Matching {
    Matching::default()
}

/// Requests of a verb for a resource (`configmaps`, `deployments/status`); no dry-runs.
pub(crate) fn matching(verb: Verb, resource: &str) -> Matching {
    let resource = resource.to_owned();
    any().that(move |request| request.verb == verb && request.resource == resource && !request.dry_run)
}

/// Dry-runs of whatever verb for a resource.
pub(crate) fn dry_runs(resource: &str) -> Matching {
    let resource = resource.to_owned();
    any().that(move |request| request.dry_run && request.resource == resource)
}

/// Everything that changes what is stored.
pub(crate) fn writes() -> Matching {
    any().that(Request::writes)
}

/// Everything that does not, dry-runs too.
pub(crate) fn reads() -> Matching {
    any().that(|request| !request.writes())
}

/// Pages of a list after the first.
pub(crate) fn later_pages(resource: &str) -> Matching {
    matching(Verb::List, resource).that(|request| request.query.contains_key("continue"))
}

/// All requests below the path of an API group, those for its kinds too.
pub(crate) fn in_group(group: &str) -> Matching {
    let group = group.to_owned();
    any().that(move |request| request.group == group)
}

impl Matching {
    /// Those only that pass this test too.
    pub(crate) fn that(mut self, test: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.tests.push(Arc::new(test));
        self
    }

    /// Those for an object of this name only.
    pub(crate) fn named(self, name: &str) -> Self {
        let name = name.to_owned();
        self.that(move |request| request.name == name)
    }

    /// Those in this namespace only.
    pub(crate) fn in_namespace(self, namespace: &str) -> Self {
        let namespace = namespace.to_owned();
        self.that(move |request| request.namespace == namespace)
    }

    /// Those that came with the kubeconfig of this label only.
    pub(crate) fn from(self, client: &str) -> Self {
        let client = client.to_owned();
        self.that(move |request| request.client == client)
    }

    /// The one with this number among them, from 1.
    pub(crate) fn nth(mut self, number: usize) -> Self {
        self.skip = number.saturating_sub(1);
        self.times = Some(1);
        self
    }

    /// The first so many of them.
    pub(crate) fn first(mut self, times: usize) -> Self {
        self.times = Some(times);
        self
    }

    /// All but the first so many of them.
    pub(crate) fn after_first(mut self, skip: usize) -> Self {
        self.skip = skip;
        self
    }

    pub(crate) fn accepts(&self, request: &Request) -> bool {
        self.tests.iter().all(|test| test(request))
    }

    /// Whether a request is meant, by its order too; `seen` counts those that pass the tests.
    pub(super) fn takes(&self, request: &Request, seen: &AtomicUsize) -> bool {
        if !self.accepts(request) {
            return false;
        }
        let order = seen.fetch_add(1, Ordering::SeqCst);
        order >= self.skip && self.times.is_none_or(|times| order < self.skip + times)
    }
}

/// What happens to a request or its answer.
#[derive(Clone)]
pub(crate) enum Fault {
    /// The proxy answers in the server's place.
    Refuse { status: u16, reason: &'static str, retry_after: Option<u64>, with_effect: bool },
    /// The connection ends instead of an answer.
    Close { with_effect: bool },
    /// No answer ever comes.
    Stall { with_effect: bool },
    /// The connection ends after so many bytes of the answer.
    Cut(usize),
    /// The answer is whole by its length, and so many bytes long.
    Truncate(usize),
    /// So many bytes of the answer come, and then nothing.
    StallInside(usize),
    /// The connection ends in good order after the answer.
    CloseAfter,
    /// The request is passed on later.
    Delay(Duration),
    /// The JSON of the answer is changed.
    Edit(Editor),
    /// A watch goes wrong after so many events.
    Watch(WatchFault, usize),
}

/// What goes wrong with a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchFault {
    /// It ends in good order.
    End,
    /// Its connection breaks.
    Break,
    /// It stays open and says nothing any more.
    Silence,
    /// An ERROR event with this code, then it ends.
    Error(u16),
    /// From then on every event comes twice.
    Repeat,
    /// From then on every event is followed by the one before it of the same object.
    Reorder,
}

impl Fault {
    /// An HTTP error in the server's place, with a `Status` as its body: the server does not see the request.
    pub(crate) fn status(status: u16) -> Self {
        let reason = match status {
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        };
        Self::Refuse { status, reason, retry_after: None, with_effect: false }
    }

    /// With a `Retry-After` of so many seconds.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        if let Self::Refuse { retry_after, .. } = &mut self {
            *retry_after = Some(seconds);
        }
        self
    }

    /// The request has its effect all the same; only the server's own answer is lost.
    pub(crate) fn with_effect(mut self) -> Self {
        if let Self::Refuse { with_effect, .. } | Self::Close { with_effect } | Self::Stall { with_effect } = &mut self
        {
            *with_effect = true;
        }
        self
    }

    /// The connection ends; the server does not see the request.
    pub(crate) fn close() -> Self {
        Self::Close { with_effect: false }
    }

    /// A black hole; the server does not see the request.
    pub(crate) fn stall() -> Self {
        Self::Stall { with_effect: false }
    }

    /// Changes the JSON of the answer.
    pub(crate) fn edit(editor: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self::Edit(Arc::new(editor))
    }

    /// A watch goes wrong after so many events.
    pub(crate) fn watch(fault: WatchFault, after: usize) -> Self {
        Self::Watch(fault, after)
    }

    /// Whether the server sees the request.
    pub(super) fn passes_on(&self) -> bool {
        match self {
            Self::Refuse { with_effect, .. } | Self::Close { with_effect } | Self::Stall { with_effect } => {
                *with_effect
            }
            _ => true,
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = |with_effect: &bool| if *with_effect { ", with effect" } else { "" };
        match self {
            Self::Refuse { status, with_effect, .. } => write!(formatter, "{status}{}", effect(with_effect)),
            Self::Close { with_effect } => write!(formatter, "closed{}", effect(with_effect)),
            Self::Stall { with_effect } => write!(formatter, "stalled{}", effect(with_effect)),
            Self::Cut(bytes) => write!(formatter, "closed after {bytes} bytes"),
            Self::Truncate(bytes) => write!(formatter, "truncated to {bytes} bytes"),
            Self::StallInside(bytes) => write!(formatter, "stalled after {bytes} bytes"),
            Self::CloseAfter => write!(formatter, "closed after the answer"),
            Self::Delay(delay) => write!(formatter, "delayed by {delay:?}"),
            Self::Edit(_) => write!(formatter, "edited"),
            Self::Watch(fault, after) => write!(formatter, "watch {fault:?} after {after} events"),
        }
    }
}

/// A group vanishes from discovery.
pub(super) fn without_group(discovery: &mut Value, group: &str) {
    for list in ["items", "groups"] {
        if let Some(groups) = discovery[list].as_array_mut() {
            groups.retain(|entry| entry["metadata"]["name"] != group && entry["name"] != group);
        }
    }
}

/// A group is shown as one whose server does not answer: nothing is known of its kinds.
pub(super) fn with_stale_group(discovery: &mut Value, group: &str) {
    for entry in discovery["items"].as_array_mut().into_iter().flatten() {
        if entry["metadata"]["name"] == group {
            for version in entry["versions"].as_array_mut().into_iter().flatten() {
                version["freshness"] = json!("Stale");
                version["resources"] = json!([]);
            }
        }
    }
}

enum What {
    Fault(Fault),
    Choice(Choice),
    Before(Action),
    After(Action),
}

struct Rule {
    matching: Matching,
    seen: AtomicUsize,
    what: What,
}

/// The rules of a proxy, in the order in which they were given.
#[derive(Clone, Default)]
pub(super) struct Script {
    rules: Vec<Arc<Rule>>,
}

/// What the script has for one request.
#[derive(Default)]
pub(super) struct Part {
    pub(super) fault: Option<Fault>,
    pub(super) before: Vec<Action>,
    pub(super) after: Vec<Action>,
}

impl Script {
    fn add(&mut self, matching: Matching, what: What) {
        self.rules.push(Arc::new(Rule { matching, seen: AtomicUsize::new(0), what }));
    }

    pub(super) fn fault(&mut self, matching: Matching, fault: Fault) {
        self.add(matching, What::Fault(fault));
    }

    pub(super) fn choice(&mut self, choice: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static) {
        self.add(any(), What::Choice(Arc::new(choice)));
    }

    pub(super) fn before(&mut self, matching: Matching, action: impl Fn(&Request) + Send + Sync + 'static) {
        self.add(matching, What::Before(Arc::new(action)));
    }

    pub(super) fn after(&mut self, matching: Matching, action: impl Fn(&Request) + Send + Sync + 'static) {
        self.add(matching, What::After(Arc::new(action)));
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// Every rule counts the requests that it means; the first that has a fault for this one decides.
    pub(super) fn part(&self, request: &Request) -> Part {
        let mut part = Part::default();
        for rule in &self.rules {
            if !rule.matching.takes(request, &rule.seen) {
                continue;
            }
            match &rule.what {
                What::Fault(fault) => part.fault = part.fault.or_else(|| Some(fault.clone())),
                What::Choice(choice) => part.fault = part.fault.or_else(|| choice(request)),
                What::Before(action) => part.before.push(Arc::clone(action)),
                What::After(action) => part.after.push(Arc::clone(action)),
            }
        }
        part
    }
}
