//! Asks registries about images, with the credentials of the user: few at a time, and a registry that limits requests or
//! does not answer is asked no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pushback_preflight::facts::ImageLookup;
use pushback_registry::{Client, CredentialFiles, ErrorKind, ImageState, Reference, RegistryError, look_up};
use tokio::sync::Semaphore;

/// Number of images that are asked about at once.
const AT_ONCE: usize = 4;

/// Time for an image.
const TIME: Duration = Duration::from_secs(20);

/// Time for all images of a check.
const WHOLE_TIME: Duration = Duration::from_secs(60);

/// The registries of one check.
#[derive(Debug)]
pub(super) struct Registries {
    client: Arc<Client>,
    turns: Semaphore,
    /// Registries that are asked no more, with the answer for the rest of their images.
    closed: Mutex<HashMap<String, ImageLookup>>,
}

impl Registries {
    pub(super) fn new() -> Self {
        Self {
            client: Arc::new(Client::new(CredentialFiles::of_user()).with_time(WHOLE_TIME)),
            turns: Semaphore::new(AT_ONCE),
            closed: Mutex::default(),
        }
    }

    /// Looks up an image for these platforms.
    pub(super) async fn look_up(&self, image: &str, platforms: &[String]) -> ImageLookup {
        let reference = match Reference::parse_image(image) {
            Ok(reference) => reference,
            Err(error) => return ImageLookup::Invalid { message: error.message },
        };
        let Ok(_turn) = self.turns.acquire().await else {
            return ImageLookup::Unreachable { registry: reference.registry, message: "the run is ended".to_owned() };
        };
        let registry = reference.registry.clone();
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner).get(&registry).cloned();
        if let Some(answer) = closed {
            return answer;
        }
        let (client, platforms) = (Arc::clone(&self.client), platforms.to_vec());
        let work = tokio::task::spawn_blocking(move || look_up(&client, &reference, &platforms));
        let unreachable =
            |message: &str| ImageLookup::Unreachable { registry: registry.clone(), message: message.to_owned() };
        let answer = match tokio::time::timeout(TIME, work).await {
            Ok(Ok(answer)) => lookup_of(&registry, answer),
            Ok(Err(_)) => unreachable("the run is ended"),
            Err(_) => unreachable("the registry did not answer in time"),
        };
        if matches!(answer, ImageLookup::Throttled { .. } | ImageLookup::Unreachable { .. }) {
            self.closed.lock().unwrap_or_else(PoisonError::into_inner).insert(registry.clone(), answer.clone());
        }
        answer
    }
}

fn lookup_of(registry: &str, answer: Result<ImageState, RegistryError>) -> ImageLookup {
    let registry = registry.to_owned();
    match answer {
        Ok(ImageState::Found) => ImageLookup::Found,
        Ok(ImageState::Lacks { missing, found }) => ImageLookup::Lacks { missing, found },
        Err(RegistryError { kind, message, .. }) => match kind {
            ErrorKind::Absent => ImageLookup::Absent,
            ErrorKind::Denied => ImageLookup::Denied { registry, message },
            ErrorKind::Throttled => ImageLookup::Throttled { registry, message },
            ErrorKind::Unreachable => ImageLookup::Unreachable { registry, message },
            _ => ImageLookup::Invalid { message },
        },
    }
}
