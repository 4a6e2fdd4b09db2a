//! Causes as text: what a refusal is about, in the order of what hurts, each with the smallest object that shows it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pushback_manifest::excerpt::Excerpt;
use pushback_objects::text::counted;
use pushback_objects::{Finding, Severity};
use pushback_preflight::cause::{Cause, causes, headline, live_total};
use pushback_preflight::registry;
use serde_json::Value;

use crate::decided_text::DecidedFindings;
use crate::error_text::place;
use crate::escape::terminal_safe;
use crate::finding_card::{CardStyle, FindingCard, object_name, rule_and_check, waivable, weight};
use crate::finding_text::{CardHead, VALUE_LIMIT, card_head, fact, finding_text, witness_lines};
use crate::object_rows::{differ, folded_rows, object_rows};
use crate::theme::{Look, Role, Theme, severity_role};
use crate::witness_excerpt;
use crate::words::{column_width, hang, pad, shorten};

/// Most places, and most fields that share all but their name, that a cause names.
const PLACES: usize = 3;
const FIELDS: usize = 16;
/// Most causes told at length, and most objects in the table.
const BLOCKS: usize = 100;
const ROWS: usize = 20;
/// Most findings that are told one by one if none refuses.
const FEW: usize = 3;
/// Most causes that are told with the input lines and the witness as YAML.
const ROOMY: usize = 2;
/// Widest name that the columns of the table are aligned to.
const NAME_WIDTH: usize = 48;

/// A finding, and the lines of the input that it is about.
pub type Judged = (Finding, Option<Box<Excerpt>>);

impl Look {
    fn style(self) -> CardStyle {
        CardStyle { ellipsis: self.theme.ellipsis(), places: PLACES }
    }
}

/// What preflight found.
#[must_use]
pub fn judged_text(judged: Vec<Judged>, look: Look) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let mut decided = DecidedFindings::default();
    let mut told = judged;
    told.retain(|(finding, _)| look.verbose || !decided.hold(finding));
    let text = told_text(&told, look);
    format!("\n{text}{}", hang(&decided.show(look.theme), look.width))
}

/// What no live object has decided.
fn told_text(judged: &[Judged], look: Look) -> String {
    let findings: Vec<Finding> = judged.iter().map(|(finding, _)| finding.clone()).collect();
    let causes = causes(&findings);
    let (loud, quiet): (Vec<&Cause>, Vec<&Cause>) =
        causes.iter().partition(|cause| cause.severity == Severity::Error && !cause.is_waived());
    let mut text = String::new();
    if look.verbose || (loud.is_empty() && findings.len() <= FEW) {
        for cause in &causes {
            for (finding, excerpt) in cause.at.iter().map(|index| &judged[*index]) {
                let card = FindingCard::new(finding, look.style());
                text += &finding_text(&card, excerpt.as_deref(), look.theme, look.width);
            }
        }
    } else {
        text += &blocks(&loud, judged, &findings, look);
        text += &quiet_lines(&quiet, &findings, look);
    }
    if loud.len() > 1 || loud.iter().any(|cause| cause.objects > 1) {
        text += &table(&loud, &findings, look);
    }
    if look.verbose {
        text += &accepting(&loud, &findings);
    }
    text
}

/// The waivers that accept causes, ready for a Config document but for their reason.
#[must_use]
pub fn accepting(causes: &[&Cause], findings: &[Finding]) -> String {
    accepting_until(causes, findings, None)
}

