//! Runs programs that others provide: input on standard input, an answer from standard output, with a clean environment and
//! little time and room.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::environment::reason;

/// Most bytes of what a program says about its failure.
const COMPLAINT: u64 = 4 << 10;

/// How long the streams of a program that has ended may stay open.
const STREAMS: Duration = Duration::from_secs(5);

/// Interval between looks whether a program has ended.
const POLL: Duration = Duration::from_millis(2);

/// Where programs are searched, also those that a program starts itself.
const PATH: &str = if cfg!(windows) { r"C:\Windows\System32" } else { "/usr/local/bin:/usr/bin:/bin" };

/// A program and what it may use.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, or a name that is searched in the usual folders.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How long it may take.
    pub time: Duration,
    /// Most bytes of its answer.
    pub answer: u64,
    /// Most bytes of memory that each of its processes may fill. Only Linux can limit it from outside.
    pub memory: u64,
}

impl Program {
    /// What the program answers.
    ///
    /// # Errors
    /// It cannot be started, fails, or exceeds a limit; with the reason, which may quote the program.
    pub fn run(&self, input: Vec<u8>) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).env_clear().env("PATH", PATH);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        processes::group(&mut command);
        let mut child = command.spawn().map_err(|error| format!("it cannot be started: {}", reason(&error)))?;
        processes::limit_memory(&child, self.memory);
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("it has no standard streams".to_owned());
        };
        // A program need not read all of its input.
        thread::spawn(move || stdin.write_all(&input));
        let (output, complaint) = (reading(stdout, self.answer), reading(stderr, COMPLAINT));
        let status = ended(&mut child, self.time);
        // Also what it has started itself, and what still runs because it was too slow.
        processes::kill(&mut child);
        let _ = child.wait();
        let status = status?;
        // Whoever has left the group may hold the streams open.
        let read = |stream: Receiver<Vec<u8>>| stream.recv_timeout(STREAMS).unwrap_or_default();
        let output = read(output);
        if output.len() as u64 > self.answer {
            return Err(format!("its answer is longer than {} MiB", self.answer >> 20));
        }
        if !status.success() {
            let said = read(complaint);
            let said = String::from_utf8_lossy(&said);
            let line = said.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
            return Err(format!("it failed with {status}{line}"));
        }
        Ok(output)
    }
}

/// A program and what it starts itself.
#[cfg(unix)]
mod processes {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process_group};

    pub(super) fn group(command: &mut Command) {
        command.process_group(0);
    }

    pub(super) fn kill(child: &mut Child) {
        if let Some(group) = id(child) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn id(child: &Child) -> Option<Pid> {
        i32::try_from(child.id()).ok().and_then(Pid::from_raw)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn limit_memory(child: &Child, bytes: u64) {
        use rustix::process::{Resource, Rlimit, prlimit};
        let Some(process) = id(child) else { return };
        // What it reserves and never fills does not count, unlike with a limit of the address space.
        for (resource, most) in [(Resource::Data, bytes), (Resource::Core, 0)] {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            // A program that has ended already needs none.
            let _ = prlimit(Some(process), resource, limit);
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn limit_memory(_child: &Child, _bytes: u64) {}
}

/// Elsewhere only the program itself is ended.
#[cfg(not(unix))]
mod processes {
    use std::process::{Child, Command};

    pub(super) fn group(_command: &mut Command) {}

    pub(super) fn kill(child: &mut Child) {
        let _ = child.kill();
    }

    pub(super) fn limit_memory(_child: &Child, _bytes: u64) {}
}

/// Waits for the end of a program, but not for long.
fn ended(child: &mut Child, time: Duration) -> Result<ExitStatus, String> {
    let deadline = Instant::now() + time;
    loop {
        match child.try_wait().map_err(|error| reason(&error))? {
            Some(status) => return Ok(status),
            None if Instant::now() >= deadline => {
                return Err(format!("it has not answered within {} s", time.as_secs()));
            }
            None => thread::sleep(POLL),
        }
    }
}

/// What a stream holds up to a limit, and one byte more, so that a longer text is seen.
fn reading(stream: impl Read + Send + 'static, limit: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.take(limit + 1).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}
