//! Builds the plan: compares every desired object with its live state, asks the server in dry-run,
//! finds objects that are gone from the input, and orders all changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_app::identity::has_copy;
use pushback_app::inventory::Entry;
use pushback_app::record::{Observed, Phase, QUALIFIED_SUFFIX};
use pushback_cluster::{Cluster, ErrorKind, Kinds};
use pushback_manifest::InputError;
use pushback_manifest::config::Config;
use pushback_manifest::config::mask::Masker;
use pushback_objects::{Finding, ObjectExt, ObjectKey, ObjectRef};
use pushback_preflight::Verification;
use pushback_storage::carry_over::StorageOptions;
use serde_json::Value;

use super::absent::Absent;
use super::aggregated::Aggregated;
use super::base::{self, BasePlacement};
use super::body::Stamp;
use super::compare::compare_missing;
use super::comparison::{Context, OwnershipOverride};
use super::desired::Desired;
use super::drift::{self, NamedDrift};
use super::live::{self, Live};
use super::part::{Part, Selection};
use super::providers::Providers;
use super::recreated::{self, Parents};
use super::unwanted::{Honoured, Unwanted, left_alone_warning, unwanted};
use super::versioned::{self, Versions};
use super::{
    Action, Plan, PlanError, PlanWarning, Planned, Retained, UpdateStrategy, adoption, conversion_backends, misspelt,
    operators, ordering, original, ownership, quota, refusal, rivals, size, stale_pods, takeover, unlabelled,
    webhook_first,
};

/// The user's options for planning.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Do not delete objects that are gone from the input.
    pub no_prune: bool,
    /// The part of the app that the run is about.
    pub selection: Selection,
    /// Whether an input of which nothing is selected is no error.
    pub allow_empty: bool,
    /// Send everything to the server, whatever the record says.
    pub recheck: bool,
    /// Take over objects of other apps.
    pub override_ownership: bool,
    /// Take over only objects of these apps.
    pub override_allowed_apps: Vec<String>,
    /// Whether the built-in label scoping rules apply.
    pub default_label_scoping: bool,
    /// Value of `nonce` annotations.
    pub nonce: String,
    /// The current time, RFC 3339 in UTC.
    pub now: String,
    /// Delete what controllers have made, too, when the app is deleted.
    pub deletes_derived: bool,
    /// Where no app is named: how the objects of the base, all of which count as the app's, are placed in namespaces.
    pub base: Option<BasePlacement>,
    /// What may be done about stored objects.
    pub storage: StorageOptions,
    /// Put kapp's copies of the manifest on objects, even where kapp has left none.
    pub kapp_annotations: bool,
    /// Which fields of other managers the plan names.
    pub named_drift: NamedDrift,
    /// Whether what no server takes is refused, or only told.
    pub strict: bool,
    /// Leave objects alone whose label was removed, as kapp does: they are no longer found.
    pub releases_unlabelled: bool,
    /// Keep objects that Helm would keep.
    pub honours_helm: bool,
    /// Plan objects that are deleted with a replaced parent as created again.
    pub recreates_contents: bool,
    /// Write CRDs before workloads, and replace conversion backends without a gap.
    pub crds_first: bool,
    /// Report a refusal by authorization without failing the set (`diff` and `check`).
    pub tolerate_forbidden: bool,
}

/// The arguments of planning.
#[derive(Debug)]
pub struct Request<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// The kinds that the cluster serves.
    pub kinds: &'a Kinds,
    /// Config of the run.
    pub config: &'a Config,
    /// The observed state of the app.
    pub observed: Observed,
    /// The app's label value.
    pub label_value: String,
    /// The user's options.
    pub options: &'a Options,
}