/// The same with the last day on which they count.
#[must_use]
pub fn accepting_until(causes: &[&Cause], findings: &[Finding], expires: Option<&str>) -> String {
    let mut text = String::new();
    for cause in causes.iter().filter(|cause| waivable(&findings[cause.at[0]]).is_some()) {
        let about = shorten(&cause.headline, VALUE_LIMIT, "...");
        text +=
            &format!("- rule: {}\n  cause: \"{}\"\n", terminal_safe(&cause.rule), terminal_safe(&cause.fingerprint));
        text += &format!("  # {}\n  members:\n", terminal_safe(&about));
        cause.members.iter().for_each(|member| text += &format!("  - \"{}\"\n", terminal_safe(member)));
        text += &match expires {
            None => "  reason: \"\" # why it is acceptable; `owner` and `expires` can follow\n".to_owned(),
            Some(day) => format!("  reason: \"\" # why it is acceptable\n  expires: \"{day}\"\n"),
        };
    }
    if text.is_empty() { text } else { format!("preflightWaivers:\n{text}\n") }
}

/// Every cause at length; fields that share all but their name with an earlier one are named there.
fn blocks(loud: &[&Cause], judged: &[Judged], findings: &[Finding], look: Look) -> String {
    let mut families: Vec<Vec<&Cause>> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for cause in loud {
        let finding = &findings[cause.at[0]];
        let hits = cause.live_objects.as_ref().is_some_and(|live| live.affected > 0);
        let alike = format!(
            "{:?}",
            (&cause.rule, &cause.check, cause.verdict, &finding.old, &finding.new, &finding.effect, &cause.undecided)
        );
        match known.get(&alike) {
            // Only what differs in nothing but the field's name is left to a word.
            Some(index) if finding.path.is_some() && finding.version.is_some() && !hits => families[*index].push(cause),
            _ => {
                if !hits {
                    known.insert(alike, families.len());
                }
                families.push(vec![cause]);
            }
        }
    }
    let roomy = families.len() <= ROOMY;
    let mut text = String::new();
    let mut said_fixes = BTreeSet::new();
    for family in families.iter().take(BLOCKS) {
        let Some((cause, rest)) = family.split_first() else { continue };
        let mut card = FindingCard::of_cause(cause, findings, look.style());
        let excerpts = cause.at.iter().map(|index| &judged[*index]).filter(|_| roomy);
        let shown = excerpts.filter_map(|(finding, excerpt)| Some((finding, excerpt.as_deref()?))).next();
        card.position = shown.map_or(card.position, |(finding, _)| finding.position.as_ref());
        card.remedies.retain(|(_, steps)| said_fixes.insert(steps.clone()));
        text += &block(&card, shown.map(|(_, excerpt)| excerpt), rest, roomy, look);
    }
    let left: usize = families.iter().skip(BLOCKS).map(Vec::len).sum();
    if left > 0 {
        text += &format!("{} and {}, which --verbose shows\n\n", look.theme.ellipsis(), counted(left, "more cause"));
    }
    text
}

fn block(card: &FindingCard<'_>, excerpt: Option<&Excerpt>, rest: &[&Cause], roomy: bool, look: Look) -> String {
    let Look { theme, width, .. } = look;
    let CardHead { mut text, margin, change } = card_head(card, excerpt, theme, width);
    let mut line = |key: &str, value: &str| text += &fact(key, value, &margin, width);
    if !roomy {
        line("at", &card.place);
    }
    let is_several = breaks_one_of_several(card.finding);
    let is_in_change = card.finding.version.is_some() && !card.change.contains('…');
    let has_values = change.is_some() || is_several || is_in_change;
    for (key, value) in card.facts() {
        match (key, &card.effect, &card.affected) {
            ("old" | "new", ..) if has_values => {}
            ("old" | "new", ..) => line(key, &shorten(&value, VALUE_LIMIT, theme.ellipsis())),
            ("object" | "path", ..) | ("live", Some(_), _) if !roomy => {}
            ("effect", _, Some(live)) if !roomy => line(key, &format!("{value}; {live}")),
            _ => line(key, &value),
        }
    }
    if let Some((witness, smallest)) = card.witness.zip(card.cause.and_then(|cause| cause.witness.as_ref())) {
        match roomy {
            true => {
                let lines = witness_excerpt::lines(witness, &smallest.pointer, theme.ellipsis());
                text += &witness_lines(&lines, &margin, theme, width);
            }
            false => line("witness", &witness_excerpt::one_line(witness, &smallest.pointer, theme.ellipsis())),
        }
        if is_several && !smallest.message.is_empty() {
            text += &fact("breaks", &smallest.message, &margin, width);
        }
    }
    if !rest.is_empty() {
        text += &fact("same in", &fields(rest, theme), &margin, width);
    }
    card.advice().iter().for_each(|(key, value)| text += &fact(key, value, &margin, width));
    text + "\n"
}

