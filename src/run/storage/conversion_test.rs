//! Tests a conversion plan: round trips of generated objects, of the objects of a cluster, and recorded conversions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pushback_cluster::{ListQuery, list_all};
use pushback_conversion::sampling::{RoundTrip, RoundTrips, SampleLimits, sample};
use pushback_conversion::{Converter, compile};
use pushback_crd::definition::{StoredState, Upgrade};
use pushback_crd::schema::pipeline::Server;
use pushback_crd::stack;
use pushback_manifest::files;
use pushback_objects::ObjectExt;
use pushback_storage::conversion::{TEST_SCHEMA, TestReport, TestedDefect, TestedGoldens, TestedObject, TestedObjects};
use pushback_system::atomic_file;
use pushback_system::environment::reason;
use serde_json::Value;

use super::conversion::{ConversionFiles, documents};
use super::programs::NamedPrograms;
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::signals::until_stopped;

/// What to test.
#[derive(Clone, Debug)]
pub struct ConversionTest {
    /// CRD and plan.
    pub files: ConversionFiles,
    /// Programs that the plan may hand objects to.
    pub programs: NamedPrograms,
    /// Number of objects of each version.
    pub samples: usize,
    /// The folder with recorded conversions.
    pub golden: Option<PathBuf>,
    /// Whether conversions are recorded instead of compared.
    pub update: bool,
}

/// A plan, ready to be tested.
#[derive(Debug)]
struct Tested<'t> {
    test: &'t ConversionTest,
    definition: Value,
    converter: Converter,
}

impl ConversionTest {
    /// Tests without a cluster.
    ///
    /// # Errors
    /// The plan is wrong, the CRD has a single version, or the folder cannot be read or written.
    pub fn run(&self) -> Result<TestReport, CommandError> {
        self.judged()
    }

    /// Tests on the objects of a cluster, too.
    ///
    /// # Errors
    /// As for [`ConversionTest::run`]; or the objects cannot be read.
    pub async fn run_live(&self, run: &mut Run, options: &ClusterOptions) -> Result<TestReport, CommandError> {
        let tested = self.tested()?;
        let connected = super::connected(run, options, &NamespaceOptions::default()).await?;
        let kinds = connected.cluster.kinds().await?;
        let (group, kind) = (tested.converter.group(), tested.converter.kind());
        // As they are stored: under another version the present conversion shows them, which need not be this plan's.
        let storage = StoredState::of(&tested.definition).storage.unwrap_or_default();
        let Some(kind) = kinds.find(group, &storage, kind).or_else(|| kinds.preferred(group, kind)) else {
            let message = format!("the cluster serves no {kind} of {group}");
            return Err(CommandError::usage_with_hint(message, "leave out --live, or choose another --cluster"));
        };
        let query = ListQuery::new(kind.clone(), None, "");
        let listing = async { Ok(list_all(&*connected.cluster, &query).await?) };
        let page = until_stopped(run.stop.clone(), listing).await?;
        let objects: Vec<Value> = page.items.iter().map(|object| Value::clone(object)).collect();
        let live = tested.objects(&objects)?;
        Ok(finished(TestReport { live: Some(live), ..self.judged()? }))
    }

    fn tested(&self) -> Result<Tested<'_>, CommandError> {
        let (plan, definition) = self.files.read()?;
        let converter = compile(&plan, &definition)?.as_webhook();
        self.programs.check(&converter)?;
        Ok(Tested { test: self, definition, converter })
    }

    fn judged(&self) -> Result<TestReport, CommandError> {
        let tested = self.tested()?;
        let golden = self.golden.as_deref().map(|folder| tested.goldens(folder)).transpose()?;
        Ok(finished(TestReport { golden, ..tested.samples()? }))
    }
}

fn finished(report: TestReport) -> TestReport {
    let outcome = if report.has_failed() { "failed" } else { "noDefects" };
    TestReport { outcome, ..report }
}

