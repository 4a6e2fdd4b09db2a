//! A definition whose webhook converts: judged by its conversion plan, on generated objects and on those that are there.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_conversion::plan::ConversionPlan;
use pushback_conversion::sampling::{Defect, DefectKind, RoundTrip, RoundTrips, SampleLimits, Samples, sample};
use pushback_conversion::{Converter, GivenPlan, NoPrograms};
use pushback_crd::definition::{Upgrade, listed};
use pushback_objects::finding::{Finding, LiveObjects, Severity, Verdict};
use pushback_objects::object::{ObjectExt, split_api_version};
use serde_json::{Value, json};

use super::{FAILED, NAME, NAMES, PLANNED, Pairs, Risk, SAMPLED, SHOWN, WEBHOOK, count, counted};

/// Maximum number of fields that objects are counted for: a map may have any keys.
const KEYS: usize = 256;

/// The plan of a definition, compiled as the conversion webhook runs it.
struct Planned<'a> {
    pairs: &'a Pairs<'a>,
    given: &'a GivenPlan,
    plan: ConversionPlan,
    converter: Converter,
}

impl<'a> Planned<'a> {
    fn new(pairs: &'a Pairs<'a>, given: &'a GivenPlan) -> Result<Self, String> {
        let converter = given.converter(None, pairs.upgrade.new.value).map_err(|errors| {
            let first = errors.into_iter().next().map(|error| error.message).unwrap_or_default();
            format!("the conversion plan does not fit the CRD: {first}")
        })?;
        if let Some(program) = converter.programs().next() {
            return Err(format!("the conversion plan hands objects to the program {program:?}, which is not run here"));
        }
        Ok(Self { pairs, given, plan: given.plan(), converter: converter.as_webhook() })
    }
}

/// Judges the plan; `folded` is what the objects that are there say, with their number.
pub(super) fn check(
    pairs: &Pairs<'_>,
    given: Option<&GivenPlan>,
    risk: &Risk,
    folded: Option<(&Value, u64)>,
) -> Vec<Finding> {
    let Some(given) = given else {
        let why = "a webhook converts objects and there is no conversion plan: what it loses is not known";
        return vec![not_judged(pairs, why.to_owned())];
    };
    let planned = match Planned::new(pairs, given) {
        Ok(planned) => planned,
        Err(why) => return vec![not_judged(pairs, why)],
    };
    let upgrade = &pairs.upgrade;
    let Some(trips) = RoundTrips::new(&planned.converter, upgrade, &NoPrograms) else { return Vec::new() };
    let samples = sample(&trips, &planned.plan, SampleLimits::default());
    let mut findings = Vec::new();
    for defect in &samples.defects {
        let mut finding = of_defect(&planned, defect, risk);
        let counts = folded.map(|(state, examined)| (&state[PLANNED][key(defect)], examined));
        if let Some((counts, examined)) = counts.filter(|(counts, _)| counts.is_object()) {
            finding.live_objects = Some(counted(counts, examined));
        }
        findings.push(finding);
    }
    findings.extend(folded.map(|folded| of_objects(&planned, &samples, folded)).unwrap_or_default());
    if findings.iter().all(|finding| finding.severity == Severity::Info) && planned.plan.has_hooks() {
        findings.push(only_sampled(&planned, &samples));
    }
    findings.extend(untried(pairs, &samples));
    findings
}

/// The key under which objects are counted that show a defect.
fn key(defect: &Defect) -> String {
    key_of(&defect.from, &defect.through, &defect.path)
}

fn key_of(from: &str, through: &str, path: &str) -> String {
    format!("{from} {through} {path}")
}

fn not_judged(pairs: &Pairs<'_>, why: String) -> Finding {
    let change = pairs.change;
    let position = change.locate(&["spec".into(), "conversion".into()]);
    let mut finding = Finding::new(NAME, WEBHOOK, Verdict::Change, change.object.clone(), why).at(position);
    finding.severity = Severity::Warning;
    finding.remedy("write a ConversionPlan for the CRD, so that its conversions can be tried")
}

/// What a sample shows. A value that does not survive its own storage is lost whoever the clients are; one that another
/// version does not keep, once a client writes it back there.
fn of_defect(planned: &Planned<'_>, defect: &Defect, risk: &Risk) -> Finding {
    let Pairs { losses, .. } = planned.pairs;
    let Defect { from, through, kind, path, before, after, reason, witness } = defect;
    let is_stored = *through == losses.storage;
    let way = if is_stored {
        format!("once it is stored as \"{through}\"")
    } else {
        format!("once it is written back unchanged at \"{through}\"")
    };
    let shown = |value: &Option<Value>| value.as_ref().map(short).unwrap_or_default();
    let place = if path.is_empty() { "the object" } else { path.as_str() };
    let message = match kind {
        DefectKind::Lost => format!("by its plan, an object of \"{from}\" loses {place} {way}"),
        DefectKind::Changed => format!(
            "by its plan, {place} of an object of \"{from}\" changes from {} to {} {way}",
            shown(before),
            shown(after)
        ),
        DefectKind::Invented => {
            format!("by its plan, an object of \"{from}\" without {place} gets {} {way}", shown(after))
        }
        DefectKind::Failed => format!(
            "by its plan, an object of \"{from}\" cannot be converted, and not be read, {way}: {place}: {reason}"
        ),
    };
    let is_harm = is_stored || *kind == DefectKind::Failed;
    let check = if *kind == DefectKind::Failed { FAILED } else { PLANNED };
    let sentence = if is_harm { String::new() } else { risk.sentence() };
    let mut finding = planned.pairs.concerning(check, risk, true, through, format!("{message}{sentence}"));
    if is_harm {
        (finding.verdict, finding.severity) = (Verdict::Breaking, Severity::Error);
        finding.remedy = Some(
            match kind {
                DefectKind::Invented => "leave the field absent where the other version has no value for it",
                DefectKind::Failed => "correct the expression so that it has a value for every object",
                DefectKind::Lost | DefectKind::Changed => {
                    "correct the expression so that the way back gives the same, or let the plan keep the original \
                     (`removed` without `drop`)"
                }
            }
            .to_owned(),
        );
    }
    if planned.converter.acknowledges(*kind, path) {
        (finding.verdict, finding.severity, finding.remedy) = (Verdict::Change, Severity::Info, None);
        finding.message.push_str(", as the plan acknowledges");
    }
    finding.effect = Some(match kind {
        DefectKind::Lost => "pruned".to_owned(),
        DefectKind::Changed | DefectKind::Invented => "altered".to_owned(),
        DefectKind::Failed => "unreadable".to_owned(),
    });
    finding.path = Some(path.clone()).filter(|path| !path.is_empty());
    finding.witness = Some(Arc::new(witness.clone()));
    let content = json!([from, through, kind.as_str()]);
    finding.values(before.clone(), after.clone()).bound_to(&content)
}

