//! Looks up an image in its registry, by tag or digest and for platforms. Layers are not fetched.

use serde::Deserialize;

use crate::client::Client;
use crate::error::{ErrorKind, RegistryError};
use crate::manifest::{Descriptor, Manifest, Platform};
use crate::reference::Reference;

/// Maximum size of an image's configuration.
const MAX_CONFIG: u64 = 4 << 20;

/// Hosts of Docker Hub in references.
const DOCKER_HUB: [&str; 2] = ["docker.io", "index.docker.io"];

/// The result of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageState {
    /// The image exists for all platforms, or is not made for a platform.
    Found,
    /// The image exists, and lacks these platforms.
    Lacks {
        /// The platforms that it lacks.
        missing: Vec<String>,
        /// The platforms that it has.
        found: Vec<String>,
    },
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: String,
}

impl Reference {
    /// Parses the name of an image as container runtimes do: `nginx` is `docker.io/library/nginx:latest`.
    ///
    /// # Errors
    /// The text is not a reference. It is not quoted.
    pub fn parse_image(text: &str) -> Result<Self, RegistryError> {
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let (host, path) = match text.split_once('/') {
            Some((host, path)) if is_host(host) => (host, path),
            _ => (DOCKER_HUB[0], text),
        };
        if !DOCKER_HUB.contains(&host) {
            return Self::parse(text);
        }
        let path = if path.contains('/') { path.to_owned() } else { format!("library/{path}") };
        Self::parse(&format!("{}/{path}", DOCKER_HUB[0]))
    }
}

/// Looks up an image for platforms such as `linux/amd64` and `linux/arm/v7`.
///
/// # Errors
/// The registry does not have it, or gives no answer.
pub fn look_up(client: &Client, image: &Reference, platforms: &[String]) -> Result<ImageState, RegistryError> {
    let found: Vec<Platform> = match client.manifest(image)?.manifest {
        Manifest::Index(manifests) => manifests.into_iter().filter_map(|manifest| manifest.platform).collect(),
        Manifest::Image { config: Some(config), .. } => platform_in(client, image, &config)?.into_iter().collect(),
        Manifest::Image { config: None, .. } => Vec::new(),
    };
    // Artifacts and attestations have none.
    let found: Vec<Platform> = found.into_iter().filter(|platform| platform.os != "unknown").collect();
    let missing: Vec<String> =
        platforms.iter().filter(|wanted| !found.iter().any(|found| found.serves(wanted))).cloned().collect();
    if missing.is_empty() || found.is_empty() {
        return Ok(ImageState::Found);
    }
    let mut found: Vec<String> = found.iter().map(ToString::to_string).collect();
    found.dedup();
    Ok(ImageState::Lacks { missing, found })
}

fn platform_in(client: &Client, image: &Reference, config: &Descriptor) -> Result<Option<Platform>, RegistryError> {
    let is_image = config.media_type.contains(".image.") && config.media_type.ends_with("+json");
    let is_image = is_image || config.media_type == "application/vnd.docker.container.image.v1+json";
    if !is_image {
        return Ok(None);
    }
    let bytes = match client.blob(image, config, MAX_CONFIG) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == ErrorKind::Absent => {
            return Err(RegistryError { kind: ErrorKind::Invalid, ..error });
        }
        Err(error) => return Err(error),
    };
    let config: Config = serde_json::from_slice(&bytes)
        .map_err(|_| RegistryError::new(ErrorKind::Invalid, "invalid configuration of the image", ""))?;
    let platform = Platform { os: config.os, architecture: config.architecture, variant: config.variant };
    Ok((!platform.os.is_empty()).then_some(platform))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_as_container_runtimes_do() {
        for (text, name) in [
            ("nginx", "docker.io/library/nginx"),
            ("nginx:1.27", "docker.io/library/nginx:1.27"),
            ("org/app:v1", "docker.io/org/app:v1"),
            ("index.docker.io/nginx", "docker.io/library/nginx"),
            ("localhost/app", "localhost/app"),
            ("localhost:5000/app:v1", "localhost:5000/app:v1"),
            ("ghcr.io/org/app", "ghcr.io/org/app"),
        ] {
            assert_eq!(Reference::parse_image(text).unwrap().to_string(), name);
        }
        for text in ["", "UPPER", "a b", "$(IMAGE)", "nginx:", "a@b"] {
            assert!(Reference::parse_image(text).is_err(), "{text}");
        }
    }

    #[test]
    fn variants_of_a_platform_are_compared_if_they_are_wanted() {
        let platform = |text: &str| {
            let mut parts = text.split('/').map(str::to_owned);
            let mut next = || parts.next().unwrap_or_default();
            Platform { os: next(), architecture: next(), variant: next() }
        };
        for (found, wanted, serves) in [
            ("linux/amd64", "linux/amd64", true),
            ("linux/arm64/v8", "linux/arm64", true),
            ("linux/arm/v7", "linux/arm/v7", true),
            ("linux/arm/v6", "linux/arm/v7", false),
            ("windows/amd64", "linux/amd64", false),
        ] {
            assert_eq!(platform(found).serves(wanted), serves, "{found} {wanted}");
        }
    }
}
