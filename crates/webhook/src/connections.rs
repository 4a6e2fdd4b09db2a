//! Open connections, of which there is a largest number. For a new one beyond it, the connection that has been idle the
//! longest is closed, so that connections on which nothing is asked keep nobody out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// Time for a TLS handshake, and then for the first request of a connection.
const FIRST_REQUEST: Duration = Duration::from_secs(10);

/// Time that a client gets to read an answer: as long as the API server waits for one.
const ANSWER: Duration = Duration::from_secs(30);

/// All open connections.
#[derive(Debug)]
pub(super) struct Connections {
    room: Arc<Semaphore>,
    open: Arc<Mutex<Open>>,
    /// A connection became idle.
    became_idle: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    by_id: BTreeMap<u64, OpenConnection>,
}

#[derive(Debug)]
struct OpenConnection {
    /// `None` from the head of a request until its answer is sent, and once it is closed for another one.
    idle_since: Option<Instant>,
    close: Arc<Notify>,
}

/// One open connection; dropping it makes room.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    open: Arc<Mutex<Open>>,
    close: Arc<Notify>,
    became_idle: Arc<Notify>,
    asked: Notify,
    /// Since when an answer has been ready that is not sent yet.
    unsent_since: watch::Sender<Option<Instant>>,
    _room: OwnedSemaphorePermit,
}

/// A request whose answer is not ready yet. The connection stays busy until the answer is sent, too.
#[derive(Debug)]
pub(super) struct Busy(Arc<Connection>);

impl Connections {
    /// At most this number of connections.
    pub(super) fn new(most: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(most)), open: Arc::default(), became_idle: Arc::default() }
    }

    /// Waits for room for one more connection. If there is none, the connection that has been idle the longest is
    /// closed; if all are busy, the first that becomes idle. `None`: the server is ending.
    pub(super) async fn admit(&self) -> Option<Arc<Connection>> {
        let room = self.room().await?;
        let close = Arc::new(Notify::new());
        let mut open = lock(&self.open);
        let id = open.next;
        open.next += 1;
        open.by_id.insert(id, OpenConnection { idle_since: Some(Instant::now()), close: Arc::clone(&close) });
        drop(open);
        Some(Arc::new(Connection {
            id,
            open: Arc::clone(&self.open),
            close,
            became_idle: Arc::clone(&self.became_idle),
            asked: Notify::new(),
            unsent_since: watch::Sender::new(None),
            _room: room,
        }))
    }

    async fn room(&self) -> Option<OwnedSemaphorePermit> {
        let mut room = std::pin::pin!(Arc::clone(&self.room).acquire_owned());
        loop {
            let is_closing = self.room.available_permits() > 0 || lock(&self.open).close_idlest();
            tokio::select! {
                biased;
                room = &mut room => return room.ok(),
                // Notifications are kept: none between the look above and this wait is missed.
                () = self.became_idle.notified(), if !is_closing => {}
            }
        }
    }
}

impl Open {
    /// Closes the connection that has been idle the longest. Returns false if none is idle.
    fn close_idlest(&mut self) -> bool {
        let idle = self.by_id.values_mut().filter(|connection| connection.idle_since.is_some());
        let Some(idlest) = idle.min_by_key(|connection| connection.idle_since) else { return false };
        idlest.idle_since = None;
        idlest.close.notify_one();
        true
    }
}

impl Connection {
    /// Marks the connection as busy until its answer is sent.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.asked.notify_one();
        self.unsent_since.send_replace(None);
        self.set_idle(None);
        Busy(Arc::clone(self))
    }

    /// Marks the connection as idle if an answer was ready: everything written to it has been sent.
    pub(super) fn sent(&self) {
        if self.unsent_since.send_replace(None).is_some() {
            self.set_idle(Some(Instant::now()));
            self.became_idle.notify_one();
        }
    }

    /// Completes when the connection is to be closed: it is needed for another one, its first request is late, or its
    /// client does not read an answer.
    pub(super) async fn closed(&self) {
        let late = async {
            if timeout(FIRST_REQUEST, self.asked.notified()).await.is_ok() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.close.notified() => {}
            () = late => {}
            () = self.unread() => {}
        }
    }

    /// Completes when an answer has not been sent in time.
    async fn unread(&self) {
        let mut unsent = self.unsent_since.subscribe();
        loop {
            let since = *unsent.borrow_and_update();
            let change = unsent.changed();
            let Some(since) = since else {
                // The sender lives as long as `self`.
                let _ = change.await;
                continue;
            };
            if timeout_at(since + ANSWER, change).await.is_err() {
                return;
            }
        }
    }

    fn set_idle(&self, since: Option<Instant>) {
        if let Some(connection) = lock(&self.open).by_id.get_mut(&self.id) {
            connection.idle_since = since;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.open).by_id.remove(&self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.unsent_since.send_replace(Some(Instant::now()));
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connection_beyond_the_limit_closes_the_idlest() {
        let connections = Connections::new(3);
        let busy = connections.admit().await.expect("room");
        let answering = busy.busy();
        let idlest = connections.admit().await.expect("room");
        let asked = connections.admit().await.expect("room");
        tokio::time::advance(Duration::from_millis(1)).await;
        drop(asked.busy());
        asked.sent();
        let (closed, admitted) = tokio::join!(
            async {
                idlest.closed().await;
                drop(idlest);
                Instant::now()
            },
            connections.admit()
        );
        assert!(admitted.is_some());
        assert_eq!(closed, Instant::now(), "it was closed at once");
        drop(answering);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_without_a_request_is_closed_and_one_that_has_asked_stays() {
        let connections = Connections::new(2);
        let silent = connections.admit().await.expect("room");
        let asked = connections.admit().await.expect("room");
        drop(asked.busy());
        asked.sent();
        let began = Instant::now();
        tokio::select! {
            () = silent.closed() => {}
            () = asked.closed() => panic!("it has asked"),
        }
        assert_eq!(began.elapsed(), FIRST_REQUEST);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_becomes_idle_makes_room() {
        let connections = Connections::new(2);
        let ends = connections.admit().await.expect("room");
        let stays = connections.admit().await.expect("room");
        let (answering, _other) = (ends.busy(), stays.busy());
        let began = Instant::now();
        let idle = async {
            tokio::task::yield_now().await;
            drop(answering);
            ends.sent();
            ends.closed().await;
            drop(ends);
        };
        let both = async { tokio::join!(connections.admit(), idle) };
        let (admitted, ()) = timeout(ANSWER / 2, both).await.expect("room in time");
        assert!(admitted.is_some());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_busy_until_its_answer_is_sent() {
        let connections = Connections::new(1);
        let open = connections.admit().await.expect("room");
        drop(open.busy());
        let mut next = std::pin::pin!(connections.admit());
        tokio::select! {
            _ = &mut next => panic!("an answer is not sent yet"),
            () = open.closed() => panic!("an answer is not sent yet"),
            () = tokio::time::sleep(ANSWER / 2) => {}
        }
        open.sent();
        let (_, admitted) = tokio::join!(
            async {
                open.closed().await;
                drop(open);
            },
            next
        );
        assert!(admitted.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn connection_whose_answer_is_not_read_is_closed() {
        let connections = Connections::new(1);
        let open = connections.admit().await.expect("room");
        for _ in 0..3 {
            drop(open.busy());
            open.sent();
        }
        let began = Instant::now();
        drop(open.busy());
        open.closed().await;
        assert_eq!(began.elapsed(), ANSWER);
    }
}
