//! Builds the plan: compares every desired object with its live state, asks the server in dry-run,
//! finds objects that are gone from the input, and orders all changes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_app::identity::has_copy;
use pushback_app::record::Observed;
use pushback_cluster::{Cluster, Kinds};
use pushback_manifest::config::Config;
use pushback_manifest::config::mask::Masker;
use pushback_objects::{Finding, ObjectKey, ObjectRef};
use pushback_preflight::Verification;
use pushback_preflight::rule::Judgement;
use pushback_storage::carry_over::StorageOptions;
use serde_json::Value;

use super::absent::Absent;
use super::aggregated::Aggregated;
use super::base::{self, BasePlacement};
use super::body::Stamp;
use super::compare::compare_all;
use super::comparison::Context;
use super::desired::Desired;
use super::drift::{self, NamedDrift};
use super::live::{self, Live};
use super::ownership::{self, OwnershipOverride};
use super::part::{Part, Selection};
use super::providers::Providers;
use super::recreated::{self, Parents};
use super::unwanted::{Honoured, Unwanted, left_alone_warning, unwanted};
use super::versioned::{self, Versions};
use super::{
    Plan, PlanError, PlanWarning, Planned, Retained, adoption, carried, conversion_backends, misspelt, operators,
    ordering, original, own_record, quota, refusal, rivals, size, stale_pods, takeover, unlabelled,
};

/// The user's options for planning.
#[derive(Clone, Debug)]
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

impl Default for Options {
    fn default() -> Self {
        Self {
            no_prune: false,
            selection: Selection::default(),
            allow_empty: false,
            recheck: false,
            override_ownership: false,
            override_allowed_apps: Vec::new(),
            default_label_scoping: true,
            nonce: String::new(),
            now: String::new(),
            deletes_derived: false,
            base: None,
            storage: StorageOptions::default(),
            kapp_annotations: false,
            named_drift: NamedDrift::default(),
            strict: true,
            releases_unlabelled: false,
            honours_helm: false,
            recreates_contents: true,
            crds_first: false,
            tolerate_forbidden: false,
        }
    }
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
/// empty for a cluster-scoped one: others can then ask the cluster ahead. `on_compared` is called with the number of
/// objects that are compared so far.
///
/// # Errors
/// The input cannot be applied, objects belong to another app, or the cluster does not respond.
pub async fn build(
    request: Request<'_>,
    desired: Vec<Desired>,
    expect_write: &(dyn Fn(&str) + Sync),
    on_compared: &(dyn Fn(usize) + Sync),
) -> Result<Plan, PlanError> {
    let (mut passes, desired) = Passes::start(request, desired).await?;
    let mut pairs = passes.compare(desired, expect_write, on_compared).await?;
    ownership::check(passes.cluster, &passes.plan.observed, &passes.live, &pairs).await?;
    let parents = passes.replaced_parents(&pairs);
    let prunes = passes.prune(&pairs, &parents);
    passes.recreate_contents(&mut pairs, parents, &prunes).await;
    passes.leave_out(&mut pairs);
    passes.protect_record(&pairs, &prunes)?;
    prunes.iter().for_each(|planned| expect_write(&planned.object.namespace));
    passes.check_rivals(&pairs, &prunes).await?;
    passes.settle(pairs, prunes).await;
    passes.relate();
    passes.check_limits();
    passes.warn();
    passes.order()
}

/// The passes that make the plan of an apply, and the facts that they share.
struct Passes<'a> {
    cluster: &'a dyn Cluster,
    kinds: &'a Kinds,
    config: Cow<'a, Config>,
    options: &'a Options,
    is_server: bool,
    live: Live,
    /// Rules by which kapp compares objects with its copies of the manifest, if those are kept up to date.
    original: Option<Arc<original::Rules>>,
    /// Objects of the manifests that are never written.
    untouched: Vec<Desired>,
    part: Part<'a>,
    versions: Versions,
    ownership_override: OwnershipOverride,
    /// The quotas of namespaces in which objects are created.
    quotas: Vec<Arc<Value>>,
    /// The plan so far.
    plan: Plan,
}