/// Plans an apply. `expect_write` is called as soon as a write is probable, with the namespace of its object, which is
/// empty for a cluster-scoped one: others can then ask the cluster ahead.
///
/// # Errors
/// The input cannot be applied, objects belong to another app, or the cluster does not respond.
pub async fn build(
    request: Request<'_>,
    desired: Vec<Desired>,
    expect_write: &(dyn Fn(&str) + Sync),
) -> Result<Plan, PlanError> {
    let Request { cluster, kinds, config, mut observed, label_value, options } = request;
    let is_server = cluster.capabilities().server;
    let app = observed.app.clone();
    let live = match &options.base {
        Some(placement) => base::read(cluster, kinds, placement, &desired).await?,
        None => {
            protect_record(&observed, &desired)?;
            let mut live = live::read(cluster, kinds, &observed, &desired, options.selection.scope).await?;
            if !options.releases_unlabelled {
                unlabelled::find(cluster, kinds, &observed, &mut live).await?;
            }
            live
        }
    };
    let unmarked = (options.base.is_some() && observed.record.is_none()).then(|| base::without_marks(config));
    let config = unmarked.as_ref().unwrap_or(config);
    let keeps_originals = options.kapp_annotations || live.objects.values().any(|object| has_copy(object));
    let original = keeps_originals.then(|| Arc::new(original::Rules::of(config)));
    let stamp = Stamp {
        config,
        label_value: is_server.then_some(label_value.as_str()),
        label_key: app.label_key(),
        default_label_scoping: options.default_label_scoping,
        nonce: &options.nonce,
        now: &options.now,
        original: original.as_ref(),
    };
    let (untouched, desired): (Vec<Desired>, Vec<Desired>) =
        desired.into_iter().partition(|wanted| wanted.strategies.noop);
    let (part, desired) = Part::divide(&options.selection, &live, desired);
    if desired.is_empty() && !part.rest.is_empty() && !options.allow_empty {
        return Err(PlanError::NothingSelected);
    }
    let sources = versioned::with_originals(desired);
    let mut versions = Versions::find(&sources, &part.rest, &live);
    let mut desired = versions.apply(&sources, config).map_err(PlanError::Input)?;
    let forgets = forget(&mut observed, &live, untouched.iter().chain(&part.rest).chain(&desired), is_server);
    let ownership_override = match options.override_ownership {
        true => ownership::allowed(cluster, &observed, &options.override_allowed_apps).await,
        false => OwnershipOverride::None,
    };
    let aggregated = Aggregated::new(cluster, kinds, &desired);
    let absent = Absent::find(cluster, &observed.app.namespace, &live, &desired).await?;
    let autoscaled = takeover::targets(desired.iter().map(|wanted| &*wanted.value));
    let masker = Masker::new(&config.diff_mask_rules);
    let policy_masker = Masker::new(&config.policy_mask_rules);
    let context = Context {
        cluster,
        known_kinds: kinds,
        stamp: &stamp,
        masker: &masker,
        policy_masker: &policy_masker,
        inventory: &observed.inventory,
        trust_digests: observed.inventory_void.is_none() && !options.recheck,
        claims: &live.claims,
        ownership_override: &ownership_override,
        aggregated: &aggregated,
        absent: &absent,
        storage: &options.storage,
        expect_write,
        autoscaled: &autoscaled,
    };
    let mut compared: Vec<Option<Planned>> = desired.iter().map(|_| None).collect();
    let to_be_filled = if is_server { quota::namespaces_of_new(&live, &absent, &desired) } else { BTreeSet::new() };
    let comparing = compare_missing(context, &live, &desired, &mut compared);
    let (result, quotas) = futures::join!(comparing, quota::read(cluster, kinds, &to_be_filled));
    result?;
    while versions.advance(&compared) {
        let renamed = versions.apply(&sources, config).map_err(PlanError::Input)?;
        for ((before, after), compared) in desired.iter().zip(&renamed).zip(&mut compared) {
            if before.object != after.object || before.value != after.value {
                *compared = None;
            }
        }
        desired = renamed;
        compare_missing(context, &live, &desired, &mut compared).await?;
    }
    let mut pairs: Vec<(Desired, Planned)> =
        desired.into_iter().zip(compared).filter_map(|(wanted, planned)| Some((wanted, planned?))).collect();
    ownership::check(cluster, &observed, &live, &pairs).await?;

    let mut refusals = Vec::new();
    let mut warnings = Vec::new();
    for ((group, kind), reason) in &live.unreadable {
        let name = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
        warnings.push(PlanWarning {
            code: "unreadable-kind",
            message: format!("{name} could not be listed, so nothing of it is pruned: {reason}"),
            object: None,
            position: None,
        });
    }
    let covered = || pairs.iter().filter(|(wanted, planned)| part.covers_change(wanted, planned));
    let parents = match options.recreates_contents {
        true => Parents::find(covered().map(|(_, planned)| planned)),
        false => Parents::default(),
    };
    // An older version goes with the namespace that holds it, and nothing needs it afterwards.
    let only_named: BTreeSet<ObjectKey> = untouched
        .iter()
        .chain(pairs.iter().map(|(wanted, _)| wanted))
        .filter(|wanted| wanted.strategies.noop || wanted.strategies.exists)
        .map(|wanted| wanted.object.key())
        .chain(versions.older().filter(|key| !parents.hold(key)))
        .collect();
    let Unwanted { mut prunes, left_alone } =
        unwanted(&live, &pairs, &only_named, kinds, Honoured { is_server, helm: options.honours_helm });
    warnings.extend(left_alone.iter().filter_map(|object| left_alone_warning(object, &only_named)));
    let mut retained = Retained { objects: left_alone, unreadable: live.unreadable.keys().cloned().collect() };
    let is_kept = |planned: &mut Planned| options.no_prune || !part.covers_prune(planned);
    retained.objects.extend(prunes.extract_if(.., is_kept).filter_map(|planned| planned.live));
    if options.recreates_contents {
        let deleted = Parents::deleted(&prunes);
        recreated::assign(&mut pairs, parents, &deleted, &live, &stamp);
        recreated::verify(cluster, &mut pairs).await;
        if is_server {
            refusals.extend(recreated::below_deleted(&pairs, &deleted));
        }
    }
    let is_left_out = |(wanted, planned): &mut (Desired, Planned)| {
        planned.recreated_after.is_empty() && !part.covers_change(wanted, planned)
    };
    let left_out = pairs.extract_if(.., is_left_out);
    retained.objects.extend(left_out.filter_map(|(wanted, _)| live.objects.get(&wanted.object.key()).cloned()));
    if options.base.is_none() {
        protect_record_namespace(&observed, &prunes)?;
        protect_replaced_record_namespace(&observed, &pairs)?;
    }
    prunes.iter().for_each(|planned| expect_write(&planned.object.namespace));
    if is_server
        && let Some(error) = rivals::check(cluster, &observed, None, &prunes, &pairs, &ownership_override).await?
    {
        let message = format!("whether another record claims what is written is not known: {error}");
        warnings.push(PlanWarning { code: "unreadable-record", message, object: None, position: None });
    }
    for reason in &live.claims.unreadable {
        let message = format!("what another app owns is not known: {reason}");
        warnings.push(PlanWarning { code: "unreadable-record", message, object: None, position: None });
    }
    let providers = providers(&pairs, &prunes);
    let mut unable = Vec::new();
    let mut objects = Vec::with_capacity(pairs.len() + prunes.len());
    for (index, (wanted, mut planned)) in pairs.into_iter().enumerate() {
        planned.kind_changes = providers.changes_kind_of(&wanted);
        settle(&wanted, &mut planned, &providers, options, &mut refusals, &mut unable);
        if planned.verification == Verification::Refused {
            for further in misspelt::further(cluster, &wanted, &planned).await {
                let is_same = |known: &Finding| {
                    (&known.object, &known.path, &known.message) == (&further.object, &further.path, &further.message)
                };
                if !refusals.iter().any(is_same) {
                    refusals.push(further);
                }
            }
        }
        if is_server && let Verification::NotVerified(reason) = &planned.verification {
            planned.notes.push(format!("not verified by the server: {reason}"));
        }
        for message in std::mem::take(&mut planned.warnings) {
            let position = refusal::place_of_warning(&message, &wanted.value, &wanted.positions);
            warnings.push(PlanWarning { code: "server", message, object: Some(index), position });
        }
        planned.original = stamp.original.filter(|_| planned.desired.as_deref().is_some_and(has_copy)).cloned();
        planned.wait = is_awaited(&planned, app.label_key());
        objects.push(planned);
    }
    objects.extend(prunes);
    webhook_first::assign(&mut objects);
    operators::assign(&mut objects, options.crds_first);
    stale_pods::note(&mut objects, is_server);
    for planned in objects.iter_mut().filter(|planned| planned.changes_no_value()) {
        let note = ownership_note(planned);
        planned.notes.insert(0, note.to_owned());
    }
    refusal::merge_missing_namespaces(&mut refusals);
    if is_server {
        refusals.extend(quota::check(&quotas, &objects));
        if options.strict {
            refusals.extend(size::check(&objects));
        }
    }
    warnings.extend(drift::warnings(&objects, options.named_drift));
    if is_server {
        warnings.extend(adoption::warnings(&objects, app.label_key()));
    }
    let conversions = if options.crds_first { conversion_backends::find(&objects) } else { Vec::new() };
    let crd_order = options.crds_first.then_some(conversions.as_slice());
    let graph = ordering::draw(&objects, config, &observed.app.namespace, crd_order)?;
    Ok(Plan {
        observed,
        label_value,
        objects,
        graph,
        conversions,
        retained,
        refusals,
        unable,
        warnings,
        forgets,
        deletes_app: false,
        cascades: Vec::new(),
        is_of_base: options.base.is_some(),
    })
}

