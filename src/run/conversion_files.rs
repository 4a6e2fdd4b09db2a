//! Files with conversion plans and CRDs, read in the same strict way by every command that is given one: a document that
//! is neither is an error, and so is a file that lacks what it is given for. An empty or truncated plan must not become a
//! conversion without a plan.

use pushback_crd::definition::crd::KIND as CRD;
use pushback_preflight::conversion::{ConversionPlan, read};
use pushback_preflight::object::split_api_version;
use pushback_preflight::source::Document;
use pushback_preflight::{ObjectExt, Position};

use crate::manifest::InputError;
use crate::manifest::yaml::{self, Limits};

/// Kind of conversion plans.
const PLAN: &str = "ConversionPlan";
/// API group of documents that only pushback reads.
const OWN_GROUP: &str = "pushback.dev";

/// What a file is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileRole {
    /// Conversion plans; CRDs and Config documents may be beside them, and nothing else.
    Plans,
    /// CRDs; plans and other objects of a release may be beside them.
    Crds,
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
        if kind == PLAN || (group == OWN_GROUP && kind != "Config") {
            match read(&document) {
                Ok(plan) => found.plans.push(PlanDocument { plan, document }),
                Err(more) => errors.extend(more),
            }
        } else if kind == CRD {
            found.crds.push(document);
        } else if kind != "Config" && (roles.contains(&FileRole::Plans) || api_version.is_empty() || kind.is_empty()) {
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
        let lacks = [(FileRole::Plans, PLAN, found.plans.is_empty()), (FileRole::Crds, CRD, found.crds.is_empty())];
        for (role, what, _) in lacks.into_iter().filter(|(role, _, lacks)| *lacks && roles.contains(role)) {
            let hint = match role {
                FileRole::Plans => "The file may be incomplete; for conversions without a plan, leave out --plan.",
                FileRole::Crds => "The file may be incomplete: compare it with its original.",
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
    fn plan_that_is_cut_anywhere_before_its_policy_is_refused() {
        assert_eq!(errors(COMPLETE, FileRole::Plans), Vec::<String>::new());
        let policy = COMPLETE.find("policy").expect("a policy");
        // Complete once its name is: the rest of the line is optional.
        let name_ends = COMPLETE.find("}\n").expect("an end") + 1;
        for length in (0..name_ends).chain(policy + 1..policy + "policy: {unassessed: stash".len()) {
            let cut = &COMPLETE[..length];
            assert!(!errors(cut, FileRole::Plans).is_empty(), "{cut:?}");
        }
    }

    #[test]
    fn file_without_its_subject_is_refused() {
        let none = "plan.yaml: expected a ConversionPlan, found none";
        for empty in ["", "\n", "---\n", "# kind: ConversionPlan\n"] {
            assert_eq!(errors(empty, FileRole::Plans), [none], "{empty:?}");
            assert_eq!(errors(empty, FileRole::Crds).len(), 1, "{empty:?}");
        }
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        assert!(errors(other, FileRole::Plans)[0].contains("found a document of kind ConfigMap"));
        let release = format!("{other}---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n");
        assert_eq!(errors(&release, FileRole::Crds), Vec::<String>::new());
        assert!(errors(&release, FileRole::Plans)[0].contains("ConfigMap"));
        for cut in
            ["apiVersion: pushback.dev/v1alpha1\nkind: Conv\n", "apiVersion: pushback.dev/v1alpha1\n", "kind: a\n"]
        {
            let beside = format!("{release}---\n{cut}");
            assert!(!errors(&beside, FileRole::Crds).is_empty(), "{cut:?}");
        }
    }
}
