//! What objects lose between the versions of one CRD under conversion strategy None: when they are stored, and when a
//! client writes them back at another version.

use std::collections::{BTreeMap, BTreeSet};

use super::pair::{LossKind, PairLoss, converted_losses};
use super::{Crd, Strategy};
use crate::schema::contain::Budget;
use crate::schema::pipeline::{Resource, Server};

/// What the served versions of a CRD lose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionLosses {
    /// By the version of a write: what the storage version does not have.
    pub stored: BTreeMap<String, Vec<PairLoss>>,
    /// By the version of a client that writes objects back unchanged: what this version does not have.
    pub written_back: BTreeMap<String, Vec<PairLoss>>,
}

/// Returns what the served versions of a CRD lose, without versions that lose nothing. Empty if a webhook converts, or if
/// there is only one version.
///
/// Schemas may be deeply nested: call it within [`crate::stack::with_room`].
#[must_use]
pub fn version_losses<'s>(
    crd: &Crd<'_>,
    resource: impl Fn(&str) -> Option<Resource<'s>>,
    server: Server,
) -> VersionLosses {
    let mut losses = VersionLosses::default();
    let storage = crd.versions.iter().find(|version| version.storage).map(|version| version.name);
    let Some(storage) = storage.filter(|_| crd.strategy() == Strategy::None) else { return losses };
    let others: Vec<&str> =
        crd.versions.iter().filter(|version| version.served && version.name != storage).map(|it| it.name).collect();
    // Every version is compared with every other one.
    let budget = Budget::of_one();
    let lost = |from: &str, to: &str| match (resource(from), resource(to)) {
        (Some(from), Some(to)) if from.schema.digest != to.schema.digest => {
            converted_losses(&from, &to, server, &budget)
        }
        _ => Vec::new(),
    };
    for version in &others {
        losses.stored.insert((*version).to_owned(), lost(version, storage));
    }
    // A client of the storage version loses what it cannot store, which is above.
    for through in &others {
        let mut all = lost(storage, through);
        // What is stored was valid where it was written, which need not be the storage version.
        for from in others.iter().filter(|from| *from != through) {
            let gone_before = &losses.stored[*from];
            let more: Vec<PairLoss> = lost(from, through)
                .into_iter()
                .filter(|loss| !all.iter().chain(gone_before).any(|known| known.includes(loss)))
                .collect();
            all.extend(more);
        }
        losses.written_back.insert((*through).to_owned(), all);
    }
    losses.stored.retain(|_, losses| !losses.is_empty());
    losses.written_back.retain(|_, losses| !losses.is_empty());
    losses
}

impl VersionLosses {
    /// Returns what is lost here and was not lost before.
    #[must_use]
    pub fn without(&self, before: &Self) -> Self {
        let new = |now: &BTreeMap<String, Vec<PairLoss>>, before: &BTreeMap<String, Vec<PairLoss>>| {
            let mut new = now.clone();
            for (version, losses) in &mut new {
                let known = before.get(version).map_or(&[][..], Vec::as_slice);
                losses.retain(|loss| !known.iter().any(|known| known.includes(loss)));
            }
            new.retain(|_, losses| !losses.is_empty());
            new
        };
        Self { stored: new(&self.stored, &before.stored), written_back: new(&self.written_back, &before.written_back) }
    }

    /// Names of the versions that lose something.
    #[must_use]
    pub fn versions(&self) -> BTreeSet<&str> {
        self.stored.keys().chain(self.written_back.keys()).map(String::as_str).collect()
    }
}

impl PairLoss {
    /// Whether everything that is lost for the other reason is lost for this one.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match self.kind {
            LossKind::Field => other.path.starts_with(&self.path),
            kind => kind == other.kind && other.path == self.path,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::Upgrade;
    use crate::definition::path::field_path;

    fn crd(versions: &[(&str, &[&str])]) -> Value {
        let version = |(name, fields): &(&str, &[&str])| {
            let fields: serde_json::Map<String, Value> =
                fields.iter().map(|it| ((*it).to_owned(), json!({"type": "string"}))).collect();
            let spec = json!({"type": "object", "properties": fields});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
            json!({"name": name, "served": true, "storage": *name == "v2", "schema": schema})
        };
        json!({"metadata": {"name": "foos.ex.com"}, "spec": {"group": "ex.com", "names": {"kind": "Foo", "plural": "foos"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()}})
    }

    fn losses(value: &Value) -> VersionLosses {
        let upgrade = Upgrade::of(value, value, Server::default());
        version_losses(&upgrade.new, |name| upgrade.new_resource(name), Server::default())
    }

    fn lines(losses: &VersionLosses) -> Vec<String> {
        let of = |what: &'static str, by: &BTreeMap<String, Vec<PairLoss>>| -> Vec<String> {
            let line = |version: &String, loss: &PairLoss| format!("{what} {version} {}", field_path(&loss.path));
            by.iter().flat_map(|(version, all)| all.iter().map(move |loss| line(version, loss))).collect()
        };
        [of("stored", &losses.stored), of("back", &losses.written_back)].concat()
    }

    #[test]
    fn losses_that_were_there_before_are_not_new() {
        let old = losses(&crd(&[("v1", &["a"]), ("v2", &["a", "b"])]));
        let new = losses(&crd(&[("v1", &["a", "d"]), ("v2", &["a", "b", "c"])]));
        assert_eq!(lines(&new), ["stored v1 spec.d", "back v1 spec.b", "back v1 spec.c"]);
        assert_eq!(lines(&new.without(&old)), ["stored v1 spec.d", "back v1 spec.c"]);
        let three = losses(&crd(&[("v1", &["a"]), ("v2", &["a", "b"]), ("v3", &["a", "b", "e"])]));
        assert_eq!(lines(&three), ["stored v3 spec.e", "back v1 spec.b"], "what is not stored is not lost later");
    }

    #[test]
    fn equal_versions_and_webhooks_lose_nothing() {
        assert_eq!(losses(&crd(&[("v1", &["a"]), ("v2", &["a"])])), VersionLosses::default());
        let mut webhook = crd(&[("v1", &["a"]), ("v2", &["a", "b"])]);
        webhook["spec"]["conversion"] = json!({"strategy": "Webhook"});
        assert_eq!(losses(&webhook), VersionLosses::default());
    }
}
