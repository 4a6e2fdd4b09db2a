//! Folders and charts that a program renders: those that an input names, and those that are found in a folder.

use std::path::Path;

use super::{FoundSources, Location, Source, pulled};
use crate::input::{InputError, error_in};
use crate::layout::{Reading, Renderer};
use crate::options::LoadOptions;
use crate::render::{
    ChartName, Checkout, RenderError, RenderOptions, RenderedText, ResolvedSource, SourceTree, render_chart,
    render_kustomization,
};

/// Renders `kustomize:DIR`.
pub(super) fn named_kustomization(input: &str, folder: &str, options: &LoadOptions, found: &mut FoundSources) {
    let rendered = allowed(options).and_then(|render| {
        if !Path::new(folder).is_dir() {
            return Err(RenderError::new(format!("expected a folder with a kustomization, {folder:?} is none"))
                .with_hint("Check the path; it is relative to the working directory."));
        }
        render_kustomization(Path::new(folder), SourceTree::Local, render)
    });
    found.add_named(input, rendered);
}

/// Renders `helm:CHART[@VERSION]`.
pub(super) fn named_chart(input: &str, chart: &str, options: &LoadOptions, found: &mut FoundSources) {
    let rendered = allowed(options).and_then(|render| {
        let name = ChartName::parse(chart)?;
        let Some((reference, version)) = name.in_registry() else {
            return render_chart(&name, SourceTree::Local, &render.helm);
        };
        let (artifact, folder) = pulled::find_chart(reference, version, found)?;
        chart_of_artifact(&artifact, &folder, render, found)
    });
    found.add_named(input, rendered);
}

/// Renders the chart of an artifact that was fetched.
pub(super) fn chart_of_artifact(
    artifact: &str,
    folder: &str,
    options: &RenderOptions,
    found: &mut FoundSources,
) -> Result<RenderedText, RenderError> {
    let checkout = found.checkout(artifact)?;
    let place = checkout.path(Path::new(folder)).to_string_lossy().into_owned();
    render_chart(&ChartName::of_folder(&place), SourceTree::Ref(checkout), &options.helm)
}

/// Renders `git:REF:kustomize:DIR`.
pub(super) fn kustomization_in_git(
    input: &str,
    (reference, folder): (&str, &str),
    options: &LoadOptions,
    found: &mut FoundSources,
) {
    let rendered = allowed(options).and_then(|render| {
        let checkout = found.checkout(reference)?;
        let place = checkout.path(Path::new(folder));
        if !place.is_dir() {
            return Err(RenderError::new(format!("{reference} does not contain the folder {folder}"))
                .with_hint("Check the path; it is relative to the root of the repository."));
        }
        render_kustomization(&place, SourceTree::Ref(checkout), render)
    });
    found.add_named(input, rendered);
}

/// Renders `git:REF:helm:CHART`.
pub(super) fn chart_in_git(
    input: &str,
    (reference, chart): (&str, &str),
    options: &LoadOptions,
    found: &mut FoundSources,
) {
    let rendered = allowed(options).and_then(|render| {
        let name = ChartName::parse(chart)?;
        let checkout = found.checkout(reference)?;
        if !checkout.path(name.path()).exists() {
            return Err(RenderError::new(format!("{reference} does not contain the chart {chart}"))
                .with_hint("Check the path; it is relative to the root of the repository."));
        }
        render_chart(&name, SourceTree::Ref(checkout), &render.helm)
    });
    found.add_named(input, rendered);
}

/// Renders a folder that needs it, on this machine or in a ref.
pub(super) fn render(
    renderer: Renderer,
    folder: &Path,
    reference: Option<&str>,
    options: &RenderOptions,
    found: &mut FoundSources,
) -> Result<RenderedText, RenderError> {
    let folder_text = folder.to_string_lossy();
    let run = |folder: &Path, tree: SourceTree<'_>| match renderer {
        Renderer::Kustomize => render_kustomization(folder, tree, options),
        Renderer::Helm => render_chart(&ChartName::of_folder(&folder_text), tree, &options.helm),
    };
    match reference {
        None if folder_text.is_empty() => run(Path::new("."), SourceTree::Local),
        None => run(folder, SourceTree::Local),
        Some(reference) => {
            let checkout = found.checkout(reference)?;
            run(&checkout.path(folder), SourceTree::Ref(checkout))
        }
    }
}

pub(super) fn allowed(options: &LoadOptions) -> Result<&RenderOptions, RenderError> {
    options.render.as_ref().ok_or_else(|| {
        RenderError::new("this command reads manifests as they are")
            .with_hint("Render it, and pass the result to `-f -`.")
    })
}

impl FoundSources {
    /// Returns the files of a ref or an artifact, which are written once.
    fn checkout(&mut self, reference: &str) -> Result<&Checkout, RenderError> {
        if !self.checkouts.contains_key(reference) {
            let checkout = match self.artifacts.get(reference) {
                Some(artifact) => Checkout::write_artifact(reference, pulled::last_part(reference), &artifact.files)
                    .map_err(|error| RenderError::new(format!("its files cannot be written: {error}")))?,
                None => Checkout::write(reference).map_err(|error| RenderError::new(error.0))?,
            };
            self.checkouts.insert(reference.to_owned(), checkout);
        }
        Ok(&self.checkouts[reference])
    }

    pub(super) fn add_named(&mut self, input: &str, rendered: Result<RenderedText, RenderError>) {
        match rendered {
            Ok(rendered) => self.add_rendered(rendered, false),
            Err(error) => self.errors.push(error_of(input, error)),
        }
    }

    /// Adds what a program has printed. The text is named after the folder, and has no file to show.
    pub(super) fn add_rendered(&mut self, rendered: RenderedText, is_found: bool) {
        let RenderedText { bytes, trace, folder, scheme } = rendered;
        let name = format!("{scheme}{}", folder.folder);
        self.rendered.push(ResolvedSource::Rendered(folder));
        let (reading, location) = (Reading::Objects, Location::RenderedBytes(bytes));
        self.sources.push(Source { name, is_found, reading, trace: Some(trace), location });
    }
}

pub(super) fn error_of(input: &str, error: RenderError) -> InputError {
    let file = if error.file.is_empty() { input } else { &error.file };
    let hints: Vec<&str> = error.hints.iter().map(String::as_str).collect();
    error_in(file, error.message, &hints)
}