impl<'a> Passes<'a> {
    /// Reads the live objects, and divides the desired ones: those that are returned are compared.
    async fn start(request: Request<'a>, desired: Vec<Desired>) -> Result<(Self, Vec<Desired>), PlanError> {
        let live = read_live(&request, &desired).await?;
        let Request { cluster, kinds, config, observed, label_value, options } = request;
        let is_of_base = options.base.is_some();
        let config = match is_of_base && observed.record.is_none() {
            true => Cow::Owned(base::without_marks(config)),
            false => Cow::Borrowed(config),
        };
        let keeps_originals = options.kapp_annotations || live.objects.values().any(|object| has_copy(object));
        let original = keeps_originals.then(|| Arc::new(original::Rules::of(&config)));
        let (untouched, desired): (Vec<Desired>, Vec<Desired>) =
            desired.into_iter().partition(|wanted| wanted.strategies.noop);
        let (part, desired) = Part::divide(&options.selection, &live, desired);
        if desired.is_empty() && !part.rest.is_empty() && !options.allow_empty {
            return Err(PlanError::NothingSelected);
        }
        let passes = Self {
            cluster,
            kinds,
            config,
            options,
            is_server: cluster.capabilities().server,
            live,
            original,
            untouched,
            part,
            versions: Versions::default(),
            ownership_override: OwnershipOverride::None,
            quotas: Vec::new(),
            plan: Plan { is_of_base, ..Plan::new(observed, label_value) },
        };
        Ok((passes, desired))
    }

