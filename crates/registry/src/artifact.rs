//! The files of an artifact: of Flux, imgpkg, ORAS and Helm, or the layers of an image.
//! A layer of an unknown type is an error: objects of a file that is left out would be deleted.

use std::collections::BTreeMap;

use semver::Version;

use crate::client::Client;
use crate::error::{ErrorKind, RegistryError};
use crate::manifest::{Descriptor, Manifest};
use crate::reference::{Digest, Reference};
use crate::unpack::{Compression, FileTree, UnpackLimits};

/// Maximum size of all layers as they are downloaded.
const MAX_DOWNLOAD: u64 = 256 << 20;

/// Maximum depth of indices.
const MAX_INDICES: usize = 2;

const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// Archives, apart from charts.
const ARCHIVES: [(&str, Compression); 5] = [
    ("application/vnd.cncf.flux.content.v1.tar+gzip", Compression::Gzip),
    ("application/vnd.oci.image.layer.v1.tar+gzip", Compression::Gzip),
    ("application/vnd.docker.image.rootfs.diff.tar.gzip", Compression::Gzip),
    ("application/vnd.oci.image.layer.v1.tar", Compression::None),
    ("application/vnd.docker.image.rootfs.diff.tar", Compression::None),
];

/// Annotation of ORAS with the name of a file or folder.
const TITLE: &str = "org.opencontainers.image.title";

/// Annotation of ORAS for an archive of a folder.
const UNPACK: &str = "io.deis.oras.content.unpack";

/// Annotation of a manifest in an index that describes another one.
const ATTESTATION: &str = "vnd.docker.reference.type";

/// The kind of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArtifactKind {
    /// Files.
    Files,
    /// A Helm chart, in this folder.
    Chart(String),
}

/// The files of an artifact.
#[derive(Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Digest of the manifest that the reference led to.
    pub digest: Digest,
    /// Its kind.
    pub kind: ArtifactKind,
    /// Files by path, with `/` between folders.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Omits the contents.
impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artifact").field("digest", &self.digest).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The format of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Format {
    Archive(Compression),
    Chart,
    File(String),
    Ignored,
}

/// Fetches an artifact with its layers.
///
/// # Errors
/// It cannot be fetched, has a layer of an unknown type, or a layer is hostile; the message names layer and entry.
pub fn pull(client: &Client, reference: &Reference) -> Result<Artifact, RegistryError> {
    let (digest, layers) = resolve(client, reference)?;
    let mut tree = FileTree::new(UnpackLimits::default());
    let mut left = MAX_DOWNLOAD;
    let mut is_chart = false;
    let mut used = 0;
    for (index, layer) in layers.iter().enumerate() {
        let in_layer = |message: &str| format!("layer {} ({}): {message}", index + 1, layer.digest);
        let format = format(layer).map_err(|message| RegistryError::invalid(in_layer(&message)))?;
        if format == Format::Ignored {
            continue;
        }
        let bytes = client
            .blob(reference, layer, left)
            .map_err(|error| RegistryError { message: in_layer(&error.message), ..error })?;
        left = left.saturating_sub(bytes.len() as u64);
        used += 1;
        is_chart |= format == Format::Chart;
        let added = match format {
            Format::File(name) => tree.add_file(&name, bytes),
            Format::Archive(compression) => tree.add_archive(&bytes, compression),
            _ => tree.add_archive(&bytes, Compression::Gzip),
        };
        added.map_err(|message| RegistryError::invalid(in_layer(&message)))?;
    }
    if used == 0 {
        return Err(RegistryError::new(
            ErrorKind::Invalid,
            "the artifact has no layer",
            "Check the repository and the tag.",
        ));
    }
    let files = tree.into_files().map_err(RegistryError::invalid)?;
    let kind = if is_chart { ArtifactKind::Chart(chart_folder(&files)?) } else { ArtifactKind::Files };
    Ok(Artifact { digest, kind, files })
}

/// Fetches a chart, by its version if one is given, else by the tag or digest of the reference, else its latest version
/// that is not a prerelease. Returns the reference with the tag.
///
/// # Errors
/// As [`pull`]; the artifact is not a chart, or has no version.
pub fn pull_chart(
    client: &Client,
    reference: &Reference,
    version: Option<&str>,
) -> Result<(Reference, Artifact), RegistryError> {
    let tag = match version {
        Some(version) => {
            let version: Version = version.trim_start_matches('v').parse().map_err(|_| {
                let message = format!("{version} is not a version");
                RegistryError::new(ErrorKind::Reference, message, "Name one version, such as 1.2.3, or none.")
            })?;
            Some(tag_of(&version))
        }
        None if reference.tag.is_none() && reference.digest.is_none() => Some(latest(client, reference)?),
        None => None,
    };
    let reference = Reference { tag: tag.or_else(|| reference.tag.clone()), ..reference.clone() };
    let artifact = pull(client, &reference)?;
    match artifact.kind {
        ArtifactKind::Chart(_) => Ok((reference, artifact)),
        ArtifactKind::Files => {
            let hint = format!("Read it without helm: in front: -f oci://{reference}.");
            Err(RegistryError::new(ErrorKind::Invalid, "the artifact is not a Helm chart", hint))
        }
    }
}

