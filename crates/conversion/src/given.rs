//! The conversion plans of a run: those of a policy source and those that come with the judged manifests. A plan of the
//! source goes before one of the manifests for the same definition.

use std::collections::BTreeMap;

use pushback_crd::definition::Crd;
use pushback_crd::words;
use pushback_objects::reader::Node;
use pushback_objects::source::{Document, InputError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::compile::compile;
use super::converter::Converter;
use super::plan::ConversionPlan;
use super::read::{read, read_entry};

words! {
    /// Who gave a plan.
    pub enum PlanSource {
        /// A policy source: its losses are accepted.
        Policy = "policy",
        /// The judged manifests: its losses are findings.
        Manifests = "manifests",
    }
}

/// A plan as it was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenPlan {
    /// Name of the definition.
    pub definition: String,
    /// The plan as written.
    pub document: Document,
    /// Who gave it.
    pub source: PlanSource,
}

/// Returns the wanted CRD with the versions that only the live one has, except those that are known otherwise.
#[must_use]
pub fn with_versions_of(live: &Value, wanted: &Value, is_known: impl Fn(&str) -> bool) -> Value {
    let mut both = wanted.clone();
    let wanted = Crd::of(wanted);
    let entries = live.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let gone = entries.filter(|entry| {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        wanted.version(name).is_none() && !is_known(name)
    });
    if let Some(versions) = both.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        versions.extend(gone.cloned());
    }
    if let (Some(status), Value::Object(both)) = (live.get("status"), &mut both) {
        both.insert("status".to_owned(), status.clone());
    }
    both
}

impl GivenPlan {
    /// Reads a `ConversionPlan` document.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn of_document(document: Document, source: PlanSource) -> Result<Self, Vec<InputError>> {
        let definition = read(&document)?.name;
        Ok(Self { definition, document, source })
    }

    /// Reads an entry of a list of plans. Errors go to the node's reader.
    #[must_use]
    pub fn of_entry(node: &Node<'_>, source: PlanSource) -> Self {
        let document = Document { value: node.value().clone(), positions: node.any_fields().own_positions() };
        Self { definition: read_entry(node).name, document, source }
    }

    /// The plan, read. It was without errors when it was given.
    #[must_use]
    pub fn plan(&self) -> ConversionPlan {
        let reader = pushback_objects::reader::Reader::new(&self.document.positions);
        read_entry(&reader.root(&self.document.value))
    }

    /// Compiles the plan for a definition that is to replace the live one. Versions that only the live one has count as
    /// well: their objects are still there. A plan may also keep the last schema of such a version itself.
    ///
    /// # Errors
    /// Everything that does not fit the definition.
    pub fn converter(&self, live: Option<&Value>, wanted: &Value) -> Result<Converter, Vec<InputError>> {
        let plan = self.plan();
        let is_kept = |name: &str| plan.schemas.iter().any(|placed| placed.value.0 == name);
        let both = live.map_or_else(|| wanted.clone(), |live| with_versions_of(live, wanted, is_kept));
        compile(&plan, &both)
    }

    /// Versions that the plan speaks of, and that neither definition has any more.
    #[must_use]
    pub fn unknown_versions(&self, definitions: &[&Value]) -> Vec<String> {
        let plan = self.plan();
        let is_known = |name: &String| {
            plan.schemas.iter().any(|placed| placed.value.0 == *name)
                || definitions.iter().any(|definition| Crd::of(definition).version(name).is_some())
        };
        let mut names: Vec<String> = plan.steps.iter().flat_map(|step| [step.from.clone(), step.to.clone()]).collect();
        names.sort();
        names.dedup();
        names.retain(|name| !is_known(name));
        names
    }

    /// Returns what the plan says, without its name and kind.
    pub fn content(&self) -> Value {
        let mut content = self.document.value.clone();
        if let Value::Object(fields) = &mut content {
            ["apiVersion", "kind", "metadata"].iter().for_each(|key| drop(fields.shift_remove(*key)));
        }
        content
    }
}

/// The plans of a run, at most one for each definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversionPlans {
    plans: BTreeMap<String, GivenPlan>,
    not_followed: Vec<GivenPlan>,
}

