//! Files with conversion plans and CRDs, read in the same strict way by every command that is given one: a document that
//! is neither is an error, and so is a file that lacks what it is given for. An empty or truncated plan must not become a
//! conversion without a plan.

use pushback_conversion::{ConversionPlan, read};
use pushback_crd::definition::crd::KIND as CRD;
use pushback_manifest::InputError;
use pushback_manifest::yaml::{self, Limits};
use pushback_objects::object::split_api_version;
use pushback_objects::source::Document;
use pushback_objects::{ObjectExt, Position};
use serde_json::Value;

/// Kind of conversion plans.
const PLAN: &str = "ConversionPlan";
/// API group of documents that only pushback reads.
const OWN_GROUP: &str = "pushback.dev";
/// API groups of Config documents. `v1` is that of a kubeconfig, which is something else.
const CONFIG_GROUPS: [&str; 2] = [OWN_GROUP, "kapp.k14s.io"];

/// Parts of a plan that decide something. A plan without any of them may be the start of a longer one.
const DECISIONS: [&str; 3] = ["policy", "steps", "hooks"];

/// What a file is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileRole {
    /// Conversion plans; CRDs and Config documents may be beside them, and nothing else.
    Plans,
    /// CRDs; plans and other objects of a release may be beside them.
    Crds,
    /// CRDs or plans; other objects of a release may be beside them.
    Either,
}

/// A plan, and the document that it was read from.
#[derive(Clone, Debug)]
pub(super) struct PlanDocument {
    pub(super) plan: ConversionPlan,
    pub(super) document: Document,
}

/// Plans and CRDs of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct ConversionDocuments {
    pub(super) plans: Vec<PlanDocument>,
    pub(super) crds: Vec<Document>,
}