    fn stamp(&self) -> Stamp<'_> {
        Stamp {
            config: &self.config,
            label_value: self.is_server.then_some(self.plan.label_value.as_str()),
            label_key: self.plan.observed.app.label_key(),
            default_label_scoping: self.options.default_label_scoping,
            nonce: &self.options.nonce,
            now: &self.options.now,
            original: self.original.as_ref(),
        }
    }

    /// Compares every object with its live state, and gives versioned objects their names.
    async fn compare(
        &mut self,
        desired: Vec<Desired>,
        expect_write: &(dyn Fn(&str) + Sync),
        on_compared: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<(Desired, Planned)>, PlanError> {
        let sources = versioned::with_originals(desired);
        let mut versions = Versions::find(&sources, &self.part.rest, &self.live);
        let desired = versions.apply(&sources, &self.config).map_err(PlanError::Input)?;
        let all = self.untouched.iter().chain(&self.part.rest).chain(&desired);
        self.plan.forgets = self.live.forget_gone(&mut self.plan.observed, all, self.is_server);
        let observed = &self.plan.observed;
        if self.options.override_ownership {
            let apps = &self.options.override_allowed_apps;
            self.ownership_override = ownership::allowed(self.cluster, observed, apps).await;
        }
        let absent = Absent::find(self.cluster, &observed.app.namespace, &self.live, &desired).await?;
        let namespaces = match self.is_server {
            true => quota::namespaces_of_new(&self.live, &absent, &desired),
            false => BTreeSet::new(),
        };
        let context = Context {
            cluster: self.cluster,
            known_kinds: self.kinds,
            stamp: &self.stamp(),
            masker: &Masker::new(&self.config.diff_mask_rules),
            policy_masker: &Masker::new(&self.config.policy_mask_rules),
            inventory: &observed.inventory,
            trust_digests: observed.inventory_void.is_none() && !self.options.recheck,
            claims: &self.live.claims,
            ownership_override: &self.ownership_override,
            aggregated: &Aggregated::new(self.cluster, self.kinds, &desired),
            absent: &absent,
            storage: &self.options.storage,
            expect_write,
            on_compared,
            autoscaled: &takeover::targets(desired.iter().map(|wanted| &*wanted.value)),
        };
        let comparing = compare_all(context, &self.live, desired, &sources, &mut versions);
        let (pairs, quotas) = futures::join!(comparing, quota::read(self.cluster, self.kinds, &namespaces));
        (self.versions, self.quotas) = (versions, quotas);
        pairs
    }

    /// The objects whose replacement deletes others.
    fn replaced_parents(&self, pairs: &[(Desired, Planned)]) -> Parents {
        let covered = pairs.iter().filter(|(wanted, planned)| self.part.covers_change(wanted, planned));
        match self.options.recreates_contents {
            true => Parents::find(covered.map(|(_, planned)| planned)),
            false => Parents::default(),
        }
    }

    /// Decides about live objects that the manifests do not ask to write. Returns the deletions; the others are retained.
    fn prune(&mut self, pairs: &[(Desired, Planned)], parents: &Parents) -> Vec<Planned> {
        let named = self.untouched.iter().chain(pairs.iter().map(|(wanted, _)| wanted));
        let only_named = named.filter(|wanted| wanted.strategies.noop || wanted.strategies.exists);
        // An older version is deleted with the namespace that holds it, and nothing needs it afterwards.
        let older = self.versions.older().filter(|key| !parents.hold(key));
        let only_named: BTreeSet<ObjectKey> = only_named.map(|wanted| wanted.object.key()).chain(older).collect();
        let honoured = Honoured { is_server: self.is_server, helm: self.options.honours_helm };
        let Unwanted { mut prunes, left_alone } = unwanted(&self.live, pairs, &only_named, self.kinds, honoured);
        self.plan.warnings.extend(self.live.unreadable.iter().map(unreadable_warning));
        self.plan.warnings.extend(left_alone.iter().filter_map(|object| left_alone_warning(object, &only_named)));
        let is_kept = |planned: &mut Planned| self.options.no_prune || !self.part.covers_prune(planned);
        let kept = prunes.extract_if(.., is_kept).filter_map(|planned| planned.live);
        self.plan.retained.objects.extend(left_alone.into_iter().chain(kept));
        self.plan.retained.unreadable = self.live.unreadable.keys().cloned().collect();
        prunes
    }

    /// Plans what is deleted with replaced parents as created again.
    async fn recreate_contents(&mut self, pairs: &mut [(Desired, Planned)], parents: Parents, prunes: &[Planned]) {
        if !self.options.recreates_contents {
            return;
        }
        let deleted = Parents::deleted(prunes);
        recreated::assign(pairs, parents, &deleted, &self.live, &self.stamp());
        recreated::verify(self.cluster, pairs).await;
        if self.is_server {
            self.plan.refusals.extend(recreated::below_deleted(pairs, &deleted));
        }
    }

    /// Leaves out the changes that the run is not about; their live objects are retained.
    fn leave_out(&mut self, pairs: &mut Vec<(Desired, Planned)>) {
        let is_left_out = |(wanted, planned): &mut (Desired, Planned)| {
            planned.recreated_after.is_empty() && !self.part.covers_change(wanted, planned)
        };
        let left_out = pairs.extract_if(.., is_left_out);
        let live = left_out.filter_map(|(wanted, _)| self.live.objects.get(&wanted.object.key()).cloned());
        self.plan.retained.objects.extend(live);
    }

    /// Fails if the namespace of the app's own record would be deleted.
    fn protect_record(&self, pairs: &[(Desired, Planned)], prunes: &[Planned]) -> Result<(), PlanError> {
        if self.plan.is_of_base {
            return Ok(());
        }
        own_record::check_deleted_namespace(&self.plan.observed, prunes)?;
        own_record::check_replaced_namespace(&self.plan.observed, pairs)
    }

    /// Fails if another record claims what is written or deleted. Unreadable records are warnings.
    async fn check_rivals(&mut self, pairs: &[(Desired, Planned)], prunes: &[Planned]) -> Result<(), PlanError> {
        let warning = |message| PlanWarning { code: "unreadable-record", message, object: None, position: None };
        if self.is_server {
            let observed = &self.plan.observed;
            let checking = rivals::check(self.cluster, observed, None, prunes, pairs, &self.ownership_override);
            let unknown = checking.await?;
            self.plan.warnings.extend(
                unknown.map(|error| {
                    warning(format!("whether another record claims what is written is not known: {error}"))
                }),
            );
        }
        let unreadable = self.live.claims.unreadable.iter();
        let unreadable = unreadable.map(|reason| warning(format!("what another app owns is not known: {reason}")));
        self.plan.warnings.extend(unreadable);
        Ok(())
    }

    /// Decides what the server's answers mean now that the whole set is known, and completes the objects.
    async fn settle(&mut self, pairs: Vec<(Desired, Planned)>, prunes: Vec<Planned>) {
        let providers = Providers::new(&pairs, &prunes);
        for (index, (wanted, mut planned)) in pairs.into_iter().enumerate() {
            let Judgement { findings, unable } = providers.settle(&wanted, &mut planned, self.options);
            self.plan.refusals.extend(findings);
            self.plan.unable.extend(unable);
            for further in misspelt::further(self.cluster, &wanted, &planned).await {
                let is_same = |known: &Finding| {
                    (&known.object, &known.path, &known.message) == (&further.object, &further.path, &further.message)
                };
                if !self.plan.refusals.iter().any(is_same) {
                    self.plan.refusals.push(further);
                }
            }
            if self.is_server
                && let Verification::NotVerified(reason) = &planned.verification
            {
                planned.notes.push(format!("not verified by the server: {reason}"));
            }
            for message in std::mem::take(&mut planned.warnings) {
                let position = refusal::place_of_warning(&message, &wanted.value, &wanted.positions);
                self.plan.warnings.push(PlanWarning { code: "server", message, object: Some(index), position });
            }
            let is_copied = planned.desired.as_deref().is_some_and(has_copy);
            planned.original = self.original.as_ref().filter(|_| is_copied).cloned();
            planned.wait = planned.is_awaited(self.plan.observed.app.label_key());
            self.plan.objects.push(planned);
        }
        refusal::merge_missing_namespaces(&mut self.plan.refusals);
        self.plan.objects.extend(prunes);
    }

    /// Adds to each object what follows from the others.
    fn relate(&mut self) {
        let objects = &mut self.plan.objects;
        carried::put_webhooks_first(objects);
        operators::assign(objects, self.options.crds_first);
        stale_pods::note(objects, self.is_server);
        for planned in objects.iter_mut().filter(|planned| planned.changes_no_value()) {
            planned.notes.insert(0, ownership_note(planned).to_owned());
        }
    }

    /// Finds objects that exceed a quota or the size limit, which no dry run reports.
    fn check_limits(&mut self) {
        if self.is_server {
            self.plan.refusals.extend(quota::check(&self.quotas, &self.plan.objects));
            if self.options.strict {
                self.plan.refusals.extend(size::check(&self.plan.objects));
            }
        }
    }

    /// Warns of fields and objects that belong to others.
    fn warn(&mut self) {
        let Plan { observed, objects, warnings, .. } = &mut self.plan;
        warnings.extend(drift::warnings(objects, self.options.named_drift));
        if self.is_server {
            warnings.extend(adoption::warnings(objects, observed.app.label_key()));
        }
    }

    /// Orders the changes.
    fn order(self) -> Result<Plan, PlanError> {
        let Self { mut plan, config, options, .. } = self;
        if options.crds_first {
            plan.conversions = conversion_backends::find(&plan.objects);
        }
        let crd_order = options.crds_first.then_some(plan.conversions.as_slice());
        plan.graph = ordering::draw(&plan.objects, &config, &plan.observed.app.namespace, crd_order)?;
        Ok(plan)
    }
}

