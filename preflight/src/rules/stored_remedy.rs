//! What to do about objects in old versions: the commands, in their order. Carried out literally they make the finding
//! go and bring no other.

use pushback_crd::definition::{Blocker, Crd, StoredState};
use pushback_objects::finding::Finding;
use pushback_objects::invocation::Invocation;
use pushback_objects::remedy::{Remedy, RemedyKind};

use crate::facts::Facts;
use crate::rules::crd_upgrade_safety::version_clients;

/// The remedy for a version that is removed and that objects may be stored in.
pub(super) fn of_removal(old: &Crd<'_>, version: &str) -> String {
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
            "{kept}, run `{migrate}` once that is deployed, and remove it in a later release; or deploy this one with \
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
        return vec![accepting_clients(Remedy::deployer(RemedyKind::AskCluster, step), command, finding)];
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
            let step = "apply with `--storage=bridge`: objects are carried over first, and nothing is written if one would \
                        lose a field";
            vec![accepting_clients(with_steps(step), again.with("--storage", "bridge"), finding)]
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
