//! Wanted against live, one object: unchanged by what the record knows, or by what the server's dry-run answers.

mod continued;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use pushback_preflight::{ObjectExt, ObjectKey, Operation, TakenFrom, Verification};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::absent::Absent;
use super::aggregated::{self, Aggregated};
use super::annotations::UpdateStrategy;
use super::body::{self, Body, Stamp};
use super::conflicts;
use super::desired::Desired;
use super::diff::{self, DiffOptions, FieldChange};
use super::estimate;
use super::fields::{self, ManagerEntry};
use super::takeover::{self, Takeover};
use crate::app::claims::Claims;
use crate::app::identity::{APP_LABEL, hex};
use crate::app::inventory::Inventory;
use crate::cluster::{Address, ApplyOptions, Cause, Cluster, ClusterError, ErrorKind, FIELD_MANAGER};
use crate::config::mask::Masker;

/// How often an object that changes while it is compared is read again.
const CONFLICTS: u32 = 5;

/// What one object's comparison came to, before it is known what the rest of the set explains.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) operation: Operation,
    pub(super) body: Option<Arc<Value>>,
    pub(super) live: Option<Arc<Value>>,
    pub(super) result: Option<Arc<Value>>,
    pub(super) verification: Verification,
    pub(super) takeover: Option<Takeover>,
    /// Whose fields it takes over.
    pub(super) taken_from: Vec<TakenFrom>,
    pub(super) fields: Vec<FieldChange>,
    pub(super) notes: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) manifest_digest: BodyDigest,
    /// The server's refusal.
    pub(super) refused: Option<ClusterError>,
    /// The server refuses the change, and would take the same object as a new one.
    pub(super) only_as_new: bool,
    /// What has to go first, by what the refusal says.
    pub(super) after: Vec<ObjectKey>,
    /// The server must not be asked in dry-run, or cannot be.
    pub(super) unaskable: bool,
    /// Where the server was asked instead, its namespace being absent.
    pub(super) elsewhere: Option<Address>,
    /// Label value of the app that owns the live object, where it is another one.
    pub(super) foreign_app: Option<String>,
}

impl Compared {
    pub(super) fn new(operation: Operation) -> Self {
        Self {
            operation,
            body: None,
            live: None,
            result: None,
            verification: Verification::NotNeeded,
            takeover: None,
            taken_from: Vec::new(),
            fields: Vec::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
            manifest_digest: BodyDigest::default(),
            refused: None,
            only_as_new: false,
            after: Vec::new(),
            unaskable: false,
            elsewhere: None,
            foreign_app: None,
        }
    }
}

/// Apps whose objects may be taken over.
#[derive(Clone, Debug)]
pub(super) enum TakeOver {
    /// Nobody's.
    None,
    /// Everybody's.
    Any,
    /// Of apps with these label values.
    Labels(BTreeSet<String>),
}

impl TakeOver {
    pub(super) fn allows(&self, label_value: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Labels(labels) => labels.contains(label_value),
        }
    }
}

/// What comparing needs beside the object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) stamp: &'a Stamp<'a>,
    pub(super) masker: &'a Masker,
    pub(super) inventory: &'a Inventory,
    /// Digests of the inventory may be used.
    pub(super) trust_digests: bool,
    /// What other apps own, where nothing is stamped.
    pub(super) claims: &'a Claims,
    /// Whose objects may be taken over.
    pub(super) take_over: &'a TakeOver,
    /// Which kinds other servers serve.
    pub(super) aggregated: &'a Aggregated,
    /// Namespaces that the set brings and the cluster lacks.
    pub(super) absent: &'a Absent,
    /// What the set's autoscalers scale.
    pub(super) autoscaled: &'a BTreeSet<ObjectKey>,
}

/// Compares one object.
///
/// # Errors
/// The cluster cannot be reached; every other refusal is part of the answer.
pub(super) async fn compare(
    context: Context<'_>,
    desired: &Desired,
    listed: Option<Arc<Value>>,
) -> Result<Compared, ClusterError> {
    let mut compared = compare_unmasked(context, desired, listed).await?;
    compared.taken_from = conflicts::taken_from(&compared, context.masker);
    compared.notes.extend(conflicts::notes(&compared.taken_from));
    // The rules for masks are the Config's; the cluster knows only of Secrets.
    let live = compared.live.clone();
    let objects: Vec<&Value> = std::iter::once(&*desired.value).chain(live.as_deref()).collect();
    for text in compared.notes.iter_mut().chain(&mut compared.warnings) {
        *text = context.masker.hide(&objects, text);
    }
    if let Some(error) = &mut compared.refused {
        error.rewrite(|text| context.masker.hide(&objects, text));
    }
    Ok(compared)
}

