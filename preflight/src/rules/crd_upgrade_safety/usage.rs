//! Evidence of use of a version that goes: which managers still write in it, and since when they do not.

use pushback_crd::definition::StoredState;
use pushback_objects::finding::{Finding, VersionUse, VersionWriter};
use serde_json::Value;

use super::subject::Subject;
use crate::facts::{ClusterSide, Need};

/// The checks about a version that goes.
const CHECKS: [&str; 3] = ["storedVersionRemoval", "servedVersionRemoval", "servedVersionUnserved"];
/// Maximum number of managers in a finding.
const SHOWN: usize = 5;

/// The objects that show who uses the version of a finding. Files of a folder rarely have field owners.
pub(super) fn need(subject: &Subject<'_>, finding: &Finding, side: ClusterSide) -> Option<Need> {
    let is_asked = side == ClusterSide::Server && concerns(finding);
    let live = subject.change.live.as_deref().filter(|_| is_asked)?;
    Need::objects_of(&StoredState::of(live))
}

/// The use of a version, from what [`crate::rules::writers`] counted.
pub(super) fn of(version: &str, live: &Value, writers: &Value, examined: u64) -> VersionUse {
    let counts = &writers[version];
    let of_manager = |(manager, counted): (&String, &Value)| VersionWriter {
        manager: manager.clone(),
        objects: counted["objects"].as_u64().unwrap_or_default(),
        last_write: counted["last"].as_str().filter(|time| !time.is_empty()).map(str::to_owned),
    };
    let mut all: Vec<VersionWriter> = counts["managers"].as_object().into_iter().flatten().map(of_manager).collect();
    all.sort_by(|one, other| (other.objects, &one.manager).cmp(&(one.objects, &other.manager)));
    let more_writers = all.len() > SHOWN || counts["more"] == true;
    all.truncate(SHOWN);
    VersionUse {
        objects: counts["objects"].as_u64().unwrap_or_default(),
        examined,
        writers: all,
        more_writers,
        stored_versions: StoredState::of(live).stored,
    }
}

/// Whether a finding is about a version that goes.
pub(super) fn concerns(finding: &Finding) -> bool {
    CHECKS.contains(&finding.check.as_str())
}
