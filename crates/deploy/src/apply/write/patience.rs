//! How long an error of a write is worth retrying: never if it is permanent.

use pushback_cluster::{ClusterError, ErrorKind, NAMESPACE_TERMINATING};
use pushback_preflight::Operation;

use crate::plan::Planned;

/// How long an error is worth retrying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Not retried.
    None,
    /// What is missing appears in a moment or never.
    Moment,
    /// The server catches up within seconds.
    Lag,
    /// Until the user's time limit.
    Long,
}

/// Whether the server may still be judging by an old definition, policy, quota or role that this run has just changed.
pub(super) fn lags_behind(error: &ClusterError, planned: &Planned) -> bool {
    match error.kind {
        ErrorKind::Invalid | ErrorKind::UnknownKind | ErrorKind::NotFound if planned.kind_changes => true,
        ErrorKind::Denied | ErrorKind::Invalid | ErrorKind::Forbidden => {
            !planned.after.is_empty() && error.reason != NAMESPACE_TERMINATING
        }
        _ => false,
    }
}

pub(super) fn patience(error: &ClusterError, operation: Operation, kind_from_set: bool) -> Patience {
    match error.kind {
        // An internal error may be a defect that no retry fixes; an unavailable server comes back.
        ErrorKind::Server if error.status == 500 => Patience::Moment,
        ErrorKind::WebhookUnavailable
        | ErrorKind::Busy
        | ErrorKind::Unreachable
        | ErrorKind::Timeout
        | ErrorKind::Server => Patience::Long,
        // Somebody else creates it, at any time.
        ErrorKind::NotFound if operation == Operation::Exists => Patience::Long,
        // A CRD is established, and a namespace created, before every API server knows of it.
        ErrorKind::UnknownKind if kind_from_set => Patience::Moment,
        ErrorKind::NotFound | ErrorKind::Conflict if operation == Operation::Create => Patience::Moment,
        ErrorKind::NotFound if operation == Operation::Replace => Patience::Moment,
        ErrorKind::Denied | ErrorKind::Forbidden if error.reason == NAMESPACE_TERMINATING => Patience::Moment,
        _ => Patience::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ErrorKind, status: u16, reason: &str) -> ClusterError {
        ClusterError { status, reason: reason.to_owned(), ..ClusterError::new(kind, "test") }
    }

    #[test]
    fn only_what_time_may_cure_is_tried_again_and_no_longer_than_that_takes() {
        use Operation::{Create, Delete, Exists, Update};
        let cases = [
            // An unavailable server comes back; a defect in it stays.
            (error(ErrorKind::Unreachable, 0, ""), Update, false, Patience::Long),
            (error(ErrorKind::WebhookUnavailable, 500, ""), Create, false, Patience::Long),
            (error(ErrorKind::Server, 503, ""), Delete, false, Patience::Long),
            (error(ErrorKind::Server, 500, ""), Update, false, Patience::Moment),
            // Somebody else's object may take long; our own namespace or kind does not.
            (error(ErrorKind::NotFound, 404, ""), Exists, false, Patience::Long),
            (error(ErrorKind::NotFound, 404, ""), Create, false, Patience::Moment),
            (error(ErrorKind::NotFound, 404, ""), Update, false, Patience::None),
            (error(ErrorKind::UnknownKind, 404, ""), Create, true, Patience::Moment),
            (error(ErrorKind::UnknownKind, 404, ""), Create, false, Patience::None),
            (error(ErrorKind::Denied, 403, NAMESPACE_TERMINATING), Create, false, Patience::Moment),
            (error(ErrorKind::Denied, 403, "Forbidden"), Create, false, Patience::None),
            (error(ErrorKind::Forbidden, 403, "Forbidden"), Create, false, Patience::None),
            (error(ErrorKind::Invalid, 422, "Invalid"), Create, true, Patience::None),
        ];
        for (error, operation, kind_from_set, expected) in cases {
            assert_eq!(patience(&error, operation, kind_from_set), expected, "{error:?} {operation:?}");
        }
    }
}