async fn compare_unmasked(
    context: Context<'_>,
    desired: &Desired,
    listed: Option<Arc<Value>>,
) -> Result<Compared, ClusterError> {
    let address = Address::new(Arc::clone(&desired.kind), &desired.object.namespace, &desired.object.name);
    if desired.strategies.exists {
        return Ok(Compared::new(Operation::Exists));
    }
    if desired.kind_from_set {
        let mut compared = Compared::new(Operation::Create);
        let body = body::build(desired, None, context.stamp);
        compared.verification =
            Verification::NotVerified("its CustomResourceDefinition is created by this run".to_owned());
        compared.body = Some(body.value);
        return Ok(compared);
    }
    if let Some(live) = listed {
        return with_live(context, desired, &address, live).await;
    }
    let aggregated = context.aggregated.serves(context.cluster, &desired.kind).await?;
    // A folder tells what is there for less than an apply.
    let is_told = aggregated || !context.cluster.capabilities().server;
    if is_told && let Some(live) = context.cluster.get(&address).await? {
        return with_live(context, desired, &address, live).await;
    }
    let body = body::build(desired, None, context.stamp);
    if aggregated {
        let mut compared = Compared::new(Operation::Create);
        compared.unaskable = true;
        compared.verification = Verification::NotVerified(aggregated::reason(&desired.kind));
        compared.body = Some(body.value);
        return Ok(compared);
    }
    if context.absent.lacks_namespace_of(desired) {
        return context.absent.compare(context.cluster, desired, body).await;
    }
    let options = ApplyOptions { dry_run: true, force: true, strict: true };
    let answer = context.cluster.apply(&address, &body.value, options).await;
    let live = match &answer {
        Ok(written) if written.created => None,
        Ok(_) => context.cluster.get(&address).await?,
        Err(error) => match error.kind {
            ErrorKind::Unreachable | ErrorKind::Unauthorized | ErrorKind::Timeout | ErrorKind::Busy => {
                return Err(error.clone());
            }
            // A refusal does not tell whether it exists, and whose it is. Who may not read it either learns no more.
            _ => match context.cluster.get(&address).await {
                Ok(live) => live,
                Err(error) if matches!(error.kind, ErrorKind::Unreachable | ErrorKind::Unauthorized) => {
                    return Err(error);
                }
                Err(_) => None,
            },
        },
    };
    if let Some(live) = live {
        return with_live(context, desired, &address, live).await;
    }
    let mut compared = Compared::new(Operation::Create);
    match answer {
        Ok(written) => {
            compared.verification = Verification::Server;
            compared.warnings = written.warnings;
            compared.result = Some(written.object);
        }
        Err(error) => compared.refused = Some(error),
    }
    compared.body = Some(body.value);
    compared.notes = body.notes;
    Ok(compared)
}

/// Compares with a live object that controllers write to all the while: what was listed a moment ago may be
/// outdated by a status, which says nothing about the input.
async fn with_live(
    context: Context<'_>,
    desired: &Desired,
    address: &Address,
    mut live: Arc<Value>,
) -> Result<Compared, ClusterError> {
    for _ in 0..CONFLICTS {
        let compared = with_state(context, desired, address, Arc::clone(&live)).await?;
        if compared.refused.as_ref().is_none_or(|error| error.kind != ErrorKind::Conflict) {
            return Ok(compared);
        }
        match context.cluster.get(address).await? {
            Some(seen) => live = seen,
            None => return Ok(compared),
        }
    }
    with_state(context, desired, address, live).await
}

