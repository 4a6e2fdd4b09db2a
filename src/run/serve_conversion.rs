//! Serves conversions: reads plans with their definitions, and answers the API server until a signal comes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pushback_conversion::review::Reviewer;
use pushback_conversion::{ConversionPlan, Converter, compile};
use pushback_crd::stack;
use pushback_manifest::InputError;
use pushback_manifest::files::{SourceFile, shown};
use pushback_objects::source::Document;
use pushback_objects::{ObjectExt, Position};
use pushback_webhook::conversions::serve;
use pushback_webhook::{Journal, Settings};

use super::conversion_files::{self, FileRole};
use super::error::CommandError;
use super::signals;

pub mod patch;

/// Files with CRDs, and files with plans for them; one may hold both.
#[derive(Clone, Debug, Default)]
pub struct ServedFiles {
    /// Files that must hold a CRD.
    pub crds: Vec<PathBuf>,
    /// Files that must hold a plan.
    pub plans: Vec<PathBuf>,
}

impl ServedFiles {
    /// Every file once.
    #[must_use]
    pub fn all(&self) -> Vec<PathBuf> {
        let mut files = self.crds.clone();
        files.extend(self.plans.iter().filter(|plan| !self.crds.contains(plan)).cloned());
        files
    }

    fn roles(&self, path: &Path) -> Vec<FileRole> {
        let roles = [(FileRole::Crds, &self.crds), (FileRole::Plans, &self.plans)];
        roles.into_iter().filter(|(_, files)| files.iter().any(|file| file == path)).map(|(role, _)| role).collect()
    }
}

/// Serves until a signal comes.
///
/// # Errors
/// A file cannot be used, or a port cannot be opened.
pub async fn run(settings: Settings, served: ServedFiles, journal: Arc<dyn Journal>) -> Result<(), CommandError> {
    let (_, stop) = signals::listen();
    // Schemas may be nested deeply.
    let compile = move |files: &[SourceFile]| stack::with_room(|| reviewer(&served, files));
    Ok(serve(settings, compile, journal, stop).await?)
}

/// Compiles every CRD with its plan; without one, conversions are as the schemas give them.
fn reviewer(served: &ServedFiles, files: &[SourceFile]) -> Result<Reviewer, Vec<InputError>> {
    let (mut plans, mut definitions, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        match conversion_files::parse(&shown(&file.path), &file.bytes, &served.roles(&file.path)) {
            Ok(found) => {
                plans.extend(found.plans.into_iter().map(|given| given.plan));
                definitions.extend(found.crds);
            }
            Err(more) => errors.extend(more),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let name = |definition: &Document| definition.value.name().to_owned();
    for (index, plan) in plans.iter().enumerate() {
        let error = |message: String| InputError { message, position: plan.position.clone(), hints: Vec::new() };
        if !definitions.iter().any(|definition| name(definition) == plan.name) {
            errors.push(error(format!("no file has the definition {} that the plan is for", plan.name)));
        }
        if let Some(earlier) = plans[..index].iter().find(|earlier| earlier.name == plan.name) {
            errors.push(error(format!("there is another plan for {}: {}", plan.name, earlier.position)));
        }
    }
    let mut converters: Vec<Converter> = Vec::new();
    for definition in &definitions {
        let plan = plans.iter().find(|plan| plan.name == name(definition)).cloned();
        let plan = plan.unwrap_or_else(|| ConversionPlan::derived(definition));
        match compile(&plan, &definition.value) {
            Ok(converter) => converters.push(converter),
            Err(more) => errors.extend(more),
        }
    }
    match Reviewer::new(converters) {
        Ok(reviewer) if errors.is_empty() => Ok(reviewer),
        Ok(_) => Err(errors),
        Err(more) => {
            errors.extend(more.into_iter().map(of_all));
            Err(errors)
        }
    }
}

fn of_all(message: String) -> InputError {
    InputError { message, position: Position::default(), hints: Vec::new() }
}
