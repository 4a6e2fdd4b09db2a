//! The digests of a saved plan. What is masked enters them only with a key that the plan does not hold: without one, a
//! short password could be guessed from its digest.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pushback_app::identity::{has_copy, without_copy};
use pushback_cluster::managed_fields as fields;
use pushback_manifest::config::Config;
use pushback_manifest::config::mask::{Cover, Masker};
use pushback_manifest::config::path::set_at;
use pushback_manifest::{FileDigest, Manifest};
use pushback_objects::source::display_path;
use pushback_objects::{ObjectExt, hex};
use pushback_preflight::{Operation, TakenFrom};
use ring::hmac;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{SavedFile, SavedObject, SecretBinding};
use crate::plan::digest::{canonical, own_entry};
use crate::plan::permission_fields::shown_fields;
use crate::plan::{Difference, Planned, diff};

/// Bytes of a digest.
const LENGTH: usize = 16;

/// Metadata that is not the server's own.
const OWN_METADATA: [&str; 3] = ["labels", "annotations", "finalizers"];

/// Makes the digests of a plan.
#[derive(Debug)]
pub struct Digests {
    masker: Masker,
    key: Option<hmac::Key>,
}

impl Digests {
    /// Digests with this key for what the Config masks; without a key, its values do not count.
    #[must_use]
    pub fn new(config: &Config, key: Option<&[u8]>) -> Self {
        let key = key.map(|key| hmac::Key::new(hmac::HMAC_SHA256, key));
        Self { masker: Masker::new(&config.diff_mask_rules), key }
    }

    /// How values of Secrets are bound.
    #[must_use]
    pub fn binding(&self) -> SecretBinding {
        if self.key.is_some() { SecretBinding::Keyed } else { SecretBinding::NamesOnly }
    }

    /// Whether any of these has values that are not bound.
    #[must_use]
    pub fn leaves_out_secrets(&self, manifests: &[Manifest]) -> bool {
        self.key.is_none() && manifests.iter().any(|manifest| self.is_secret(&manifest.value))
    }

    /// Digests of the input's files.
    #[must_use]
    pub fn files(&self, files: &[FileDigest], manifests: &[Manifest]) -> Vec<SavedFile> {
        let mut by_file: BTreeMap<&str, (bool, Vec<&Value>)> = BTreeMap::new();
        for Manifest { value, positions, .. } in manifests {
            let (has_secrets, objects) = by_file.entry(positions.file()).or_default();
            *has_secrets |= self.is_secret(value);
            objects.push(value);
        }
        let digest = |file: &FileDigest| match (by_file.get(file.name.as_str()), &self.key) {
            (Some((true, _)), Some(_)) => self.secret(&hex::encode(&file.sha256)),
            // Its bytes hold the values: its objects without them stand for it.
            (Some((true, objects)), None) => {
                plain(&objects.iter().map(|object| self.object(object)).collect::<Vec<_>>().join(" "))
            }
            _ => hex::encode(&file.sha256[..LENGTH]),
        };
        files.iter().map(|file| SavedFile { name: file.name.clone(), digest: digest(file) }).collect()
    }

    /// The line of an object.
    #[must_use]
    pub fn line(&self, planned: &Planned) -> SavedObject {
        let live = planned.live.as_deref();
        let mut line = SavedObject {
            object: planned.object.clone(),
            operation: planned.operation(),
            orphaned: planned.is_orphaned(),
            ownership_only: planned.changes_no_value(),
            uid: live.map(ObjectExt::uid).unwrap_or_default().to_owned(),
            ..SavedObject::default()
        };
        match planned.operation() {
            Operation::Noop => line.live = live.map(|live| self.live(planned, live)).unwrap_or_default(),
            Operation::Create | Operation::Update | Operation::Exists => {}
            Operation::Replace | Operation::Delete => {
                line.parts = live.map(|live| self.parts(live)).unwrap_or_default();
            }
        }
        if planned.operation().writes() {
            let sides = [&planned.live, &planned.desired, &planned.result].into_iter().flatten();
            let cover = self.masker.cover(sides.map(|object| &**object));
            line.manifest = planned.desired.as_deref().map(|desired| self.object(desired)).unwrap_or_default();
            line.change = self.change(planned, &cover);
            line.fields = shown_fields(planned, &|path| cover.hides(path));
            line.notes.clone_from(&planned.notes);
            line.position = planned.locate(&[]);
        }
        line
    }

    /// Digest of what the app has set of an object that stays as it is.
    fn live(&self, planned: &Planned, live: &Value) -> String {
        if !self.is_secret(live) {
            let known = planned.live_digest.of(live);
            if !known.is_empty() {
                return known.to_owned();
            }
        }
        self.object(&set_by_app(live))
    }

    fn is_secret(&self, object: &Value) -> bool {
        !self.masker.masked_paths(object).is_empty()
    }

