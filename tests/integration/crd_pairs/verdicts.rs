//! What the rule says of each pair: the verdict, the check that finds it, and an object as evidence where the schema is at
//! fault. Every row that is wrong is told, not only the first.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use pushback_manifest::yaml;
use pushback_objects::Verdict;
use pushback_objects::finding::Finding;

use super::{Pair, judge, pairs, verdict};
use crate::support::case::show;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_pair_gets_its_verdict,
        Nothing: crds_that_are_hard_to_judge_get_their_verdict,
        Nothing: no_definition_breaks_itself,
        Nothing: pairs_are_told_apart_and_are_of_every_verdict,
    ]
}

/// With `PUSHBACK_SHOW`, prints how many pairs of each verdict get which verdict.
fn every_pair_gets_its_verdict() {
    let pairs = pairs();
    let mut wrong = Vec::new();
    let mut figures: BTreeMap<[&str; 2], usize> = BTreeMap::new();
    for pair in &pairs {
        match std::panic::catch_unwind(|| judge(&pair.before(), &pair.after()).findings) {
            Ok(findings) => {
                *figures.entry([&pair.verdict, verdict(&findings)]).or_default() += 1;
                wrong.extend(fault(pair, &findings));
            }
            Err(_) => wrong.push(format!("{}: panics\n  old {}\n  new {}", pair.name, pair.old, pair.new)),
        }
    }
    for ([right, judged], count) in figures {
        show(&format!("{count} of the {right} pairs are judged {judged}"));
    }
    assert!(wrong.is_empty(), "{} of {} pairs are judged otherwise:\n{}", wrong.len(), pairs.len(), wrong.join("\n"));
}

fn crds_that_are_hard_to_judge_get_their_verdict() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/crd-verdicts");
    let load = |path: &Path, text: Vec<u8>| {
        let shown = path.display().to_string();
        let loaded = yaml::load(&shown, &text, &yaml::Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        loaded.documents.into_iter().map(|document| document.value).next().unwrap_or_else(|| panic!("{shown} is empty"))
    };
    let expected = root.join("verdicts.yaml");
    let expected = load(&expected, std::fs::read(&expected).expect("the verdicts"));
    let mut wrong = Vec::new();
    for (name, verdict) in expected.as_object().expect("a verdict for each name") {
        let [old, new] = ["old.yaml.gz", "new.yaml.gz"].map(|file| {
            let path = root.join(name).join(file);
            let mut text = Vec::new();
            let packed = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            GzDecoder::new(packed).read_to_end(&mut text).expect("a packed CRD");
            load(&path, text)
        });
        let findings = judge(&old, &new).findings;
        let found = super::verdict(&findings);
        if verdict != found {
            wrong.push(format!("{name}: {verdict} expected, is {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn fault(pair: &Pair, findings: &[Finding]) -> Option<String> {
    let found = verdict(findings);
    let fault = if let Some(judged) = &pair.judged {
        if found == judged {
            return None;
        }
        format!("is {found}, and not {judged} as `judged` says")
    } else if found != pair.verdict {
        format!("is {found}")
    } else if let Some(check) = pair.check.as_deref().filter(|check| !says(pair, findings, check)) {
        format!("is not said by {check}")
    } else if let Some(finding) = findings.iter().find(|finding| lacks_witness(finding)) {
        format!("has no witness for {}", finding.check)
    } else {
        return None;
    };
    let lines: Vec<String> = findings.iter().map(line).collect();
    let Pair { name, old, new, verdict, note, .. } = pair;
    Some(format!("{name}: {verdict} expected, {fault} ({note})\n  old {old}\n  new {new}\n  {}", lines.join("\n  ")))
}

pub(super) fn line(finding: &Finding) -> String {
    let Finding { check, verdict, message, .. } = finding;
    let witness = finding.witness.as_ref().map(|witness| format!(" {witness}")).unwrap_or_default();
    format!("{check} {verdict:?}: {message}{witness}")
}

/// Whether the check has told what the verdict is about.
fn says(pair: &Pair, findings: &[Finding], check: &str) -> bool {
    let weighs = |finding: &&Finding| match pair.verdict.as_str() {
        "breaking" => finding.verdict == Verdict::Breaking,
        "unknown" => finding.verdict == Verdict::Unknown,
        _ => finding.verdict == Verdict::Change,
    };
    findings.iter().filter(weighs).any(|finding| finding.check == check)
}

/// What is said of a schema by proof shows an object; only what is said of a definition as a whole has none.
pub(super) fn lacks_witness(finding: &Finding) -> bool {
    let of_definition = [
        "scope",
        "group",
        "names",
        "storedVersionRemoval",
        "servedVersionRemoval",
        "servedVersionUnserved",
        "statusSubresource",
        "scaleSubresource",
        "selectableFields",
        "invalid",
    ];
    finding.verdict == Verdict::Breaking
        && finding.witness.is_none()
        && !of_definition.contains(&finding.check.as_str())
}

/// Each side of each pair, compared with itself: nothing is found.
fn no_definition_breaks_itself() {
    let wrong: Vec<String> = pairs()
        .iter()
        .flat_map(|pair| [(pair, pair.before()), (pair, pair.after())])
        .filter_map(|(pair, definition)| {
            let findings = judge(&definition, &definition).findings;
            (!findings.is_empty())
                .then(|| format!("{}: {}", pair.name, findings.iter().map(line).collect::<Vec<_>>().join("; ")))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn pairs_are_told_apart_and_are_of_every_verdict() {
    let pairs = pairs();
    let mut names = BTreeSet::new();
    for pair in &pairs {
        assert!(names.insert(&pair.name), "two pairs are called {}", pair.name);
        let is_label =
            pair.name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
        assert!(is_label && pair.name.len() <= 63, "{} cannot be part of a group", pair.name);
    }
    let count = |verdict: &str| pairs.iter().filter(|pair| pair.verdict == verdict).count();
    let (safe, breaking, unknown) = (count("safe"), count("breaking"), count("unknown"));
    assert_eq!(safe + breaking + unknown, pairs.len(), "a verdict is none of the three");
    assert!(pairs.len() >= 250, "{} pairs", pairs.len());
    let share = |part: usize| part * 100 / pairs.len();
    assert!(
        share(safe) >= 30 && share(breaking) >= 30 && unknown >= 5,
        "{safe} safe, {breaking} breaking, {unknown} unknown"
    );
}
