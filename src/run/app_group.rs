//! A group of apps: one for each directory below another. Every app is planned and judged before the first is written,
//! then they are written one after the other; apps whose directory is gone are deleted last.

mod members;
mod needs;

use std::path::PathBuf;

use pushback_app::record::AppName;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, DiagnosticCode, Event, GroupApp, PlannedLine, RunOutcome};
use pushback_objects::text::counted;

use super::apply::Apply;
use super::base::Base;
use super::compare::Compare;
use super::connect::{Connection, Namespaces, connect};
use super::delete::Delete;
use super::error::CommandError;
use super::options::{AppOptions, Command, InputOptions, NamespaceOptions, RunOptions};
use super::outcome::End;
use super::running::Run;
use super::signals::until_stopped;
use super::write_loop::{LoopEnd, StopAfter};
pub use members::{GROUP_LABEL, group_name};
use members::{Links, Member};

/// Options of a run on a group.
#[derive(Clone, Debug)]
pub struct AppGroup {
    /// Name of the group.
    pub group: String,
    /// Namespaces of the apps' records and objects.
    pub namespace: NamespaceOptions,
    /// How an app is applied; its name and its files are those of each app.
    pub apply: Apply,
    /// How an app is deleted; its name is that of each app.
    pub delete: Delete,
    /// With it, the run stops at the plans.
    pub dry: Option<Dry>,
    /// Whether each app is planned, asked about and written before the next is looked at, as kapp does it.
    pub one_by_one: bool,
}

/// How a run ends that stops at the plans.
#[derive(Clone, Copy, Debug)]
pub struct Dry {
    /// Whether the rules run.
    pub is_judged: bool,
    /// Whether the exit code says if there are changes.
    pub exit_status: bool,
}

/// The apps of a run, in the order of their turns.
#[derive(Debug)]
struct Turns {
    members: Vec<Member>,
    namespaces: Namespaces,
}

impl AppGroup {
    /// Applies the app of each directory, and deletes the group's apps that have none.
    ///
    /// # Errors
    /// As of an apply, before anything is written.
    pub async fn deploy(&self, run: &mut Run, directory: &str) -> Result<End, CommandError> {
        // kapp follows every link.
        let is_followed = self.one_by_one || self.apply.input.load.follow_links;
        let links = if is_followed { Links::Followed } else { Links::Inside };
        let mut members = members::of_directories(&self.group, directory, links)?;
        if members.is_empty() && !self.apply.plan.options.allow_empty && !self.one_by_one {
            let message =
                format!("{directory} has no directory in it, so that every app of the group would be deleted");
            let hint = "`pushback app-group delete` deletes a group; --dangerous-allow-empty-list-of-resources lets this do it";
            return Err(CommandError::usage_with_hint(message, hint));
        }
        let inputs = match self.one_by_one {
            true => Vec::new(),
            false => members.iter().map(|member| needs::read(&self.input(member))).collect::<Result<_, _>>()?,
        };
        let (connection, namespaces) = self.connect(run).await?;
        let cluster = &*connection.cluster;
        let work = async {
            let places = needs::Places { placement: &self.apply.plan.placement, namespace: &namespaces.objects };
            needs::put_off(cluster, &mut members, &inputs, &places).await?;
            if !self.apply.plan.options.no_prune {
                let known = members::recorded(cluster, &namespaces.record, &self.group).await?;
                let gone = known.into_iter().filter(|name| members.iter().all(|member| member.name != *name));
                let mut gone: Vec<Member> = gone.map(Member::deleted).collect();
                if !self.one_by_one {
                    gone.reverse();
                }
                members.append(&mut gone);
            }
            Ok::<_, CommandError>(())
        };
        until_stopped(run.stop.clone(), work).await?;
        self.tell(run, Command::Apply, &namespaces, &members);
        self.walk(run, Turns { members, namespaces }).await
    }

    /// Deletes every app of the group.
    ///
    /// # Errors
    /// As of a deletion, before anything is deleted.
    pub async fn delete(&self, run: &mut Run) -> Result<End, CommandError> {
        let (connection, namespaces) = self.connect(run).await?;
        let cluster = &*connection.cluster;
        if self.one_by_one {
            // Told first, and where there is no app too.
            run.show_start(&self.delete.options, Command::Delete, &namespaces.app(&self.group), cluster).await;
        }
        let reading = members::recorded(cluster, &namespaces.record, &self.group);
        let known = until_stopped(run.stop.clone(), async { Ok::<_, CommandError>(reading.await?) }).await?;
        if known.is_empty() {
            let message = format!("group {} has no app in namespace {}", self.group, namespaces.record);
            run.events.send(Event::diagnostic(DiagnosticCode::NoGroup, message));
            let is_asked = self.dry.is_some_and(|dry| dry.exit_status);
            return Ok(End::of_diff(false, is_asked));
        }
        let mut members: Vec<Member> = known.into_iter().map(Member::deleted).collect();
        if !self.one_by_one {
            // What was applied last may need what was applied first.
            members.reverse();
        }
        self.tell(run, Command::Delete, &namespaces, &members);
        self.walk(run, Turns { members, namespaces }).await
    }

