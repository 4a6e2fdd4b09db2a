//! How the stored objects of a definition get through an update that drops the version which they are stored in, or that
//! changes the storage version.

use serde_json::{Value, json};

use super::crd::{Crd, Strategy};
use super::stored::{CONVERTING, StoredState};

/// What may be done about stored objects, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoragePolicy {
    /// Nothing; an update that would strand objects is refused.
    #[default]
    Refuse,
    /// Nothing; that objects are stored in an older version is left for later.
    Defer,
    /// Objects are moved to the storage version. A version is never removed by the run that changes the storage version.
    Migrate,
    /// Like `Migrate`; a storage version that goes is carried over by a definition with the old and the new versions.
    Bridge,
}

impl StoragePolicy {
    /// The names of all policies, the least first.
    pub const NAMES: [&str; 4] = ["refuse", "defer", "migrate", "bridge"];

    /// The name of the policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The policy with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Refuse, Self::Defer, Self::Migrate, Self::Bridge];
        Self::NAMES.iter().position(|known| *known == name).map(|index| all[index])
    }
}

/// What is done to the objects of one definition when it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum CarryOver {
    /// They are moved to the present storage version; then the definition is written.
    Before,
    /// This definition is written, which has the old versions beside the new ones; they are moved; then the wanted
    /// definition is written.
    Bridge(Value),
    /// The definition is written; then they are moved to its storage version.
    After,
    /// This definition is written, which stores objects as before: the webhook that converts them comes in the same run.
    /// Once it is ready, the wanted definition is written, and they are moved.
    WebhookFirst(Value),
    /// They have been moved already, by this run or one that was stopped: the definition is written.
    Done,
}

/// Versions that objects may be stored in, and that the wanted definition does not have.
#[must_use]
pub fn dropped_versions<'a>(live: &'a Value, wanted: &Value) -> Vec<&'a str> {
    let wanted = Crd::of(wanted);
    Crd::of(live).stored_versions().into_iter().filter(|name| wanted.version(name).is_none()).collect()
}

/// What is done to the objects; `None` if nothing is, because nothing is needed or the policy does not allow it.
#[must_use]
pub fn carry_over(live: &Value, wanted: &Value, policy: StoragePolicy) -> Option<CarryOver> {
    let (old, new) = (StoredState::of(live), StoredState::of(wanted));
    let (Some(old_storage), Some(new_storage)) = (&old.storage, &new.storage) else { return None };
    if matches!(policy, StoragePolicy::Refuse | StoragePolicy::Defer) || old.uid.is_empty() {
        return None;
    }
    let dropped = dropped_versions(live, wanted);
    if dropped.is_empty() {
        let is_settled_after = old.stored.iter().chain([old_storage]).all(|stored| stored == new_storage);
        let removes = old.versions.iter().any(|(name, _)| new.is_served(name).is_none());
        return match is_settled_after {
            false => Some(CarryOver::After),
            true => (removes && policy == StoragePolicy::Bridge).then_some(CarryOver::Done),
        };
    }
    if !dropped.contains(&old_storage.as_str()) {
        return Some(CarryOver::Before);
    }
    (policy == StoragePolicy::Bridge).then(|| CarryOver::Bridge(bridge(live, wanted, &dropped)))
}

/// The Service that converts between versions, as namespace and name.
#[must_use]
pub fn conversion_service(definition: &Value) -> Option<(&str, &str)> {
    if Crd::of(definition).strategy() != Strategy::Webhook {
        return None;
    }
    let service = definition.pointer("/spec/conversion/webhook/clientConfig/service")?;
    let text = |key: &str| service.get(key).and_then(Value::as_str);
    Some((text("namespace")?, text("name")?))
}

/// The wanted definition with the storage version of the live one, for a webhook that is to know all versions before
/// objects are stored in a new one. `None` if the live definition has these versions and this webhook already.
#[must_use]
pub fn webhook_first(live: &Value, wanted: &Value) -> Option<Value> {
    let service = conversion_service(wanted)?;
    let storage = StoredState::of(live).storage?;
    let (old, new) = (Crd::of(live), Crd::of(wanted));
    new.version(&storage)?;
    let is_known = new.versions.iter().all(|version| old.version(version.name).is_some());
    if is_known && conversion_service(live) == Some(service) {
        return None;
    }
    let mut first = wanted.clone();
    for version in first.pointer_mut("/spec/versions")?.as_array_mut()? {
        version["storage"] = (version.get("name").and_then(Value::as_str) == Some(&storage)).into();
    }
    Some(first)
}

/// The wanted definition with the dropped versions of the live one. Objects are converted between them as the live
/// definition converts: a webhook of the new release is not there yet.
fn bridge(live: &Value, wanted: &Value, dropped: &[&str]) -> Value {
    let mut bridge = wanted.clone();
    let entry_of = |name: &str| {
        let versions = live.pointer("/spec/versions").and_then(Value::as_array)?;
        versions.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(name)).cloned()
    };
    if let Some(versions) = bridge.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        for mut entry in dropped.iter().filter_map(|name| entry_of(name)) {
            entry["storage"] = false.into();
            versions.push(entry);
        }
    }
    if let Some(spec) = bridge.get_mut("spec").and_then(Value::as_object_mut) {
        match live.pointer("/spec/conversion") {
            Some(conversion) => spec.insert("conversion".to_owned(), conversion.clone()),
            None => spec.shift_remove("conversion"),
        };
    }
    bridge
}

