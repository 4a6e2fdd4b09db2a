//! The journal of an experiment: its intended changes, written to the cluster before the first request, so that a later
//! run can revert them if this one is killed. A Secret if it holds what only readers of Secrets may see.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pushback_cluster::{
    Address, Cluster, ClusterError, DeleteOptions, ErrorKind, Kind, Kinds, ListQuery, Patch, list_all,
};
use pushback_objects::ObjectExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::change::Step;
use super::mark::MARK;

/// The label's value on journals.
const IS_JOURNAL: &str = "journal";
/// The label's value on objects that an experiment has created.
pub const IS_OBJECT: &str = "object";
/// The label's value on the locks of runs.
pub const IS_LOCK: &str = "lock";
/// Prefix of every journal's name.
pub const NAME_PREFIX: &str = "pushback-experiment-";
/// Annotation on a journal: fields that the server altered during a revert. The journal's own data has no entry for
/// them.
const ALTERED_ANNOTATION: &str = "pushback.dev/not-restored";
/// Key of the journal's data.
const DATA_KEY: &str = "journal";
/// Schema version written, and the newest that is read.
const SCHEMA: u32 = 3;
/// Oldest schema version that is read; newer fields are absent there.
const OLDEST: u32 = 1;
/// Most bytes of a journal. ConfigMaps and Secrets hold 1 MiB including metadata; base64 turns three bytes into four.
const MOST_BYTES: usize = 700 * 1024;

/// What an experiment is about to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Journal {
    /// Schema version.
    pub schema_version: u32,
    /// Id of the run.
    pub run: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Type of the injection.
    pub injection: String,
    /// Start time by the clock of the run's machine; for the reader.
    pub started: String,
    /// The changes, in the order in which they are made.
    pub steps: Vec<Step>,
}

impl Journal {
    /// A journal for these changes.
    #[must_use]
    pub fn new(run: &str, experiment: &str, injection: &str, started: &str, steps: Vec<Step>) -> Self {
        Self {
            schema_version: SCHEMA,
            run: run.to_owned(),
            experiment: experiment.to_owned(),
            injection: injection.to_owned(),
            started: started.to_owned(),
            steps,
        }
    }
}

/// A journal stored in the cluster.
#[derive(Clone, Debug)]
pub struct StoredJournal {
    /// Address of its object.
    pub address: Address,
    /// uid of its object.
    pub uid: String,
    /// Mark on the objects that it concerns.
    pub mark: String,
    /// The journal's content.
    pub journal: Journal,
    /// Fields that an earlier revert left different, described without values.
    pub altered: Vec<String>,
}

/// A journal that this version cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// `ConfigMap shop/pushback-experiment-…`
    pub name: String,
    /// Namespace of its object.
    pub namespace: String,
    /// Why it cannot be used.
    pub reason: String,
}

/// Journals found in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Journals {
    /// Usable journals, sorted by namespace and name.
    pub journals: Vec<StoredJournal>,
    /// Unusable journals.
    pub unreadable: Vec<Unreadable>,
}

impl Journals {
    /// Whether no journal was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.journals.is_empty() && self.unreadable.is_empty()
    }
}

/// A journal ready to be written.
#[derive(Debug)]
pub struct Draft {
    address: Address,
    text: Text,
    /// Mark that the objects it concerns will carry.
    pub mark: String,
    journal: Journal,
}

/// Text hidden from debug output.
struct Text(String);

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Draft {
    /// Serialises a journal, and picks its address.
    ///
    /// # Errors
    /// It is too large for one object, or the cluster lacks the kind.
    pub fn new(kinds: &Kinds, namespace: &str, id: &str, journal: Journal) -> Result<Self, ClusterError> {
        let is_secret = journal.steps.iter().any(Step::is_sensitive);
        let kind = own_kind(kinds, if is_secret { "Secret" } else { "ConfigMap" })?;
        let name = format!("{NAME_PREFIX}{id}");
        let text = serde_json::to_string(&journal).map_err(|error| {
            ClusterError::new(ErrorKind::Invalid, format!("the journal cannot be written: {error}"))
        })?;
        if text.len() > MOST_BYTES {
            let message = format!(
                "what would have to be kept to take it back is {} KiB, too much for one object",
                text.len() / 1024
            );
            return Err(ClusterError::new(ErrorKind::TooLarge, message));
        }
        let mark = mark(&name, &text);
        Ok(Self { address: Address::new(kind, namespace, &name).urgent(), text: Text(text), mark, journal })
    }

    /// Writes it. From then on a later run can revert the changes.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn write(self, cluster: &dyn Cluster) -> Result<StoredJournal, ClusterError> {
        let content =
            if self.address.kind.kind == "Secret" { BASE64.encode(&self.text.0) } else { self.text.0.clone() };
        let body = json!({
            "apiVersion": "v1",
            "kind": self.address.kind.kind,
            "metadata": {
                "namespace": self.address.namespace,
                "name": self.address.name,
                "labels": {MARK: IS_JOURNAL},
            },
            // Its mark contains a digest of its content: nothing may change that.
            "immutable": true,
            "data": {DATA_KEY: content},
        });
        let stored = match cluster.create(&self.address, &body, false).await {
            Ok(written) => written.object,
            Err(error) => match cluster.get(&self.address).await {
                // It was written, and the response was lost.
                Ok(Some(object)) if text_of(&object).as_deref() == Some(&self.text.0) => object,
                _ => return Err(error),
            },
        };
        Ok(StoredJournal {
            uid: stored.uid().to_owned(),
            address: self.address,
            mark: self.mark,
            journal: self.journal,
            altered: Vec::new(),
        })
    }
}