    async fn connect(&self, run: &mut Run) -> Result<(Connection, Namespaces), CommandError> {
        let notices = run.notices();
        run.planning("connecting to the cluster");
        let announce = |text: &str| run.announce(text);
        let connecting = connect(&self.apply.options.cluster, Some(notices), &announce);
        let connection = until_stopped(run.stop.clone(), connecting).await?;
        run.uses(&connection.cluster);
        let namespaces = connection.namespaces(&self.namespace);
        Ok((connection, namespaces))
    }

    fn tell(&self, run: &Run, command: Command, namespaces: &Namespaces, members: &[Member]) {
        let command = if self.dry.is_some() { Command::Diff } else { command };
        run.events.send(Event::Group {
            command: command.as_str().to_owned(),
            group: self.group.clone(),
            namespace: namespaces.record.clone(),
            apps: members.iter().map(GroupApp::from).collect(),
        });
    }

    /// Goes through the apps: once for their plans and verdicts, once to write.
    async fn walk(&self, run: &mut Run, turns: Turns) -> Result<End, CommandError> {
        let Turns { members, namespaces } = turns;
        let mut agreed: Vec<Option<Vec<PlannedLine>>> = vec![None; members.len()];
        if self.dry.is_none() && !self.one_by_one {
            let mut refused: Vec<(&str, End)> = Vec::new();
            let mut going = needs::Going::default();
            for (member, agreed) in members.iter().zip(&mut agreed).filter(|(member, _)| member.later.is_none()) {
                let LoopEnd { end, unagreed } = self.turn(run, member, StopAfter::Verdict, None).await?;
                match end.code {
                    ExitCode::Success => {}
                    ExitCode::Refused if member.directory.is_none() && going.contain(&end.refusals) => {
                        let message = format!(
                            "app {} is judged again at its turn: apps before it take along what is affected",
                            member.name
                        );
                        run.warn("judged-again", message);
                    }
                    ExitCode::Refused => refused.push((&member.name, end)),
                    _ => return Ok(end),
                }
                going.add(unagreed.as_deref().unwrap_or_default());
                *agreed = unagreed;
            }
            if let Some(end) = together_refused(refused) {
                return Ok(end);
            }
            self.agree(run, &members, &agreed).await?;
        }
        let mut total = End::new(ExitCode::Success, RunOutcome::Unchanged, Counts::default());
        for (at, (member, agreed)) in members.iter().zip(agreed).enumerate() {
            if self.dry.is_some() && member.later.is_some() {
                continue;
            }
            let started = run.elapsed();
            let AppName { name: app, namespace } = namespaces.app(&member.name);
            let turn = self.turn(run, member, StopAfter::End, agreed).await;
            let end = turn.map_or_else(|error| End::error(&error), |turn| turn.end);
            if !is_done(&end) {
                return Ok(self.stopped(end, total.done, member, &members[at + 1..]));
            }
            run.events.send(Event::AppEnd {
                app,
                namespace,
                outcome: end.outcome,
                exit_code: end.code.code(),
                done: end.done,
                elapsed: run.elapsed().saturating_sub(started).into(),
            });
            total = together(total, end);
        }
        Ok(total)
    }

    /// Asks about all apps at once.
    async fn agree(
        &self,
        run: &Run,
        members: &[Member],
        agreed: &[Option<Vec<PlannedLine>>],
    ) -> Result<(), CommandError> {
        let changes = |lines: &Option<Vec<PlannedLine>>| lines.iter().flatten().any(|line| line.operation.writes());
        let of = |is_deleted: bool| {
            members.iter().zip(agreed).filter(move |(member, _)| member.directory.is_none() == is_deleted)
        };
        let changed = of(false).filter(|(_, lines)| changes(lines)).count();
        // An app without objects has a record that goes.
        let deleted = of(true).filter(|(_, lines)| lines.is_some()).count();
        let question = match (changed, deleted) {
            (0, 0) => return Ok(()),
            (changed, 0) => format!("Apply these changes to {}?", counted(changed, "app")),
            (0, deleted) => format!("Delete {} with these objects?", counted(deleted, "app")),
            (changed, deleted) => {
                format!("Apply these changes to {}, and delete {}?", counted(changed, "app"), counted(deleted, "app"))
            }
        };
        run.confirm(&question).await
    }

