//! A program and what it starts itself: counted, measured and ended together.

use std::collections::BTreeSet;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

/// Process ids of the programs that run now.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A started program, which leads a group of processes.
pub(super) struct Processes {
    leader: u32,
}

/// The processes of a program at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Their number.
    pub(super) processes: usize,
    /// The memory that they fill together.
    pub(super) bytes: u64,
}

impl Processes {
    /// Starts a program in a group of its own.
    pub(super) fn start(command: &mut Command) -> std::io::Result<(Child, Self)> {
        platform::group(command);
        let child = command.spawn()?;
        let leader = child.id();
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(leader);
        Ok((child, Self { leader }))
    }

    /// Limits the memory of each process. What it reserves and never fills does not count.
    pub(super) fn limit_memory(&self, bytes: u64) {
        platform::limit_memory(self.leader, bytes);
    }

    /// Ends the processes, also those that have left the group.
    pub(super) fn end(&self) {
        platform::kill_members(self.leader);
        platform::kill(self.leader);
    }

    /// Measures the processes; only Linux can from outside.
    pub(super) fn usage(&self) -> Usage {
        platform::usage(self.leader)
    }
}

/// Ends what is left of the program.
impl Drop for Processes {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.leader);
        platform::kill(self.leader);
    }
}

/// Ends every program that runs now: their groups do not get the signals of a terminal.
pub fn end_all() {
    for leader in RUNNING.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        platform::kill_members(*leader);
        platform::kill(*leader);
    }
}

#[cfg(unix)]
mod platform {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    pub(super) fn group(command: &mut Command) {
        command.process_group(0);
    }

    /// Ends the descendants of the leader.
    pub(super) fn kill_members(leader: u32) {
        for member in linux::members(leader) {
            if let Some(member) = id(member) {
                let _ = kill_process(member, Signal::KILL);
            }
        }
    }

    /// Ends the group.
    pub(super) fn kill(leader: u32) {
        if let Some(group) = id(leader) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn id(process: u32) -> Option<Pid> {
        i32::try_from(process).ok().and_then(Pid::from_raw)
    }

    pub(super) use linux::{limit_memory, usage};

    #[cfg(target_os = "linux")]
    mod linux {
        use std::collections::{BTreeMap, BTreeSet};
        use std::fs;

        use rustix::process::{Resource, Rlimit, prlimit};

        use super::super::Usage;

        pub(in super::super) fn limit_memory(leader: u32, bytes: u64) {
            for (resource, most) in [(Resource::Data, bytes), (Resource::Core, 0)] {
                let limit = Rlimit { current: Some(most), maximum: Some(most) };
                // A program that has ended already needs none.
                let _ = prlimit(super::id(leader), resource, limit);
            }
        }

        /// Finds the processes of the leader's group and all their descendants.
        pub(super) fn members(leader: u32) -> BTreeSet<u32> {
            let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            let mut found = Vec::new();
            for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
                let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
                // The name, in parentheses, may contain spaces and parentheses.
                let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().skip(1);
                let mut number = || fields.next().and_then(|field| field.parse::<u32>().ok());
                let (Some(parent), Some(group)) = (number(), number()) else { continue };
                children.entry(parent).or_default().push(process);
                if group == leader {
                    found.push(process);
                }
            }
            let mut members = BTreeSet::new();
            while let Some(process) = found.pop() {
                if members.insert(process) {
                    found.extend(children.get(&process).into_iter().flatten());
                }
            }
            members
        }

        pub(in super::super) fn usage(leader: u32) -> Usage {
            let (mut own, mut shared) = (0, 0);
            let members = members(leader);
            for member in &members {
                let status = fs::read_to_string(format!("/proc/{member}/status")).unwrap_or_default();
                let kilobytes = |field: &str| -> u64 {
                    let line = status.lines().find_map(|line| line.strip_prefix(field));
                    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or_default()
                };
                own += kilobytes("RssAnon:");
                // What several processes share counts once.
                shared = kilobytes("RssShmem:").max(shared);
            }
            Usage { processes: members.len(), bytes: (own + shared) << 10 }
        }
    }

    #[cfg(not(target_os = "linux"))]
    mod linux {
        use super::super::Usage;

        pub(in super::super) fn limit_memory(_leader: u32, _bytes: u64) {}

        pub(super) fn members(_leader: u32) -> Vec<u32> {
            Vec::new()
        }

        pub(in super::super) fn usage(_leader: u32) -> Usage {
            Usage::default()
        }
    }
}

/// Elsewhere only the program itself is ended.
#[cfg(not(unix))]
mod platform {
    use std::process::Command;

    use super::Usage;

    pub(super) fn group(_command: &mut Command) {}

    pub(super) fn kill(_leader: u32) {}

    pub(super) fn kill_members(_leader: u32) {}

    pub(super) fn limit_memory(_leader: u32, _bytes: u64) {}

    pub(super) fn usage(_leader: u32) -> Usage {
        Usage::default()
    }
}
