//! The clock, the identity of this machine and process, and new ids: everything that differs between runs enters here.
//! Whatever depends on the platform has a portable fallback.

use std::ffi::OsString;
use std::time::Duration;

use secrecy::SecretString;

use crate::redact;

/// File name of this program without its ending: `kapp`, or a release's, `kapp-linux-amd64`. `PUSHBACK_VOICE` can
/// replace it with `kapp` or `pushback`.
#[must_use]
pub fn program_name() -> String {
    let program = std::env::args_os().next().map(std::path::PathBuf::from).unwrap_or_default();
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    chosen_name(&name, std::env::var("PUSHBACK_VOICE").ok().as_deref()).to_owned()
}

fn chosen_name<'n>(program: &'n str, wanted: Option<&'n str>) -> &'n str {
    wanted.filter(|name| ["kapp", "pushback"].contains(name)).unwrap_or(program)
}

/// The variables of this process whose names are text.
pub fn variables() -> impl Iterator<Item = (String, OsString)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
}

/// What a run knows about its surroundings. Tests build their own.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Host name.
    pub host: String,
    /// Changes with every boot, and between process id namespaces; empty if the platform does not provide it.
    pub boot: String,
    /// Process id.
    pub process: u32,
    /// User name, from the environment variables.
    pub user: String,
    /// Command-line arguments without the program's name, and without credentials in URLs.
    pub arguments: Vec<String>,
    /// The commit that a CI service says it works on; empty if none does.
    pub commit: String,
    /// The key for values of Secrets in saved plans, if there is one.
    pub plan_key: Option<SecretString>,
    ids: Ids,
}

#[derive(Clone, Debug)]
enum Ids {
    Real,
    /// For tests: ids and times count up from this value.
    Fixed(u64),
}

/// Name of this process's account, where no variable has it: in many containers.
fn account_name() -> Option<String> {
    let user = current_user()?.to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let name = |line: &str| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id == user).then(|| name.to_owned())
    };
    accounts.lines().find_map(name)
}

#[cfg(unix)]
fn current_user() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn current_user() -> Option<u32> {
    None
}

impl Environment {
    /// The real environment.
    #[must_use]
    pub fn real() -> Self {
        Self {
            host: host_name(),
            boot: boot_id(),
            process: std::process::id(),
            user: ["USER", "LOGNAME", "USERNAME"]
                .iter()
                .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
                .or_else(account_name)
                .unwrap_or_else(|| "unknown".to_owned()),
            arguments: arguments().collect(),
            commit: ["GITHUB_SHA", "CI_COMMIT_SHA"]
                .iter()
                .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
                .unwrap_or_default(),
            plan_key: std::env::var("PUSHBACK_PLAN_KEY").ok().filter(|key| !key.is_empty()).map(SecretString::from),
            ids: Ids::Real,
        }
    }

    /// A fixed environment for tests: ids are derived from `seed`.
    #[must_use]
    pub fn fixed(seed: u64) -> Self {
        Self {
            host: "host".to_owned(),
            boot: "boot".to_owned(),
            process: 1,
            user: "tester".to_owned(),
            arguments: Vec::new(),
            commit: String::new(),
            plan_key: None,
            ids: Ids::Fixed(seed),
        }
    }

    /// A new app's label value: nanoseconds since 1970, as kapp makes it.
    #[must_use]
    pub fn new_app_label(&self) -> String {
        match self.ids {
            Ids::Real => wall_clock().as_nanosecond().to_string(),
            Ids::Fixed(seed) => format!("17000000000000{seed:05}"),
        }
    }

    /// A new run's id: eight characters, unique among the runs of an app.
    #[must_use]
    pub fn new_run(&self) -> String {
        let number = match self.ids {
            Ids::Real => {
                // Hasher keys are random per process; no further source of randomness is needed for a name.
                use std::hash::{BuildHasher, Hasher};
                let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
                hasher.write_i128(wall_clock().as_nanosecond());
                hasher.write_u32(self.process);
                hasher.finish()
            }
            Ids::Fixed(seed) => seed,
        };
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        (0..8).map(|position| char::from(LETTERS[(number >> (5 * position)) as usize & 31])).collect()
    }

    /// The current time, RFC 3339 in UTC.
    #[must_use]
    pub fn now(&self) -> String {
        match self.ids {
            Ids::Real => wall_clock().to_string(),
            Ids::Fixed(_) => "2026-01-01T00:00:00Z".to_owned(),
        }
    }

    /// Today, `2026-11-21` in UTC.
    #[must_use]
    pub fn today(&self) -> String {
        self.now().chars().take(10).collect()
    }
}

/// The arguments of this process, without credentials in URLs.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|argument| match argument.to_string_lossy() {
        url if url.contains("://") => redact::url(&url),
        other => other.into_owned(),
    })
}

/// The wall clock, for display and names. Nothing but the expiry of saved plans and of waivers depends on it.
#[must_use]
pub fn wall_clock() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// A clock that never goes back and, on platforms that have one, includes time spent suspended.
/// Leases are measured by it.
#[must_use]
pub fn boot_clock() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    }
    #[cfg(target_os = "macos")]
    {
        // On macOS this clock keeps running during sleep.
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed()
    }
}

/// A system error as part of a sentence: in lower case, and without its number, which differs between systems.
#[must_use]
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split_once(" (os error ").map_or(text.as_str(), |(words, _)| words);
    let mut characters = words.chars();
    match characters.next() {
        // An abbreviation keeps its capitals.
        Some(first) if !characters.as_str().starts_with(char::is_uppercase) => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => words.to_owned(),
    }
}

/// Whether a process of this machine has certainly ended. False if the platform cannot tell.
#[must_use]
pub fn process_is_gone(process: u32) -> bool {
    #[cfg(unix)]
    {
        let Some(process) = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw) else { return false };
        matches!(rustix::process::test_kill_process(process), Err(rustix::io::Errno::SRCH))
    }
    #[cfg(not(unix))]
    {
        let _ = process;
        false
    }
}

fn host_name() -> String {
    #[cfg(unix)]
    {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }
    #[cfg(not(unix))]
    {
        std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
    }
}

/// Includes the process id namespace: containers on one machine share its boot id and may share a host name, but not
/// their process ids.
fn boot_id() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot = boot.trim();
    if boot.is_empty() {
        return String::new();
    }
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{boot} {}", namespace.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_fits_into_a_sentence() {
        use std::io::Error;
        assert_eq!(reason(&Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!(reason(&Error::other("TLS handshake failed")), "TLS handshake failed");
        assert_eq!(reason(&Error::other("")), "");
    }

    #[test]
    fn variable_replaces_the_name_of_the_program() {
        assert_eq!(chosen_name("pushback", Some("kapp")), "kapp");
        assert_eq!(chosen_name("kapp", Some("pushback")), "pushback");
        assert_eq!([None, Some(""), Some("other")].map(|wanted| chosen_name("kapp", wanted)), ["kapp"; 3]);
    }

    #[test]
    fn this_process_is_not_gone_and_an_impossible_one_is_never_guessed() {
        assert!(!process_is_gone(std::process::id()));
        assert!(!process_is_gone(u32::MAX));
    }

    #[test]
    fn run_ids_are_names_that_kubernetes_accepts() {
        let run = Environment::real().new_run();
        assert_eq!(run.len(), 8);
        assert!(run.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
    }

    #[test]
    fn the_boot_clock_does_not_go_back() {
        let first = boot_clock();
        assert!(boot_clock() >= first);
    }
}
