//! Deduplicates findings: if two rules report the same fact, the one that says what to do about it is kept.
//! A finding never hides a heavier one: a rule that is off, warns or is waived hides nothing.

use std::collections::BTreeMap;

use pushback_objects::finding::{Finding, FindingRef};

/// Longest chain of findings that repeat each other: the server's, that of one rule, that of another.
const LONGEST_CHAIN: usize = 4;

/// Omits findings that repeat another one of at least the same severity, and records them there.
pub(crate) fn told_once(mut findings: Vec<Finding>) -> Vec<Finding> {
    if findings.iter().all(|finding| finding.repeats.is_empty()) {
        return findings;
    }
    let mut index: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (number, finding) in findings.iter().enumerate() {
        let Finding { rule, check, version, path, .. } = finding;
        let key = (finding.object.key(), rule.clone(), check.clone(), version.clone(), path.clone());
        index.entry(key).or_default().push(number);
    }
    let repeated: Vec<Option<usize>> = findings
        .iter()
        .map(|finding| {
            let of = |reported: &FindingRef| {
                let FindingRef { rule, check, version, path } = reported.clone();
                index.get(&(finding.object.key(), rule, check, version, path)).into_iter().flatten().copied()
            };
            // The highest severity sorts first.
            let as_heavy = |other: &usize| findings[*other].severity <= finding.severity;
            finding.repeats.iter().flat_map(of).find(as_heavy)
        })
        .collect();
    for number in 0..findings.len() {
        let tellers = std::iter::successors(repeated[number], |teller| repeated[*teller]);
        let Some(teller) = tellers.take(LONGEST_CHAIN).last() else { continue };
        let omitted = &findings[number];
        let also = format!("{}/{}", omitted.rule, omitted.check);
        let counted = omitted.live_objects.clone();
        let teller = &mut findings[teller];
        if !teller.also.contains(&also) {
            teller.also.push(also);
        }
        // It may be that only the omitted one has counted the objects.
        teller.live_objects = teller.live_objects.take().or(counted);
    }
    let mut repeated = repeated.into_iter();
    findings.retain(|_| repeated.next().flatten().is_none());
    findings
}

#[cfg(test)]
mod tests {
    use pushback_objects::finding::{LiveObjects, Verdict};
    use pushback_objects::object::ObjectRef;

    use crate::waiver::Accepted;
    use serde_json::json;

    use super::*;
    use crate::judge::{Ended, Ending, Outcome, RunReport, judge};
    use crate::registry;
    use crate::rule::{FailMode, Judgement, Mode, Settings};
    use crate::waiver::Waiver;

    const RULE: &str = "CRDUpgradeSafety";
    const CHECK: &str = "storedVersionRemoval";

    fn finding(rule: &str, check: &str, version: &str) -> Finding {
        let object = ObjectRef { kind: "Foo".into(), name: "foos".into(), ..ObjectRef::default() };
        let mut finding = Finding::new(rule, check, Verdict::Breaking, object, format!("version {version} goes"));
        finding.version = Some(version.to_owned());
        finding
    }

    fn refusal(version: &str) -> Finding {
        let mut finding = finding(registry::SERVER, "invalid", version).path("status.storedVersions[0]");
        let (rule, check) = (RULE.to_owned(), CHECK.to_owned());
        finding.repeats.push(FindingRef { rule, check, version: Some(version.to_owned()), path: None });
        finding
    }

    fn run(rule: Option<(Settings, Vec<Finding>)>, refused: Vec<Finding>, waivers: &[Waiver]) -> RunReport {
        let ended = rule.iter().map(|(settings, findings)| Ended {
            name: RULE,
            settings,
            ending: Ending::Judged(Judgement { findings: findings.clone(), unable: Vec::new() }),
        });
        judge(
            ended.collect(),
            Judgement { findings: refused, unable: Vec::new() },
            waivers,
            &Accepted::new(),
            "2026-01-01",
        )
    }

    fn reported(report: &RunReport) -> Vec<String> {
        let line = |finding: &Finding| {
            let waived = if finding.waived.is_some() { " waived" } else { "" };
            format!("{}/{} {:?}{waived} also {:?}", finding.rule, finding.check, finding.severity, finding.also)
        };
        report.findings.iter().map(line).collect()
    }