/// Plans the deletion of the whole app, or of the selected part of it. `expect_write` is called as in [`build`].
///
/// # Errors
/// The cluster does not respond.
pub async fn build_delete(request: Request<'_>, expect_write: &(dyn Fn(&str) + Sync)) -> Result<Plan, PlanError> {
    let Request { cluster, kinds, config, observed, label_value, options } = request;
    let selection = &options.selection;
    // What the record lists will go, most likely; a record that kapp has left lists nothing.
    observed.inventory.iter().for_each(|(object, _)| expect_write(&object.namespace));
    let reading = live::read(cluster, kinds, &observed, &[], selection.scope);
    let (live, records) = futures::join!(reading, rivals::records(cluster, &observed));
    let mut live = live?;
    if !options.releases_unlabelled {
        unlabelled::find(cluster, kinds, &observed, &mut live).await?;
    }
    live.objects.keys().for_each(|object| expect_write(&object.namespace));
    live::add_owned_for_deletion(cluster, kinds, &observed, &mut live).await?;
    if options.deletes_derived {
        let own = live.objects.values().map(|object| &**object);
        let derived = live::labelled(cluster, kinds, &observed, own, selection.scope).await;
        live.objects.extend(derived.into_iter().map(|object| (ObjectRef::of(&object).key(), object)));
    }
    let Unwanted { prunes: mut objects, left_alone } = unwanted(
        &live,
        &[],
        &BTreeSet::new(),
        kinds,
        Honoured { is_server: cluster.capabilities().server, helm: options.honours_helm },
    );
    let is_kept = |planned: &mut Planned| planned.live.as_deref().is_some_and(|live| !selection.covers_deletion(live));
    let mut kept: Vec<Arc<Value>> = objects.extract_if(.., is_kept).filter_map(|planned| planned.live).collect();
    // What cannot be listed may be outside of the part.
    let deletes_app = kept.is_empty() && (selection.is_empty() || live.unreadable.is_empty());
    let unable: Vec<String> = live
        .unreadable
        .iter()
        .filter(|_| deletes_app)
        .map(|((_, kind), reason)| format!("{kind} could not be listed, so the app cannot be deleted whole: {reason}"))
        .collect();
    if !deletes_app {
        protect_record_namespace(&observed, &objects)?;
        kept.extend(left_alone.iter().cloned());
    }
    if cluster.capabilities().server {
        rivals::check(cluster, &observed, records, &objects, &[], &OwnershipOverride::None).await?;
    }
    let warnings = left_alone.iter().filter_map(|object| left_alone_warning(object, &BTreeSet::new())).collect();
    let graph = ordering::draw(&objects, config, &observed.app.namespace, None)?;
    let retained = Retained { objects: kept, unreadable: live.unreadable.into_keys().collect() };
    Ok(Plan {
        observed,
        label_value,
        objects,
        graph,
        conversions: Vec::new(),
        retained,
        refusals: Vec::new(),
        unable,
        warnings,
        forgets: false,
        deletes_app,
        cascades: Vec::new(),
        is_of_base: false,
    })
}