/// The names of fields for which the same is true.
fn fields(rest: &[&Cause], theme: Theme) -> String {
    // Fields of one name and several schemas are one name.
    let mut fields: Vec<(&str, usize)> = Vec::new();
    for cause in rest {
        let field = cause.headline.strip_prefix("field \"").and_then(|rest| rest.split_once("\": "));
        let field = field.map_or(cause.headline.as_str(), |(field, _)| field);
        match fields.iter_mut().find(|(known, _)| *known == field) {
            Some((_, places)) => *places += cause.places,
            None => fields.push((field, cause.places)),
        }
    }
    let name = |(field, places): &(&str, usize)| match places {
        1 => (*field).to_owned(),
        places => format!("{field} ({places} places)"),
    };
    let mut names: Vec<String> = fields.iter().take(FIELDS).map(name).collect();
    if fields.len() > FIELDS {
        names.push(format!("{} and {} more", theme.ellipsis(), fields.len() - FIELDS));
    }
    format!("{}: {}", counted(fields.len(), "more field"), names.join(", "))
}

/// Whether the change is several at once, so that the witness has to say which of them it breaks.
fn breaks_one_of_several(finding: &Finding) -> bool {
    let several = finding.new.as_ref().and_then(Value::as_array).is_some_and(|rules| rules.len() > 1);
    match finding.check.as_str() {
        "x-kubernetes-validations" => several,
        check => ["allOf", "anyOf", "oneOf", "not"].contains(&check),
    }
}

/// Warnings, waived findings and information, a line for each kind.
fn quiet_lines(quiet: &[&Cause], findings: &[Finding], look: Look) -> String {
    let mut text = String::new();
    for QuietLine { role, label, words } in quiet_kinds(quiet, findings, look.style()) {
        let label = look.theme.paint(role, &terminal_safe(&label));
        text += &hang(&format!("{label}: {}\n", terminal_safe(&words)), look.width);
    }
    if !text.is_empty() {
        text = hang(&format!("{} (--verbose shows each)\n", text.trim_end()), look.width) + "\n";
    }
    text
}

/// Findings of one kind that refuse nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietLine {
    /// Role that colours the label.
    pub role: Role,
    /// `warning[CRDUpgradeSafety/enum]`, `waived`, `info`.
    pub label: String,
    /// The findings in words.
    pub words: String,
}

