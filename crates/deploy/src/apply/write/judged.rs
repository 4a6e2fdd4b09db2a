//! Makes sure that what was judged is what is written or deleted: between verdict and write, admission may have changed
//! and objects may have been created.

use std::sync::Arc;

use pushback_cluster::{Address, ApplyOptions, ErrorKind, Patch, Written, server_message};
use pushback_crd::definition::{listed, short};
use pushback_objects::ObjectExt;
use pushback_preflight::judge::Refused;
use pushback_preflight::{Change, Operation, Verification};
use pushback_storage::operators;
use serde_json::Value;

use super::{Failure, Writer};
use crate::check::second_look;
use crate::plan::stored::{self, StoredDifference, StoredDifferences};
use crate::plan::{Action, Planned, answer, conflicts, guard};

/// Most fields that a message names.
const SHOWN: usize = 3;

/// The reference that a response is compared with, as messages name it.
const JUDGED: &str = "was judged";
const MANIFEST: &str = "the manifest says";

impl Writer {
    /// What the server will make of an object: its dry-run answer to the plan, or, if that may be outdated, a new one,
    /// judged again. `None` if there never was one.
    pub(super) async fn expected(
        &self,
        planned: &Planned,
        address: &Address,
        body: &Value,
        live: Option<&Arc<Value>>,
    ) -> Result<Option<Arc<Value>>, Failure> {
        let asks = planned.is_asked_again() && self.cluster.capabilities().server;
        let Some(second_look) = self.second_look.as_ref().filter(|_| asks) else {
            return Ok(planned.result.clone());
        };
        let dry_run = ApplyOptions::DRY_RUN;
        let now = self.cluster.apply(address, body, dry_run).await.map_err(Failure::Cluster)?.object;
        let now = operators::resumed(&now).map_or(now, Arc::new);
        let is_same = is_same_upgrade(planned, live, &now);
        if !is_same || second_look.rests_on_what_goes_with(&planned.change()) {
            let judged = second_look.judge(self.as_it_has_become(planned, live, &now)).await;
            judged.map_err(|refused| {
                let what = match is_same {
                    true => "not written: preflight refuses it with the objects that are there now",
                    false => "not written: preflight refuses what the server would store now",
                };
                refusal(what, refused)
            })?;
        }
        Ok(Some(now))
    }

    /// Before predecessors' entries become ours: admission runs on that request too, and may change what everything
    /// depends on. Returns what the object will be after it.
    pub(super) async fn expected_of_rewrite(
        &self,
        planned: &Planned,
        address: &Address,
        rewrite: &Patch,
        live: &Arc<Value>,
    ) -> Result<Option<Arc<Value>>, Failure> {
        let Some(second_look) = self.second_look.as_ref().filter(|_| planned.is_asked_again()) else { return Ok(None) };
        let now = self.cluster.patch(address, rewrite, true).await.map_err(Failure::Cluster)?.object;
        if !answer::differences(&planned.object, live, &now).is_empty() {
            let judged = second_look.judge(self.as_it_has_become(planned, Some(live), &now)).await;
            judged.map_err(|refused| {
                refusal("its fields are not taken over: preflight refuses what the server would store now", refused)
            })?;
        }
        Ok(Some(now))
    }

    /// After predecessors' entries have become ours: nothing else has changed than the dry-run showed.
    pub(super) fn as_rewritten(planned: &Planned, expected: Option<&Value>, written: &Value) -> Result<(), Failure> {
        let places = expected.map(|expected| answer::differences(&planned.object, expected, written));
        match places.filter(|places| !places.is_empty()) {
            Some(places) => Err(differs(JUDGED, &places)),
            None => Ok(()),
        }
    }

    /// Before an object is deleted for replacement: the server would still accept the new one.
    pub(super) async fn can_come_back(&self, planned: &Planned, address: &Address) -> Result<(), Failure> {
        let Some(body) = planned.desired.as_deref().filter(|_| self.cluster.capabilities().server) else {
            return Ok(());
        };
        match guard::refusal_as_new(&*self.cluster, address, body.clone()).await {
            // Then only the write itself can tell.
            Some(error) if error.kind == ErrorKind::Unsupported => Ok(()),
            Some(error) => Err(Failure::Cluster(error)),
            None => Ok(()),
        }
    }

    /// Before an object is deleted: what is deleted with it is still what was judged.
    pub(super) async fn goes_alone(&self, planned: &Planned) -> Result<(), Failure> {
        const WHAT: &str = "not deleted: preflight refuses what would now be deleted with it";
        let Some(second_look) = &self.second_look else { return Ok(()) };
        let change = planned.change();
        second_look.judge_dependents(&change).await.map_err(|refused| refusal(WHAT, refused))?;
        if !second_look.rests_on_what_goes_with(&change) {
            return Ok(());
        }
        second_look.judge(change).await.map_err(|refused| refusal(WHAT, refused))
    }

