//! Finds the findings that a waiver covers without trying each: thousands of waivers meet thousands of findings.

use std::collections::{BTreeSet, HashMap};

use pushback_objects::finding::Finding;

use super::{Scope, Waiver, object_parts};
use crate::cause;

/// The findings of a run, by what waivers name of them.
#[derive(Debug)]
pub(super) struct FindingIndex {
    by_fingerprint: HashMap<String, Vec<usize>>,
    by_object: HashMap<(String, String), Vec<usize>>,
    by_rule: HashMap<String, Vec<usize>>,
    /// By the fingerprint of their cause; filled when a waiver names one.
    by_cause: Option<HashMap<String, Vec<usize>>>,
    /// What was found for waivers that name the same.
    covered: HashMap<Scope, Covered>,
}

/// The findings that a waiver covers.
#[derive(Debug, Default)]
pub(super) struct Covered {
    /// Whether there is one.
    pub(super) any: bool,
    /// Those that no earlier waiver of the same findings has accepted, in their order.
    pub(super) open: Vec<usize>,
}

impl FindingIndex {
    pub(super) fn new(findings: &[Finding]) -> Self {
        let (mut by_fingerprint, mut by_object, mut by_rule) = (HashMap::new(), HashMap::new(), HashMap::new());
        for (at, finding) in findings.iter().enumerate() {
            by_fingerprint.entry(finding.fingerprint.clone()).or_insert_with(Vec::new).push(at);
            let object = (finding.object.namespace.clone(), finding.object.name.clone());
            by_object.entry(object).or_insert_with(Vec::new).push(at);
            by_rule.entry(finding.rule.clone()).or_insert_with(Vec::new).push(at);
        }
        Self { by_fingerprint, by_object, by_rule, by_cause: None, covered: HashMap::new() }
    }

    /// The findings that the waiver covers, regardless of its date.
    pub(super) fn covered_by(&mut self, waiver: &Waiver, findings: &[Finding]) -> &mut Covered {
        let scope = waiver.scope();
        if !self.covered.contains_key(&scope) {
            let mut open = self.candidates(waiver);
            open.retain(|at| waiver.matches(&findings[*at]));
            self.covered.insert(scope.clone(), Covered { any: !open.is_empty(), open });
        }
        self.covered.entry(scope).or_default()
    }

    /// Findings among which are all that the waiver can cover.
    fn candidates(&self, waiver: &Waiver) -> Vec<usize> {
        let of = |found: Option<&Vec<usize>>| found.cloned().unwrap_or_default();
        if let Some(fingerprint) = &waiver.fingerprint {
            return of(self.by_fingerprint.get(fingerprint));
        }
        if waiver.cause.is_some() {
            let members = waiver.members.iter().filter_map(|member| self.by_fingerprint.get(member));
            return members.flatten().copied().collect::<BTreeSet<_>>().into_iter().collect();
        }
        if let Some(place) = waiver.object.as_deref().and_then(exact_place) {
            return of(self.by_object.get(&place));
        }
        of(waiver.rule.as_ref().and_then(|rule| self.by_rule.get(rule)))
    }

    /// Number of findings of the waiver's cause that it does not list, and of all; `None` if it lists them all.
    pub(super) fn new_members(&mut self, waiver: &Waiver, findings: &[Finding]) -> Option<(usize, usize)> {
        let fingerprint = waiver.cause.as_deref()?;
        let by_cause = self.by_cause.get_or_insert_with(|| {
            let mut by_cause: HashMap<String, Vec<usize>> = HashMap::new();
            for (at, finding) in findings.iter().enumerate() {
                by_cause.entry(cause::fingerprint(finding)).or_default().push(at);
            }
            by_cause
        });
        let of_rule = |finding: &&Finding| waiver.rule.as_deref().is_none_or(|rule| rule == finding.rule);
        let of_cause: Vec<&Finding> =
            by_cause.get(fingerprint)?.iter().map(|at| &findings[*at]).filter(of_rule).collect();
        let members: BTreeSet<&str> = waiver.members.iter().map(String::as_str).collect();
        let new = of_cause.iter().filter(|finding| !members.contains(finding.fingerprint.as_str())).count();
        (new > 0).then_some((new, of_cause.len()))
    }
}

