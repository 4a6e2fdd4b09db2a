//! How far one object has come. Each step carries what is known in it alone, so that an object that waits has been
//! written, and nothing is heard of one that was never started.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::apply::readiness::{ConditionAges, Troubles};

/// Between two looks at an object that no watch sees.
const LOOK: Duration = Duration::from_secs(2);

/// How long the answer to a look may take; a request has a time limit of its own.
const ANSWER: Duration = Duration::from_secs(600);

/// How far one object came.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Not started.
    Pending,
    /// Being written.
    Writing(Writing),
    /// Written, not ready or not gone yet.
    Waiting(Box<Waiting>),
    /// Its deletion was requested, and the end of it is not waited for.
    Going,
    /// Done.
    Done,
    /// The write failed.
    WriteFailed(String),
    /// It was written and came to a terminal failure.
    NeverReady(Ended),
    /// Not started, because of what it depends on.
    Skipped(String),
    /// It was being tried when the run was stopped.
    Stopped(String),
    /// Time is up.
    TimedOut(Ended),
}

/// A write under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Writing {
    pub(super) started: Instant,
    pub(super) heard: Heard,
}

/// What the watch saw while the answer to a write was on its way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Heard {
    /// The object.
    pub(super) object: Option<Arc<Value>>,
    /// The uid of one that went.
    pub(super) gone: Option<String>,
}

/// A wait under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// When the answer to the write came.
    pub(super) since: Instant,
    /// The generation that the write returned.
    pub(super) generation: i64,
    /// What it was judged to be.
    pub(super) stage: Stage,
    /// When it is judged again, if nothing is heard until then.
    pub(super) due: Option<Instant>,
    pub(super) sight: Sight,
    /// Since when the conditions of its wait rule hold.
    pub(super) ages: ConditionAges,
    /// Since when its Pods fail.
    pub(super) troubles: Troubles,
    /// Events that may explain it are listened to.
    pub(super) explained: bool,
}

/// What an object that is waited for was judged to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Nothing yet.
    Unjudged,
    /// On its way.
    InProgress(Told),
    /// A claim that nobody uses yet: it is waited for as long as somebody may come.
    Idle(Told),
}

/// How changes of an object are heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// By a watch.
    Watched,
    /// No watch sees it: it is asked for by itself, not before this.
    Asked(Instant),
}

/// What was told of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) message: String,
    pub(super) reasons: Vec<String>,
}

/// A wait that came to no good end.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub(super) told: Told,
    pub(super) since: Instant,
}

impl Stage {
    pub(super) fn told(&self) -> Option<&Told> {
        match self {
            Self::Unjudged => None,
            Self::InProgress(told) | Self::Idle(told) => Some(told),
        }
    }
}

impl Waiting {
    /// A wait that begins now.
    pub(super) fn new(generation: i64, sight: Sight) -> Self {
        Self {
            since: Instant::now(),
            generation,
            stage: Stage::Unjudged,
            due: None,
            sight,
            ages: ConditionAges::default(),
            troubles: Troubles::default(),
            explained: false,
        }
    }

    /// What was told of it last.
    pub(super) fn told(&self) -> Option<&Told> {
        self.stage.told()
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle(_))
    }

    /// Something was heard that may change how it is judged.
    pub(super) fn hear(&mut self) {
        self.due = Some(Instant::now());
    }

    /// No watch sees it.
    pub(super) fn lose_sight(&mut self) {
        if self.sight == Sight::Watched {
            self.sight = Sight::Asked(Instant::now());
        }
    }

    /// Whether it is to be asked for now; if so, nothing more is asked until the answer comes.
    pub(super) fn asks(&mut self, now: Instant) -> bool {
        let is_due = matches!(self.sight, Sight::Asked(not_before) if now >= not_before);
        if is_due {
            self.sight = Sight::Asked(now + ANSWER);
        }
        is_due
    }

    /// The answer to a look has come.
    pub(super) fn answered(&mut self) {
        if self.sight != Sight::Watched {
            self.sight = Sight::Asked(Instant::now() + LOOK);
        }
    }
}
