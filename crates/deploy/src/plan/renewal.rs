//! kapp's annotation `renew-duration`: an object that was not renewed for so long is written again, with the time of it.

use std::time::Duration;

use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use pushback_objects::ObjectExt;
use serde_json::Value;

/// The annotation with the time of the last renewal.
pub(super) const RENEWED: &str = "kapp.k14s.io/last-renewed-time";

/// The value of [`RENEWED`] for the next write: `now` if a renewal is due, otherwise what the object has.
pub(super) fn time(live: &Value, after: Duration, now: &str) -> Option<String> {
    let last = live.annotation(RENEWED);
    let read = |text: &str| text.parse::<Timestamp>().ok();
    let created = read(live.text("/metadata/creationTimestamp"));
    let newest = last.and_then(read).max(created)?;
    let due = newest.checked_add(SignedDuration::try_from(after).ok()?).ok()?;
    let now = read(now)?;
    if now >= due {
        // Whole seconds, as kapp writes them.
        return Some(now.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Trunc)).ok()?.to_string());
    }
    last.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_renewed_when_its_time_has_come() {
        let hour = Duration::from_secs(3600);
        let mut live = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(time(&live, hour, "2026-01-01T00:59:59Z"), None);
        let due = "2026-01-01T01:00:00Z".to_owned();
        assert_eq!(time(&live, hour, &due), Some(due.clone()));
        live["metadata"]["annotations"] = json!({RENEWED: due});
        assert_eq!(time(&live, hour, "2026-01-01T01:30:00Z"), Some(due), "the time stays");
        assert_eq!(time(&live, hour, "2026-01-01T02:00:00Z").as_deref(), Some("2026-01-01T02:00:00Z"));
        assert_eq!(time(&live, hour, "2026-01-01T02:00:00.9Z").as_deref(), Some("2026-01-01T02:00:00Z"));
        // A restored object is as old as its creation here; a time that nobody can read does not count.
        live["metadata"]["annotations"] = json!({RENEWED: "soon"});
        assert_eq!(time(&live, hour, "2026-01-01T00:30:00Z").as_deref(), Some("soon"));
        assert_eq!(time(&json!({}), hour, "2026-01-01T00:30:00Z"), None, "in a folder nothing has an age");
    }
}