async fn with_state(
    context: Context<'_>,
    desired: &Desired,
    address: &Address,
    live: Arc<Value>,
) -> Result<Compared, ClusterError> {
    let Body { value: body, notes } = body::build(desired, Some(&live), context.stamp);
    let mut compared = Compared::new(Operation::Noop);
    compared.notes = notes;
    compared.live = Some(Arc::clone(&live));
    if let (Some(label_value), Some(other)) = (context.stamp.label_value, live.label(APP_LABEL))
        && other != label_value
        && !context.take_over.allows(other)
    {
        compared.foreign_app = Some(other.to_owned());
        return Ok(compared);
    }
    // An object of the app may have been given the label by somebody; a record is no app's object.
    if pushback_preflight::bookkeeping::record_of(&live).is_some() && !is_known(context, desired, &live) {
        compared.foreign_app = Some(String::new());
        return Ok(compared);
    }
    // As long as two records list an object, each app takes it only where it is told to: neither knows who was last.
    if let Some(claim) = context.claims.owners.get(&desired.object.key())
        && !context.take_over.allows(&claim.label_value)
    {
        compared.foreign_app = Some(claim.label_value.clone());
        return Ok(compared);
    }
    if live.is_terminating() {
        compared.operation = Operation::Create;
        compared.body = Some(body::build(desired, None, context.stamp).value);
        compared.verification = Verification::NotVerified("the old object is still being deleted".to_owned());
        return Ok(compared);
    }
    let skipped = desired.strategies.update == UpdateStrategy::Skip
        || (desired.strategies.keep_existing && !is_known(context, desired, &live));
    if skipped || (context.trust_digests && is_unchanged(context, desired, &body, &live, &compared.manifest_digest)) {
        compared.body = Some(body);
        return Ok(compared);
    }
    if context.aggregated.serves(context.cluster, &desired.kind).await? {
        compared.fields = diff::diff(&live, &estimate::applied(&live, &body), &DiffOptions::default());
        // What the manifest no longer sets shows only in the manifest.
        let known = context.inventory.get(&desired.object.key()).map(|entry| entry.manifest_digest.as_str());
        let manifest_differs =
            known.is_some_and(|known| !known.is_empty() && known != compared.manifest_digest.of(&body));
        if manifest_differs || !compared.fields.is_empty() {
            compared.operation = Operation::Update;
            compared.unaskable = true;
            compared.verification = Verification::NotVerified(aggregated::reason(&desired.kind));
        }
        compared.body = Some(body);
        return Ok(compared);
    }
    let options = ApplyOptions { dry_run: true, force: true, strict: true };
    // In a folder nothing changes between the look and the answer, and the body need not be copied.
    let guarded = context.cluster.capabilities().server.then(|| guard(&body, &live));
    let answer = context.cluster.apply(address, guarded.as_ref().unwrap_or(&body), options).await;
    if continued::continue_work(context, address, &live, &body, &answer, desired.strategies.update, &mut compared)
        .await?
    {
        compared.body = Some(body);
        return Ok(compared);
    }
    match answer {
        Ok(written) => {
            compared.warnings = written.warnings;
            compared.fields = diff::diff(&live, &written.object, &DiffOptions::default());
            if !compared.fields.is_empty() || own_fields_differ(&live, &written.object) {
                compared.operation = written_by(desired.strategies.update);
                compared.verification = Verification::Server;
            }
            compared.result = Some(written.object);
        }
        Err(error)
            if error.kind == ErrorKind::Invalid
                && desired.strategies.update != UpdateStrategy::Apply
                && can_be_created(context, desired, address).await =>
        {
            compared.operation = Operation::Replace;
            compared.fields = diff::diff(&live, &estimate::replaced(&live, &body), &DiffOptions::default());
            compared.verification = Verification::NotVerified("it is deleted and created anew".to_owned());
            compared.notes.push(format!("replaced, because the server refuses the update: {}", error.message));
        }
        Err(error) => match error.kind {
            ErrorKind::Unreachable | ErrorKind::Unauthorized | ErrorKind::Timeout | ErrorKind::Busy => {
                return Err(error);
            }
            _ => {
                compared.operation = Operation::Update;
                compared.fields = diff::diff(&live, &estimate::applied(&live, &body), &DiffOptions::default());
                // Every kind has words of its own for what cannot be changed, so the server is asked.
                compared.only_as_new =
                    error.kind == ErrorKind::Invalid && can_be_created(context, desired, address).await;
                compared.refused = Some(error);
            }
        },
    }
    compared.body = Some(body);
    Ok(compared)
}