/// Returns whether a part of a plan is present and not empty.
fn has_entries(part: Option<&Value>) -> bool {
    match part {
        None | Some(Value::Null) => false,
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

/// Reads a file.
///
/// # Errors
/// Everything in it that is neither a plan nor a CRD, and all errors of its plans.
pub(super) fn parse(name: &str, bytes: &[u8], roles: &[FileRole]) -> Result<ConversionDocuments, Vec<InputError>> {
    let loaded = yaml::load(name, bytes, &Limits::default()).map_err(|error| vec![error])?;
    let (mut found, mut errors) = (ConversionDocuments::default(), Vec::new());
    for document in loaded.documents.into_iter().filter(|document| !document.value.is_null()) {
        let document = Document::from(document);
        let (api_version, kind) = (document.value.text("/apiVersion"), document.value.text("/kind"));
        let (group, _) = split_api_version(api_version);
        if kind == "Config" && CONFIG_GROUPS.contains(&group) {
            continue;
        }
        if kind == PLAN || group == OWN_GROUP {
            match read(&document) {
                Ok(_) if !DECISIONS.iter().any(|field| has_entries(document.value.get(*field))) => {
                    errors.push(InputError {
                        message: format!("expected one of {} in a {PLAN}, found none", DECISIONS.join(", ")),
                        position: document.positions.start(),
                        hints: vec![
                            "The file may be incomplete: compare it with its original.".to_owned(),
                            "A plan that adds nothing to the schemas has `policy: {unassessed: error}`.".to_owned(),
                        ],
                    });
                }
                Ok(plan) => found.plans.push(PlanDocument { plan, document }),
                Err(more) => errors.extend(more),
            }
        } else if kind == CRD {
            found.crds.push(document);
        } else if roles.contains(&FileRole::Plans) || api_version.is_empty() || kind.is_empty() {
            let shown = match kind {
                "" => "a document without a kind".to_owned(),
                kind => format!("a document of kind {kind}"),
            };
            errors.push(InputError {
                message: format!("expected a {PLAN} or a {CRD}, found {shown}"),
                position: document.positions.start(),
                hints: vec!["The file may be incomplete: compare it with its original.".to_owned()],
            });
        }
    }
    if errors.is_empty() {
        let (no_plan, no_crd) = (found.plans.is_empty(), found.crds.is_empty());
        for role in roles {
            let (is_lacking, what) = match role {
                FileRole::Plans => (no_plan, PLAN.to_owned()),
                FileRole::Crds => (no_crd, CRD.to_owned()),
                FileRole::Either => (no_plan && no_crd, format!("{PLAN} or a {CRD}")),
            };
            if !is_lacking {
                continue;
            }
            let hint = match role {
                FileRole::Plans => "The file may be incomplete; for conversions without a plan, leave out --plan.",
                FileRole::Crds | FileRole::Either => "The file may be incomplete: compare it with its original.",
            };
            errors.push(InputError {
                message: format!("expected a {what}, found none"),
                position: Position { file: name.to_owned(), ..Position::default() },
                hints: vec![hint.to_owned()],
            });
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: &str = "apiVersion: pushback.dev/v1alpha1\nkind: ConversionPlan\nmetadata: {name: cogs.ex.com}\n\
                            policy: {unassessed: stash}\nsteps:\n- from: v1\n  to: v2\n  renames: {spec.a: spec.b}\n";

    fn errors(text: &str, role: FileRole) -> Vec<String> {
        match parse("plan.yaml", text.as_bytes(), &[role]) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn plan_that_is_cut_anywhere_before_the_end_of_its_policy_is_refused() {
        assert_eq!(errors(COMPLETE, FileRole::Plans), Vec::<String>::new());
        let policy = COMPLETE.find("policy").expect("a policy");
        for length in 0..policy + "policy: {unassessed: stash".len() {
            let cut = &COMPLETE[..length];
            assert!(!errors(cut, FileRole::Plans).is_empty(), "{cut:?}");
        }
    }

    #[test]
    fn plan_without_policy_steps_and_hooks_is_refused() {
        let start = "apiVersion: pushback.dev/v1alpha1\nkind: ConversionPlan\nmetadata: {name: cogs.ex.com}\n";
        for empty in ["", "hub: v2\n", "policy:\n", "policy: {}\n", "steps:\n", "steps: []\n", "hooks: []\n"] {
            let found = errors(&format!("{start}{empty}"), FileRole::Plans);
            assert!(!found.is_empty(), "{empty:?}");
        }
        for complete in [
            "policy: {bag: annotation}\n",
            "steps: [{from: v1, to: v2}]\n",
            "hooks: [{version: v1, assignTo: [{set: spec.a, cel: self.spec.b}]}]\n",
        ] {
            assert_eq!(errors(&format!("{start}{complete}"), FileRole::Plans), Vec::<String>::new(), "{complete:?}");
        }
    }

    #[test]
    fn only_config_of_pushback_and_kapp_may_be_beside_plans() {
        for (api_version, is_refused) in [
            ("pushback.dev/v1alpha1", false),
            ("kapp.k14s.io/v1alpha1", false),
            ("v1", true),
            ("other.example.com/v1", true),
        ] {
            let beside = format!("{COMPLETE}---\napiVersion: {api_version}\nkind: Config\n");
            assert_eq!(!errors(&beside, FileRole::Plans).is_empty(), is_refused, "{api_version}");
        }
    }

    #[test]
    fn file_without_its_subject_is_refused() {
        let none = "plan.yaml: expected a ConversionPlan, found none";
        for empty in ["", "\n", "---\n", "# kind: ConversionPlan\n"] {
            assert_eq!(errors(empty, FileRole::Plans), [none], "{empty:?}");
            assert_eq!(errors(empty, FileRole::Crds).len(), 1, "{empty:?}");
            assert_eq!(errors(empty, FileRole::Either).len(), 1, "{empty:?}");
        }
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        assert!(errors(other, FileRole::Plans)[0].contains("found a document of kind ConfigMap"));
        let release = format!("{other}---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n");
        assert_eq!(errors(&release, FileRole::Crds), Vec::<String>::new());
        assert_eq!(errors(&release, FileRole::Either), Vec::<String>::new());
        assert_eq!(errors(COMPLETE, FileRole::Either), Vec::<String>::new());
        assert_eq!(errors(other, FileRole::Either).len(), 1);
        assert!(errors(&release, FileRole::Plans)[0].contains("ConfigMap"));
        for cut in
            ["apiVersion: pushback.dev/v1alpha1\nkind: Conv\n", "apiVersion: pushback.dev/v1alpha1\n", "kind: a\n"]
        {
            let beside = format!("{release}---\n{cut}");
            assert!(!errors(&beside, FileRole::Crds).is_empty(), "{cut:?}");
        }
    }
}