/// Resolves a reference to a digest and the layers behind it.
fn resolve(client: &Client, reference: &Reference) -> Result<(Digest, Vec<Descriptor>), RegistryError> {
    let first = client.manifest(reference)?;
    let digest = first.digest;
    let mut manifest = first.manifest;
    for _ in 0..MAX_INDICES {
        let mut manifests = match manifest {
            Manifest::Image { layers, .. } => return Ok((digest, layers)),
            Manifest::Index(manifests) => manifests,
        };
        manifests.retain(|manifest| !manifest.annotations.contains_key(ATTESTATION));
        let [only] = manifests.as_slice() else {
            let message = format!("the reference leads to an index of {} manifests", manifests.len());
            return Err(RegistryError::new(ErrorKind::Invalid, message, "Name one of them with @sha256:DIGEST."));
        };
        let inner = Reference { digest: Some(only.digest), ..reference.clone() };
        manifest = client.manifest(&inner)?.manifest;
    }
    Err(RegistryError::invalid("the reference leads through too many indices"))
}

/// The format of a layer, by annotations, then by media type.
fn format(layer: &Descriptor) -> Result<Format, String> {
    let media_type = layer.media_type.as_str();
    if media_type == CHART {
        return Ok(Format::Chart);
    }
    if media_type == PROVENANCE {
        return Ok(Format::Ignored);
    }
    if let Some(title) = layer.annotations.get(TITLE) {
        let is_archive = layer.annotations.get(UNPACK).is_some_and(|value| value == "true");
        return Ok(if is_archive { Format::Archive(Compression::Gzip) } else { Format::File(title.clone()) });
    }
    if let Some((_, compression)) = ARCHIVES.iter().find(|(known, _)| *known == media_type) {
        return Ok(Format::Archive(*compression));
    }
    let shown: String = media_type.chars().take(100).flat_map(char::escape_debug).collect();
    Err(format!("its type {shown:?} is not supported; expected a Flux, imgpkg, ORAS or Helm artifact"))
}

/// The folder of a chart, which the archive has in front of every path.
fn chart_folder(files: &BTreeMap<String, Vec<u8>>) -> Result<String, RegistryError> {
    let charts = files.keys().filter_map(|path| path.strip_suffix("/Chart.yaml"));
    let mut folders: Vec<&str> = charts.filter(|folder| !folder.contains('/')).collect();
    match (folders.pop(), folders.pop()) {
        (Some(folder), None) => Ok(folder.to_owned()),
        _ => Err(RegistryError::invalid("the chart's archive does not contain one folder with Chart.yaml")),
    }
}

/// The tag of a chart's version: a tag cannot contain a plus sign.
fn tag_of(version: &Version) -> String {
    version.to_string().replace('+', "_")
}

fn latest(client: &Client, reference: &Reference) -> Result<String, RegistryError> {
    let tags = client.tags(reference)?;
    latest_among(&tags).ok_or_else(|| {
        let hint = "Name a version: helm:oci://REGISTRY/CHART@VERSION.";
        RegistryError::new(ErrorKind::Absent, "the repository has no version that is not a prerelease", hint)
    })
}

fn latest_among(tags: &[String]) -> Option<String> {
    let version = |tag: &String| Some((tag.replace('_', "+").parse::<Version>().ok()?, tag.clone()));
    let versions = tags.iter().filter_map(version).filter(|(version, _)| version.pre.is_empty());
    versions.max().map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(media_type: &str, annotations: &[(&str, &str)]) -> Descriptor {
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Descriptor {
            media_type: media_type.to_owned(),
            digest: Digest::compute(b""),
            size: 0,
            platform: None,
            annotations,
        }
    }

    #[test]
    fn layers_are_read_by_annotation_and_type() {
        let oci = "application/vnd.oci.image.layer.v1.tar";
        let gzip = "application/vnd.oci.image.layer.v1.tar+gzip";
        for (layer, expected) in [
            (layer(CHART, &[(TITLE, "x")]), Format::Chart),
            (layer(PROVENANCE, &[]), Format::Ignored),
            (layer(oci, &[(TITLE, "a.yaml")]), Format::File("a.yaml".to_owned())),
            (layer(gzip, &[(TITLE, "deploy"), (UNPACK, "true")]), Format::Archive(Compression::Gzip)),
            (layer(oci, &[]), Format::Archive(Compression::None)),
            (layer("application/vnd.cncf.flux.content.v1.tar+gzip", &[]), Format::Archive(Compression::Gzip)),
        ] {
            assert_eq!(format(&layer), Ok(expected), "{layer:?}");
        }
        assert!(format(&layer("application/wasm", &[])).unwrap_err().contains("application/wasm"));
    }

    #[test]
    fn latest_version_is_not_a_prerelease() {
        let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            latest_among(&tags(&["1.9.0", "1.10.0", "2.0.0-rc.1", "latest", "1.10.0_b1"])).as_deref(),
            Some("1.10.0_b1")
        );
        assert_eq!(latest_among(&tags(&["latest", "2.0.0-rc.1"])), None);
    }
}