    #[test]
    fn what_the_server_refuses_is_told_once_and_never_lost() {
        let settings = |mode| Settings { mode, fail_mode: FailMode::Closed, ..Settings::default() };
        let both = |mode| Some((settings(mode), vec![finding(RULE, CHECK, "v1")]));
        let waiver = Waiver { rule: Some(RULE.into()), reason: "known".into(), ..Waiver::default() };
        let refused = || vec![refusal("v1")];

        let once = run(both(Mode::Error), refused(), &[]);
        assert_eq!(reported(&once), [r#"CRDUpgradeSafety/storedVersionRemoval Error also ["server/invalid"]"#]);
        assert_eq!(once.rules.iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>(), [RULE]);
        let alone = run(both(Mode::Error), Vec::new(), &[]);
        assert_eq!(once.findings[0].fingerprint, alone.findings[0].fingerprint);

        // If the rule does not refuse, the server's finding stays.
        let warned = run(both(Mode::Warn), refused(), &[]);
        assert_eq!(
            reported(&warned),
            ["server/invalid Error also []", "CRDUpgradeSafety/storedVersionRemoval Warning also []"]
        );
        let waived = run(both(Mode::Error), refused(), &[waiver]);
        assert_eq!(
            reported(&waived),
            ["server/invalid Error also []", "CRDUpgradeSafety/storedVersionRemoval Info waived also []"]
        );
        let off = run(None, refused(), &[]);
        assert_eq!(reported(&off), ["server/invalid Error also []"]);
        for report in [once, alone, warned, waived, off] {
            assert_eq!(report.outcome, Outcome::Refused);
        }
    }

    #[test]
    fn a_rule_that_counts_the_objects_gives_its_number_to_the_finding_that_is_kept() {
        let strict = || Settings { mode: Mode::Error, fail_mode: FailMode::Closed, ..Settings::default() };
        let settings = strict();
        let told_at = |rule: &str| FindingRef {
            rule: rule.to_owned(),
            check: CHECK.to_owned(),
            version: Some("v1".to_owned()),
            path: None,
        };
        let counted = || {
            let mut finding = finding("StoredVersions", CHECK, "v1");
            finding.live_objects = Some(LiveObjects::exactly(3, 3, Vec::new()));
            finding.repeats.push(told_at(RULE));
            finding
        };
        let mut refused = refusal("v1");
        refused.repeats.push(told_at("StoredVersions"));
        let run = |first: Option<Finding>| {
            let of = |name, finding: Finding| {
                let ending = Ending::Judged(Judgement { findings: vec![finding], unable: Vec::new() });
                Ended { name, settings: &settings, ending }
            };
            let ended = first.map(|finding| of(RULE, finding)).into_iter();
            judge(
                ended.chain([of("StoredVersions", counted())]).collect(),
                Judgement { findings: vec![refused.clone()], unable: Vec::new() },
                &[],
                &Accepted::new(),
                "2026-01-01",
            )
        };
        let both = run(Some(finding(RULE, CHECK, "v1")));
        assert_eq!(
            reported(&both),
            [
                r#"CRDUpgradeSafety/storedVersionRemoval Error also ["StoredVersions/storedVersionRemoval", "server/invalid"]"#
            ]
        );
        assert_eq!(both.findings[0].affected(), 3);
        let alone = run(None);
        assert_eq!(reported(&alone), [r#"StoredVersions/storedVersionRemoval Error also ["server/invalid"]"#]);
    }

    #[test]
    fn another_version_object_or_check_is_another_fact() {
        let strict = || Settings { mode: Mode::Error, fail_mode: FailMode::Closed, ..Settings::default() };
        let mut elsewhere = finding(RULE, CHECK, "v1");
        elsewhere.object.name = "bars".to_owned();
        let others = [
            finding(RULE, CHECK, "v2"),
            finding(RULE, "servedVersionRemoval", "v1"),
            finding(RULE, CHECK, "v1").path("spec"),
            elsewhere,
        ];
        for other in others {
            let report = run(Some((strict(), vec![other])), vec![refusal("v1")], &[]);
            assert_eq!(report.findings.len(), 2, "{:?}", reported(&report));
        }
    }

    #[test]
    fn what_is_left_out_is_named_in_the_report() {
        let strict = Settings { mode: Mode::Error, fail_mode: FailMode::Closed, ..Settings::default() };
        let report = run(Some((strict, vec![finding(RULE, CHECK, "v1")])), vec![refusal("v1"), refusal("v1")], &[]);
        let written = serde_json::to_value(&report.findings).expect("JSON");
        assert_eq!(written[0]["also"], json!(["server/invalid"]));
        assert!(written[0].get("repeats").is_none() && written[1].is_null(), "{written}");
    }
}