/// Namespace and name of the object that a pattern names; `None` if it may be several.
fn exact_place(pattern: &str) -> Option<(String, String)> {
    let (_, namespace, name) = object_parts(pattern)?;
    let is_exact = !namespace.contains('*') && !name.contains('*');
    is_exact.then(|| (namespace.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use pushback_objects::finding::Verdict;
    use pushback_objects::object::ObjectRef;

    use super::super::{Accepted, apply, broad};
    use super::*;

    fn findings(count: usize) -> Vec<Finding> {
        let finding = |number: usize| {
            let object = ObjectRef {
                kind: "Foo".to_owned(),
                namespace: format!("n{}", number % 7),
                name: format!("f{number}"),
                ..ObjectRef::default()
            };
            let (rule, check) = (format!("Rule{}", number % 3), format!("check{}", number % 5));
            let message = format!("message {}", number % 4);
            let mut finding = Finding::new(&rule, &check, Verdict::Breaking, object, message).path("spec.a");
            finding.fingerprint = finding.compute_fingerprint();
            finding
        };
        (0..count).map(finding).collect()
    }

    /// Waivers of every shape for these findings.
    fn waivers(findings: &[Finding]) -> Vec<Waiver> {
        let of = |finding: &Finding| Waiver {
            rule: Some(finding.rule.clone()),
            reason: format!("because of {}", finding.object.name),
            ..Waiver::default()
        };
        let shapes = findings.iter().enumerate().map(|(number, finding)| match number % 7 {
            0 => Waiver { fingerprint: Some(finding.fingerprint.clone()), rule: None, ..of(finding) },
            1 => Waiver {
                object: Some(format!("Foo {}/{}", finding.object.namespace, finding.object.name)),
                ..of(finding)
            },
            2 => Waiver { object: Some(format!("* {}/*", finding.object.namespace)), ..of(finding) },
            3 => Waiver { check: Some(finding.check.clone()), ..of(finding) },
            4 => Waiver {
                cause: Some(cause::fingerprint(finding)),
                members: vec![finding.fingerprint.clone()],
                ..of(finding)
            },
            5 => Waiver { path: Some("spec.*".to_owned()), expires: Some("2020-01-01".to_owned()), ..of(finding) },
            _ => of(finding),
        });
        shapes.collect()
    }

    #[test]
    fn index_with_waivers_of_each_shape_finds_the_matching_findings() {
        let findings = findings(60);
        for waiver in waivers(&findings) {
            let matching = (0..findings.len()).filter(|at| waiver.matches(&findings[*at]));
            let found = FindingIndex::new(&findings).covered_by(&waiver, &findings).open.clone();
            assert_eq!(found, matching.collect::<Vec<_>>(), "{waiver:?}");
        }
    }

    #[test]
    fn first_valid_waiver_of_a_finding_accepts_it() {
        let given = waivers(&findings(60));
        let mut found = findings(60);
        apply(&given, &Accepted::new(), "2026-01-01", (&[], &[]), &mut found);
        for finding in &found {
            let is_valid = |waiver: &&Waiver| waiver.expires.is_none() && waiver.matches(finding);
            assert_eq!(finding.waived, given.iter().find(is_valid).map(Waiver::explanation), "{}", finding.object);
        }
        let wide: usize = broad(&given, "2026-01-01", &found).iter().map(|waiver| waiver.findings).sum();
        let reasons: BTreeSet<String> = given.iter().filter(|it| it.is_broad()).map(Waiver::explanation).collect();
        let is_wide = |finding: &&Finding| finding.waived.as_ref().is_some_and(|reason| reasons.contains(reason));
        assert_eq!(wide, found.iter().filter(is_wide).count());
    }

    /// Compared one by one, these would be 25 million pairs.
    #[test]
    fn findings_with_thousands_of_waivers_are_all_accepted() {
        let mut found = findings(5_000);
        let given: Vec<Waiver> = waivers(&found)
            .into_iter()
            .filter(|waiver| waiver.object.as_ref().is_none_or(|it| !it.contains('*')))
            .collect();
        apply(&given, &Accepted::new(), "2026-01-01", (&[], &[]), &mut found);
        broad(&given, "2026-01-01", &found);
        assert!(found.iter().all(|finding| finding.waived.is_some()));
    }
}