fn written_by(strategy: UpdateStrategy) -> Operation {
    match strategy {
        UpdateStrategy::AlwaysReplace => Operation::Replace,
        UpdateStrategy::Apply | UpdateStrategy::FallbackOnReplace | UpdateStrategy::Skip => Operation::Update,
    }
}

/// Whether the app has made the object its own already: by its label, or in a directory by the record.
fn is_known(context: Context<'_>, desired: &Desired, live: &Value) -> bool {
    match context.stamp.label_value {
        Some(_) => live.label(APP_LABEL).is_some(),
        None => context.inventory.get(&desired.object.key()).is_some(),
    }
}

/// Whether the server would take the object where there is none yet: only then may the old one be deleted.
async fn can_be_created(context: Context<'_>, desired: &Desired, address: &Address) -> bool {
    let body = body::build(desired, None, context.stamp).value;
    refusal_as_new(context.cluster, address, Arc::unwrap_or_clone(body)).await.is_none()
}

/// Why the server would not take an object where there is none yet. It is asked with a name that is free.
pub async fn refusal_as_new(cluster: &dyn Cluster, address: &Address, mut body: Value) -> Option<ClusterError> {
    let free = Address { name: free_name(&address.name, &body), ..address.clone() };
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), free.name.as_str().into());
    }
    let options = ApplyOptions { dry_run: true, force: true, strict: true };
    let mut error = cluster.apply(&free, &body, options).await.err()?;
    let passes = match error.kind {
        // Some kinds insist on names, and what the old object holds is free once it is gone.
        ErrorKind::Invalid => !error.causes.is_empty() && error.causes.iter().all(is_of_a_free_name),
        // A permission for one name is none for another.
        ErrorKind::Forbidden => true,
        _ => false,
    };
    error.rewrite(|text| text.replace(&free.name, &address.name));
    (!passes).then_some(error)
}

/// A name that nobody has, for a question about an object.
pub(super) fn free_name(name: &str, body: &Value) -> String {
    let stem: String = name.chars().take(40).collect();
    let digest = digest(body);
    format!("{}-{}", stem.trim_end_matches(['-', '.']), &digest[..8])
}

/// Whether a refusal is about the free name, or about what the object itself holds under its own.
pub(super) fn is_of_a_free_name(cause: &Cause) -> bool {
    cause.field == "metadata.name"
        || cause.message.contains("provided port is already allocated")
        || cause.message.contains("provided IP is already allocated")
}

/// The body with the uid and resourceVersion that it was planned against.
#[must_use]
pub fn guard(body: &Value, live: &Value) -> Value {
    let mut guarded = body.clone();
    if let Some(metadata) = guarded.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".to_owned(), live.uid().into());
        metadata.insert("resourceVersion".to_owned(), live.resource_version().into());
    }
    guarded
}

/// The body for an object that must not exist yet. An apply with a resourceVersion creates what is absent and is
/// refused where the object has another one; no object has version 1, which is that of an empty store.
#[must_use]
pub fn only_new(body: &Value) -> Value {
    let mut guarded = body.clone();
    if let Some(metadata) = guarded.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), "1".into());
    }
    guarded
}

/// Nothing was applied by others, nothing is wanted anew: no request needed.
fn is_unchanged(
    context: Context<'_>,
    desired: &Desired,
    body: &Value,
    live: &Value,
    manifest_digest: &BodyDigest,
) -> bool {
    let Some(entry) = context.inventory.get(&desired.object.key()) else { return false };
    if entry.uid != live.uid() || entry.uid.is_empty() || entry.manifest_digest.is_empty() {
        return false;
    }
    if context.stamp.label_value.is_none() {
        // A directory has no other managers: the document is what was applied, or it is not.
        return diff::diff(live, body, &DiffOptions::default()).is_empty();
    }
    let Ok(managers) = fields::managers(live) else { return false };
    if takeover::is_needed(&managers) {
        return false;
    }
    let mut ours = managers.iter().filter(|entry| entry.owner.manager == FIELD_MANAGER);
    let (Some(own), None) = (ours.next(), ours.next()) else { return false };
    let owner = &own.owner;
    if owner.operation != "Apply" || owner.api_version != desired.object.api_version() || !owner.subresource.is_empty()
    {
        return false;
    }
    if entry.manifest_digest != manifest_digest.of(body) {
        return false;
    }
    if is_secret(live) {
        // Secret values are compared as they are; no digest of them is ever stored.
        let owned = fields::project(&own.fields, live);
        return same_secret(&owned, body);
    }
    entry.live_digest == digest(&fields::project(&own.fields, live))
}

