//! The way back after a failed apply: the commit of the last change that succeeded, and the commands that apply it again.

use std::path::Path;
use std::time::Duration;

use pushback_app::history::{self, Entry};
use pushback_manifest::revision::{self, Revision};
use pushback_objects::quoted;

use super::running::Run;
use super::setup::Setup;

/// How long the history may take: the run has failed already.
const LIMIT: Duration = Duration::from_secs(5);

/// Letters of a commit in a sentence.
const SHORT: usize = 12;

/// Where input files come from: the commit of their repository, or else the one that a CI service names.
pub(super) fn revision(run: &Run, setup: &Setup, files: &[String]) -> Option<Revision> {
    let of_service = || Some(Revision { commit: revision::commit(&run.environment.commit)?, modified: false });
    Revision::of(files, &setup.sources).or_else(of_service)
}

/// What to do to have the last good state again; `None` if its commit is not known, or is the one that has just failed.
pub(super) async fn hint(run: &Run, setup: &Setup, label_value: &str, files: &[String]) -> Option<String> {
    if !setup.cluster.capabilities().server {
        return None;
    }
    let failed = setup.revision.get_or_init(|| revision(run, setup, files)).clone()?;
    let entries = history::entries(&*setup.cluster, &setup.app, label_value);
    let entries = tokio::time::timeout(LIMIT, entries).await.ok()?.ok()?;
    let entries = entries.iter().map(|entry| Entry::of(entry));
    let is_good = |entry: &Entry| entry.change.successful == Some(true) && !entry.modified && !entry.commit.is_empty();
    let good = entries.into_iter().find(is_good)?;
    let is_other = |commit: &String| *commit != failed.commit || failed.modified;
    let commit = revision::commit(&good.commit).filter(is_other)?;
    let day = good.change.started_at.get(..10).unwrap_or_default();
    let short = &commit[..SHORT];
    let told = format!("the last commit that was applied with success is {short} ({day}, {})", good.name);
    if !files.iter().all(|file| revision::is_path(file)) || revision::commit_of(files).is_none() {
        return Some(told);
    }
    let typed = files.iter().map(|file| quoted(file)).collect::<Vec<_>>().join(" ");
    let here: Vec<String> = files.iter().cloned().chain([".".to_owned()]).collect();
    let way = if revision::commit_of(&here).is_some() {
        format!("git checkout {commit} -- {typed}")
    } else {
        let whole = |file: &String| Some(std::fs::canonicalize(file).ok()?.to_str()?.to_owned());
        let paths = files.iter().map(whole).collect::<Option<Vec<_>>>()?;
        let folder = Path::new(paths.first()?).parent()?.to_str()?;
        let paths: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
        format!("git -C {} checkout {commit} -- {}", quoted(folder), paths.join(" "))
    };
    Some(format!("{told}: {way} && {}", run.invocation()))
}
