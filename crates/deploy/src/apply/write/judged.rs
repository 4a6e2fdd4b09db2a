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
use crate::plan::{Planned, answer, conflicts, guard};

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
        let Some(second_look) = self.second_look.as_ref().filter(|_| planned.asked_again) else {
            return Ok(planned.change.result.clone());
        };
        let dry_run = ApplyOptions::DRY_RUN;
        let now = self.cluster.apply(address, body, dry_run).await.map_err(Failure::Cluster)?.object;
        let now = operators::resumed(&now).map_or(now, Arc::new);
        let change = &planned.change;
        let is_same = is_same_upgrade(change, live, &now);
        if !is_same || second_look.rests_on_what_goes_with(change) {
            let judged = second_look.judge(self.as_it_has_become(change, live, &now)).await;
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
        let Some(second_look) = self.second_look.as_ref().filter(|_| planned.asked_again) else { return Ok(None) };
        let now = self.cluster.patch(address, rewrite, true).await.map_err(Failure::Cluster)?.object;
        if !answer::differences(&planned.change.object, live, &now).is_empty() {
            let judged = second_look.judge(self.as_it_has_become(&planned.change, Some(live), &now)).await;
            judged.map_err(|refused| {
                refusal("its fields are not taken over: preflight refuses what the server would store now", refused)
            })?;
        }
        Ok(Some(now))
    }

    /// After predecessors' entries have become ours: nothing else has changed than the dry-run showed.
    pub(super) fn as_rewritten(planned: &Planned, expected: Option<&Value>, written: &Value) -> Result<(), Failure> {
        let places = expected.map(|expected| answer::differences(&planned.change.object, expected, written));
        match places.filter(|places| !places.is_empty()) {
            Some(places) => Err(differs(JUDGED, &places)),
            None => Ok(()),
        }
    }

    /// Before an object is deleted for replacement: the server would still accept the new one.
    pub(super) async fn can_come_back(&self, planned: &Planned, address: &Address) -> Result<(), Failure> {
        let Some(body) = planned.change.desired.as_deref().filter(|_| self.cluster.capabilities().server) else {
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
        let change = &planned.change;
        let Some(second_look) = &self.second_look else { return Ok(()) };
        second_look.judge_dependents(change).await.map_err(|refused| refusal(WHAT, refused))?;
        if !second_look.rests_on_what_goes_with(change) {
            return Ok(());
        }
        second_look.judge(change.clone()).await.map_err(|refused| refusal(WHAT, refused))
    }

    /// After a namespace began to terminate: no new object can be created in it, and those created since the last look
    /// are named. They cannot be saved.
    pub(super) async fn went_alone(&self, planned: &Planned) -> Result<(), Failure> {
        let change = &planned.change;
        let is_namespace = change.object.group.is_empty() && change.object.kind == "Namespace";
        let second_look = self.second_look.as_ref().filter(|it| is_namespace && it.rests_on_what_goes_with(change));
        let Some(second_look) = second_look.filter(|_| self.cluster.capabilities().server) else { return Ok(()) };
        let judged = second_look.judge(change.clone()).await;
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
        let change = &planned.change;
        if !self.cluster.capabilities().server {
            return Ok(());
        }
        let desired = change.desired.as_deref().unwrap_or(&Value::Null);
        let differences =
            expected.map(|expected| stored::compare(&change.object, desired, expected, written, &self.masker));
        // kapp does not compare; only a CRD is what everything else depends on.
        let refuses = self.compares_writes || planned.asked_again;
        let judges_custom_rules_only = match differences {
            Some(StoredDifferences { of_manifest, .. }) if refuses && !of_manifest.is_empty() => {
                return Err(stored_otherwise(of_manifest));
            }
            Some(StoredDifferences { of_manifest, elsewhere }) if of_manifest.is_empty() && !elsewhere => return Ok(()),
            Some(_) => false,
            None if change.object.is_definition() => false,
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
        let become_now = self.as_it_has_become(change, live, written);
        let judged = match judges_custom_rules_only {
            true => second_look.judge_by_custom_rules(become_now).await,
            false => second_look.judge(become_now).await,
        };
        judged.map_err(|refused| refusal("it was written, but preflight refuses what the server stored", refused))
    }

    fn as_it_has_become(&self, change: &Change, live: Option<&Arc<Value>>, answer: &Arc<Value>) -> Change {
        let taken_from = match (change.operation, live) {
            (Operation::Update, Some(live)) => {
                conflicts::taken_by_update(live, answer, &self.masker, &self.policy_masker)
            }
            _ => Vec::new(),
        };
        // An object that replaces a deleted one is new.
        let operation = if live.is_none() { Operation::Create } else { change.operation };
        Change {
            operation,
            live: live.cloned(),
            result: Some(Arc::clone(answer)),
            verification: Verification::Server,
            taken_from,
            ..change.clone()
        }
    }
}

/// Whether an update starts and ends at the states that were judged.
fn is_same_upgrade(change: &Change, live: Option<&Arc<Value>>, now: &Value) -> bool {
    let Some(judged) = &change.result else { return false };
    let stored = |object: Option<&Arc<Value>>| object.and_then(|it| it.pointer("/status/storedVersions").cloned());
    let starts_alike = match (change.live.as_deref(), live.map(|live| &**live)) {
        (Some(before), Some(now)) => {
            before.resource_version() == now.resource_version()
                || answer::differences(&change.object, before, now).is_empty()
        }
        (before, now) => before.is_none() == now.is_none(),
    };
    starts_alike
        && stored(change.live.as_ref()) == stored(live)
        && answer::differences(&change.object, judged, now).is_empty()
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
