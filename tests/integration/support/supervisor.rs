//! The child process that runs a cluster's components. It reads its commands from a pipe whose other
//! end only this process holds, so however a test run ends, its components end with it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// A running `tests/cluster/supervise`, and the directory that it removes at the end.
#[derive(Debug)]
pub(crate) struct Supervisor {
    directory: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Supervisor {
    /// Creates the directory and starts the supervisor on it.
    pub(crate) fn spawn() -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("pushback-test-cluster-")
            .tempdir()
            .map_err(|error| format!("no directory for a test cluster: {error}"))?
            .keep();
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/supervise"));
        command.arg(&directory).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Out of the terminal's foreground group: Ctrl-C ends the test run, and that ends the supervisor.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(|error| format!("tests/cluster/supervise: {error}"))?;
        Ok(Self { directory, child: Mutex::new(Some(child)) })
    }

    /// Certificates, kubeconfigs, data and logs of the cluster.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts a component with this command line; its output goes to `NAME.log`.
    pub(crate) fn start(&self, name: &str, command: &[String]) -> Result<(), String> {
        let words: Vec<String> = command.iter().map(|word| shell_quote(word)).collect();
        let script = self.directory.join(format!("{name}.sh"));
        std::fs::write(&script, format!("exec {}\n", words.join(" ")))
            .map_err(|error| format!("{}: {error}", script.display()))?;
        self.start_again(name)
    }

    /// Starts a stopped component as it was.
    pub(crate) fn start_again(&self, name: &str) -> Result<(), String> {
        // What is left of an earlier run of the same component would read as its end.
        let _ = std::fs::remove_file(self.exit_file(name));
        self.send("start", name)
    }

    /// Kills a component and returns when it is gone.
    pub(crate) fn stop(&self, name: &str) -> Result<(), String> {
        self.send("stop", name)?;
        super::wait_until(&format!("{name} ends"), std::time::Duration::from_secs(10), || self.exit_status(name));
        Ok(())
    }

    /// The status with which a component has ended by itself or by [`Self::stop`]; `None` while it runs.
    pub(crate) fn exit_status(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.exit_file(name)).ok().map(|status| status.trim_end().to_owned())
    }

    /// The end of a component's log.
    pub(crate) fn log_tail(&self, name: &str) -> String {
        let log = std::fs::read(self.directory.join(format!("{name}.log"))).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }

    /// Ends all components and waits until the directory is gone.
    pub(crate) fn shut_down(&self) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut child) = child {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }

    fn exit_file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.exit"))
    }

    fn send(&self, verb: &str, name: &str) -> Result<(), String> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let stdin = child.as_mut().and_then(|child| child.stdin.as_mut()).ok_or("this cluster was shut down")?;
        writeln!(stdin, "{verb} {name}").map_err(|error| format!("tests/cluster/supervise does not listen: {error}"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn shell_quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
