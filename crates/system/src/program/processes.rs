//! A program and what it starts itself: counted, measured and ended together.

use std::collections::BTreeSet;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

/// The programs that run now.
static RUNNING: Mutex<BTreeSet<Leader>> = Mutex::new(BTreeSet::new());

/// A started program, which leads a group of processes.
pub(super) struct Processes {
    leader: Leader,
}

/// The process of a started program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Leader {
    process: u32,
    /// When it was started, by the kernel's clock.
    since: u64,
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
        platform::adopt_orphans();
        platform::group(command);
        // Until it is listed, another program would take it for a daemon.
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command.spawn()?;
        let leader = Leader { process: child.id(), since: platform::start_of(child.id()) };
        running.insert(leader);
        Ok((child, Self { leader }))
    }

    /// Limits the memory of each process. What it reserves and never fills does not count.
    pub(super) fn limit_memory(&self, bytes: u64) {
        platform::limit_memory(self.leader.process, bytes);
    }

    /// Ends the processes, also those that have left the group.
    pub(super) fn end(&self) {
        platform::kill_members(self.leader);
        platform::kill(self.leader.process);
    }

    /// Measures the processes; only Linux can from outside.
    pub(super) fn usage(&self) -> Usage {
        platform::usage(self.leader)
    }
}

/// Ends what is left of the program.
impl Drop for Processes {
    fn drop(&mut self) {
        platform::kill(self.leader.process);
        platform::forget_ended(self.leader);
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.leader);
    }
}

/// Returns whether a program that runs now has this process.
#[cfg(target_os = "linux")]
fn leads_a_program(process: u32) -> bool {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|leader| leader.process == process)
}

/// Ends every program that runs now: their groups do not get the signals of a terminal.
pub fn end_all() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for leader in running {
        platform::kill_members(leader);
        platform::kill(leader.process);
    }
}

#[cfg(unix)]
mod platform {
    use std::collections::BTreeSet;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    use super::Leader;

    pub(super) fn group(command: &mut Command) {
        command.process_group(0);
    }

    /// Maximum number of searches for members that others have started since the search before.
    const SEARCHES: usize = 100;

    /// Ends the descendants of the leader. All are stopped first: one that starts a process meanwhile would hide it, since
    /// a process whose parent has ended is no longer found.
    pub(super) fn kill_members(leader: Leader) {
        let mut stopped = BTreeSet::new();
        for _ in 0..SEARCHES {
            let members = linux::members(leader);
            let new: Vec<u32> = members.difference(&stopped).copied().collect();
            if new.is_empty() {
                break;
            }
            new.iter().for_each(|member| send(*member, Signal::STOP));
            stopped.extend(new);
        }
        stopped.into_iter().for_each(|member| send(member, Signal::KILL));
    }