    /// The turn of one app.
    async fn turn(
        &self,
        run: &mut Run,
        member: &Member,
        upto: StopAfter,
        agreed: Option<Vec<PlannedLine>>,
    ) -> Result<LoopEnd, CommandError> {
        let command = |command| match (self.dry, upto) {
            (Some(_), _) => Command::Diff,
            (None, StopAfter::Verdict) => Command::Check,
            (None, StopAfter::End) => command,
        };
        let named = |options: &RunOptions, command| RunOptions {
            command,
            app: AppOptions { name: member.name.clone(), ..options.app.clone() },
            ..options.clone()
        };
        if member.directory.is_none() {
            let options = named(&self.delete.options, command(Command::Delete));
            return Delete { options, ..self.delete.clone() }.run_agreed(run, upto, agreed).await;
        }
        let options = named(&self.apply.options, command(Command::Apply));
        let apply = Apply { options, input: self.input(member), ..self.apply.clone() };
        match self.dry {
            Some(Dry { is_judged, exit_status }) => {
                let Apply { options, input, plan, as_text, .. } = apply;
                let compare = Compare { options, input, plan, base: Base::Created, as_text };
                Ok(compare.diff(run, is_judged, exit_status).await?.into())
            }
            None => apply.run_agreed(run, upto, agreed).await,
        }
    }

    fn input(&self, member: &Member) -> InputOptions {
        let files: Vec<PathBuf> = member.directory.iter().cloned().collect();
        let files = files.iter().map(|path| path.display().to_string()).collect();
        InputOptions { files, ..self.apply.input.clone() }
    }

    /// The end of a run that stops at one of its apps; `rest` had no turn.
    fn stopped(&self, end: End, before: Counts, member: &Member, rest: &[Member]) -> End {
        let Member { name, .. } = member;
        let mut end = End { done: sum(before, end.done), ..end };
        if end.error.is_empty() && end.code == ExitCode::Refused {
            end.error = "preflight refuses it".to_owned();
        }
        if !self.one_by_one && !end.error.is_empty() {
            end.error = format!("app {name}: {}", end.error);
        }
        let before_the_first_write =
            matches!(end.code, ExitCode::Usage | ExitCode::Refused | ExitCode::Locked | ExitCode::Unreachable);
        // That code would say that nothing was written.
        if before_the_first_write && before.writes() > 0 {
            (end.code, end.outcome) = (ExitCode::Partial, RunOutcome::Failed);
        }
        if !rest.is_empty() {
            let names: Vec<&str> = rest.iter().map(|member| member.name.as_str()).collect();
            end.hints.push(format!(
                "these apps of the group had no turn: {}; the same command again goes on with them",
                names.join(", ")
            ));
        }
        end
    }
}

/// The end where preflight refuses apps.
fn together_refused(refused: Vec<(&str, End)>) -> Option<End> {
    let names: Vec<&str> = refused.iter().map(|(name, _)| *name).collect();
    let error = format!("preflight refuses {}: {}", counted(names.len(), "app"), names.join(", "));
    let mut ends = refused.into_iter().map(|(_, end)| end);
    let first = ends.next()?;
    let hints = ends.fold(first.hints.clone(), |mut hints, end| {
        for hint in end.hints {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        hints
    });
    Some(End { error, hints, ..first })
}

fn is_done(end: &End) -> bool {
    matches!(end.code, ExitCode::Success | ExitCode::Changes | ExitCode::NoChanges)
}

/// The end of two apps, of which both are done.
fn together(before: End, end: End) -> End {
    let code = match (before.code, end.code) {
        (ExitCode::Changes, _) | (_, ExitCode::Changes) => ExitCode::Changes,
        (_, code) => code,
    };
    let outcome = if before.outcome == RunOutcome::Unchanged { end.outcome } else { before.outcome };
    let hints = before.hints.into_iter().chain(end.hints).collect();
    End { code, outcome, hints, done: sum(before.done, end.done), ..end }
}

fn sum(one: Counts, other: Counts) -> Counts {
    Counts { noop: one.noop + other.noop, exists: one.exists + other.exists, ..one.and_then(other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(code: ExitCode, outcome: RunOutcome, create: usize) -> End {
        End::new(code, outcome, Counts { create, noop: 1, ..Counts::default() })
    }

    #[test]
    fn a_group_has_changed_if_one_of_its_apps_has() {
        let unchanged = || end(ExitCode::NoChanges, RunOutcome::Unchanged, 0);
        let changed = || end(ExitCode::Changes, RunOutcome::Succeeded, 2);
        let start = || end(ExitCode::Success, RunOutcome::Unchanged, 0);
        for apps in [[unchanged(), changed()], [changed(), unchanged()]] {
            let whole = apps.into_iter().fold(start(), together);
            assert_eq!((whole.code, whole.outcome), (ExitCode::Changes, RunOutcome::Succeeded));
            assert_eq!((whole.done.create, whole.done.noop), (2, 3));
        }
        assert_eq!(together(start(), unchanged()).code, ExitCode::NoChanges);
    }
}
