//! Compares a desired object with its live state: unchanged by the record, or by the server's dry-run answer.

mod continued;
mod spelling;

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use pushback_app::identity::{ORIGINAL_ANNOTATION, ORIGINAL_ANNOTATIONS, has_copy};
use pushback_cluster::managed_fields as fields;
use pushback_cluster::{Address, ApplyOptions, ClusterError, ErrorKind, FIELD_MANAGER, Guard, estimate};
use pushback_objects::object::{is_custom_group, split_api_version};
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::Verification;
use pushback_storage::operators;
use serde_json::{Value, json};

use super::aggregated;
use super::annotations::UpdateStrategy;
use super::body::{self, Body};
use super::carried;
use super::comparison::Context;
use super::conflicts;
use super::desired::Desired;
use super::diff::{self, DiffOptions};
use super::digest::{is_secret, own_entry};
use super::guard::refusal_as_new;
use super::live::Live;
use super::refusal::Refusal;
use super::versioned::Versions;
use super::{Action, Difference, PlanError, Planned, original, steady, takeover};

/// Objects compared concurrently: as many as the cluster may ever have requests under way.
const CONCURRENCY: usize = 256;

/// Most comparisons of an object that changes meanwhile.
const ATTEMPTS: u32 = 6;

/// Time before the second attempt; it doubles with each.
const PAUSE: Duration = Duration::from_millis(50);

/// Compares the desired objects with their live states. A versioned object that differs from its newest version is
/// compared again as the next one, and with it each object that names it. `sources` are the objects before they had the
/// names of versions.
///
/// # Errors
/// The cluster cannot be reached, or another object has the name of a version. Any refusal is part of the result.
pub(super) async fn compare_all(
    context: Context<'_>,
    live: &Live,
    desired: Vec<Desired>,
    sources: &[Desired],
    versions: &mut Versions,
) -> Result<Vec<(Desired, Planned)>, PlanError> {
    let mut pairs = compare_each(context, live, desired).await?;
    while versions.advance(&pairs) {
        let renamed = versions.apply(sources, context.stamp.config).map_err(PlanError::Input)?;
        let is_other = |index: usize, wanted: &Desired| {
            let before = &pairs[index].0;
            before.object != wanted.object || before.value != wanted.value
        };
        let others = renamed.into_iter().enumerate().filter(|(index, wanted)| is_other(*index, wanted));
        let (indexes, others): (Vec<usize>, Vec<Desired>) = others.unzip();
        for (index, pair) in indexes.into_iter().zip(compare_each(context, live, others).await?) {
            pairs[index] = pair;
        }
    }
    Ok(pairs)
}

/// Compares objects concurrently. The result has their order.
async fn compare_each(
    context: Context<'_>,
    live: &Live,
    desired: Vec<Desired>,
) -> Result<Vec<(Desired, Planned)>, ClusterError> {
    // A folder holds an object in one version only.
    let is_server = context.cluster.capabilities().server;
    let comparisons = desired.into_iter().enumerate().map(|(index, wanted)| async move {
        let listed = live.objects.get(&wanted.object.key());
        let is_of_version = |live: &&Arc<Value>| split_api_version(live.text("/apiVersion")).1 == wanted.object.version;
        let listed = listed.filter(|live| !is_server || is_of_version(live)).cloned();
        let planned = compare(context, &wanted, listed).await?;
        Ok((index, (wanted, planned)))
    });
    let mut count = 0;
    let comparing = futures::stream::iter(comparisons).buffer_unordered(CONCURRENCY).inspect_ok(|_| {
        count += 1;
        (context.on_compared)(count);
    });
    let mut compared: Vec<(usize, (Desired, Planned))> = comparing.try_collect().await?;
    compared.sort_unstable_by_key(|(index, _)| *index);
    Ok(compared.into_iter().map(|(_, pair)| pair).collect())
}

