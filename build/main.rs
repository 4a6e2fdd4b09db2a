//! Tells the binary which build it is: commit, profile, target, compiler. Nothing of it depends on the time, the machine
//! or the folder, so that two builds of a commit are the same.

#![expect(clippy::print_stdout, reason = "cargo reads what is printed")]

use std::path::Path;
use std::process::Command;

#[path = "commit.rs"]
mod commit;

fn main() {
    // Without these lines it would run after every change of any file.
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=PUSHBACK_COMMIT");

    let profile = profile(&variable("OUT_DIR")).unwrap_or_else(|| variable("PROFILE"));
    let given = variable("PUSHBACK_COMMIT");
    let commit = if !given.is_empty() {
        given
    } else if variable("PROFILE") == "release" {
        let found = commit::of_checkout(Path::new(&variable("CARGO_MANIFEST_DIR")));
        found.read.iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
        found.commit.unwrap_or_default()
    } else {
        // Who develops would build everything anew after every commit.
        String::new()
    };
    println!("cargo::rustc-env=PUSHBACK_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=PUSHBACK_BUILD_PROFILE={profile}");
    println!("cargo::rustc-env=PUSHBACK_BUILD_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=PUSHBACK_BUILD_RUSTC={}", compiler().unwrap_or_default());
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// The profile by its folder, `…/PROFILE/build/pushback-…/out`: cargo itself tells only which of two it is based on.
fn profile(out: &str) -> Option<String> {
    let folder = Path::new(out).ancestors().nth(3)?.file_name()?.to_str()?;
    Some(if folder == "debug" { "dev" } else { folder }.to_owned())
}

/// `1.95.0` of `rustc 1.95.0 (…)`.
fn compiler() -> Option<String> {
    let told = Command::new(std::env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    told.split_whitespace().nth(1).map(str::to_owned)
}