/// Objects that are there and do not come back as they were, where no sample shows it.
fn of_objects(planned: &Planned<'_>, samples: &Samples, (state, examined): (&Value, u64)) -> Vec<Finding> {
    let Pairs { change, .. } = planned.pairs;
    let mut findings = Vec::new();
    for (shown, counts) in state[PLANNED].as_object().into_iter().flatten() {
        let live = counted(counts, examined);
        if live.affected == 0 || samples.defects.iter().any(|defect| key(defect) == *shown) {
            continue;
        }
        let mut parts = shown.splitn(3, ' ').skip(1);
        let (through, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let message = format!(
            "by its plan, {} that {} there {} not come back from \"{through}\" as {}: {}",
            number(live.affected, "object"),
            if live.affected == 1 { "is" } else { "are" },
            if live.affected == 1 { "does" } else { "do" },
            if live.affected == 1 { "it was" } else { "they were" },
            if path.is_empty() { "the conversion fails" } else { path },
        );
        let position = change.locate(&["spec".into(), "conversion".into()]);
        let mut finding = Finding::new(NAME, PLANNED, Verdict::Breaking, change.object.clone(), message).at(position);
        finding.version = Some(through.to_owned());
        finding.path = Some(path.to_owned()).filter(|path| !path.is_empty());
        finding.effect = Some("altered".to_owned());
        let content = json!([shown, live.names]);
        finding.live_objects = Some(LiveObjects { names: live.names.into_iter().take(NAMES).collect(), ..live });
        findings.push(finding.bound_to(&content).remedy("correct the expressions of the plan"));
    }
    findings
}

/// Names what was tried: no sample proves an expression.
fn only_sampled(planned: &Planned<'_>, samples: &Samples) -> Finding {
    let Pairs { change, upgrade, .. } = planned.pairs;
    let message = format!(
        "its conversion plan has expressions and was tried on {} of {}: nothing was lost, which is not a proof",
        number(samples.objects as u64, "object"),
        number(
            upgrade.new.versions.iter().filter(|version| version.served || version.storage).count() as u64,
            "version"
        ),
    );
    let position = change.locate(&["spec".into(), "conversion".into()]);
    let mut finding = Finding::new(NAME, SAMPLED, Verdict::Change, change.object.clone(), message).at(position);
    finding.severity = Severity::Warning;
    let schemas = upgrade.new.versions.iter().map(|version| version.schema.cloned().unwrap_or_default());
    let content = json!([planned.given.content(), schemas.collect::<Vec<_>>()]);
    finding.bound_to(&content).remedy(
        "try more with `pushback storage test --samples`, keep its golden files beside the plan, and waive this finding: \
         the waiver holds until the plan or a schema changes",
    )
}

/// Versions of which no valid object could be made.
fn untried(pairs: &Pairs<'_>, samples: &Samples) -> Option<Finding> {
    (!samples.untried.is_empty()).then(|| {
        let versions = listed(&samples.untried, SHOWN);
        not_judged(pairs, format!("no valid object of {versions} could be made to try the conversion plan"))
    })
}

fn number(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A value, cut if it is long.
fn short(value: &Value) -> String {
    let text = value.to_string();
    let shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() { format!("{shown}…") } else { text }
}

/// Counts the objects of a page that do not come back as they were, by the version they go through.
pub(super) fn fold(pairs: &Pairs<'_>, given: &GivenPlan, state: &mut Value, page: &[&Value]) {
    let Ok(planned) = Planned::new(pairs, given) else { return };
    let upgrade: &Upgrade<'_> = &pairs.upgrade;
    let Some(trips) = RoundTrips::new(&planned.converter, upgrade, &NoPrograms) else { return };
    for object in page {
        let own = split_api_version(object.text("/apiVersion")).1;
        for through in trips.versions().into_iter().filter(|through| *through != own) {
            let paths: BTreeSet<String> = match trips.through(through, object) {
                Ok(RoundTrip::Kept | RoundTrip::Refused(_)) => continue,
                Ok(RoundTrip::Differs(found)) => {
                    let found = found.iter().map(|difference| (difference.kind(), difference.shown()));
                    let new = found.filter(|(kind, path)| !planned.converter.acknowledges(*kind, path));
                    new.map(|(_, path)| path).collect()
                }
                Err(error) => [error.path].into(),
            };
            for path in paths {
                let (counts, key) = (&mut state[PLANNED], key_of(own, through, &path));
                let is_known = counts.get(&key).is_some();
                if is_known || counts.as_object().is_none_or(|counts| counts.len() < KEYS) {
                    count(&mut counts[key], object);
                }
            }
        }
    }
}
