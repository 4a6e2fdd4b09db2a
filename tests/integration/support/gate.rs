//! Holds requests up until a test lets them go.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Nobody is held for ever: a test that fails must not keep the API server's connections.
const LONGEST: Duration = Duration::from_secs(60);

/// Holds up whoever passes until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let opened = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_timeout_while(opened, LONGEST, |opened| !*opened));
    }
}