impl Tested<'_> {
    /// Works with the round trips of the CRD.
    fn with_trips<T: Send>(&self, work: impl FnOnce(&RoundTrips<'_>) -> T + Send) -> Result<T, CommandError> {
        stack::with_room(|| {
            let upgrade = Upgrade::of(&self.definition, &self.definition, Server::default());
            let trips = RoundTrips::new(&self.converter, &upgrade, &self.test.programs);
            match trips.filter(|trips| trips.versions().len() > 1) {
                Some(trips) => Ok(work(&trips)),
                None => {
                    let name = self.converter.name();
                    let message = format!("{name} has no two versions that are served or stored: nothing is converted");
                    Err(CommandError::usage(message))
                }
            }
        })
    }

    fn samples(&self) -> Result<TestReport, CommandError> {
        let (plan, _) = self.test.files.read()?;
        self.with_trips(|trips| {
            let versions = trips.versions();
            let objects = self.test.samples;
            let limits = SampleLimits { objects, trips: objects.saturating_mul(versions.len() * versions.len()) };
            let found = sample(trips, &plan, limits);
            let defects = found.defects.into_iter().map(|defect| TestedDefect {
                acknowledged: self.converter.acknowledges(defect.kind, &defect.path),
                from: defect.from,
                through: defect.through,
                kind: defect.kind.as_str(),
                path: defect.path,
                before: defect.before,
                after: defect.after,
                reason: defect.reason,
                witness: defect.witness,
            });
            TestReport {
                schema_version: TEST_SCHEMA,
                crd: self.converter.name().to_owned(),
                versions: versions.into_iter().map(str::to_owned).collect(),
                objects: found.objects,
                trips: found.trips,
                refused: found.refused,
                untried: found.untried,
                defects: defects.collect(),
                ..TestReport::default()
            }
        })
    }

    /// Sends the objects of a cluster through every other version. Nothing is written.
    fn objects(&self, objects: &[Value]) -> Result<TestedObjects, CommandError> {
        self.with_trips(|trips| {
            let mut tested = TestedObjects { examined: objects.len(), affected: Vec::new() };
            for object in objects {
                let own = object.text("/apiVersion").rsplit('/').next().unwrap_or_default();
                for through in trips.versions().into_iter().filter(|through| *through != own) {
                    let paths = match trips.through(through, object) {
                        Ok(RoundTrip::Kept | RoundTrip::Refused(_)) => continue,
                        Ok(RoundTrip::Differs(found)) => {
                            let paths = found.iter().map(|difference| (difference.kind(), difference.shown()));
                            let new = paths.filter(|(kind, path)| !self.converter.acknowledges(*kind, path));
                            new.map(|(_, path)| path).collect::<Vec<String>>()
                        }
                        Err(error) => vec![error.to_string()],
                    };
                    if paths.is_empty() {
                        continue;
                    }
                    let object = object.full_name();
                    tested.affected.push(TestedObject { object, through: through.to_owned(), paths });
                }
            }
            tested
        })
    }

    /// Compares recorded conversions: `NAME.FROM.yaml` is an object, and `NAME.FROM.TO.yaml` what it is converted to.
    fn goldens(&self, folder: &Path) -> Result<TestedGoldens, CommandError> {
        let failed = |path: &Path, what: &str, error: &std::io::Error| {
            CommandError::usage(format!("{}: it cannot be {what}: {}", files::shown(path), reason(error)))
        };
        let versions = &self.converter.lineage().versions;
        let (mut sources, mut recorded) = (BTreeMap::new(), BTreeMap::new());
        let entries = fs::read_dir(folder).map_err(|error| failed(folder, "read", &error))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()).and_then(|it| it.strip_suffix(".yaml"))
            else {
                continue;
            };
            let parts: Vec<&str> = name.split('.').collect();
            let is_version = |part: Option<&&str>| part.is_some_and(|part| versions.iter().any(|it| it == part));
            match (is_version(parts.last()), is_version(parts.len().checked_sub(2).and_then(|at| parts.get(at)))) {
                (true, true) if parts.len() > 2 => drop(recorded.insert(name.to_owned(), path)),
                (true, _) if parts.len() > 1 => drop(sources.insert(name.to_owned(), path)),
                _ => {}
            }
        }
        if sources.is_empty() {
            let message = format!("{}: there is no object NAME.VERSION.yaml in it", files::shown(folder));
            let hint = format!("versions are {}", versions.join(", "));
            return Err(CommandError::usage_with_hint(message, hint));
        }
        let mut tested = TestedGoldens::default();
        for (name, path) in &sources {
            let from = name.rsplit('.').next().unwrap_or_default();
            let source = only(path)?;
            let expected = format!("{}/{from}", self.converter.group());
            if !self.converter.is_for(&source) || source.text("/apiVersion") != expected {
                let message = format!("{}: expected a {} of {expected}", files::shown(path), self.converter.kind());
                return Err(CommandError::usage(message));
            }
            for to in versions.iter().filter(|to| *to != from) {
                let name = format!("{name}.{to}");
                let path = folder.join(format!("{name}.yaml"));
                let shown = files::shown(&path);
                let known = recorded.remove(&name);
                let converted = match self.converter.convert(source.clone(), to, &self.test.programs) {
                    Ok(converted) => converted.object,
                    Err(error) => {
                        tested.different.push(format!("{shown}: it cannot be converted: {error}"));
                        continue;
                    }
                };
                match known.as_deref().map(only).transpose()? {
                    Some(value) if value == converted => tested.equal += 1,
                    _ if self.test.update => {
                        let text = serde_yaml::to_string(&converted).unwrap_or_default();
                        atomic_file::replace(&path, text.as_bytes())
                            .map_err(|error| failed(&path, "written", &error))?;
                        tested.written.push(shown);
                    }
                    Some(_) => tested.different.push(format!("{shown}: the conversion gives something else")),
                    None => tested.different.push(format!("{shown}: there is no such file; --update writes it")),
                }
            }
        }
        let orphans = recorded.values().map(|path| format!("{}: there is no object for it", files::shown(path)));
        tested.different.extend(orphans);
        Ok(tested)
    }
}

/// The only document of a file.
fn only(path: &Path) -> Result<Value, CommandError> {
    let mut documents = documents(path)?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Ok(document.value),
        _ => Err(CommandError::usage(format!("{}: expected one object", files::shown(path)))),
    }
}