/// Refuses to prune the record's namespace, which would delete record and lock too; only deleting the app may.
fn protect_record_namespace(observed: &Observed, prunes: &[Planned]) -> Result<(), PlanError> {
    let home = &observed.app.namespace;
    let is_home = |planned: &&Planned| holds_record(observed, &planned.object) && !planned.is_orphaned();
    match prunes.iter().find(is_home) {
        None => Ok(()),
        Some(_) => Err(PlanError::Input(vec![InputError {
            message: format!("Namespace {home} is gone from the input, and it holds the app's own record"),
            position: Default::default(),
            hints: vec![
                "keep it in the input, or delete the whole app with `pushback delete`".to_owned(),
                "to leave the namespace where it is, annotate it with kapp.k14s.io/delete-strategy: orphan".to_owned(),
            ],
        }])),
    }
}

/// Refuses to replace the record's namespace: record and lock would be deleted in the middle of the run.
fn protect_replaced_record_namespace(observed: &Observed, pairs: &[(Desired, Planned)]) -> Result<(), PlanError> {
    let is_replaced = |(wanted, planned): &&(Desired, Planned)| {
        matches!(planned.action, Action::Replace(_)) && holds_record(observed, &wanted.object)
    };
    match pairs.iter().find(is_replaced) {
        None => Ok(()),
        Some((wanted, _)) => Err(PlanError::Input(vec![InputError {
            message: format!(
                "Namespace {} would be deleted and created anew, and it holds the app's own record",
                wanted.object.name
            ),
            position: wanted.positions.start(),
            hints: vec![
                "change the namespace in place: remove the annotation kapp.k14s.io/update-strategy".to_owned(),
                "to replace it all the same, delete the whole app with `pushback delete`, then apply it again"
                    .to_owned(),
            ],
        }])),
    }
}

