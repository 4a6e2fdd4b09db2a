//! Reads request bodies within bounds of memory and time. Memory is taken as bytes arrive, so that a client that sends
//! nothing keeps nobody waiting.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// Number of the largest requests that are in memory at once.
const LARGEST_AT_ONCE: usize = 4;

/// The unit in which memory is counted.
const KIBIBYTE: usize = 1024;

/// Memory for the first bytes of each body, which it does not share: the review of a single object is read while slow
/// uploads hold all shared memory. Connections are limited, and so is the sum.
pub(super) const OWN: usize = 64 * KIBIBYTE;

/// Most memory that is taken for bytes that have not arrived.
const STEP: usize = 1024 * KIBIBYTE;

/// Time that a client gets to send a body, and for each [`PER_SECOND`] of it another second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that a client has to send in a second.
const PER_SECOND: usize = 4 << 20;

/// Memory for the bodies of all requests.
#[derive(Debug)]
pub(super) struct Intake {
    /// Most bytes of a body.
    longest: usize,
    /// Kibibytes that all bodies share.
    shared: Arc<Semaphore>,
    /// Memory for one whole body: if the shared memory is full of unfinished bodies, they are finished one by one.
    reserve: Arc<Semaphore>,
}

/// A whole body, and the memory that it takes until it is dropped.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) bytes: Vec<u8>,
    pub(super) memory: Memory,
}

/// Memory that a body takes.
#[derive(Debug)]
pub(super) struct Memory {
    granted: usize,
    permits: Vec<OwnedSemaphorePermit>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { granted: OWN, permits: Vec::new() }
    }
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum IntakeError {
    #[error("the request is larger than {} MiB; --max-request allows more", .0 >> 20)]
    TooLarge(usize),
    #[error("the request did not arrive within {} s", .0.as_secs())]
    Late(Duration),
    #[error("the request ended early: {0}")]
    Ended(String),
    /// No semaphore is closed while the server runs.
    #[error("the server is ending")]
    Closed,
}

impl Intake {
    /// Memory for bodies of at most `longest` bytes each.
    pub(super) fn new(longest: usize) -> Self {
        let shared = (LARGEST_AT_ONCE - 1) * longest.div_ceil(KIBIBYTE);
        Self { longest, shared: Arc::new(Semaphore::new(shared)), reserve: Arc::new(Semaphore::new(1)) }
    }

    /// Reads a body. Only time in which the client sends nothing counts towards its deadline, not the wait for memory.
    ///
    /// # Errors
    /// The body is too large, late, or incomplete.
    pub(super) async fn read<B>(&self, body: B) -> Result<Received, IntakeError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let size = body.size_hint();
        if size.lower() > self.longest as u64 {
            return Err(IntakeError::TooLarge(self.longest));
        }
        // Without a length, a body may become as long as any.
        let expected = size.exact().and_then(|size| usize::try_from(size).ok()).unwrap_or(self.longest);
        let patience = PATIENCE + Duration::from_secs((expected / PER_SECOND) as u64);
        let mut left = patience;
        let mut received = Received { bytes: Vec::new(), memory: Memory::default() };
        let mut body = Limited::new(body, self.longest);
        loop {
            let since = Instant::now();
            let frame = match timeout(left, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) if error.is::<LengthLimitError>() => {
                    return Err(IntakeError::TooLarge(self.longest));
                }
                Ok(Some(Err(error))) => return Err(IntakeError::Ended(error.to_string())),
                Ok(None) => return Ok(received),
                Err(_) => return Err(IntakeError::Late(patience)),
            };
            left = left.saturating_sub(since.elapsed());
            if let Ok(data) = frame.into_data() {
                self.grow(&mut received, data.len(), expected).await?;
                received.bytes.extend_from_slice(&data);
            }
        }
    }

    /// Takes memory for more bytes.
    async fn grow(&self, received: &mut Received, more: usize, expected: usize) -> Result<(), IntakeError> {
        let needed = received.bytes.len() + more;
        let memory = &mut received.memory;
        if needed > memory.granted {
            let ahead = memory.granted.min(STEP);
            let wanted = needed.max((memory.granted + ahead).min(expected));
            let kibibytes = u32::try_from((wanted - memory.granted).div_ceil(KIBIBYTE)).unwrap_or(u32::MAX);
            let (permit, granted) = tokio::select! {
                biased;
                permit = Arc::clone(&self.shared).acquire_many_owned(kibibytes) => (permit, wanted),
                permit = Arc::clone(&self.reserve).acquire_owned() => (permit, self.longest),
            };
            memory.permits.push(permit.map_err(|_| IntakeError::Closed)?);
            memory.granted = granted;
        }
        if received.bytes.capacity() < needed {
            // Exactly: a buffer that doubles would be in memory twice.
            let room = memory.granted.min(expected).max(needed);
            received.bytes.reserve_exact(room - received.bytes.len());
        }
        Ok(())
    }
}
