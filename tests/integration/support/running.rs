//! A run of the product that a test looks at, signals and ends while it goes on.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::poll::{poll, wait_until};
use super::pushback::Ran;

const DEADLINE: Duration = Duration::from_secs(120);

/// A run under way; killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (stdout, stderr) = (Arc::default(), Arc::default());
        let readers = vec![
            follow(child.stdout.take().expect("a pipe"), &stdout),
            follow(child.stderr.take().expect("a pipe"), &stderr),
        ];
        Self { child, stdout, stderr, readers }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The events of `--output json` so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.stdout.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The last line may be half written.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Standard output so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for an event; fails the test when the run ends without it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let found = wait_until(what, DEADLINE, || {
            let ended = self.child.try_wait().expect("a child").is_some();
            if ended {
                self.readers.drain(..).for_each(|reader| reader.join().expect("a reader"));
            }
            match self.events().into_iter().find(&matches) {
                Some(event) => Some(Ok(event)),
                None => ended.then(|| Err(self.events())),
            }
        });
        found.unwrap_or_else(|events| panic!("the run ended without this: {what}; its events: {events:#?}"))
    }

    /// Whether it has come to its end.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap_or_else(|error| panic!("{error}; events: {:#?}", self.events()));
    }

    fn pid(&self) -> Pid {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id")
    }

    /// Waits for the end. A process that a signal ended has code -1.
    #[track_caller]
    pub(crate) fn finish(self) -> Ran {
        self.finish_within(DEADLINE)
    }

    /// As [`Self::finish`], with a deadline of the test's own.
    #[track_caller]
    pub(crate) fn finish_within(mut self, deadline: Duration) -> Ran {
        let status = poll(deadline, || self.child.try_wait().expect("a child"));
        if status.is_none() {
            let _ = self.child.kill();
        }
        self.readers.drain(..).for_each(|reader| reader.join().expect("a reader"));
        let text = |text: &Mutex<String>| text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
        let status = status.unwrap_or_else(|| panic!("has not ended within {deadline:?}:\n{stdout}\n{stderr}"));
        Ran { code: status.code().unwrap_or(-1), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn follow(pipe: impl Read + Send + 'static, into: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let into = Arc::clone(into);
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        while pipe.read_line(&mut line).expect("output is UTF-8") > 0 {
            into.lock().unwrap_or_else(PoisonError::into_inner).push_str(&line);
            line.clear();
        }
    })
}
