//! Artifacts of registries: read like a folder, or rendered if they are a chart or an overlay.
//! A name is resolved once, and its digest is reported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pushback_registry::{
    Artifact, ArtifactKind, Client, CredentialFiles, ErrorKind, Reference, RegistryError, pull, pull_chart,
};
use pushback_system::redact;

use super::{APPLIED, FoundSources, Location, OCI, Source, compared, fetch, rendering};
use crate::files::{is_manifest, shown};
use crate::input::error_in;
use crate::layout::{self, Reading, kustomization};
use crate::options::LoadOptions;
use crate::render::{RenderError, ResolvedSource};

/// Finds the sources of `oci://REGISTRY/REPOSITORY[:TAG|@DIGEST]`.
pub(super) fn find_artifact(input: &str, reference: &str, options: &LoadOptions, found: &mut FoundSources) {
    let named = redact::url(input);
    let reference = match Reference::parse(reference) {
        Ok(reference) => reference,
        Err(error) => return found.errors.push(fetch::error_of(&named, error)),
    };
    let name = format!("{OCI}{reference}");
    let artifact = match found.artifact(&name, &reference) {
        Ok(artifact) => artifact,
        Err(error) if error.kind == ErrorKind::Absent => {
            return compared::missing_artifact(&name, error.message, options.compared, found);
        }
        Err(error) => return found.errors.push(fetch::error_of(&name, error)),
    };
    if let ArtifactKind::Chart(folder) = &artifact.kind {
        let rendered =
            rendering::allowed(options).and_then(|render| rendering::chart_of_artifact(&name, folder, render, found));
        return found.add_named(&name, rendered);
    }
    add_files(&name, &artifact, options, found);
}

/// Fetches the chart of `helm:oci://…`; returns the name of the artifact, and the folder of the chart in it.
pub(super) fn find_chart(
    reference: &str,
    version: Option<&str>,
    found: &mut FoundSources,
) -> Result<(String, String), RenderError> {
    let failed =
        |error: RegistryError| error.hints.into_iter().fold(RenderError::new(error.message), RenderError::with_hint);
    let (text, version) = match version {
        Some(digest) if digest.contains(':') => (format!("{reference}@{digest}"), None),
        version => (reference.to_owned(), version),
    };
    let reference = Reference::parse(&text).map_err(failed)?;
    let client = found.client();
    let (reference, artifact) = pull_chart(&client, &reference, version).map_err(failed)?;
    let name = format!("{OCI}{reference}");
    let ArtifactKind::Chart(folder) = artifact.kind.clone() else {
        return Err(RenderError::new("the artifact is not a Helm chart"));
    };
    found.keep(&name, artifact);
    Ok((name, folder))
}

/// The last part of the repository in the name of an artifact.
pub(super) fn last(name: &str) -> &str {
    let path = name.split('@').next().unwrap_or(name);
    let last = path.rsplit('/').next().unwrap_or(path);
    last.split(':').next().unwrap_or(last)
}

/// Adds the files whose names do not start with a dot, as in a git ref.
fn add_files(name: &str, artifact: &Artifact, options: &LoadOptions, found: &mut FoundSources) {
    let is_visible = |path: &str| path.split('/').all(|part| !part.starts_with('.'));
    let visible = artifact.files.iter().filter(|(path, _)| is_visible(path));
    let files: BTreeMap<&Path, &[u8]> = visible.map(|(path, bytes)| (Path::new(path), bytes.as_slice())).collect();
    let defines = |file: &str| files.contains_key(Path::new(file));
    let is_defined = kustomization::NAMES.into_iter().chain([layout::CHART]).any(defines);
    let side = options.compared.or((options.render.is_some() && is_defined).then_some(APPLIED));
    let selected = match side {
        Some(side) => compared::select_in_artifact(name, &files, side, options, found),
        None => {
            let manifests = files.keys().filter(|path| is_manifest(path));
            Some(manifests.map(|path| (path.to_path_buf(), Reading::Objects)).collect())
        }
    };
    let Some(selected): Option<Vec<(PathBuf, Reading)>> = selected else { return };
    if selected.is_empty() && found.files_in_folders == 0 {
        let message = "the artifact holds no .yaml, .yml or .json file";
        let hint = "Files whose names start with a dot are not read.";
        return found.errors.push(error_in(name, message, &[hint]));
    }
    found.sources.extend(selected.into_iter().map(|(path, reading)| Source {
        name: format!("{name}/{}", shown(&path)),
        is_found: true,
        reading,
        trace: None,
        location: Location::Content(files.get(path.as_path()).copied().unwrap_or_default().to_vec()),
    }));
}

impl FoundSources {
    fn client(&mut self) -> Arc<Client> {
        let client = self.client.get_or_insert_with(|| Arc::new(Client::new(CredentialFiles::of_user())));
        Arc::clone(client)
    }

    /// Returns an artifact, which is fetched once.
    fn artifact(&mut self, name: &str, reference: &Reference) -> Result<Arc<Artifact>, RegistryError> {
        if let Some(artifact) = self.artifacts.get(name) {
            return Ok(Arc::clone(artifact));
        }
        let artifact = pull(&self.client(), reference)?;
        Ok(self.keep(name, artifact))
    }

    /// Keeps an artifact under its name, and reports its digest.
    fn keep(&mut self, name: &str, artifact: Artifact) -> Arc<Artifact> {
        let artifact = Arc::new(artifact);
        self.rendered.push(ResolvedSource::Artifact { name: name.to_owned(), digest: artifact.digest });
        self.artifacts.insert(name.to_owned(), Arc::clone(&artifact));
        artifact
    }
}
