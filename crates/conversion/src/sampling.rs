//! Tries a conversion plan on generated objects: boundary values, absent fields and empty lists, written at every version
//! and written back at every other one. A sample that loses something is a proof, and one that loses nothing is not.
//! Budgets count objects, and draws are seeded by content, so equal input gives equal samples.

mod constants;
mod objects;
mod round_trip;
mod shrink;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use pushback_crd::definition::Upgrade;
use pushback_crd::words;
use serde_json::Value;

use super::converter::{Converter, Programs};
use super::operation_list::OperationKind;
use super::plan::{ConversionPlan, HookAction};
use constants::Constants;
use objects::Objects;
pub use round_trip::{Difference, RoundTrip, RoundTrips};

/// Maximum number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLimits {
    /// Objects of each version.
    pub objects: usize,
    /// Round trips of all versions together.
    pub trips: usize,
}

impl Default for SampleLimits {
    fn default() -> Self {
        Self { objects: 400, trips: 12_000 }
    }
}

words! {
    /// What is wrong with the object that comes back.
    pub enum DefectKind {
        /// A value is missing.
        Lost = "lost",
        /// A value is another one.
        Changed = "changed",
        /// A value was absent before, and no default explains it.
        Invented = "invented",
        /// The conversion gives no object.
        Failed = "failed",
    }
}

/// A conversion that does not keep an object as it was, with the smallest object that was found to show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Defect {
    /// The version in which the object is written and read.
    pub from: String,
    /// The version through which it goes: the storage version, or the version of a client that writes it back unchanged.
    pub through: String,
    /// What is wrong.
    pub kind: DefectKind,
    /// Path of the field; empty for the object as a whole.
    pub path: String,
    /// Its value before.
    pub before: Option<Value>,
    /// Its value after.
    pub after: Option<Value>,
    /// Why the conversion gives no object; empty for any other kind.
    pub reason: String,
    /// The object as it is written.
    pub witness: Value,
}

/// The result of sampling a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Number of valid objects that were tried.
    pub objects: usize,
    /// Number of round trips that they made.
    pub trips: usize,
    /// Number of objects that another version refuses when they are written back; its error is loud, so nothing is lost.
    pub refused: usize,
    /// Versions of which no valid object could be made.
    pub untried: Vec<String>,
    /// What was found, one for each pair of versions, kind and field.
    pub defects: Vec<Defect>,
}

/// Maximum number of defects of one ordered pair of versions: each is shrunk, which takes many conversions.
const DEFECTS: usize = 8;

/// Tries every ordered pair of versions that are served or stored. `upgrade` has the definition on both sides.
///
/// Schemas may be deeply nested: call it within [`pushback_crd::stack::with_room`].
#[must_use]
pub fn sample(trips: &RoundTrips<'_>, plan: &ConversionPlan, limits: SampleLimits) -> Samples {
    let versions = trips.versions();
    let constants = Constants::of(plan);
    let mut samples = Samples::default();
    let pairs = versions.len() * versions.len().saturating_sub(1);
    let of_each = limits.objects.min(limits.trips / pairs.max(1)).max(1);
    for from in &versions {
        let objects = Objects::new(trips, from, &constants);
        let mut tried = 0;
        for object in objects.take(of_each) {
            tried += 1;
            let mut is_refused = false;
            for through in versions.iter().filter(|through| *through != from) {
                samples.trips += 1;
                match trips.through(through, &object) {
                    Ok(RoundTrip::Refused(_)) => is_refused = true,
                    found => note(&mut samples.defects, trips, &constants, [from, through], &object, found),
                }
            }
            samples.refused += usize::from(is_refused);
        }
        samples.objects += tried;
        if tried == 0 {
            samples.untried.push((*from).to_owned());
        }
    }
    samples
}

/// The sides of a difference: path, value before, value after.
type Sides = (String, Option<Value>, Option<Value>);

impl Difference {
    /// What is wrong with the field.
    #[must_use]
    pub fn kind(&self) -> DefectKind {
        match (&self.before, &self.after) {
            (Some(_), None) => DefectKind::Lost,
            (None, _) => DefectKind::Invented,
            (Some(_), Some(_)) => DefectKind::Changed,
        }
    }
}