/// Reads the live objects of the app, or those of the base where no app is named.
async fn read_live(request: &Request<'_>, desired: &[Desired]) -> Result<Live, PlanError> {
    let Request { cluster, kinds, observed, options, .. } = request;
    if let Some(placement) = &options.base {
        return base::read(*cluster, kinds, placement, desired).await;
    }
    own_record::check_manifests(observed, desired)?;
    let mut live = live::read(*cluster, kinds, observed, desired, options.selection.scope).await?;
    if !options.releases_unlabelled {
        unlabelled::find(*cluster, kinds, observed, &mut live).await?;
    }
    Ok(live)
}

fn unreadable_warning(((group, kind), reason): (&(String, String), &String)) -> PlanWarning {
    let name = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
    let message = format!("{name} could not be listed, so nothing of it is pruned: {reason}");
    PlanWarning { code: "unreadable-kind", message, object: None, position: None }
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
        own_record::check_deleted_namespace(&observed, &objects)?;
        kept.extend(left_alone.iter().cloned());
    }
    if cluster.capabilities().server {
        rivals::check(cluster, &observed, records, &objects, &[], &OwnershipOverride::None).await?;
    }
    let warnings = left_alone.iter().filter_map(|object| left_alone_warning(object, &BTreeSet::new())).collect();
    let graph = ordering::draw(&objects, config, &observed.app.namespace, None)?;
    let retained = Retained { objects: kept, unreadable: live.unreadable.into_keys().collect() };
    Ok(Plan { objects, graph, retained, unable, warnings, deletes_app, ..Plan::new(observed, label_value) })
}
