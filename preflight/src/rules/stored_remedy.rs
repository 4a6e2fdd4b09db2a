//! What to do about objects in old versions: the commands, in their order. Carried out literally they make the finding
//! go and bring no other.

use pushback_crd::definition::path::field_path;
use pushback_crd::definition::{Blocker, Crd, LossKind, PairLoss, StoredState, Upgrade, listed, pair_losses};
use pushback_crd::stack;
use pushback_objects::finding::Finding;
use pushback_objects::invocation::Invocation;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::Value;

use crate::facts::{Change, Facts};
use crate::rules::crd_upgrade_safety::{lost_field, version_clients};
use crate::rules::remedies::correct_objects;

/// File that a drafted conversion plan is written to.
const PLAN: &str = "conversion-plan.yaml";

/// Most renamed fields that a step names.
const RENAMES: usize = 4;

/// The remedy for a version that is removed and that objects may be stored in. `with` names the fields that other versions
/// need if it is kept, as `, and keep spec.a in "v1" too`.
pub(super) fn of_removal(old: &Crd<'_>, version: &str, with: &str) -> String {
    let state = StoredState::of(old.value);
    let definition = &state.definition;
    let migrate = migrate(definition);
    // Files do not show what is stored, and are not where objects are moved.
    if !old.knows_stored_versions() {
        let kept = match old.version(version) {
            Some(kept) if kept.served && !kept.deprecated => {
                "keep serving it with `storage: false` and `deprecated: true`"
            }
            Some(kept) if kept.served => "keep serving it with `storage: false`",
            _ => "keep it with `storage: false`",
        };
        return format!(
            "{kept}{with}, run `{migrate}` once that is deployed, and remove it in a later release; or deploy this one with \
             `--storage=bridge`"
        );
    }
    let Some(is_served) = state.is_served(version) else {
        return format!(
            "run `{migrate}`: it proves that no object is stored in \"{version}\", and takes it off the list"
        );
    };
    let clients = old
        .version(version)
        .filter(|version| version.served && !version.deprecated)
        .map(|version| format!("; clients that still request \"{}\" get 404 then", version.name));
    let clients = clients.unwrap_or_default();
    if state.storage.as_deref() == Some(version) {
        return format!(
            "apply with `--storage=bridge`: objects are carried over first, and nothing is written if one would lose a \
             field{clients}"
        );
    }
    let remove = format!("`pushback storage remove {definition} {version}`");
    let off = if is_served {
        format!(
            "once no client uses \"{version}\" any more, `pushback storage unserve {definition} {version}` and {remove}"
        )
    } else {
        format!("then {remove}")
    };
    format!(
        "{}apply with `--storage=migrate`: objects are moved first{clients}; or, step by step, run `{migrate}`, and {off}",
        first(&state)
    )
}

/// The remedy for another storage version.
pub(super) fn of_storage_change(old: &Crd<'_>) -> String {
    let state = StoredState::of(old.value);
    format!("apply with `--storage=migrate`, or run `{}` afterwards", migrate(&state.definition))
}

/// The remedy for versions that are listed besides the storage version.
pub(super) fn of_debt(state: &StoredState) -> String {
    format!("{}run `{}`", first(state), migrate(&state.definition))
}

/// The remedy for field owners at a version that is removed.
pub(super) fn of_owners(state: &StoredState) -> String {
    format!("{}run `{}`: it moves the entries to the storage version", first(state), migrate(&state.definition))
}

