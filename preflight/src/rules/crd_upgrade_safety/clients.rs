//! Clients of a served version that lacks fields of another one, under conversion strategy None: whoever writes an object
//! back there deletes them. No stored object has a new field yet, so the change is never refused for that. It is named,
//! because nobody notices the loss later: neither the API server nor the client reports an error.

use pushback_crd::definition::path::field_path;
use pushback_crd::definition::{
    CROSS_VERSION_LOSS, Crd, PairLoss, StoredState, Upgrade, VersionLosses, listed, version_losses,
};
use pushback_crd::path::display_path;
use pushback_crd::schema::pipeline;
use pushback_objects::finding::{Finding, LiveObjects, Severity, Verdict};
use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use super::Found;
use super::checks::OnlyRejects;
use super::subject::{NAME, Subject};
use super::usage;
use crate::facts::Need;

/// Maximum number of fields that a message names.
const SHOWN: usize = 4;
/// Maximum number of affected objects kept by name.
const NAMES: usize = 5;
/// Part of the state: objects by the version that would take something from them.
const HELD: &str = "heldByObjects";

/// Returns the findings about clients of each served version, besides what other findings say of the same version.
pub(super) fn findings(subject: &Subject<'_>, others: &[Found], objects: Option<&Need>) -> Vec<Found> {
    let upgrade = &subject.upgrade;
    let now = version_losses(&upgrade.new, |version| upgrade.new_resource(version), upgrade.server);
    if now == VersionLosses::default() {
        return Vec::new();
    }
    let before = version_losses(&upgrade.old, |version| upgrade.old_resource(version), upgrade.server);
    let new = now.without(&before);
    let is_told = |version: &str, loss: &PairLoss| {
        let path = field_path(&loss.path);
        others.iter().any(|found| {
            found.finding.check == CROSS_VERSION_LOSS
                && found.finding.version.as_deref() == Some(version)
                && found.finding.path.as_deref().is_some_and(|told| is_below(&path, told))
        })
    };
    let mut findings = Vec::new();
    for (version, losses) in &new.stored {
        // A value of a field that is new in the version is lost by the first write.
        let told = upgrade.new.versions.iter().find(|it| it.storage).map(|it| it.name).unwrap_or_default();
        let paths: Vec<String> = losses.iter().filter(|loss| !is_told(told, loss)).map(shown).collect();
        if !paths.is_empty() {
            let message = format!(
                "what a client writes to {} at \"{version}\" is lost: it is stored as \"{told}\", which does not have {}",
                listed(&paths, SHOWN),
                if paths.len() == 1 { "this field" } else { "these fields" },
            );
            findings.push((finding(subject, version, &paths, message), false));
        }
    }
    for (version, losses) in &now.written_back {
        let is_new = |loss: &&PairLoss| new.written_back.get(version).is_some_and(|new| new.contains(loss));
        let fields = |is_wanted: bool| -> Vec<String> {
            let wanted = losses.iter().filter(|loss| is_new(loss) == is_wanted && !is_told(version, loss));
            wanted.map(shown).collect()
        };
        let [gained, known] = [fields(true), fields(false)];
        if !gained.is_empty() {
            let message = format!(
                "a client that writes an object back at \"{version}\" deletes {}, which only other versions have",
                listed(&gained, SHOWN)
            );
            findings.push((finding(subject, version, &gained, message), false));
        } else if !known.is_empty() {
            let message = format!(
                "a client that writes an object back at \"{version}\" deletes {}, which only other versions have; it was so \
                 before",
                listed(&known, SHOWN)
            );
            findings.push((finding(subject, version, &known, message), true));
        }
    }
    // Without the objects, nothing tells whether one holds what was lost before.
    findings.retain(|(_, is_known)| !is_known || objects.is_some());
    let found = findings.into_iter().map(|(finding, only_if_held)| {
        let only_rejects = OnlyRejects::Never;
        Found { finding, only_rejects, objects: objects.cloned(), only_if_held }
    });
    found.collect()
}

