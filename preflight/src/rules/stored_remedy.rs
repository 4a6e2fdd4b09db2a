//! What to do about objects in old versions: the commands, in their order. Carried out literally they make the finding
//! go and bring no other.

use pushback_crd::definition::{Blocker, Crd, StoredState};

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
    if state.storage.as_deref() == Some(version) {
        return "apply with `--storage=bridge`: objects are carried over first, and nothing is written if one would lose a \
                field"
            .to_owned();
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
        "{}apply with `--storage=migrate`: objects are moved first; or, step by step, run `{migrate}`, and {off}",
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

fn migrate(definition: &str) -> String {
    format!("pushback storage migrate {definition}")
}

/// What has to be done before objects can be rewritten.
fn first(state: &StoredState) -> String {
    let steps = state.blockers().into_iter().filter_map(|blocker| match blocker {
        Blocker::NotServed(version) => {
            Some(format!("serve \"{version}\": objects can only be rewritten at a served version"))
        }
        Blocker::Migrating => Some("wait until the cluster's own StorageVersionMigration has ended".to_owned()),
        Blocker::Converting(_) => Some("run the apply again that converts its objects".to_owned()),
        Blocker::Terminating | Blocker::NotEstablished | Blocker::NoStorageVersion => None,
    });
    steps.map(|step| format!("{step}; then ")).collect()
}