fn same_secret(owned: &Value, body: &Value) -> bool {
    let map = |value: &Value, pointer: &str| value.pointer(pointer).cloned().unwrap_or_else(|| json!({}));
    ["/data", "/metadata/labels", "/metadata/annotations"]
        .iter()
        .all(|pointer| map(owned, pointer) == map(body, pointer))
        && ["/type", "/immutable"]
            .iter()
            .all(|pointer| body.pointer(pointer).is_none() || owned.pointer(pointer) == body.pointer(pointer))
}

/// Whether it is a core Secret.
#[must_use]
pub fn is_secret(object: &Value) -> bool {
    object.text("/kind") == "Secret" && object.text("/apiVersion") == "v1"
}

/// The [`digest`] of a body, worked out when it is first asked for: what is only looked at is recorded nowhere.
#[derive(Clone, Debug, Default)]
pub struct BodyDigest(OnceLock<String>);

impl BodyDigest {
    /// The digest; `body` is the same each time.
    pub fn of(&self, body: &Value) -> &str {
        self.0.get_or_init(|| digest(body))
    }
}

/// Digest of a value, independent of key order: 32 hexadecimal digits. Empty for Secrets.
#[must_use]
pub fn digest(value: &Value) -> String {
    let mut text = String::new();
    if is_secret(value) {
        // The shape alone: which keys there are, not what they hold.
        let mut shape = value.clone();
        if let Some(data) = shape.get_mut("data").and_then(Value::as_object_mut) {
            data.values_mut().for_each(|value| *value = Value::Null);
        }
        state(&shape, &mut text);
    } else {
        state(value, &mut text);
    }
    hex(&Sha256::digest(text)[..16])
}

/// Writes down what a value says, so that no two values read alike.
fn state(value: &Value, text: &mut String) {
    // Writing to a text does not fail.
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by(|left, right| left.0.cmp(right.0));
            let _ = write!(text, "{{{}", entries.len());
            for (key, value) in entries {
                let _ = write!(text, "{}:", key.len());
                text.push_str(key);
                state(value, text);
            }
        }
        Value::Array(items) => {
            let _ = write!(text, "[{}", items.len());
            items.iter().for_each(|item| state(item, text));
        }
        Value::String(inner) => {
            let _ = write!(text, "\"{}:", inner.len());
            text.push_str(inner);
        }
        other => {
            let _ = write!(text, "{other};");
        }
    }
}

/// Digest of the live values that we own, for the inventory; empty for Secrets and where it cannot be told.
#[must_use]
pub fn live_digest(live: &Value) -> String {
    if is_secret(live) {
        return String::new();
    }
    own_entry(live).map(|own| digest(&fields::project(&own.fields, live))).unwrap_or_default()
}

/// Whether our own entry would change although no value does: adoption, or a field that is given up.
fn own_fields_differ(live: &Value, result: &Value) -> bool {
    let own = |object: &Value| own_entry(object).map(|entry| (entry.owner.api_version, entry.fields));
    own(live) != own(result)
}

/// What we have applied of an object.
pub(super) fn own_entry(object: &Value) -> Option<ManagerEntry> {
    let managers = fields::managers(object).ok()?;
    managers.into_iter().find(|entry| entry.owner.manager == FIELD_MANAGER && entry.owner.operation == "Apply")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_does_not_depend_on_key_order_and_tells_values_apart() {
        assert_eq!(digest(&json!({"a": 1, "b": [1, "x"]})), digest(&json!({"b": [1, "x"], "a": 1})));
        assert_ne!(digest(&json!({"a": "1"})), digest(&json!({"a": 1})));
        assert_ne!(digest(&json!(["ab", "c"])), digest(&json!(["a", "bc"])));
    }

    #[test]
    fn the_digest_of_a_secret_says_nothing_of_its_values() {
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": value}});
        assert_eq!(digest(&secret("YQ==")), digest(&secret("Yg==")));
        assert_eq!(live_digest(&secret("YQ==")), "");
    }
}