/// Adds what is found on the way of one object, unless it is known of this pair, or of the way to storage alone.
fn note(
    defects: &mut Vec<Defect>,
    trips: &RoundTrips<'_>,
    constants: &Constants,
    [from, through]: [&str; 2],
    object: &Value,
    found: Result<RoundTrip, super::ConversionError>,
) {
    let is_known = |defects: &[Defect], kind: DefectKind, path: &str| {
        let of_pair = defects.iter().filter(|known| known.from == from && known.through == through);
        let of_storage = |known: &&Defect| {
            (known.from == from && known.through == trips.storage())
                && (known.kind, known.path.as_str()) == (kind, path)
        };
        of_pair.clone().count() >= DEFECTS
            || of_pair.clone().any(|known| (known.kind, known.path.as_str()) == (kind, path))
            || defects.iter().any(|known| of_storage(&known))
    };
    let new = |kind, (path, before, after): Sides, reason: String, witness: Value| Defect {
        from: from.to_owned(),
        through: through.to_owned(),
        kind,
        path,
        before,
        after,
        reason,
        witness,
    };
    match found {
        Ok(RoundTrip::Kept | RoundTrip::Refused(_)) => {}
        Ok(RoundTrip::Differs(differences)) => {
            let mut seen = BTreeSet::new();
            for difference in differences {
                let (kind, path) = (difference.kind(), difference.shown());
                if !seen.insert((kind, path.clone())) || is_known(defects, kind, &path) {
                    continue;
                }
                let same = |candidate: &Value| match trips.through(through, candidate) {
                    Ok(RoundTrip::Differs(found)) => {
                        found.into_iter().find(|it| it.kind() == kind && it.shown() == path)
                    }
                    _ => None,
                };
                let (witness, difference) = shrink::smallest(object, difference, constants, |candidate| {
                    if trips.is_valid(from, candidate) { same(candidate) } else { None }
                });
                let sides = (path, difference.before, difference.after);
                defects.push(new(kind, sides, String::new(), witness));
            }
        }
        Err(error) => {
            if is_known(defects, DefectKind::Failed, &error.path) {
                return;
            }
            let (witness, error) = shrink::smallest(object, error, constants, |candidate| {
                let failed = trips.is_valid(from, candidate).then(|| trips.through(through, candidate).err());
                failed.flatten()
            });
            let (path, reason) = (error.path, error.message);
            if !is_known(defects, DefectKind::Failed, &path) {
                defects.push(new(DefectKind::Failed, (path, None, None), reason, witness));
            }
        }
    }
}

impl ConversionPlan {
    /// Whether expressions or programs decide what comes back; without any, each operation is exact or keeps the
    /// original beside it.
    #[must_use]
    pub fn has_hooks(&self) -> bool {
        let of_steps = self.steps.iter().flat_map(|step| step.up.iter().chain(&step.down));
        let of_versions = self.hooks.iter().flat_map(|hooks| hooks.assign_to.iter().chain(&hooks.assign_from));
        of_steps.chain(of_versions).next().is_some()
    }

    /// The expressions of the plan, each with the object that it is about.
    fn expressions(&self) -> impl Iterator<Item = (&super::path::FieldPath, &str)> {
        let of_steps = self.steps.iter().flat_map(|step| step.up.iter().chain(&step.down));
        let of_versions = self.hooks.iter().flat_map(|hooks| hooks.assign_to.iter().chain(&hooks.assign_from));
        of_steps.chain(of_versions).filter_map(|hook| match &hook.action {
            HookAction::Set { at, cel, .. } => Some((at, cel.as_str())),
            HookAction::Program(_) => None,
        })
    }
}

impl Converter {
    /// Whether the plan drops the lost field on purpose, and no expression brings it back.
    #[must_use]
    pub fn acknowledges(&self, kind: DefectKind, path: &str) -> bool {
        let concerns = |other: &str| path.replace("[*]", "") == other.replace("[*]", "");
        let has = |kind| self.operations.iter().any(|it| it.kind == kind && concerns(&it.older.to_string()));
        kind == DefectKind::Lost && has(OperationKind::Drop) && !has(OperationKind::Set)
    }

    /// Returns the converter as a conversion webhook runs it: values that a version has no field for go with the object
    /// in an annotation.
    #[must_use]
    pub fn as_webhook(mut self) -> Self {
        if self.place == super::plan::BagPlace::Property {
            self.place = super::plan::BagPlace::Annotation;
        }
        self
    }
}

impl<'a> RoundTrips<'a> {
    /// Returns the round trips of a definition, which the upgrade has on both sides.
    #[must_use]
    pub fn new(converter: &'a Converter, upgrade: &'a Upgrade<'a>, programs: &'a dyn Programs) -> Option<Self> {
        let storage = upgrade.new.versions.iter().find(|version| version.storage)?.name;
        Some(Self { converter, upgrade, programs, storage })
    }
}