/// Findings that refuse nothing, by kind.
#[must_use]
pub fn quiet_kinds(quiet: &[&Cause], findings: &[Finding], style: CardStyle) -> Vec<QuietLine> {
    let mut kinds: Vec<(String, Vec<&Cause>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for cause in quiet {
        let first = &findings[cause.at[0]];
        let spared = cause.live_objects.as_ref().is_some_and(|live| live.affected == 0 && live.examined > 0);
        let kind = match (cause.is_waived(), cause.severity) {
            // Where a policy is loosened is always said in full.
            _ if first.rule == registry::POLICY => format!("policy {}", cause.fingerprint),
            (true, _) => format!("waived {}", first.waived.as_deref().unwrap_or_default()),
            (_, Severity::Info) => "info".to_owned(),
            _ if spared => "spared".to_owned(),
            _ => rule_and_check(first),
        };
        let place = *places.entry(kind.clone()).or_insert(kinds.len());
        match kinds.get_mut(place) {
            Some((_, causes)) => causes.push(cause),
            None => kinds.push((kind, vec![cause])),
        }
    }
    let mut lines = Vec::new();
    for (kind, causes) in &kinds {
        let first = &findings[causes[0].at[0]];
        let number: usize = causes.iter().map(|cause| cause.at.len()).sum();
        let members = || causes.iter().flat_map(|cause| &cause.at).map(|index| &findings[*index]);
        let (role, label, said) = match () {
            () if first.rule == registry::POLICY => {
                let place =
                    first.position.as_ref().map(|position| format!(" ({})", place(position))).unwrap_or_default();
                let remedy = first.remedy.as_ref().map(|remedy| format!(": {remedy}")).unwrap_or_default();
                let label = format!("{}[{}]", weight(first), rule_and_check(first));
                (severity_role(first.severity), label, format!("{}{place}{remedy}", headline(first)))
            }
            () if causes[0].is_waived() => (
                Role::Quiet,
                "waived".to_owned(),
                format!(
                    "{} ({}): {}",
                    counted(number, "finding"),
                    checks(causes),
                    first.waived.as_deref().unwrap_or_default()
                ),
            ),
            () if causes[0].severity == Severity::Info => (
                severity_role(Severity::Info),
                "info".to_owned(),
                format!("{}: {}", counted(number, "change"), checks(causes)),
            ),
            () if kind == "spared" => {
                let of = live_total(members()).unwrap_or_default();
                let said = format!(
                    "{} ({}) affect none of {}",
                    counted(number, "change"),
                    checks(causes),
                    counted(of.examined, "object")
                );
                (Role::Caution, "warning".to_owned(), said)
            }
            () if number == 1 => (Role::Caution, format!("warning[{kind}]"), FindingCard::new(first, style).title()),
            () => {
                let objects = members().map(object_name).collect::<BTreeSet<_>>().len();
                let said = format!(
                    "{} (in {} of {})",
                    causes[0].headline,
                    counted(number, "place"),
                    counted(objects, "object")
                );
                (Role::Caution, format!("warning[{kind}]"), said)
            }
        };
        lines.push(QuietLine { role, label, words: said });
    }
    lines
}

/// `minLength 27, pattern`.
fn checks(causes: &[&Cause]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for cause in causes {
        let check = if cause.check.is_empty() { cause.rule.as_str() } else { cause.check.as_str() };
        match counts.iter_mut().find(|(known, _)| *known == check) {
            Some((_, count)) => *count += cause.at.len(),
            None => counts.push((check, cause.at.len())),
        }
    }
    let word =
        |(check, count): &(&str, usize)| if *count > 1 { format!("{count} {check}") } else { (*check).to_owned() };
    counts.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// A row for each object that refuses: its causes, what they affect, and what to do now. Rows that are alike are one;
/// nothing if no row differs from the others.
fn table(loud: &[&Cause], findings: &[Finding], look: Look) -> String {
    let objects = object_rows(loud, findings);
    if !differ(&objects) {
        return String::new();
    }
    let objects = if look.verbose { objects } else { folded_rows(loud, findings) };
    let mut rows = vec![["OBJECT", "CAUSES", "AFFECTED", "WHAT NOW"].map(ToOwned::to_owned)];
    for object in objects.iter().take(ROWS) {
        let safe = terminal_safe(&object.name).into_owned();
        rows.push([safe, object.causes.to_string(), object.affected.clone(), object.now.clone()]);
    }
    let width = |column: usize| column_width(rows.iter().map(|row| row[column].as_str()), NAME_WIDTH);
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [name, causes, live, now] in &rows {
        let line = format!("{}  {}  {}  {now}", pad(name, widths[0]), pad(causes, widths[1]), pad(live, widths[2]));
        text += &hang(&(line.trim_end().to_owned() + "\n"), look.width);
    }
    if objects.len() > ROWS {
        text += &format!("{} and {}\n", look.theme.ellipsis(), counted(objects.len() - ROWS, "more row"));
    }
    text + "\n"
}

#[cfg(test)]
mod tests;
