//! Reads a conversion plan and the definition that it is for, and compiles them.

use std::io::Read;
use std::path::{Path, PathBuf};

use pushback_conversion::{ConversionPlan, Converter, compile};
use pushback_crd::definition::crd::KIND as DEFINITION;
use pushback_manifest::yaml::{Limits, load};
use pushback_manifest::{InputError, files};
use pushback_objects::source::Document;
use pushback_objects::{ObjectExt, Position};
use pushback_system::bounded_file::read_text;
use pushback_system::environment::reason;
use serde_json::Value;

use crate::run::conversion_files::{self, FileRole};
use crate::run::error::CommandError;

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
    pub(super) fn read_named(&self, name: Option<&str>) -> Result<(ConversionPlan, Value), CommandError> {
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

/// Reads the plan of a file.
///
/// # Errors
/// The file cannot be read, or does not hold exactly one plan.
pub(super) fn read_plan(path: &Path) -> Result<ConversionPlan, CommandError> {
    let found = conversion_files::parse(&files::shown(path), text(path)?.as_bytes(), &[FileRole::Plans])?;
    Ok(only(found.plans, path, "ConversionPlan")?.plan)
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