/// Compares one object.
async fn compare(context: Context<'_>, desired: &Desired, listed: Option<Arc<Value>>) -> Result<Planned, ClusterError> {
    let mut planned = compare_unmasked(context, desired, listed).await?;
    if let (Some(rules), true) = (context.stamp.original, planned.operation().writes()) {
        if let Some(body) = &mut planned.desired {
            rules.note(body, planned.result.as_mut());
        }
        if let Some(difference) = planned.action.difference_mut() {
            original::hide(&mut difference.fields);
        }
    }
    let live = planned.live.as_deref();
    if let (Action::Update(difference), Some(live)) = (&mut planned.action, live) {
        let Context { masker, policy_masker, .. } = context;
        difference.taken_from =
            conflicts::taken_from(live, planned.result.as_deref(), &difference.fields, masker, policy_masker);
        planned.notes.extend(conflicts::notes(&difference.taken_from));
    }
    // Config defines the masks; the cluster only knows Secrets.
    let objects: Vec<&Value> = std::iter::once(&*desired.value).chain(live).collect();
    for text in planned.notes.iter_mut().chain(&mut planned.warnings) {
        *text = context.masker.hide(&objects, text);
    }
    if let Some(refused) = &mut planned.refused {
        refused.error.rewrite(|text| context.masker.hide(&objects, text));
    }
    Ok(planned)
}

async fn compare_unmasked(
    context: Context<'_>,
    desired: &Desired,
    listed: Option<Arc<Value>>,
) -> Result<Planned, ClusterError> {
    let address = Address::new(Arc::clone(&desired.kind), &desired.object.namespace, &desired.object.name);
    if desired.strategies.exists {
        // It is looked for again at its turn: what cannot be read now is only not shown.
        let live = match desired.kind_from_set {
            true => None,
            false => context.cluster.get(&address).await.ok().flatten(),
        };
        return Ok(Planned { live, ..Planned::new(desired) });
    }
    if listed.is_none() {
        (context.expect_write)(&desired.object.namespace);
    }
    if desired.kind_from_set && listed.is_none() {
        let is_known = !context.known_kinds.versions(&desired.object.group, &desired.object.kind).is_empty();
        let done = if is_known { "changed" } else { "created" };
        let reason = format!("its CustomResourceDefinition is {done} by this run");
        return Ok(unverified_create(desired, body::build(desired, None, context.stamp), reason));
    }
    if let Some(live) = listed {
        return with_live(context, desired, &address, live).await;
    }
    let aggregated = context.aggregated.serves(context.cluster, &desired.kind).await?;
    // In a folder a plain read costs less than an apply.
    let is_told = aggregated || !context.cluster.capabilities().server;
    if is_told && let Some(live) = context.cluster.get(&address).await? {
        return with_live(context, desired, &address, live).await;
    }
    let body = body::build(desired, None, context.stamp);
    if aggregated {
        let planned = unverified_create(desired, body, aggregated::reason(&desired.kind));
        return Ok(Planned { no_dry_run: true, ..planned });
    }
    if context.absent.lacks_namespace_of(desired) {
        return context.absent.compare(context.cluster, desired, body).await;
    }
    let options = ApplyOptions::DRY_RUN;
    let answer = context.cluster.apply(&address, &body.value, options).await;
    let live = match &answer {
        Ok(written) if written.created => None,
        Ok(_) => context.cluster.get(&address).await?,
        Err(error) if error.kind.is_unanswered() => return Err(error.clone()),
        Err(_) => {
            // The refusal does not say whether the object exists, or who owns it. Without permission to read it,
            // neither do we.
            match context.cluster.get(&address).await {
                Ok(live) => live,
                Err(error) if matches!(error.kind, ErrorKind::Unreachable | ErrorKind::Unauthorized) => {
                    return Err(error);
                }
                Err(_) => None,
            }
        }
    };
    if let Some(live) = live {
        return with_live(context, desired, &address, live).await;
    }
    let planned =
        Planned { action: Action::Create, desired: Some(body.value), notes: body.notes, ..Planned::new(desired) };
    Ok(match answer {
        Ok(written) => Planned {
            verification: Verification::Server,
            warnings: written.warnings,
            result: Some(without_managers(written.object)),
            ..planned
        },
        Err(error) => Planned { refused: Some(Refusal::new(error)), ..planned },
    })
}