impl ConversionPlans {
    /// Chooses between plans for the same definition.
    ///
    /// # Errors
    /// Two different plans for a definition in the same source.
    pub fn of(given: impl IntoIterator<Item = GivenPlan>) -> Result<Self, Vec<InputError>> {
        let (policy, manifests): (Vec<_>, Vec<_>) =
            given.into_iter().partition(|plan| plan.source == PlanSource::Policy);
        let (mut found, mut errors) = (Self::default(), Vec::new());
        for plan in policy.into_iter().chain(manifests) {
            match found.plans.get(&plan.definition) {
                None => drop(found.plans.insert(plan.definition.clone(), plan)),
                Some(known) if known.content() == plan.content() => {}
                Some(known) if known.source == plan.source => {
                    let place = known.document.positions.start();
                    errors.push(InputError {
                        message: format!("a second plan for {}, the first is at {place}", plan.definition),
                        position: plan.document.positions.start(),
                        hints: vec!["put both into one".to_owned()],
                    });
                }
                Some(_) => found.not_followed.push(plan),
            }
        }
        if errors.is_empty() { Ok(found) } else { Err(errors) }
    }

    /// The plan for a definition, by its name.
    #[must_use]
    pub fn for_definition(&self, name: &str) -> Option<&GivenPlan> {
        self.plans.get(name)
    }

    /// All plans, by the name of their definition.
    pub fn iter(&self) -> impl Iterator<Item = &GivenPlan> {
        self.plans.values()
    }

    /// Plans of the manifests that are not followed, because the policy source has a different one.
    #[must_use]
    pub fn not_followed(&self) -> &[GivenPlan] {
        &self.not_followed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pushback_objects::source::Positions;
    use serde_json::json;

    use super::*;

    fn plan(name: &str, hub: &str, file: &str, source: PlanSource) -> GivenPlan {
        let value = json!({
            "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": name}, "hub": hub,
        });
        let document = Document { value, positions: Arc::new(Positions::of_file(file)) };
        GivenPlan::of_document(document, source).expect("a plan")
    }

    fn definition(versions: &[(&str, &str)]) -> Value {
        let version = |(name, field): &(&str, &str)| {
            let spec = json!({"type": "object", "properties": {*field: {"type": "string"}}});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
            json!({"name": name, "served": true, "storage": *name == "v2", "schema": schema})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "cogs.ex.com"},
            "spec": {"group": "ex.com", "names": {"kind": "Cog"}, "versions": versions.iter().map(version).collect::<Vec<_>>()},
        })
    }

    #[test]
    fn the_plan_of_the_policy_goes_before_that_of_the_manifests() {
        let (policy, manifests) = (PlanSource::Policy, PlanSource::Manifests);
        let plans = ConversionPlans::of([
            plan("a.ex.com", "v1", "m.yaml", manifests),
            plan("b.ex.com", "v1", "m.yaml", manifests),
            plan("c.ex.com", "v1", "m.yaml", manifests),
            plan("a.ex.com", "v2", "p.yaml", policy),
            plan("b.ex.com", "v1", "p.yaml", policy),
        ])
        .expect("plans");
        let source = |name: &str| plans.for_definition(name).map(|plan| plan.source);
        assert_eq!(
            ["a", "b", "c", "d"].map(|name| source(&format!("{name}.ex.com"))),
            [Some(policy), Some(policy), Some(manifests), None]
        );
        let left: Vec<&str> = plans.not_followed().iter().map(|plan| plan.definition.as_str()).collect();
        assert_eq!(left, ["a.ex.com"], "the same content is no second plan");
        let errors = ConversionPlans::of([
            plan("a.ex.com", "v1", "one.yaml", manifests),
            plan("a.ex.com", "v2", "two.yaml", manifests),
        ])
        .expect_err("two plans");
        assert_eq!(errors[0].to_string(), "two.yaml: a second plan for a.ex.com, the first is at one.yaml");
    }

    #[test]
    fn versions_that_only_the_live_definition_has_are_converted_too() {
        let given = plan("cogs.ex.com", "v2", "m.yaml", PlanSource::Manifests);
        let (live, wanted) =
            (definition(&[("v1", "size"), ("v2", "size")]), definition(&[("v2", "size"), ("v3", "size")]));
        let converter = given.converter(Some(&live), &wanted).expect("a converter");
        assert_eq!(converter.lineage().versions, ["v1", "v2", "v3"]);
        let errors = given.converter(Some(&definition(&[("v1", "old")])), &wanted).expect_err("an undecided field");
        assert!(errors[0].message.contains("spec.old"), "{errors:?}");
        let mut stored = live.clone();
        stored["status"] = json!({"storedVersions": ["v0"]});
        let errors = given.converter(Some(&stored), &wanted).expect_err("no schema of v0");
        assert!(errors[0].message.contains("version v0"), "{errors:?}");
    }
}