/// Returns whether an object is the namespace of the app's own record.
fn holds_record(observed: &Observed, object: &ObjectRef) -> bool {
    let is_namespace = object.group.is_empty() && object.kind == "Namespace";
    is_namespace && object.name == observed.app.namespace && observed.app.defining_label().is_none()
}

/// Refuses an input object at the address of the app's own record: it would erase what the app owns.
fn protect_record(observed: &Observed, desired: &[Desired]) -> Result<(), PlanError> {
    let app = &observed.app;
    let takes_its_place = |wanted: &&Desired| {
        let object = &wanted.object;
        (object.group.as_str(), object.kind.as_str(), object.namespace.as_str()) == ("", "ConfigMap", &app.namespace)
            && object.name.strip_suffix(QUALIFIED_SUFFIX).unwrap_or(&object.name) == app.name
    };
    let errors: Vec<InputError> = desired
        .iter()
        .filter(takes_its_place)
        .map(|wanted| InputError {
            message: format!("{} has the name of the app's own record", wanted.object),
            position: wanted.positions.start(),
            hints: vec!["choose another app name, or another namespace for the record (--app-namespace)".to_owned()],
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(PlanError::Ownership(errors, Vec::new())) }
}

/// Removes objects that no longer exist and are not desired from the inventory: a later object of the same name is not
/// ours. Returns whether there were any.
fn forget<'a>(
    observed: &mut Observed,
    live: &Live,
    desired: impl Iterator<Item = &'a Desired>,
    is_server: bool,
) -> bool {
    if live.gone.is_empty() {
        return false;
    }
    let wanted: BTreeSet<ObjectKey> = desired.map(|wanted| wanted.object.key()).collect();
    let finished =
        observed.record.as_ref().and_then(|record| record.own.as_ref()).is_some_and(|own| own.phase == Phase::Done);
    let mut forgets = false;
    for key in live.gone.iter().filter(|key| !wanted.contains(*key)) {
        // A create from an interrupted run may still arrive; the next run checks again.
        let may_come = |entry: &Entry| is_server && !finished && entry.uid.is_empty();
        if observed.inventory.get(key).is_some_and(|entry| !may_come(entry)) {
            observed.inventory.remove(key);
            forgets = true;
        }
    }
    forgets
}