/// A create that the server cannot check in a dry run.
fn unverified_create(desired: &Desired, body: Body, reason: String) -> Planned {
    Planned {
        action: Action::Create,
        desired: Some(body.value),
        verification: Verification::NotVerified(reason),
        ..Planned::new(desired)
    }
}

/// Compares with a live object. The listed one may be outdated by a status update, which does not concern the manifest:
/// the server's answer counts if nothing but the status has changed around it.
async fn with_live(
    context: Context<'_>,
    desired: &Desired,
    address: &Address,
    mut live: Arc<Value>,
) -> Result<Planned, ClusterError> {
    let planned = with_state(context, desired, address, Arc::clone(&live), Guard::State).await?;
    if !is_outdated(&planned) {
        return Ok(planned);
    }
    let Some(seen) = context.cluster.get(address).await? else { return Ok(planned) };
    live = seen;
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS {
        // Its status may change between any two requests: only two reads around them prove that nothing else has.
        let mut planned = with_state(context, desired, address, Arc::clone(&live), Guard::Identity).await?;
        let Some(seen) = context.cluster.get(address).await? else { return Ok(planned) };
        if !is_outdated(&planned) && steady::is_same(&live, &seen) {
            if let Some(Difference { takeover: Some(takeover), .. }) = planned.action.difference_mut() {
                takeover.keep_status_of(&seen);
            }
            planned.live = Some(seen);
            return Ok(planned);
        }
        live = seen;
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    with_state(context, desired, address, live, Guard::State).await
}

/// Returns whether the object has changed since it was read.
fn is_outdated(planned: &Planned) -> bool {
    planned.refused.as_ref().is_some_and(|refused| refused.error.kind == ErrorKind::Conflict)
}

/// Compares with one state of the live object. `guard` says whether the server's answers must be about this very state.
async fn with_state(
    context: Context<'_>,
    desired: &Desired,
    address: &Address,
    live: Arc<Value>,
    guard: Guard,
) -> Result<Planned, ClusterError> {
    let Body { value: body, notes, failed } = body::build(desired, Some(&live), context.stamp);
    let mut planned = Planned { live: Some(Arc::clone(&live)), notes, ..Planned::new(desired) };
    if let (Some(label_value), Some(other)) = (context.stamp.label_value, live.label(context.stamp.label_key))
        && other != label_value
        && !context.ownership_override.allows(other)
    {
        planned.foreign_app = Some(other.to_owned());
        return Ok(planned);
    }
    // An object of the app may have been labelled by hand; a record is never an app's object.
    if pushback_objects::bookkeeping::record_of(&live).is_some() && !is_known(context, desired, &live) {
        planned.foreign_app = Some(String::new());
        return Ok(planned);
    }
    // While two records list an object, each app takes it only if told to: neither knows which wrote last.
    if let Some(claim) = context.claims.owners.get(&desired.object.key())
        && !context.ownership_override.allows(&claim.label_value)
    {
        planned.foreign_app = Some(claim.label_value.clone());
        return Ok(planned);
    }
    if live.is_terminating() {
        planned.action = Action::Create;
        planned.desired = Some(body::build(desired, None, context.stamp).value);
        planned.verification = Verification::NotVerified("the old object is still being deleted".to_owned());
        return Ok(planned);
    }
    planned.desired = Some(Arc::clone(&body));
    if let Some(why) = failed {
        planned.action = Action::Update(Box::default());
        planned.refused = Some(Refusal::new(ClusterError::new(ErrorKind::Configuration, why)));
        return Ok(planned);
    }
    let skipped = desired.strategies.update == UpdateStrategy::Skip;
    let is_paused = context.cluster.capabilities().server && operators::paused_replicas(&live).is_some();
    let is_trusted = context.trust_digests && !is_paused && !carried::moves_objects(context, &live, &body);
    if skipped || (is_trusted && is_unchanged(context, desired, &body, &live, &planned)) {
        return Ok(planned);
    }
    (context.expect_write)(&desired.object.namespace);
    if context.aggregated.serves(context.cluster, &desired.kind).await? {
        let fields = diff::diff(&live, &estimate::applied(&live, &body), &DiffOptions::default());
        // Fields that the manifest no longer sets show up only in the manifest.
        let known = context.inventory.get(&desired.object.key()).map(|entry| entry.manifest_digest.as_str());
        let manifest_differs =
            known.is_some_and(|known| !known.is_empty() && known != planned.manifest_digest.of(&body));
        if manifest_differs || !fields.is_empty() {
            planned.action = Action::Update(Difference::of_fields(fields));
            planned.no_dry_run = true;
            planned.verification = Verification::NotVerified(aggregated::reason(&desired.kind));
        }
        return Ok(planned);
    }
    let options = ApplyOptions::DRY_RUN;
    // In a folder nothing changes between read and answer, and the body need not be copied.
    let guarded = context.cluster.capabilities().server.then(|| guard.of(&body, &live));
    let answer = context.cluster.apply(address, guarded.as_ref().unwrap_or(&body), options).await;
    let before = continued::Before { address, live: &live, body: &body, answer: &answer, guard };
    let strategy = desired.strategies.update;
    if continued::continue_work(context, before, strategy, &mut planned).await?
        || continued::unblock(context, before, strategy, &mut planned).await?
    {
        return Ok(planned);
    }
    match answer {
        Ok(mut written) => {
            planned.warnings = written.warnings;
            if let Some(resumed) = operators::resumed(&written.object).filter(|_| is_paused) {
                planned.notes.push("an earlier run has paused it; it goes on".to_owned());
                written.object = Arc::new(resumed);
            }
            let mut fields = diff::diff(&live, &written.object, &DiffOptions::default());
            if !context.cluster.capabilities().server {
                fields.retain(|field| !spelling::is_spelling(&desired.object, field));
            }
            let copy_differs = live.annotation(ORIGINAL_ANNOTATION) != body.annotation(ORIGINAL_ANNOTATION);
            if !fields.is_empty() || copy_differs || own_fields_differ(context, &live, &written.object) {
                planned.action = desired.strategies.update.action(Difference::of_fields(fields));
                planned.verification = Verification::Server;
            }
            planned.result = Some(written.object);
            carried::after(context, address, &live, &body, &mut planned).await?;
        }
        Err(error)
            if error.kind == ErrorKind::Invalid
                && desired.strategies.update != UpdateStrategy::Apply
                && can_be_created(context, desired, address).await =>
        {
            let fields = diff::diff(&live, &estimate::replaced(&live, &body), &DiffOptions::default());
            planned.action = Action::Replace(Difference::of_fields(fields));
            planned.verification = Verification::NotVerified("it is deleted and created anew".to_owned());
            planned.notes.push(format!("replaced, because the server refuses the update: {}", error.message));
        }
        Err(error) if error.kind.is_unanswered() => return Err(error),
        Err(error) => match error.kind {
            ErrorKind::Invalid if carried::before(context, address, &live, &body, &mut planned).await? => {}
            _ => {
                let fields = diff::diff(&live, &estimate::applied(&live, &body), &DiffOptions::default());
                planned.action = Action::Update(Difference::of_fields(fields));
                // Every kind words an immutable field differently, so the server is asked.
                let only_as_new = error.kind == ErrorKind::Invalid && can_be_created(context, desired, address).await;
                planned.refused = Some(Box::new(Refusal { only_as_new, ..*Refusal::new(error) }));
            }
        },
    }
    Ok(planned)
}

/// The result of a creation: who owns which field, the write says anew. Of a custom resource it counts for the size.
fn without_managers(result: Arc<Value>) -> Arc<Value> {
    if is_custom_group(&ObjectRef::of(&result).group) {
        return result;
    }
    let mut result = Arc::unwrap_or_clone(result);
    if let Some(metadata) = result.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    Arc::new(result)
}

/// Whether the app already owns the object: by its label, or in a directory by the record.
fn is_known(context: Context<'_>, desired: &Desired, live: &Value) -> bool {
    match context.stamp.label_value {
        Some(_) => live.label(context.stamp.label_key).is_some(),
        None => context.inventory.get(&desired.object.key()).is_some(),
    }
}

/// Whether the server would accept the object as a new one: only then may the old one be deleted.
async fn can_be_created(context: Context<'_>, desired: &Desired, address: &Address) -> bool {
    let body = body::build(desired, None, context.stamp).value;
    refusal_as_new(context.cluster, address, Arc::unwrap_or_clone(body)).await.is_none()
}

/// Whether neither the live object nor the manifest has changed, so that no request is needed.
fn is_unchanged(context: Context<'_>, desired: &Desired, body: &Value, live: &Value, planned: &Planned) -> bool {
    let Some(entry) = context.inventory.get(&desired.object.key()) else { return false };
    if entry.uid != live.uid() || entry.uid.is_empty() || entry.manifest_digest.is_empty() {
        return false;
    }
    if context.stamp.label_value.is_none() {
        // A directory has no other managers: the document either equals the manifest or does not.
        return diff::diff(live, body, &DiffOptions::default()).is_empty();
    }
    let Ok(managers) = fields::managers(live) else { return false };
    let exclusive = takeover::exclusive_paths(context.stamp.config, body);
    if takeover::is_needed(&managers) || takeover::is_shared(&managers, &exclusive, live) {
        return false;
    }
    let mut ours = managers.iter().filter(|entry| entry.owner.manager == FIELD_MANAGER);
    let (Some(own), None) = (ours.next(), ours.next()) else { return false };
    let owner = &own.owner;
    if owner.operation != "Apply" || owner.api_version != desired.object.api_version() || !owner.subresource.is_empty()
    {
        return false;
    }
    if entry.manifest_digest != planned.manifest_digest.of(body) || has_copy(body) != has_copy(live) {
        return false;
    }
    if is_secret(live) {
        // Secret values are compared directly; their digests are never stored.
        let owned = fields::project(&own.fields, live);
        return same_secret(&owned, body);
    }
    entry.live_digest == planned.live_digest.of_owned(own, live)
}

fn same_secret(owned: &Value, body: &Value) -> bool {
    let map = |value: &Value, pointer: &str| {
        let mut map = value.pointer(pointer).cloned().unwrap_or_else(|| json!({}));
        // The digest of the manifest has told about the copy.
        map.as_object_mut()
            .into_iter()
            .for_each(|map| map.retain(|key, _| !ORIGINAL_ANNOTATIONS.contains(&key.as_str())));
        map
    };
    ["/data", "/metadata/labels", "/metadata/annotations"]
        .iter()
        .all(|pointer| map(owned, pointer) == map(body, pointer))
        && ["/type", "/immutable"]
            .iter()
            .all(|pointer| body.pointer(pointer).is_none() || owned.pointer(pointer) == body.pointer(pointer))
}

/// Whether our own entry would change although no value does: adoption, or a released field. A folder has no entries.
fn own_fields_differ(context: Context<'_>, live: &Value, result: &Value) -> bool {
    let own = |object: &Value| own_entry(object).map(|entry| (entry.owner.api_version, entry.fields));
    context.cluster.capabilities().server && own(live) != own(result)
}
