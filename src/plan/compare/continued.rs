//! Compares an object that another deploy tool has written with the result of taking it over.

use pushback_preflight::{Operation, Verification};
use serde_json::Value;

use super::context::Context;
use crate::cluster::{Address, ClusterError, ErrorKind, Guard, Written, estimate};
use crate::plan::annotations::UpdateStrategy;
use crate::plan::compared::Compared;
use crate::plan::diff::{self, DiffOptions};
use crate::plan::takeover;

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
    compared: &mut Compared,
) -> Result<bool, ClusterError> {
    if context.stamp.label_value.is_none() {
        return Ok(false);
    }
    let Before { address, live, body, answer, guard } = before;
    let told = match answer {
        Ok(written) => takeover::Answer::Object(&written.object),
        Err(error) if error.kind == ErrorKind::Invalid => takeover::Answer::Invalid,
        Err(_) => return Ok(false),
    };
    let autoscaled = takeover::Autoscaled::By(context.autoscaled);
    let exclusive = takeover::exclusive_paths(context.stamp.config, body);
    let scene = takeover::Scene {
        cluster: context.cluster,
        address,
        live,
        body,
        answer: told,
        autoscaled,
        exclusive: &exclusive,
        guard,
    };
    let continued = match takeover::continue_work(scene).await {
        None => return Ok(false),
        Some(Ok(continued)) => continued,
        // The plain answer applies.
        Some(Err(takeover::Refused::Impossible(note))) => {
            compared.notes.push(note);
            return Ok(false);
        }
        Some(Err(takeover::Refused::Server(error))) => match error.kind {
            ErrorKind::Unreachable | ErrorKind::Unauthorized | ErrorKind::Timeout | ErrorKind::Busy => {
                return Err(error);
            }
            ErrorKind::Invalid | ErrorKind::Denied if answer.is_err() => return Ok(false),
            _ => {
                compared.operation = Operation::Update;
                compared.fields = diff::diff(live, &estimate::applied(live, body), &DiffOptions::default());
                compared.refused = Some(error);
                return Ok(true);
            }
        },
    };
    compared.verification = Verification::Server;
    if let Ok(written) = answer {
        compared.warnings.clone_from(&written.warnings);
    }
    compared.notes.push(continued.takeover.note());
    compared.fields = continued.fields;
    compared.result = Some(continued.result);
    // If no value changes, nothing has to be replaced.
    compared.operation = if compared.fields.is_empty() { Operation::Update } else { strategy.operation() };
    compared.takeover = Some(continued.takeover);
    Ok(true)
}