/// The bridge for objects that are converted by a plan, from the live storage version to the wanted one: the new version
/// takes objects of both shapes, and nobody writes them in the old one any more.
#[must_use]
pub fn converting_bridge(live: &Value, wanted: &Value) -> Option<Value> {
    let (from, to) = (StoredState::of(live).storage?, StoredState::of(wanted).storage?);
    let mut bridge = bridge(live, wanted, &dropped_versions(live, wanted));
    let spec = bridge.get_mut("spec")?.as_object_mut()?;
    spec.shift_remove("conversion");
    for version in spec.get_mut("versions")?.as_array_mut()? {
        let is_target = version.get("name").and_then(Value::as_str) == Some(&to);
        version["served"] = is_target.into();
        let Some(version) = version.as_object_mut().filter(|_| is_target) else { continue };
        let has_status = version.get("subresources").is_some_and(|it| it.get("status").is_some());
        let kept = ["name", "served", "storage"];
        version.retain(|key, _| kept.contains(&key.as_str()));
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        version.insert("schema".to_owned(), json!({"openAPIV3Schema": open}));
        if has_status {
            version.insert("subresources".to_owned(), json!({"status": {}}));
        }
    }
    bridge["metadata"]["annotations"][CONVERTING] = from.into();
    Some(bridge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(versions: &[(&str, bool)], stored: &[&str]) -> Value {
        let version = |(name, storage): &(&str, bool)| json!({"name": name, "served": true, "storage": storage});
        let status = if stored.is_empty() { json!({}) } else { json!({"storedVersions": stored}) };
        let uid = if stored.is_empty() { "" } else { "u" };
        json!({
            "metadata": {"name": "cogs.ex.com", "uid": uid},
            "spec": {"versions": versions.iter().map(version).collect::<Vec<_>>()}, "status": status,
        })
    }

    #[test]
    fn what_is_done_goes_by_the_versions_that_go() {
        let wanted = definition(&[("v2", true)], &[]);
        let both = definition(&[("v1", false), ("v2", true)], &[]);
        let at_v1 = definition(&[("v1", true)], &["v1"]);
        let flipped = definition(&[("v1", false), ("v2", true)], &["v1", "v2"]);
        let settled = definition(&[("v1", false), ("v2", true)], &["v2"]);
        let migrate = |live: &Value, wanted: &Value| carry_over(live, wanted, StoragePolicy::Migrate);
        assert_eq!(migrate(&flipped, &wanted), Some(CarryOver::Before));
        assert_eq!(migrate(&at_v1, &both), Some(CarryOver::After));
        assert_eq!(migrate(&flipped, &both), Some(CarryOver::After));
        assert_eq!(migrate(&settled, &wanted), None);
        assert_eq!(carry_over(&settled, &wanted, StoragePolicy::Bridge), Some(CarryOver::Done));
        assert_eq!(carry_over(&settled, &both, StoragePolicy::Bridge), None);
        assert_eq!(
            migrate(&at_v1, &wanted),
            None,
            "a version is not removed by the run that changes the storage version"
        );
        let Some(CarryOver::Bridge(bridge)) = carry_over(&at_v1, &wanted, StoragePolicy::Bridge) else {
            panic!("a bridge is needed");
        };
        assert_eq!(
            bridge["spec"]["versions"],
            json!([
                {"name": "v2", "served": true, "storage": true},
                {"name": "v1", "served": true, "storage": false},
            ])
        );
        for policy in [StoragePolicy::Refuse, StoragePolicy::Defer] {
            assert_eq!(carry_over(&flipped, &both, policy), None);
        }
        assert_eq!(carry_over(&both, &wanted, StoragePolicy::Bridge), None, "no live definition");
    }

    #[test]
    fn a_bridge_converts_as_the_live_definition_does() {
        let (mut live, mut wanted) = (definition(&[("v1", true)], &["v1"]), definition(&[("v2", true)], &[]));
        wanted["spec"]["conversion"] = json!({"strategy": "Webhook"});
        let conversion = |live: &Value, wanted: &Value| match carry_over(live, wanted, StoragePolicy::Bridge) {
            Some(CarryOver::Bridge(bridge)) => bridge["spec"]["conversion"].clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(conversion(&live, &wanted), Value::Null);
        live["spec"]["conversion"] = json!({"strategy": "None"});
        assert_eq!(conversion(&live, &wanted), json!({"strategy": "None"}));
    }

    #[test]
    fn a_webhook_of_the_same_run_comes_before_the_storage_version_changes() {
        let service = json!({"namespace": "ops", "name": "converter"});
        let webhook = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}});
        let live = definition(&[("v1", true)], &["v1"]);
        let mut wanted = definition(&[("v1", false), ("v2", true)], &[]);
        assert_eq!(webhook_first(&live, &wanted), None, "no webhook");
        wanted["spec"]["conversion"] = webhook;
        let first = webhook_first(&live, &wanted).expect("the webhook is new");
        assert_eq!(StoredState::of(&first).storage.as_deref(), Some("v1"));
        assert_eq!(first["spec"]["conversion"], wanted["spec"]["conversion"]);
        assert_eq!(webhook_first(&first, &wanted), None, "it is there");
        wanted["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"] = json!("another");
        assert!(webhook_first(&first, &wanted).is_some(), "another one is not");
        let gone = definition(&[("v2", true)], &[]);
        assert_eq!(webhook_first(&live, &gone), None, "the old version goes");
    }
}
