//! Reads OCI registries: finds references, fetches manifests and blobs with the user's credentials, and unpacks artifacts
//! in memory. Everything that a registry sends is bounded and compared with its digest.

mod artifact;
mod client;
mod credentials;
mod error;
pub mod https;
mod image;
mod manifest;
mod reference;
mod token;
mod unpack;

pub use self::artifact::{Artifact, ArtifactKind, pull, pull_chart};
pub use self::client::{Client, FetchedManifest};
pub use self::credentials::{CredentialFiles, Credentials};
pub use self::error::{ErrorKind, RegistryError};
pub use self::image::{ImageState, look_up};
pub use self::manifest::{Descriptor, Manifest, Platform};
pub use self::reference::{Digest, Reference};