    fn send(process: u32, signal: Signal) {
        if let Some(process) = id(process) {
            let _ = kill_process(process, signal);
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

    pub(super) use linux::{adopt_orphans, forget_ended, limit_memory, start_of, usage};

    #[cfg(target_os = "linux")]
    mod linux {
        use std::collections::{BTreeMap, BTreeSet};
        use std::fs;
        use std::os::unix::fs::MetadataExt;

        use rustix::process::{Resource, Rlimit, WaitOptions, getpgrp, getpid, prlimit, set_child_subreaper, waitpid};

        use super::super::{Leader, Usage};

        /// Becomes the parent of descendants whose own parents have ended, so that daemons are found.
        pub(in super::super) fn adopt_orphans() {
            let _ = set_child_subreaper(Some(getpid()));
        }

        pub(in super::super) fn limit_memory(leader: u32, bytes: u64) {
            for (resource, most) in [(Resource::Data, bytes), (Resource::Core, 0)] {
                let limit = Rlimit { current: Some(most), maximum: Some(most) };
                // A program that has ended already needs none.
                let _ = prlimit(super::id(leader), resource, limit);
            }
        }

        /// A process as `/proc` shows it.
        struct Process {
            id: u32,
            has_ended: bool,
            parent: u32,
            group: u32,
            since: u64,
        }

        impl Process {
            fn read(id: u32) -> Option<Self> {
                let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
                // The name, in parentheses, may contain spaces and parentheses.
                let fields: Vec<&str> = stat.rsplit(')').next()?.split_ascii_whitespace().collect();
                Some(Self {
                    id,
                    has_ended: *fields.first()? == "Z",
                    parent: fields.get(1)?.parse().ok()?,
                    group: fields.get(2)?.parse().ok()?,
                    since: fields.get(19)?.parse().ok()?,
                })
            }

            /// Reads all processes.
            fn all() -> Vec<Self> {
                let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
                entries.filter_map(|entry| Self::read(entry.file_name().to_str()?.parse().ok()?)).collect()
            }

            /// Returns whether it is a daemon that a program has left behind: adopted, and in a group of its own. Other
            /// children are in the group of this process, or in that of a program.
            fn is_daemon_of(&self, leader: Leader) -> bool {
                let own = |id: rustix::process::Pid| u32::try_from(id.as_raw_nonzero().get()).unwrap_or_default();
                self.parent == own(getpid())
                    && self.group != own(getpgrp())
                    && self.since >= leader.since
                    && !super::super::leads_a_program(self.group)
            }
        }

        /// Returns when a process was started; 0 if it has ended.
        pub(in super::super) fn start_of(process: u32) -> u64 {
            Process::read(process).map_or(0, |process| process.since)
        }

        /// Takes the ends of daemons, which would stay in the table of processes.
        pub(in super::super) fn forget_ended(leader: Leader) {
            for process in Process::all().iter().filter(|process| process.has_ended && process.is_daemon_of(leader)) {
                let _ = waitpid(super::id(process.id), WaitOptions::NOHANG);
            }
        }

        /// Finds the processes of the leader's group, daemons, and all their descendants.
        pub(super) fn members(leader: Leader) -> BTreeSet<u32> {
            let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            let mut found = Vec::new();
            for process in Process::all() {
                children.entry(process.parent).or_default().push(process.id);
                if process.group == leader.process || process.is_daemon_of(leader) {
                    found.push(process.id);
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

        pub(in super::super) fn usage(leader: Leader) -> Usage {
            let (mut own, mut mapped, mut open) = (0, 0, BTreeMap::new());
            let members = members(leader);
            for member in &members {
                let read = |file: &str| fs::read_to_string(format!("/proc/{member}/{file}")).unwrap_or_default();
                own += kilobytes(&read("status"), "RssAnon:").unwrap_or_default();
                // The part of this process in what several of them share.
                mapped += kilobytes(&read("smaps_rollup"), "Pss_Shmem:").unwrap_or_default();
                add_open_memory(*member, &mut open);
            }
            // A file in memory may be open, mapped or both.
            let shared = open.into_values().sum::<u64>().max(mapped << 10);
            Usage { processes: members.len(), bytes: (own << 10) + shared }
        }

        /// Reads a field of a file in `/proc` in KiB.
        fn kilobytes(text: &str, field: &str) -> Option<u64> {
            let value = text.lines().find_map(|line| line.strip_prefix(field))?;
            value.trim().strip_suffix(" kB")?.trim().parse().ok()
        }

        /// Adds the bytes of files in memory that a process has open, by device and inode, mapped or not.
        fn add_open_memory(process: u32, files: &mut BTreeMap<(u64, u64), u64>) {
            for file in fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
                let path = file.path();
                let target = fs::read_link(&path).unwrap_or_default();
                let is_in_memory =
                    ["/memfd:", "/dev/shm/"].iter().any(|start| target.to_string_lossy().starts_with(start));
                if is_in_memory && let Ok(metadata) = fs::metadata(&path) {
                    files.insert((metadata.dev(), metadata.ino()), metadata.blocks() * 512);
                }
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    mod linux {
        use std::collections::BTreeSet;

        use super::super::{Leader, Usage};

        pub(in super::super) fn adopt_orphans() {}

        pub(in super::super) fn limit_memory(_leader: u32, _bytes: u64) {}

        pub(in super::super) fn start_of(_process: u32) -> u64 {
            0
        }

        pub(in super::super) fn forget_ended(_leader: Leader) {}

        pub(super) fn members(_leader: Leader) -> BTreeSet<u32> {
            BTreeSet::new()
        }

        pub(in super::super) fn usage(_leader: Leader) -> Usage {
            Usage::default()
        }
    }
}

/// Elsewhere only the program itself is ended.
#[cfg(not(unix))]
mod platform {
    use std::process::Command;

    use super::{Leader, Usage};

    pub(super) fn adopt_orphans() {}

    pub(super) fn group(_command: &mut Command) {}

    pub(super) fn kill(_leader: u32) {}

    pub(super) fn kill_members(_leader: Leader) {}

    pub(super) fn limit_memory(_leader: u32, _bytes: u64) {}

    pub(super) fn start_of(_process: u32) -> u64 {
        0
    }

    pub(super) fn forget_ended(_leader: Leader) {}

    pub(super) fn usage(_leader: Leader) -> Usage {
        Usage::default()
    }
}