/// The ways out of a finding about the version that objects are stored in, or were written in; the best first.
pub(super) fn ways(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let change = facts.changes.find(&finding.object.key());
    let Some(live) = change.and_then(|change| change.live.as_deref()) else { return Vec::new() };
    let again = &facts.invocation;
    if !facts.are_of_a_server() {
        let step = "deploy it with `--storage=bridge`, which carries the objects over first; judge that against the cluster: \
                    files do not show what is stored";
        let command = again.with("--cluster", "kube").with("--storage", "bridge");
        let ask = accepting_clients(Remedy::deployer(RemedyKind::AskCluster, step), command, finding);
        return convert(facts, finding).into_iter().chain([ask]).collect();
    }
    let state = StoredState::of(live);
    let definition = state.definition.as_str();
    let storage = |words: &[&str]| again.command(&[&["storage"], words].concat()).to_string();
    let with_steps = |step: &str| moving(&state, step);
    let debt = || debt(facts, &state);
    let Some(version) = finding.version.as_deref() else { return vec![debt()] };
    let wanted = change.and_then(|change| change.desired.as_deref());
    let goes = wanted.is_some_and(|wanted| Crd::of(wanted).version(version).is_none());
    match state.is_served(version) {
        _ if !goes && state.storage.as_deref() == Some(version) => vec![debt()],
        None => vec![debt()],
        Some(_) if state.storage.as_deref() == Some(version) => {
            let has_objects = finding.live_objects.as_ref().is_none_or(|live| live.examined > 0);
            let step = match has_objects {
                true => {
                    "apply with `--storage=bridge`: objects are carried over first, and nothing is written if one would lose a \
                     field"
                }
                false => {
                    "apply with `--storage=bridge`: it proves that no object is stored, and takes the version off the list"
                }
            };
            let bridge = accepting_clients(with_steps(step), again.with("--storage", "bridge"), finding);
            convert(facts, finding).filter(|_| has_objects).into_iter().chain([bridge]).collect()
        }
        Some(is_served) => {
            let moves = with_steps("apply with `--storage=migrate`: objects are moved first");
            let moves = accepting_clients(moves, again.with("--storage", "migrate"), finding);
            if !goes {
                return vec![moves];
            }
            let unserve = is_served.then(|| storage(&["unserve", definition, version]));
            let by_hand =
                "or step by step: move the objects, stop serving the version once no client uses it, remove it";
            let commands = [storage(&["migrate", definition])].into_iter().chain(unserve);
            let commands = commands.chain([storage(&["remove", definition, version]), again.to_string()]);
            vec![moves, with_steps(by_hand).commands(commands)]
        }
    }
}

/// Converts the stored objects by a plan, where a field that the new version lacks seems to have another name there.
fn convert(facts: &Facts, finding: &Finding) -> Option<Remedy> {
    let change = facts.changes.find(&finding.object.key())?;
    let (live, wanted) = (change.live.as_deref()?, change.after()?);
    let from = finding.version.as_deref()?;
    let to = StoredState::of(wanted).storage?;
    let is_bridged = Crd::of(wanted).version(from).is_none();
    if !is_bridged || facts.conversion_plan(&StoredState::of(live).definition).is_some() {
        return None;
    }
    let renames = renames(facts, (live, wanted), (from, &to));
    (!renames.is_empty()).then(|| by_a_plan(facts, finding, &renames)).flatten()
}

/// Fields that seem to have another name in the other version, each with a sentence: `spec.colour` may be `color`.
fn renames(facts: &Facts, (live, wanted): (&Value, &Value), (from, to): (&str, &str)) -> Vec<(String, String)> {
    let upgrade = Upgrade::of(live, wanted, facts.cluster.judged_server());
    let losses = stack::with_room(|| pair_losses((live, from), (wanted, to))).unwrap_or_default();
    let renamed = |loss: &PairLoss| {
        let name = lost_field::renamed_to(&upgrade, (from, to), &loss.path)?;
        let field = field_path(&loss.path);
        let sentence = format!("`{field}` of {from} may be `{name}` of {to}");
        Some((field, sentence))
    };
    losses.iter().filter(|loss| loss.kind == LossKind::Field).filter_map(renamed).collect()
}

/// Drafts a conversion plan, and applies with it.
fn by_a_plan(facts: &Facts, finding: &Finding, renames: &[(String, String)]) -> Option<Remedy> {
    let change = facts.changes.find(&finding.object.key())?;
    let sentences: Vec<&str> = renames.iter().map(|(_, sentence)| sentence.as_str()).collect();
    let guess = if sentences.is_empty() { String::new() } else { format!("{}: ", listed(&sentences, RENAMES)) };
    let draft = format!("{guess}draft a conversion plan, and check each of its lines");
    let apply = "apply with the plan and `--storage=bridge`, which converts the objects first".to_owned();
    let again = match facts.are_of_a_server() {
        true => facts.invocation.clone(),
        false => facts.invocation.with("--cluster", "kube"),
    };
    let again = again.with_flag("-f").with_flag(PLAN).with("--storage", "bridge");
    let suggest = format!("{} > {PLAN}", suggest(facts, change)?);
    let with_plan = version_clients::accepting(&again, finding).to_string();
    let mut remedy = accepting_clients(Remedy::deployer(RemedyKind::MoveObjects, draft), again, finding);
    remedy.steps.insert(1, apply);
    Some(remedy.commands([suggest, with_plan]))
}

/// The command that drafts a conversion plan for a CRD of the manifests; `None` if no file has it.
pub(super) fn suggest(facts: &Facts, change: &Change) -> Option<String> {
    let file = change.positions.as_ref().map(|positions| positions.file())?;
    let is_file = !file.is_empty() && file != "-" && !file.contains("://");
    let suggest = ["storage", "suggest", change.object.name.as_str(), "--crd", file, "--live"];
    is_file.then(|| facts.invocation.command(&suggest).to_string())
}