    /// After a namespace began to terminate: no new object can be created in it, and those created since the last look
    /// are named. They cannot be saved.
    pub(super) async fn went_alone(&self, planned: &Planned) -> Result<(), Failure> {
        let is_namespace = planned.object.group.is_empty() && planned.object.kind == "Namespace";
        if !is_namespace || !self.cluster.capabilities().server {
            return Ok(());
        }
        let change = planned.change();
        let second_look = self.second_look.as_ref().filter(|it| it.rests_on_what_goes_with(&change));
        let Some(second_look) = second_look else { return Ok(()) };
        let judged = second_look.judge(change).await;
        judged.map_err(|refused| {
            refusal("it was deleted together with what somebody created at the same moment", refused)
        })
    }

    /// After a write: the server stored what it had announced in every field that the manifest sets, and elsewhere
    /// nothing that would have been refused.
    pub(super) async fn as_expected(
        &self,
        planned: &Planned,
        live: Option<&Arc<Value>>,
        expected: Option<&Value>,
        Written { object: written, warnings, .. }: &Written,
    ) -> Result<(), Failure> {
        if !self.cluster.capabilities().server {
            return Ok(());
        }
        let desired = planned.desired.as_deref().unwrap_or(&Value::Null);
        let differences =
            expected.map(|expected| stored::compare(&planned.object, desired, expected, written, &self.masker));
        // kapp does not compare; only a CRD is what everything else depends on.
        let refuses = self.compares_writes || planned.is_asked_again();
        let judges_custom_rules_only = match differences {
            Some(StoredDifferences { of_manifest, .. }) if refuses && !of_manifest.is_empty() => {
                return Err(stored_otherwise(of_manifest));
            }
            Some(StoredDifferences { of_manifest, elsewhere }) if of_manifest.is_empty() && !elsewhere => return Ok(()),
            Some(_) => false,
            None if planned.object.is_definition() => false,
            // There was no dry-run: the object in the response is all there is to judge.
            None => {
                // The server has named the fields that it left out.
                let kept = server_message::without_unknown_fields(desired, warnings);
                let places = answer::set_otherwise(&kept, written).unwrap_or_default();
                if !places.is_empty() {
                    return Err(differs(MANIFEST, &places));
                }
                true
            }
        };
        let Some(second_look) = &self.second_look else { return Ok(()) };
        let become_now = self.as_it_has_become(planned, live, written);
        let judged = match judges_custom_rules_only {
            true => second_look.judge_by_custom_rules(become_now).await,
            false => second_look.judge(become_now).await,
        };
        judged.map_err(|refused| refusal("it was written, but preflight refuses what the server stored", refused))
    }

    fn as_it_has_become(&self, planned: &Planned, live: Option<&Arc<Value>>, answer: &Arc<Value>) -> Change {
        let taken_from = match (&planned.action, live) {
            (Action::Update(_), Some(live)) => {
                conflicts::taken_from(live, Some(answer), &[], &self.masker, &self.policy_masker)
            }
            _ => Vec::new(),
        };
        // An object that replaces a deleted one is new.
        let operation = if live.is_none() { Operation::Create } else { planned.operation() };
        Change {
            operation,
            live: live.cloned(),
            result: Some(Arc::clone(answer)),
            verification: Verification::Server,
            taken_from,
            ..planned.change()
        }
    }
}

/// Whether an update starts and ends at the states that were judged.
fn is_same_upgrade(planned: &Planned, live: Option<&Arc<Value>>, now: &Value) -> bool {
    let Some(judged) = &planned.result else { return false };
    let stored = |object: Option<&Arc<Value>>| object.and_then(|it| it.pointer("/status/storedVersions").cloned());
    let starts_alike = match (planned.live.as_deref(), live.map(|live| &**live)) {
        (Some(before), Some(now)) => {
            before.resource_version() == now.resource_version()
                || answer::differences(&planned.object, before, now).is_empty()
        }
        (before, now) => before.is_none() == now.is_none(),
    };
    starts_alike
        && stored(planned.live.as_ref()) == stored(live)
        && answer::differences(&planned.object, judged, now).is_empty()
}

fn refusal(what: &str, refused: Refused) -> Failure {
    Failure::Refused { message: format!("{what}: {}", second_look::reason(&refused)), refused: Box::new(refused) }
}

fn differs(than: &str, places: &[String]) -> Failure {
    let places = listed(places, SHOWN);
    Failure::differs(format!("it was written, but the server stored something other than {than}: {places}"))
}

fn stored_otherwise(differences: Vec<StoredDifference>) -> Failure {
    let shown = |value: &Option<Value>| match value {
        Some(value) => short(value),
        None => "nothing".to_owned(),
    };
    let place =
        |it: &StoredDifference| format!("{}: {} instead of {}", it.path, shown(&it.stored), shown(&it.announced));
    let places: Vec<String> = differences.iter().map(place).collect();
    let places = listed(&places, SHOWN);
    let message = format!("it was written, but the server stored something other than {JUDGED}: {places}");
    Failure::Differs { message, differences }
}
