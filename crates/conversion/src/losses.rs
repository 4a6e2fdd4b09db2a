//! What a plan says that objects lose on their way from one version to another.

use super::converter::Converter;
use super::operation_list::{Loss, Operation, OperationKind};
use super::plan::BagPlace;

/// A field whose value is not in the converted object, and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedLoss<'c> {
    /// The operation that loses it.
    pub operation: &'c Operation,
    /// Whether the way leads to the newer version of the step.
    pub is_up: bool,
}

impl PlannedLoss<'_> {
    /// The field in the version that has it.
    #[must_use]
    pub fn path(&self) -> String {
        if self.is_up { self.operation.older.to_string() } else { self.operation.newer.to_string() }
    }
}

impl Converter {
    /// What is lost between two versions: what the plan drops and, where objects have no place for a property bag, what
    /// would go into it. Empty if there is no such version. Values that an operation cannot express are not counted:
    /// they depend on the object.
    #[must_use]
    pub fn planned_losses(&self, from: &str, to: &str) -> Vec<PlannedLoss<'_>> {
        let (Some(start), Some(end)) = (self.lineage.index(from), self.lineage.index(to)) else { return Vec::new() };
        let keeps = match self.place {
            BagPlace::Annotation => true,
            BagPlace::Property => self.versions[end].has_bags,
            BagPlace::Nowhere => false,
        };
        let (mut up, mut down) = (self.way(start), self.way(end));
        let steps = |up: &[usize], down: &[usize]| -> Vec<[usize; 2]> {
            let up = up.windows(2).map(|step| [step[0], step[1]]);
            up.chain(down.windows(2).rev().map(|step| [step[1], step[0]])).collect()
        };
        let whole = steps(&up, &down);
        // What goes into the bag before a step that is walked there and back comes out of it again.
        while up.len() > 1 && down.len() > 1 && up[up.len() - 2..] == down[down.len() - 2..] {
            up.pop();
            down.pop();
        }
        let lasting = steps(&up, &down);
        let mut losses = Vec::new();
        for step @ [here, there] in whole {
            let is_up = here < there;
            let ends = [&self.lineage.versions[here.min(there)], &self.lineage.versions[here.max(there)]];
            let keeps = keeps || !lasting.contains(&step);
            let of_step = self.operations.iter().filter(|operation| [&operation.from, &operation.to] == ends);
            let lost = of_step.filter(|operation| is_lost(operation, is_up, keeps));
            losses.extend(lost.map(|operation| PlannedLoss { operation, is_up }));
        }
        losses
    }
}

fn is_lost(operation: &Operation, is_up: bool, keeps: bool) -> bool {
    match (operation.kind, operation.loss) {
        (OperationKind::Drop, _) => is_up,
        (OperationKind::Stash, Loss::InBag) => is_up && !keeps,
        (OperationKind::Unstash, Loss::InBag) => !is_up && !keeps,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pushback_objects::source::{Document, Positions};
    use serde_json::{Value, json};

    use crate::{GivenPlan, PlanSource};

    fn lost(bag: &str, from: &str, to: &str) -> Vec<String> {
        let text = || json!({"type": "string"});
        let version = |name: &str, fields: Value| {
            let spec = json!({"type": "object", "properties": fields});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
            json!({"name": name, "schema": schema})
        };
        let definition = json!({"metadata": {"name": "cogs.ex.com"}, "spec": {"group": "ex.com", "versions": [
            version("v1", json!({"a": text(), "b": text(), "k": text()})),
            version("v2", json!({"k": text()})),
            version("v3", json!({"k": text(), "c": text()})),
        ]}});
        let value = json!({
            "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": "cogs.ex.com"},
            "policy": {"bag": bag}, "steps": [{"from": "v1", "to": "v2", "removed": {
                "spec.a": {"reason": "unused", "drop": true}, "spec.b": {"reason": "unused"},
            }, "acknowledge": {"spec.a": "unused"}}],
        });
        let document = Document { value, positions: Arc::new(Positions::of_file("p.yaml")) };
        let given = GivenPlan::of_document(document, PlanSource::Manifests).expect("a plan");
        let converter = given.converter(None, &definition).expect("a converter");
        converter.planned_losses(from, to).iter().map(super::PlannedLoss::path).collect()
    }

    #[test]
    fn what_is_dropped_is_lost_and_what_has_no_bag_as_well() {
        assert_eq!(lost("annotation", "v1", "v3"), ["spec.a"]);
        assert_eq!(lost("annotation", "v3", "v1"), [""; 0]);
        assert_eq!(lost("nowhere", "v1", "v3"), ["spec.a", "spec.b"]);
        assert_eq!(lost("nowhere", "v3", "v2"), ["spec.c"]);
        assert_eq!(lost("nowhere", "v2", "v3"), [""; 0]);
        assert_eq!(lost("nowhere", "v9", "v3"), [""; 0]);
    }
}
