//! Artifacts that were pulled from registries. A name is resolved once, and its digest is reported.

use std::sync::Arc;

use pushback_registry::{Artifact, ArtifactKind, Client, CredentialFiles, Reference, RegistryError, pull, pull_chart};

use super::{FoundSources, OCI};
use crate::render::{RenderError, ResolvedSource};

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
pub(super) fn last_part(name: &str) -> &str {
    let path = name.split('@').next().unwrap_or(name);
    let last = path.rsplit('/').next().unwrap_or(path);
    last.split(':').next().unwrap_or(last)
}

impl FoundSources {
    fn client(&mut self) -> Arc<Client> {
        let client = self.client.get_or_insert_with(|| Arc::new(Client::new(CredentialFiles::of_user())));
        Arc::clone(client)
    }

    /// Returns an artifact, which is fetched once.
    pub(super) fn artifact(&mut self, name: &str, reference: &Reference) -> Result<Arc<Artifact>, RegistryError> {
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