/// The ways out of a finding about objects that `--storage` cannot carry over.
pub(crate) fn ways_past_obstacle(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let author = finding.remedy.iter().map(Remedy::author);
    let Some(change) = facts.changes.find(&finding.object.key()) else { return author.collect() };
    let (Some(live), Some(wanted)) = (change.live.as_deref(), change.after()) else { return author.collect() };
    let state = StoredState::of(live);
    let own: Vec<Remedy> = match finding.check.as_str() {
        "loss" => {
            let from = state.storage.unwrap_or_default();
            let is_bridged = Crd::of(wanted).version(&from).is_none();
            let to = finding.version.clone().unwrap_or_default();
            let renames = renames(facts, (live, wanted), (&from, &to));
            let is_renamed = renames.iter().any(|(field, _)| Some(field) == finding.path.as_ref());
            let of_clients = Finding { version: Some(from), ..finding.clone() };
            let plan = is_bridged.then(|| by_a_plan(facts, &of_clients, &renames)).flatten();
            let correct = correct_objects(facts, finding);
            // A plan has to give a reason for every field that is gone, in whatever object it is.
            if is_renamed {
                plan.into_iter().chain(correct).collect()
            } else {
                correct.into_iter().chain(plan).collect()
            }
        }
        "conversion" => {
            let step = "correct the object that the message names, or the plan, and run it again";
            vec![Remedy::deployer(RemedyKind::CorrectObjects, step).commands([facts.invocation.to_string()])]
        }
        "resume" => {
            let step = "apply with `--storage=bridge` and the same conversion plan, so that the conversion continues";
            let again = facts.invocation.with("--storage", "bridge").to_string();
            vec![Remedy::deployer(RemedyKind::MoveObjects, step).commands([again])]
        }
        _ => Vec::new(),
    };
    own.into_iter().chain(author).collect()
}

/// Moves the objects of a CRD to its storage version before the same run is repeated.
fn debt(facts: &Facts, state: &StoredState) -> Remedy {
    let migrate = facts.invocation.command(&["storage", "migrate", &state.definition]).to_string();
    let step = "move the objects to the storage version, which is proved, and take old versions off the list";
    moving(state, step).commands([migrate, facts.invocation.to_string()])
}

/// Moves the objects of a CRD, after what is in the way of that.
fn moving(state: &StoredState, step: &str) -> Remedy {
    let mut remedy = Remedy::deployer(RemedyKind::MoveObjects, step);
    remedy.steps.splice(0..0, obstacles(state));
    remedy
}

/// Moves the objects of a version first that is no longer served. It helps if the version is marked as deprecated: once no
/// object is stored in it, its clients have been warned.
pub(super) fn before_unserving(facts: &Facts, finding: &Finding) -> Option<Remedy> {
    let live = facts.changes.find(&finding.object.key())?.live.as_deref().filter(|_| facts.are_of_a_server())?;
    let (crd, state, version) = (Crd::of(live), StoredState::of(live), finding.version.as_deref()?);
    let is_movable = state.storage.as_deref() != Some(version) && state.stored.iter().any(|stored| stored == version);
    let is_deprecated = crd.version(version).is_some_and(|version| version.deprecated);
    (finding.check == "servedVersionUnserved" && is_movable && is_deprecated).then(|| debt(facts, &state))
}

/// Adds the command of a remedy, with a waiver for each finding about clients of the version: moving its objects does not
/// help them.
fn accepting_clients(mut remedy: Remedy, again: Invocation, finding: &Finding) -> Remedy {
    if let (Some(version), false) = (&finding.version, finding.client_waivers.is_empty()) {
        remedy.steps.push(format!(
            "clients that request {version} get 404 afterwards: keep `--waive` in the command only if none does"
        ));
    }
    remedy.commands([version_clients::accepting(&again, finding).to_string()])
}

fn migrate(definition: &str) -> String {
    format!("pushback storage migrate {definition}")
}

/// What has to be done before objects can be rewritten.
fn first(state: &StoredState) -> String {
    obstacles(state).map(|step| format!("{step}; then ")).collect()
}

/// The same, a step each.
fn obstacles(state: &StoredState) -> impl Iterator<Item = String> {
    state.blockers().into_iter().filter_map(|blocker| match blocker {
        Blocker::NotServed(version) => {
            Some(format!("serve \"{version}\": objects can only be rewritten at a served version"))
        }
        Blocker::Migrating => Some("wait until the cluster's own StorageVersionMigration has ended".to_owned()),
        Blocker::Converting(_) => Some("run the apply again that converts its objects".to_owned()),
        Blocker::Terminating | Blocker::NotEstablished | Blocker::NoStorageVersion => None,
    })
}