/// Returns whether the run waits for an object. One that is only checked, or left to others, is not waited for; without
/// the label no watch would see it either.
fn is_awaited(planned: &Planned, label_key: &str) -> bool {
    let is_left_alone = match planned.action {
        Action::Keep if planned.strategies.exists => true,
        Action::Keep => planned.live.as_deref().is_some_and(|live| live.label(label_key).is_none()),
        Action::Create | Action::Update(_) | Action::Replace(_) | Action::Delete => false,
    };
    let is_new = matches!(planned.action, Action::Create) || !planned.recreated_after.is_empty();
    let is_skipped = planned.strategies.update == UpdateStrategy::Skip && !is_new;
    !is_left_alone && !is_skipped && !planned.strategies.disable_wait
}

/// Returns the note of an update that changes no value.
fn ownership_note(planned: &Planned) -> &'static str {
    let copy = |object: &Option<Arc<Value>>| object.as_deref().is_some_and(has_copy);
    if copy(&planned.live) == copy(&planned.desired) {
        "only field ownership changes"
    } else {
        "only field ownership and kapp's copy of the manifest change"
    }
}

/// Decides what a server's refusal means, now that the whole set is known; a final one stays in `refused`.
fn settle(
    wanted: &Desired,
    planned: &mut Planned,
    providers: &Providers,
    options: &Options,
    refusals: &mut Vec<Finding>,
    unable: &mut Vec<String>,
) {
    let Some(refused) = planned.refused.take() else {
        if planned.operation().writes() && planned.verification == Verification::Server && planned.kind_changes {
            let reason = format!("the CustomResourceDefinition of {} is changed by this run", wanted.object.kind);
            planned.verification = Verification::NotVerified(reason);
        }
        return;
    };
    let error = &refused.error;
    // A rule of the Config that fails is nobody else's doing.
    let explained = (error.kind != ErrorKind::Configuration).then(|| providers.explain(wanted, error)).flatten();
    planned.verification = if let Some(explained) = explained {
        planned.after = explained.after;
        Verification::NotVerified(explained.reason)
    } else if error.kind == ErrorKind::Forbidden && options.tolerate_forbidden {
        Verification::NotVerified(format!("compared without the server: {}", error.message))
    } else if error.kind == ErrorKind::Unsupported {
        planned.no_dry_run = true;
        Verification::NotVerified(error.message.clone())
    } else if matches!(error.kind, ErrorKind::WebhookUnavailable | ErrorKind::Server | ErrorKind::Protocol) {
        // A webhook may answer by the time of the write, which is tried until then.
        if options.strict || error.kind != ErrorKind::WebhookUnavailable {
            unable.push(format!("{} could not be verified by the server: {}", wanted.object, error.message));
        }
        Verification::NotVerified(error.message.clone())
    } else {
        refusals.extend(refusal::findings(wanted, error, refused.only_as_new));
        planned.refused = Some(refused);
        Verification::Refused
    };
}

fn providers(pairs: &[(Desired, Planned)], prunes: &[Planned]) -> Providers {
    let mut providers = Providers::default();
    for (wanted, planned) in pairs {
        providers.add(&wanted.object.key(), Some(&wanted.value), planned.operation().writes());
    }
    for planned in prunes {
        providers.add(&planned.object.key(), planned.live.as_deref(), true);
    }
    providers
}