impl StoredJournal {
    /// Records fields that the server altered, so that a later run reports them too.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn note_altered(&self, cluster: &dyn Cluster, altered: &[String]) -> Result<(), ClusterError> {
        let all: BTreeSet<&str> = self.altered.iter().chain(altered).map(String::as_str).collect();
        if altered.iter().all(|what| self.altered.contains(what)) {
            return Ok(());
        }
        let text = all.into_iter().collect::<Vec<_>>().join("\n");
        let patch = json!({"metadata": {"uid": self.uid, "annotations": {ALTERED_ANNOTATION: text}}});
        cluster.patch(&self.address, &Patch::Merge(patch), false).await.map(drop)
    }

    /// Deletes the journal once nothing is left to revert.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn remove(&self, cluster: &dyn Cluster) -> Result<(), ClusterError> {
        let options = DeleteOptions { uid: self.uid.clone(), ..DeleteOptions::default() };
        match cluster.delete(&self.address, &options).await {
            Ok(_) => Ok(()),
            // Another object of that name is not ours.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Finds journals in these namespaces, or in all that may be listed if none is given.
///
/// # Errors
/// The cluster's error.
pub async fn find(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    namespaces: Option<&[String]>,
) -> Result<Journals, ClusterError> {
    let mut found = Journals::default();
    for kind in ["ConfigMap", "Secret"] {
        let kind = own_kind(kinds, kind)?;
        for object in marked(cluster, &kind, namespaces, IS_JOURNAL).await? {
            match read(&kind, &object) {
                Ok(stored) => found.journals.push(stored),
                Err(reason) => found.unreadable.push(Unreadable {
                    name: format!("{} {}/{}", kind.kind, object.namespace(), object.name()),
                    namespace: object.namespace().to_owned(),
                    reason,
                }),
            }
        }
    }
    found
        .journals
        .sort_by(|a, b| (&a.address.namespace, &a.address.name).cmp(&(&b.address.namespace, &b.address.name)));
    Ok(found)
}

/// Objects of a kind that carry our label with this value.
///
/// # Errors
/// The cluster's error.
pub async fn marked(
    cluster: &dyn Cluster,
    kind: &Arc<Kind>,
    namespaces: Option<&[String]>,
    value: &str,
) -> Result<Vec<Arc<Value>>, ClusterError> {
    let selector = format!("{MARK}={value}");
    let Some(namespaces) = namespaces else {
        return Ok(list_all(cluster, &ListQuery::new(Arc::clone(kind), None, &selector)).await?.items);
    };
    let mut objects = Vec::new();
    for namespace in namespaces {
        objects.extend(list_all(cluster, &ListQuery::new(Arc::clone(kind), Some(namespace), &selector)).await?.items);
    }
    Ok(objects)
}

fn read(kind: &Arc<Kind>, object: &Value) -> Result<StoredJournal, String> {
    /// Fields of every schema version.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Layout {
        schema_version: u32,
    }
    let text = text_of(object).ok_or_else(|| format!("it has no readable key {DATA_KEY}"))?;
    // The message does not repeat the content.
    let damaged =
        |error: serde_json::Error| format!("it is damaged at line {} column {}", error.line(), error.column());
    let layout: Layout = serde_json::from_str(&text).map_err(damaged)?;
    if !(OLDEST..=SCHEMA).contains(&layout.schema_version) {
        let version = layout.schema_version;
        return Err(format!("it has layout {version}, and this version reads {OLDEST} to {SCHEMA}"));
    }
    let journal: Journal = serde_json::from_str(&text).map_err(damaged)?;
    Ok(StoredJournal {
        address: Address::new(Arc::clone(kind), object.namespace(), object.name()).urgent(),
        uid: object.uid().to_owned(),
        mark: mark(object.name(), &text),
        journal,
        altered: object.annotation(ALTERED_ANNOTATION).into_iter().flat_map(str::lines).map(str::to_owned).collect(),
    })
}

/// Text of a journal in its object.
fn text_of(object: &Value) -> Option<String> {
    let content = object.get("data")?.get(DATA_KEY)?.as_str()?;
    if object.text("/kind") == "Secret" {
        String::from_utf8(BASE64.decode(content).ok()?).ok()
    } else {
        Some(content.to_owned())
    }
}

/// Digest mark of a journal: only somebody who may write the object can have put it there, and no two journals share
/// one.
fn mark(name: &str, text: &str) -> String {
    format!("{name}:{}", pushback_objects::hex::encode(&Sha256::digest(text.as_bytes())[..16]))
}

fn own_kind(kinds: &Kinds, kind: &str) -> Result<Arc<Kind>, ClusterError> {
    kinds
        .find("", "v1", kind)
        .cloned()
        .ok_or_else(|| ClusterError::new(ErrorKind::UnknownKind, format!("the cluster serves no {kind}")))
}
