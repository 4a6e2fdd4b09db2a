//! Definitions from files in the place of live ones, for what that does to stored objects: looked at, or carried out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pushback_app::identity::{APP_LABEL, ASSOCIATION_LABEL, IDENTITY_ANNOTATION};
use pushback_cluster::{Address, ClusterError};
use pushback_conversion::{ConversionPlans, GivenPlan, PlanSource};
use pushback_crd::definition::crd::KIND as DEFINITION;
use pushback_events::exit::ExitCode;
use pushback_manifest::{files, find_files};
use pushback_objects::ObjectExt;
use pushback_objects::text::counted;
use pushback_storage::carry_over::CarryingOver;
use pushback_storage::definitions;
use pushback_storage::preview::{Preview, PreviewReport, StepKind};
use pushback_storage::replacement::Replacement;
use serde_json::Value;

use super::conversion::text;
use super::{Connected, connected};
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::conversion_files::{self, FileRole, PlanDocument};
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::signals::{until_dismissed, until_stopped};

/// Definitions to look at or to write.
#[derive(Clone, Debug)]
pub struct Replace {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Namespace of the record of progress.
    pub namespace: NamespaceOptions,
    /// Names of definitions; none: all of the files that are live.
    pub names: Vec<String>,
    /// Files with definitions and conversion plans; none: the definitions stay as they are.
    pub files: Vec<PathBuf>,
    /// Folder for objects as they were before they are converted.
    pub backup: Option<PathBuf>,
}

/// A definition that is to be replaced.
struct Subject {
    address: Address,
    live: Arc<Value>,
    wanted: Arc<Value>,
    preview: Preview,
    replacement: Replacement,
}

impl Replace {
    /// Looks at what becomes of the objects.
    ///
    /// # Errors
    /// No API server, a file that cannot be read, no such definition.
    pub async fn look(&self, run: &mut Run) -> Result<PreviewReport, CommandError> {
        let connected = connected(run, &self.cluster, &self.namespace).await?;
        let subjects = until_stopped(run.stop.clone(), self.subjects(&connected)).await?;
        Ok(report(subjects.iter().map(|subject| subject.preview.clone()).collect()))
    }

