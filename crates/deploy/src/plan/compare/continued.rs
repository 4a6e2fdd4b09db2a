//! Compares an object that another deploy tool has written with the result of taking it over.

use pushback_cluster::{Address, ClusterError, ErrorKind, Guard, Written, estimate};
use pushback_manifest::config::Path;
use pushback_preflight::Verification;
use serde_json::Value;

use crate::plan::annotations::UpdateStrategy;
use crate::plan::comparison::Context;
use crate::plan::diff::{self, DiffOptions};
use crate::plan::refusal::Refusal;
use crate::plan::{Action, Difference, Planned, takeover};

/// What is known before a takeover is considered.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub(super) address: &'a Address,
    pub(super) live: &'a Value,
    pub(super) body: &'a Value,
    /// The server's answer to a dry-run of the body.
    pub(super) answer: &'a Result<Written, ClusterError>,
    /// What that dry-run was guarded by.
    pub(super) guard: Guard,
}

/// If a deploy tool wrote the object before, computes the difference after taking it over. Returns whether that
/// completes the comparison.
pub(super) async fn continue_work(
    context: Context<'_>,
    before: Before<'_>,
    strategy: UpdateStrategy,
    planned: &mut Planned,
) -> Result<bool, ClusterError> {
    if context.stamp.label_value.is_none() {
        return Ok(false);
    }
    let Before { body, answer, .. } = before;
    let told = match answer {
        Ok(written) => takeover::Answer::Object(&written.object),
        Err(error) if error.kind == ErrorKind::Invalid => takeover::Answer::Invalid,
        Err(_) => return Ok(false),
    };
    let exclusive = takeover::exclusive_paths(context.stamp.config, body);
    let continued = match takeover::continue_work(scene(context, before, told, &exclusive)).await {
        None => return Ok(false),
        Some(Ok(continued)) => continued,
        // The plain answer applies.
        Some(Err(takeover::Refused::Impossible(note))) => {
            planned.notes.push(note);
            return Ok(false);
        }
        Some(Err(takeover::Refused::Server(error))) => match error.kind {
            ErrorKind::Invalid | ErrorKind::Denied if answer.is_err() => return Ok(false),
            _ => {
                refuse(before, error, planned)?;
                return Ok(true);
            }
        },
    };
    if let Ok(written) = answer {
        planned.warnings.clone_from(&written.warnings);
    }
    record(continued, strategy, planned);
    Ok(true)
}

/// If the server refuses the manifest only because of fields that it does not have, computes the difference after their
/// removal. Returns whether that completes the comparison.
pub(super) async fn unblock(
    context: Context<'_>,
    before: Before<'_>,
    strategy: UpdateStrategy,
    planned: &mut Planned,
) -> Result<bool, ClusterError> {
    let Err(refusal) = before.answer else { return Ok(false) };
    let in_place = matches!(strategy, UpdateStrategy::Apply | UpdateStrategy::FallbackOnReplace);
    if context.stamp.label_value.is_none() || refusal.kind != ErrorKind::Invalid || !in_place {
        return Ok(false);
    }
    let exclusive = takeover::exclusive_paths(context.stamp.config, before.body);
    let scene = scene(context, before, takeover::Answer::Invalid, &exclusive);
    match takeover::unblock(scene, refusal).await {
        Ok(None) => return Ok(false),
        Ok(Some(continued)) => record(continued, UpdateStrategy::Apply, planned),
        Err(error) => refuse(before, error, planned)?,
    }
    Ok(true)
}

/// Records an update that the server refuses, with its estimated changes.
///
/// # Errors
/// The cluster did not answer.
fn refuse(before: Before<'_>, error: ClusterError, planned: &mut Planned) -> Result<(), ClusterError> {
    if error.kind.is_unanswered() {
        return Err(error);
    }
    let fields = diff::diff(before.live, &estimate::applied(before.live, before.body), &DiffOptions::default());
    planned.action = Action::Update(Difference::of_fields(fields));
    planned.refused = Some(Refusal::new(error));
    Ok(())
}

fn scene<'a>(
    context: Context<'a>,
    before: Before<'a>,
    answer: takeover::Answer<'a>,
    exclusive: &'a [Path],
) -> takeover::Scene<'a> {
    let Before { address, live, body, guard, .. } = before;
    let autoscaled = takeover::Autoscaled::By(context.autoscaled);
    takeover::Scene {
        cluster: context.cluster,
        address,
        live,
        body,
        answer,
        autoscaled,
        exclusive,
        blocking: &[],
        guard,
    }
}

fn record(continued: takeover::Continued, strategy: UpdateStrategy, planned: &mut Planned) {
    let takeover::Continued { takeover, fields, result } = continued;
    planned.verification = Verification::Server;
    planned.notes.extend(takeover.notes());
    planned.result = Some(result);
    // If no value changes, nothing has to be replaced.
    let strategy = if fields.is_empty() { UpdateStrategy::Apply } else { strategy };
    planned.action =
        strategy.action(Box::new(Difference { fields, takeover: Some(takeover), ..Difference::default() }));
}