/// Whether a path is that of the other field, or of something in it.
fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
}

fn shown(loss: &PairLoss) -> String {
    let path = field_path(&loss.path);
    if path.is_empty() { "fields without a name in the schema".to_owned() } else { path }
}

fn finding(subject: &Subject<'_>, version: &str, paths: &[String], message: String) -> Finding {
    let change = subject.change;
    let position = change.desired.as_deref().map(|manifest| Crd::of(manifest).path_of_schema(version));
    let position = position.and_then(|path| change.locate(&path));
    let mut finding =
        Finding::new(NAME, CROSS_VERSION_LOSS, Verdict::Change, change.object.clone(), message).at(position);
    finding.version = Some(version.to_owned());
    finding.effect = Some("pruned".to_owned());
    finding.severity = Severity::Warning;
    let remedy = format!(
        "name the {} in the schema of \"{version}\" too, convert with a webhook, or stop serving \"{version}\" once no \
         client uses it",
        if paths.len() == 1 { "field" } else { "fields" }
    );
    finding.values(Some(json!(paths)), None).bound_to(&json!([version, paths])).remedy(remedy)
}

/// Whether a finding is about clients of a version.
pub(super) fn concerns(finding: &Finding) -> bool {
    finding.check == CROSS_VERSION_LOSS && finding.verdict == Verdict::Change && finding.path.is_none()
}

/// The objects that may hold the fields.
pub(super) fn need(subject: &Subject<'_>) -> Option<Need> {
    Need::objects_of(&StoredState::of(subject.change.live.as_deref()?))
}

/// Counts the objects of a page that hold something which a version lacks.
pub(super) fn fold(upgrade: &Upgrade<'_>, asked: &[&Found], state: &mut Value, page: &[&Value]) {
    for Found { finding, .. } in asked.iter().filter(|found| concerns(&found.finding)) {
        let version = finding.version.as_deref().unwrap_or_default();
        let Some(resource) = upgrade.new_resource(version) else { continue };
        let paths = finding.old.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let paths: Vec<&str> = paths.collect();
        for object in page {
            let pruned = pipeline::convert(&resource, object).pruned;
            let is_held = pruned.iter().any(|place| {
                let place = without_indexes(&display_path(place));
                paths.iter().any(|path| path.is_empty() || is_below(&place, path) || is_below(path, &place))
            });
            if is_held {
                add(state, version, object);
            }
        }
    }
}

/// A path with every item of a list for one of them.
fn without_indexes(path: &str) -> String {
    let mut text = String::new();
    for (index, part) in path.split('[').enumerate() {
        match part.split_once(']') {
            _ if index == 0 => text.push_str(part),
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.push_str("[*]");
                text.push_str(rest);
            }
            _ => {
                text.push('[');
                text.push_str(part);
            }
        }
    }
    text
}

fn add(state: &mut Value, version: &str, object: &Value) {
    if !state.is_object() {
        *state = json!({});
    }
    let counts = &mut state[HELD][version];
    if !counts.is_object() {
        *counts = json!({"count": 0, "names": []});
    }
    counts["count"] = json!(counts["count"].as_u64().unwrap_or_default() + 1);
    if let Some(names) = counts["names"].as_array_mut().filter(|names| names.len() < NAMES) {
        names.push(object.full_name().into());
    }
}

/// Adds what the objects show: how many hold such a field, and who writes at the version.
pub(super) fn annotate(finding: &mut Finding, live: &Value, state: &Value, writers: &Value, examined: u64) {
    let version = finding.version.clone().unwrap_or_default();
    let held = &state[HELD][&version];
    let names = held["names"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let affected = held["count"].as_u64().unwrap_or_default();
    finding.live_objects = Some(LiveObjects::exactly(affected, examined, names));
    let used = usage::of(&version, live, writers, examined);
    if !used.writers.is_empty() {
        finding.version_use = Some(used);
    }
}