    /// Writes the definitions, and moves their objects on the way. `consent` is shown what will be done first.
    ///
    /// # Errors
    /// As [`Self::look`]; `Refused` before anything is written if one of them cannot be carried out; no consent.
    pub async fn carry_out(
        &self,
        run: &mut Run,
        dry_run: bool,
        show: impl FnOnce(&PreviewReport) -> Result<(), CommandError>,
    ) -> Result<PreviewReport, CommandError> {
        let connected = connected(run, &self.cluster, &self.namespace).await?;
        let subjects = until_stopped(run.stop.clone(), self.subjects(&connected)).await?;
        let mut looked = report(subjects.iter().map(|subject| subject.preview.clone()).collect());
        show(&looked)?;
        if let Some(refused) = looked.refused() {
            let message = format!("nothing was written: {refused}");
            let hint = "change the objects first, or say in a ConversionPlan what becomes of the fields; `pushback storage suggest` \
                        drafts one";
            return Err(CommandError { code: ExitCode::Refused, ..CommandError::usage_with_hint(message, hint) });
        }
        let pending: Vec<&Subject> = subjects.iter().filter(|subject| !subject.preview.steps.is_empty()).collect();
        if dry_run || pending.is_empty() {
            return Ok(looked);
        }
        let objects: u64 = pending.iter().map(|subject| subject.preview.objects).sum();
        let definitions = counted(pending.len(), "definition");
        run.confirm(&format!("Write {definitions}, with {} on the way?", counted(objects, "object"))).await?;
        for subject in pending {
            let work = subject.write(&connected, run);
            // Every step looks at what is live, and the next run goes on behind the last one.
            match until_dismissed(run.stop.clone(), Duration::ZERO, work).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(subject.stopped(&error.message, ExitCode::Partial)),
                Err(code) => return Err(subject.stopped("interrupted", code)),
            }
        }
        looked.carried_out = true;
        Ok(looked)
    }

    async fn subjects(&self, connected: &Connected) -> Result<Vec<Subject>, CommandError> {
        let (wanted, plans) = self.read()?;
        let names: Vec<&String> =
            if self.names.is_empty() { wanted.keys().collect() } else { self.names.iter().collect() };
        let (cluster, kind) = (&*connected.cluster, &connected.definitions);
        let mut subjects = Vec::new();
        for name in names {
            let address = definitions::address(kind, name);
            let live = match cluster.get(&address).await? {
                Some(live) => live,
                // A definition that does not exist has no objects.
                None if self.names.is_empty() => continue,
                None => definitions::one(cluster, kind, name).await?,
            };
            let wanted = match wanted.get(name) {
                Some(wanted) => Arc::new(with_marks(wanted, &live)),
                None if self.files.is_empty() => Arc::clone(&live),
                None => {
                    let known = wanted.keys().cloned().collect::<Vec<_>>().join(", ");
                    let message = format!("the files have no definition {name}");
                    return Err(CommandError::usage_with_hint(message, format!("they have: {known}")));
                }
            };
            let given = plans.for_definition(name);
            if let Some(given) = given {
                let converter = pushback_crd::stack::with_room(|| given.converter(Some(&live), &wanted))?;
                converter.without_programs(&given.document.positions.start()).map_err(|error| vec![error])?;
            }
            let backup = self.backup.as_deref();
            let (preview, replacement) = Preview::of(cluster, &address, &live, &wanted, given, backup).await?;
            subjects.push(Subject { address, live, wanted, preview, replacement });
        }
        if subjects.is_empty() {
            return Err(CommandError::usage("none of the definitions in the files is on the cluster"));
        }
        Ok(subjects)
    }

    /// The files to read. Those of a folder may hold anything; one that is named holds CRDs or plans.
    fn sources(&self) -> Result<Vec<(PathBuf, &'static [FileRole])>, CommandError> {
        let mut sources: Vec<(PathBuf, &'static [FileRole])> = Vec::new();
        for path in &self.files {
            match path.is_dir() {
                false => sources.push((path.clone(), &[FileRole::Either])),
                true => sources.extend(find_files(path)?.into_iter().map(|file| (file, &[][..]))),
            }
        }
        Ok(sources)
    }

    /// The definitions and the plans of the files.
    fn read(&self) -> Result<(BTreeMap<String, Value>, ConversionPlans), CommandError> {
        let (mut definitions, mut plans) = (BTreeMap::new(), Vec::new());
        for (path, roles) in self.sources()? {
            let found = conversion_files::parse(&files::shown(&path), text(&path)?.as_bytes(), roles)?;
            plans.extend(found.plans.into_iter().map(|PlanDocument { plan, document }| GivenPlan {
                definition: plan.name,
                document,
                source: PlanSource::Policy,
            }));
            definitions.extend(found.crds.into_iter().map(|crd| (crd.value.name().to_owned(), crd.value)));
        }
        if definitions.is_empty() && !self.files.is_empty() {
            return Err(CommandError::usage(format!("the files have no {DEFINITION}")));
        }
        Ok((definitions, ConversionPlans::of(plans)?))
    }
}

impl Subject {
    fn stopped(&self, why: &str, code: ExitCode) -> CommandError {
        let message = format!("{}: {why}", self.preview.definition);
        let hint = "run the same command again: it goes on where this run stopped";
        CommandError { code, ..CommandError::usage_with_hint(message, hint) }
    }

    /// Writes the definition, with what has to be done to its objects before and after.
    async fn write(&self, connected: &Connected, run: &Run) -> Result<(), ClusterError> {
        let cluster = &*connected.cluster;
        let carrying = CarryingOver {
            cluster,
            definitions: Arc::clone(&connected.definitions),
            name: &self.address.name,
            namespace: connected.namespaces.record.clone(),
            conversion: self.replacement.conversion.as_ref(),
            lock: None,
        };
        let mut live = Arc::clone(&self.live);
        if let Some(way) = &self.replacement.way {
            carrying.before(way, &run.events).await?;
            live = definitions::one(cluster, &connected.definitions, &self.address.name).await?;
        }
        if self.preview.steps.iter().any(|step| step.step == StepKind::Write) {
            carrying.write(&self.wanted, &live).await?;
        }
        match &self.replacement.way {
            Some(way) => carrying.after(way, &run.events).await,
            None => Ok(()),
        }
    }
}

fn report(definitions: Vec<Preview>) -> PreviewReport {
    PreviewReport { schema_version: 1, definitions, carried_out: false }
}

/// The definition with what says to which app the live one belongs.
fn with_marks(wanted: &Value, live: &Value) -> Value {
    let mut marked = wanted.clone();
    let marks = [("labels", APP_LABEL), ("labels", ASSOCIATION_LABEL), ("annotations", IDENTITY_ANNOTATION)];
    for (field, key) in marks {
        if let Some(value) = live.pointer(&format!("/metadata/{field}")).and_then(|known| known.get(key)) {
            marked["metadata"][field][key] = value.clone();
        }
    }
    marked
}
