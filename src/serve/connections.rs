//! Open connections, of which there is a largest number. For a new one beyond it, the connection that has been idle the
//! longest is closed, so that connections on which nothing is asked keep nobody out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// Time for a TLS handshake, and then for the first request of a connection.
const FIRST_REQUEST: Duration = Duration::from_secs(10);

/// All open connections.
#[derive(Debug)]
pub(super) struct Connections {
    room: Arc<Semaphore>,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    by_id: BTreeMap<u64, OpenConnection>,
}

#[derive(Debug)]
struct OpenConnection {
    /// `None` while a request is being answered, and once it is closed for another one.
    idle_since: Option<Instant>,
    close: Arc<Notify>,
}

/// One open connection; dropping it makes room.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    open: Arc<Mutex<Open>>,
    close: Arc<Notify>,
    asked: Notify,
    _room: OwnedSemaphorePermit,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Busy<'c>(&'c Connection);

impl Connections {
    /// At most this number of connections.
    pub(super) fn new(most: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(most)), open: Arc::default() }
    }

    /// Waits for room for one more connection. If there is none, the connection that has been idle the longest is
    /// closed. `None`: the server is ending.
    pub(super) async fn admit(&self) -> Option<Arc<Connection>> {
        let room = match Arc::clone(&self.room).try_acquire_owned() {
            Ok(room) => room,
            Err(_) => {
                lock(&self.open).close_idlest();
                Arc::clone(&self.room).acquire_owned().await.ok()?
            }
        };
        let close = Arc::new(Notify::new());
        let mut open = lock(&self.open);
        let id = open.next;
        open.next += 1;
        open.by_id.insert(id, OpenConnection { idle_since: Some(Instant::now()), close: Arc::clone(&close) });
        drop(open);
        Some(Arc::new(Connection { id, open: Arc::clone(&self.open), close, asked: Notify::new(), _room: room }))
    }
}

impl Open {
    fn close_idlest(&mut self) {
        let idle = self.by_id.values_mut().filter(|connection| connection.idle_since.is_some());
        if let Some(idlest) = idle.min_by_key(|connection| connection.idle_since) {
            idlest.idle_since = None;
            idlest.close.notify_one();
        }
    }
}

impl Connection {
    /// Marks the connection as busy until the guard is dropped.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.asked.notify_one();
        self.set_idle(None);
        Busy(self)
    }

    /// Completes when the connection is to be closed: it is needed for another one, or its first request is late.
    pub(super) async fn closed(&self) {
        let late = async {
            if timeout(FIRST_REQUEST, self.asked.notified()).await.is_ok() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.close.notified() => {}
            () = late => {}
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

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set_idle(Some(Instant::now()));
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
        let began = Instant::now();
        tokio::select! {
            () = silent.closed() => {}
            () = asked.closed() => panic!("it has asked"),
        }
        assert_eq!(began.elapsed(), FIRST_REQUEST);
    }
}
