//! The channel through which events go from the engine to the renderers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Event;

/// Where the engine sends its events. Cheap to clone; sending never blocks and never fails.
#[derive(Clone, Debug)]
pub struct Events {
    sender: std::sync::mpsc::Sender<Event>,
    sent: Arc<AtomicU64>,
}

impl Events {
    /// A connected sender and receiver.
    #[must_use]
    pub fn channel() -> (Self, std::sync::mpsc::Receiver<Event>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        (Self { sender, sent: Arc::default() }, receiver)
    }

    /// Sends an event. Without a receiver it is dropped.
    pub fn send(&self, event: Event) {
        if self.sender.send(event).is_ok() {
            self.sent.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Number of events sent by all clones together.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}
