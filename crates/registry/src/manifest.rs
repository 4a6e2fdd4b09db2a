//! Manifests of images and artifacts, and indices of them, as the OCI image specification and Docker define them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::error::RegistryError;
use crate::reference::Digest;

/// Media types of manifests that a registry is asked for.
pub(crate) const ACCEPTED: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// Maximum number of layers, and of manifests in an index.
const MAX_PARTS: usize = 512;

/// A blob or manifest that another manifest names.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Descriptor {
    /// Type of the content.
    #[serde(rename = "mediaType", default)]
    pub media_type: String,
    /// Its digest.
    #[serde(deserialize_with = "digest")]
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// The platform that the image is made for.
    #[serde(default)]
    pub platform: Option<Platform>,
    /// Annotations, such as the name of a file.
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// An image or artifact.
    Image {
        /// The configuration.
        config: Option<Descriptor>,
        /// The layers.
        layers: Vec<Descriptor>,
    },
    /// A list of manifests, such as one for each platform.
    Index(Vec<Descriptor>),
}

/// The platform of an image.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Platform {
    /// Operating system: `linux`.
    pub os: String,
    /// Architecture: `amd64`.
    pub architecture: String,
    /// Variant of the architecture: `v7`; may be empty.
    pub variant: String,
}

impl Platform {
    /// Returns whether an image for this platform runs on `wanted`, such as `linux/amd64` or `linux/arm/v7`.
    #[must_use]
    pub fn serves(&self, wanted: &str) -> bool {
        let mut parts = wanted.split('/');
        let mut next = || parts.next().unwrap_or_default();
        let (os, architecture, variant) = (next(), next(), next());
        self.os == os && self.architecture == architecture && (variant.is_empty() || self.variant == variant)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        if self.variant.is_empty() { Ok(()) } else { write!(f, "/{}", self.variant) }
    }
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    config: Option<Descriptor>,
    #[serde(default, deserialize_with = "or_default")]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Option<Vec<Descriptor>>,
    #[serde(rename = "schemaVersion", default)]
    schema_version: u64,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// It is not a manifest of the second version.
    pub fn parse(bytes: &[u8]) -> Result<Self, RegistryError> {
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|error| RegistryError::invalid(format!("invalid manifest: {error}")))?;
        if document.schema_version != 2 {
            let message = format!("unsupported manifest of schema version {}", document.schema_version);
            return Err(RegistryError::invalid(message));
        }
        let manifest = match document.manifests {
            Some(manifests) => Self::Index(manifests),
            None => Self::Image { config: document.config, layers: document.layers },
        };
        let (Self::Image { layers: parts, .. } | Self::Index(parts)) = &manifest;
        if parts.len() > MAX_PARTS {
            return Err(RegistryError::invalid(format!("the manifest has more than {MAX_PARTS} parts")));
        }
        Ok(manifest)
    }
}

fn digest<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(source)?;
    text.parse().map_err(|()| serde::de::Error::custom("expected a SHA-256 digest"))
}

/// Some tools write `null` for an empty list.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(source: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_manifests_are_refused() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"schemaVersion": 1, "layers": []}"#,
            r#"{"schemaVersion": 2, "layers": [{"digest": "sha512:00", "size": 1}]}"#,
            r#"{"schemaVersion": 2, "layers": [{"digest": "x", "size": -1}]}"#,
        ] {
            assert!(Manifest::parse(text.as_bytes()).is_err(), "{text}");
        }
        let empty = Manifest::parse(br#"{"schemaVersion": 2, "layers": null}"#).unwrap();
        assert_eq!(empty, Manifest::Image { config: None, layers: Vec::new() });
    }
}
