//! What an app owns: every object with its uid and the digests that reveal changes since.
//! Small inventories are stored in the record, large ones in shards.

use std::collections::BTreeMap;

use pushback_objects::ObjectKey;
use serde::{Deserialize, Serialize};

/// Maximum size of a shard; a ConfigMap holds one MiB, an entry about 250 bytes.
const SHARD_BYTES: usize = 600 * 1024;
/// Up to this size the inventory is stored in the record, so that there is nothing else to write, read or lose.
const INLINE_BYTES: usize = 160 * 1024;

/// The recorded state of an owned object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// API version in which it was applied.
    pub version: String,
    /// Its uid; empty until its creation is confirmed.
    pub uid: String,
    /// Digest of the manifest as sent; empty if it must not be compared.
    pub manifest_digest: String,
    /// Digest of the live values that we own; empty if they must not be compared.
    pub live_digest: String,
}

/// All objects of an app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    entries: BTreeMap<ObjectKey, Entry>,
}

/// One entry as it is stored: group, kind, namespace, name, version, uid, manifest digest, live digest.
#[derive(Serialize, Deserialize)]
struct StoredEntry(String, String, String, String, String, String, String, String);

impl Inventory {
    /// The entry of an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Adds or replaces an entry.
    pub fn insert(&mut self, key: ObjectKey, entry: Entry) {
        self.entries.insert(key, entry);
    }

    /// Removes and returns an entry.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Entry> {
        self.entries.remove(key)
    }

    /// All entries, sorted by object.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Entry)> {
        self.entries.iter()
    }

    /// Whether an object with this uid is listed.
    #[must_use]
    pub fn owns(&self, key: &ObjectKey, uid: &str) -> bool {
        !uid.is_empty() && self.get(key).is_some_and(|entry| entry.uid == uid)
    }

    /// The text of each shard; a single one if it fits the record.
    #[must_use]
    pub fn to_shards(&self) -> Vec<String> {
        let mut shards = Vec::new();
        let mut current = String::from("[");
        for (key, entry) in &self.entries {
            let stored = StoredEntry(
                key.group.clone(),
                key.kind.clone(),
                key.namespace.clone(),
                key.name.clone(),
                entry.version.clone(),
                entry.uid.clone(),
                entry.manifest_digest.clone(),
                entry.live_digest.clone(),
            );
            let text = serde_json::to_string(&stored).unwrap_or_default();
            if current.len() + text.len() > SHARD_BYTES {
                current.push(']');
                shards.push(std::mem::replace(&mut current, String::from("[")));
            }
            if current.len() > 1 {
                current.push_str(",\n");
            }
            current.push_str(&text);
        }
        current.push(']');
        shards.push(current);
        shards
    }

    /// Whether these shards fit into the record.
    #[must_use]
    pub fn fits_record(shards: &[String]) -> bool {
        shards.len() == 1 && shards[0].len() <= INLINE_BYTES
    }

    /// Adds the entries of one shard.
    ///
    /// # Errors
    /// The text is not a shard.
    pub fn add_shard(&mut self, text: &str) -> Result<(), serde_json::Error> {
        let read = |stored: StoredEntry| {
            let StoredEntry(group, kind, namespace, name, version, uid, manifest_digest, live_digest) = stored;
            (ObjectKey { group, kind, namespace, name }, Entry { version, uid, manifest_digest, live_digest })
        };
        // The entries are sorted: built at once, the map compares each key only with its neighbour.
        self.entries.append(&mut serde_json::from_str::<Vec<StoredEntry>>(text)?.into_iter().map(read).collect());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(count: usize) -> Inventory {
        let mut inventory = Inventory::default();
        for number in 0..count {
            let key = ObjectKey {
                group: String::new(),
                kind: "ConfigMap".to_owned(),
                namespace: "shop".to_owned(),
                name: format!("object-{number}"),
            };
            let entry = Entry {
                version: "v1".to_owned(),
                uid: format!("{number:036}"),
                manifest_digest: "m".repeat(32),
                live_digest: "l".repeat(32),
            };
            inventory.insert(key, entry);
        }
        inventory
    }

    #[test]
    fn ten_thousand_objects_come_back_from_shards_that_fit_a_config_map() {
        let before = inventory(10_000);
        let shards = before.to_shards();
        assert!(shards.len() > 1 && shards.iter().all(|shard| shard.len() < 1_000_000));
        assert!(!Inventory::fits_record(&shards));
        let mut after = Inventory::default();
        for shard in &shards {
            after.add_shard(shard).expect("a shard that was written is read");
        }
        assert_eq!(after, before);
    }

    #[test]
    fn a_small_inventory_fits_the_record() {
        assert!(Inventory::fits_record(&inventory(300).to_shards()));
        assert!(Inventory::fits_record(&Inventory::default().to_shards()));
    }
}
