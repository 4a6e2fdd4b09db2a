//! Serves conversions: reads plans with their definitions, and answers the API server until a signal comes.

use std::path::PathBuf;
use std::sync::Arc;

use pushback_crd::definition::crd::KIND as DEFINITION;
use pushback_crd::stack;
use pushback_preflight::conversion::review::Reviewer;
use pushback_preflight::conversion::{ConversionPlan, Converter, compile, is_plan, read};
use pushback_preflight::source::Document;
use pushback_preflight::{ObjectExt, Position};

use super::error::CommandError;
use super::signals;
use crate::manifest::InputError;
use crate::manifest::files::{SourceFile, shown};
use crate::manifest::yaml::{self, Limits};
use crate::serve::{Journal, Settings, StartError, serve};

pub mod patch;

/// Serves until a signal comes.
///
/// # Errors
/// A file cannot be used, or a port cannot be opened.
pub async fn run(settings: Settings, journal: Arc<dyn Journal>) -> Result<(), CommandError> {
    let (_, stop) = signals::listen();
    // Schemas may be nested deeply.
    let compile = |files: &[SourceFile]| stack::with_room(|| reviewer(files));
    serve(settings, Arc::new(compile), journal, stop).await.map_err(|error| match error {
        StartError::Plans(errors) => errors.into(),
        StartError::Other(message) => CommandError::usage(message),
    })
}

/// Compiles every definition with its plan; without one, conversions are as the schemas give them.
fn reviewer(files: &[SourceFile]) -> Result<Reviewer, Vec<InputError>> {
    let (mut plans, mut definitions, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let loaded = yaml::load(&shown(&file.path), &file.bytes, &Limits::default()).map_err(|error| vec![error])?;
        for document in loaded.documents {
            let document = Document::from(document);
            if is_plan(&document.value) {
                match read(&document) {
                    Ok(plan) => plans.push(plan),
                    Err(more) => errors.extend(more),
                }
            } else if document.value.text("/kind") == DEFINITION {
                definitions.push(document);
            }
        }
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
    if definitions.is_empty() {
        let files: Vec<String> = files.iter().map(|file| shown(&file.path)).collect();
        errors.push(of_all(format!("no definition is in {}", files.join(", "))));
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

/// The files to read: one may hold definitions and plans.
#[must_use]
pub fn files(definitions: &[PathBuf], plans: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = definitions.to_vec();
    files.extend(plans.iter().filter(|plan| !definitions.contains(plan)).cloned());
    files
}