    /// Digest of an object, or of a part of one with its kind and name.
    fn object(&self, object: &Value) -> String {
        let object = if has_copy(object) { Cow::Owned(without_copy(object)) } else { Cow::Borrowed(object) };
        match (self.is_secret(&object), &self.key) {
            (false, _) => plain(&canonical(&object)),
            (true, Some(_)) => self.secret(&canonical(&object)),
            (true, None) => plain(&canonical(&self.masked(&object))),
        }
    }

    fn masked(&self, object: &Value) -> Value {
        let mut masked = object.clone();
        for path in self.masker.masked_paths(object) {
            set_at(&mut masked, &path, Value::Null);
        }
        masked
    }

    /// Digest of what becomes of the fields: their values, who loses them, what is done to stored objects.
    fn change(&self, planned: &Planned, cover: &Cover) -> String {
        let Difference { fields, takeover, taken_from, carry_over, .. } = planned.difference();
        let is_secret = [&planned.live, &planned.desired].into_iter().flatten().any(|it| self.is_secret(it));
        let fields: Value = if is_secret && self.key.is_none() {
            json!(diff::field_lines(fields, &|path| cover.hides(path)))
        } else {
            let field = |field: &diff::FieldChange| json!([field.display(&|_| false), field.old, field.new]);
            fields.iter().map(field).collect()
        };
        let lost: Vec<Value> = taken_from.iter().map(lost).collect();
        let takeover = takeover.as_ref().map(|takeover| json!([takeover.from, takeover.shared_with]));
        let carried = format!("{:?} {:?}", carry_over, planned.strategies.update);
        let text = canonical(&json!([planned.operation(), fields, lost, takeover, carried]));
        if is_secret { self.secret_or_plain(&text) } else { plain(&text) }
    }

    /// Digests of the fields of an object that goes, two levels deep.
    fn parts(&self, live: &Value) -> BTreeMap<String, String> {
        let owned = set_by_app(live);
        let mut parts = BTreeMap::new();
        let secret: Vec<_> = self.masker.masked_paths(live);
        for (key, value) in owned.as_object().into_iter().flatten().filter(|(key, _)| !is_name(key)) {
            let below: Vec<(String, &Value)> = match value {
                Value::Object(map) => map.iter().map(|(inner, value)| (format!("{key}.{inner}"), value)).collect(),
                value => vec![(key.clone(), value)],
            };
            let is_secret = secret.iter().any(|path| path.first().is_some_and(|first| *first == key.as_str().into()));
            let is_own = |path: &str| !matches!(path, "metadata.name" | "metadata.namespace");
            for (path, value) in below.into_iter().filter(|(path, _)| is_own(path)) {
                let digest = match (is_secret, &self.key) {
                    (true, Some(_)) => self.secret(&canonical(value)),
                    (true, None) => String::new(),
                    (false, _) => plain(&canonical(value)),
                };
                parts.insert(path, digest.chars().take(LENGTH).collect());
            }
        }
        parts
    }

    fn secret_or_plain(&self, text: &str) -> String {
        if self.key.is_some() { self.secret(text) } else { plain(text) }
    }

    /// Digest of text with secret values: empty without a key.
    fn secret(&self, text: &str) -> String {
        let tag = self.key.as_ref().map(|key| hmac::sign(key, text.as_bytes()));
        tag.map(|tag| hex::encode(&tag.as_ref()[..LENGTH])).unwrap_or_default()
    }
}

/// Digest of text without secret values.
#[must_use]
pub fn plain(text: &str) -> String {
    hex::encode(&Sha256::digest(text)[..LENGTH])
}

fn is_name(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind")
}

/// Who loses which fields; the time of their last write does not matter.
fn lost(taken: &TakenFrom) -> Value {
    let fields: Vec<&str> = taken.fields.iter().map(|field| field.path.as_str()).collect();
    json!([taken.manager, taken.operation, taken.subresource, fields])
}

/// The paths of what the app has set of an object and that differs by now.
#[must_use]
pub fn set_otherwise_by_app(before: &Value, now: &Value) -> Vec<String> {
    let changes = diff::diff(&set_by_app(before), &set_by_app(now), &diff::DiffOptions::default());
    // Paths only: values can be secret.
    let mut paths: Vec<String> = changes.iter().map(|change| display_path(&change.path)).collect();
    paths.dedup();
    paths
}

/// What the app has set of a live object, with its kind and name. What else others have set, and status, do not count. All
/// of it where nothing says who has set what.
fn set_by_app(live: &Value) -> Value {
    let mut set = match own_entry(live) {
        Some(own) => fields::project(&own.fields, live),
        None => {
            let mut whole = live.clone();
            if let Some(fields) = whole.as_object_mut() {
                fields.shift_remove("status");
                if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                    metadata.retain(|key, _| OWN_METADATA.contains(&key.as_str()));
                }
            }
            whole
        }
    };
    if !set.is_object() {
        set = Value::Object(Map::new());
    }
    // The rules of what is masked look at them.
    for name in ["/apiVersion", "/kind"] {
        set[&name[1..]] = live.text(name).into();
    }
    set["metadata"]["name"] = live.name().into();
    if !live.namespace().is_empty() {
        set["metadata"]["namespace"] = live.namespace().into();
    }
    set
}
