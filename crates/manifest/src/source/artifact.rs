//! Artifacts of registries: read like a folder, or rendered if they are a chart or an overlay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pushback_registry::{Artifact, ArtifactKind, ErrorKind, Reference};
use pushback_system::redact;

use super::{APPLIED, FoundSources, Location, OCI, Source, compared, fetch, rendering};
use crate::files::{is_manifest, shown};
use crate::input::error_in;
use crate::layout::{self, Reading, kustomization};
use crate::options::LoadOptions;

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
