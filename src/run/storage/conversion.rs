//! Reads a conversion plan and the definition that it is for, and compiles them.

use std::io::Read;
use std::path::{Path, PathBuf};

use pushback_conversion::plan::Unassessed;
use pushback_conversion::{ConversionPlan, Converter, compile, with_versions_of};
use pushback_crd::definition::crd::KIND as DEFINITION;
use pushback_manifest::yaml::{Limits, load};
use pushback_manifest::{InputError, files};
use pushback_objects::source::Document;
use pushback_objects::{ObjectExt, Position};
use pushback_storage::definitions;
use pushback_system::bounded_file::read_text;
use pushback_system::environment::reason;
use serde_json::Value;

use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::conversion_files::{self, FileRole};
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::signals::until_stopped;

/// The files that a conversion needs.
#[derive(Clone, Debug)]
pub struct ConversionFiles {
    /// The file with the definition.
    pub definition: PathBuf,
    /// The file with the plan; without one, conversions are as they are derived.
    pub plan: Option<PathBuf>,
}

impl ConversionFiles {
    /// Reads and compiles.
    ///
    /// # Errors
    /// A file cannot be read, or everything that is wrong with the plan.
    pub fn converter(&self) -> Result<Converter, CommandError> {
        let (plan, definition) = self.read()?;
        Ok(compile(&plan, &definition)?)
    }

    /// Reads plan and CRD.
    ///
    /// # Errors
    /// A file cannot be read, or does not hold exactly one of them.
    pub fn read(&self) -> Result<(ConversionPlan, Value), CommandError> {
        self.read_named(None)
    }

    /// Reads plan and CRD. `name` chooses one of several CRDs.
    fn read_named(&self, name: Option<&str>) -> Result<(ConversionPlan, Value), CommandError> {
        let plan = self.plan.as_deref().map(read_plan).transpose()?;
        let crds = text(&self.definition)?;
        let crds = conversion_files::parse(&files::shown(&self.definition), crds.as_bytes(), &[FileRole::Crds])?;
        let mut definitions = crds.crds;
        let name = name.or(plan.as_ref().map(|plan| plan.name.as_str()));
        definitions.retain(|document| name.is_none_or(|name| name == document.value.name()));
        let what = name.map_or_else(|| DEFINITION.to_owned(), |name| format!("definition {name}"));
        let definition = only(definitions, &self.definition, &what)?;
        let plan = plan.unwrap_or_else(|| ConversionPlan::derived(&definition));
        Ok((plan, definition.value))
    }
}

/// A draft of a conversion plan.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The CRD, and the plan to complete.
    pub files: ConversionFiles,
    /// Name of the CRD, if the file has several.
    pub name: Option<String>,
}

impl Draft {
    /// Compiles the plan with fields that it does not name kept in the bag.
    ///
    /// # Errors
    /// As for [`ConversionFiles::converter`].
    pub fn converter(&self) -> Result<Converter, CommandError> {
        let (plan, definition) = self.files.read_named(self.name.as_deref())?;
        draft(plan, &definition)
    }

    /// Compiles the plan for the versions of the CRD on the cluster, too.
    ///
    /// # Errors
    /// A file cannot be read, the plan is wrong, or the cluster cannot be reached or lacks the CRD.
    pub async fn live_converter(&self, run: &mut Run, options: &ClusterOptions) -> Result<Converter, CommandError> {
        let (plan, wanted) = self.files.read_named(self.name.as_deref())?;
        let connected = super::connected_to_any(run, options, &NamespaceOptions::default()).await?;
        let reading = async { Ok(definitions::one(&*connected.cluster, &connected.definitions, wanted.name()).await?) };
        let live = until_stopped(run.stop.clone(), reading).await?;
        let is_known = |name: &str| plan.schemas.iter().any(|placed| placed.value.0 == name);
        let both = with_versions_of(&live, &wanted, is_known);
        draft(plan, &both)
    }
}

/// Reads the plan of a file.
///
/// # Errors
/// The file cannot be read, or does not hold exactly one plan.
pub(super) fn read_plan(path: &Path) -> Result<ConversionPlan, CommandError> {
    let found = conversion_files::parse(&files::shown(path), text(path)?.as_bytes(), &[FileRole::Plans])?;
    Ok(only(found.plans, path, "ConversionPlan")?.plan)
}

/// Compiles a plan with fields that it does not decide about kept in the bag.
///
/// # Errors
/// Everything that is wrong with the plan.
pub(super) fn draft(plan: ConversionPlan, definition: &Value) -> Result<Converter, CommandError> {
    Ok(compile(&ConversionPlan { unassessed: Unassessed::Stash, ..plan }, definition)?)
}

fn only<T>(mut documents: Vec<T>, path: &Path, what: &str) -> Result<T, CommandError> {
    let count = documents.len();
    documents.pop().filter(|_| count == 1).ok_or_else(|| {
        let message = format!("expected one {what}, found {count}");
        CommandError::from(vec![InputError { message, position: place(path), hints: Vec::new() }])
    })
}

fn place(path: &Path) -> Position {
    Position { file: files::shown(path), ..Position::default() }
}

pub(super) fn documents(path: &Path) -> Result<Vec<Document>, CommandError> {
    let text = text(path)?;
    let loaded = load(&files::shown(path), text.as_bytes(), &Limits::default()).map_err(|error| vec![error])?;
    Ok(loaded.documents.into_iter().map(Document::from).collect())
}

/// The text of a file, or of standard input (`-`).
pub(super) fn text(path: &Path) -> Result<String, CommandError> {
    let limit = Limits::default().bytes as u64;
    let failed =
        |message: String| CommandError::from(vec![InputError { message, position: place(path), hints: Vec::new() }]);
    if path != Path::new("-") {
        return read_text(path, limit).map_err(|reason| failed(format!("it cannot be read: {reason}")));
    }
    let mut bytes = Vec::new();
    let result = std::io::stdin().take(limit + 1).read_to_end(&mut bytes);
    result.map_err(|error| failed(format!("it cannot be read: {}", reason(&error))))?;
    files::check_size(&files::shown(path), bytes.len() as u64).map_err(CommandError::usage)?;
    String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".to_owned()))
}
