//! Changes between two releases as a page to look at: the counts first, then the changes by severity, each told once with
//! its values side by side and the places where it is.

use std::collections::BTreeSet;

use askama::Template;
use pushback_objects::Position;
use pushback_objects::text::counted;
use pushback_releases::definitions::DefinitionsDiff;
use pushback_releases::{Change, CrdVerdict, DefinitionChange, ReleaseDiff, Severity};
use pushback_terminal::html::sides::{Row, sides};
use pushback_terminal::html::{Shell, anchor, rendered};
use serde_json::Value;

use super::difference_text::{counts, heading, own, title};
use super::same_changes::{SameChanges, same_changes};

/// Heading of the changes of definitions.
const DEFINITIONS: &str = "CustomResourceDefinitions";

#[derive(Template)]
#[template(path = "difference.html")]
struct DifferencePage {
    shell: Shell,
    outcome: &'static str,
    sentence: String,
    lead: String,
    counts: Vec<String>,
    severities: Vec<(&'static str, usize)>,
    sections: Vec<SectionView>,
}

/// The changes of a severity.
struct SectionView {
    word: &'static str,
    heading: String,
    changes: usize,
    groups: Vec<GroupView>,
}

/// The changes of a component, or of definitions.
struct GroupView {
    anchor: String,
    name: String,
    changes: Vec<ChangeView>,
}

/// One change, or several that are the same.
struct ChangeView {
    anchor: String,
    id: String,
    kind: String,
    headline: String,
    place: String,
    count: String,
    facts: Vec<(&'static str, String)>,
    sides: Vec<Row>,
    /// Anchor, place and position of each of several.
    members: Vec<(String, String, String)>,
}

/// A change with the number of those that it stands for.
struct Told {
    group: String,
    severity: Severity,
    number: usize,
    view: ChangeView,
}

/// Changes between two releases.
#[must_use]
pub(super) fn text(diff: &ReleaseDiff) -> String {
    let mut told: Vec<Told> = Vec::new();
    for component in &diff.component_changes {
        let view = |change: &Change| Told {
            group: heading(component),
            severity: change.severity,
            number: 1,
            view: ChangeView::of_component(change),
        };
        told.extend(own(component).map(view));
    }
    told.extend(same_changes(&diff.crd_changes).iter().map(of_definitions));
    let [components, changes] = counts(diff);
    page(&format!("Upgrade {}", title(diff).replace("->", "→")), changes, vec![components], told)
}

/// Changes between the definitions of two releases.
#[must_use]
pub(super) fn definitions(diff: &DefinitionsDiff, counts: [String; 3]) -> String {
    let told = same_changes(diff.changes()).iter().map(of_definitions).collect();
    let [definitions, changes, objects] = counts;
    page("Definitions", changes, vec![definitions, objects], told)
}

fn page(title: &str, lead: String, counts: Vec<String>, told: Vec<Told>) -> String {
    let worst = told.iter().map(|told| told.severity).max();
    let number: usize = told.iter().filter(|told| Some(told.severity) == worst).map(|told| told.number).sum();
    let sentence = match worst {
        None => format!("{title}: no change"),
        Some(Severity::Breaking) => format!("{title}: {}", counted(number, "breaking change")),
        Some(Severity::Warning) => format!("{title}: {}", counted(number, "change to look at")),
        Some(Severity::Info) => format!("{title}: {}, for information", counted(number, "change")),
    };
    let outcome = match worst {
        Some(Severity::Breaking) => "refused",
        Some(Severity::Warning) => "warned",
        Some(Severity::Info) | None => "passed",
    };
    let sections = sections(told);
    let shown = |section: &SectionView| section.groups.iter().map(|group| group.changes.len()).sum();
    let severities = sections.iter().map(|section| (section.word, shown(section))).collect();
    rendered(&DifferencePage {
        shell: Shell::new(sentence.clone()),
        outcome,
        sentence,
        lead: lead + ".",
        counts,
        severities,
        sections,
    })
}

/// By severity, the worst first; then by component or definitions, in their order.
fn sections(told: Vec<Told>) -> Vec<SectionView> {
    let mut sections: Vec<SectionView> = [Severity::Breaking, Severity::Warning, Severity::Info]
        .map(|severity| SectionView {
            word: severity.as_str(),
            heading: match severity {
                Severity::Breaking => "Breaking".to_owned(),
                Severity::Warning => "Warnings".to_owned(),
                Severity::Info => "For information".to_owned(),
            },
            changes: 0,
            groups: Vec::new(),
        })
        .into();
    let mut anchors = BTreeSet::new();
    for Told { group, severity, number, mut view } in told {
        let Some(section) = sections.iter_mut().find(|section| section.word == severity.as_str()) else { continue };
        section.changes += number;
        let known = section.groups.iter().position(|known| known.name == group).unwrap_or_else(|| {
            let anchor = format!("{}-{}", section.word, section.groups.len() + 1);
            section.groups.push(GroupView { anchor, name: group, changes: Vec::new() });
            section.groups.len() - 1
        });
        view.name_uniquely(&mut anchors);
        section.groups[known].changes.push(view);
    }
    sections.retain(|section| !section.groups.is_empty());
    sections
}

fn of_definitions(same: &SameChanges<'_>) -> Told {
    Told {
        group: DEFINITIONS.to_owned(),
        severity: same.first.severity,
        number: same.all.len(),
        view: ChangeView::of_definitions(same),
    }
}

fn position_text(position: Option<&Position>) -> String {
    position.map(ToString::to_string).unwrap_or_default()
}

fn place_of(change: &DefinitionChange) -> String {
    let parts = [&change.crd_name, &change.version, &change.path];
    parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" ")
}

impl ChangeView {
    fn of_component(change: &Change) -> Self {
        let mut facts = Vec::new();
        facts.extend(Some(change.path.clone()).filter(|path| !path.is_empty()).map(|path| ("where", path)));
        facts.extend(change.position.as_ref().map(|position| ("in the input", position.to_string())));
        facts.extend(change.webhook.as_ref().map(|webhook| ("webhook", webhook.name.clone())));
        Self {
            anchor: anchor(&change.id),
            id: change.id.clone(),
            kind: change.change_type.name(),
            headline: change.message.clone(),
            place: change.path.clone(),
            count: String::new(),
            facts,
            sides: sides(change.old.as_ref(), change.new.as_ref()),
            members: Vec::new(),
        }
    }

    fn of_definitions(same: &SameChanges<'_>) -> Self {
        let first = same.first;
        let mut facts = vec![("where", place_of(first))];
        facts.extend(first.position.as_ref().map(|position| ("in the input", position.to_string())));
        facts.push(("objects", first.verdict.as_str().to_owned()));
        if first.verdict != CrdVerdict::Safe && !first.reason.is_empty() {
            facts.push(("reason", first.reason.clone()));
        }
        let value = |value: &Value| (!value.is_null()).then(|| value.clone());
        let member = |change: &&DefinitionChange| {
            (anchor(&change.id), place_of(change), position_text(change.position.as_ref()))
        };
        Self {
            anchor: anchor(&first.id),
            id: first.id.clone(),
            kind: first.change_type.name(),
            headline: first.detail.clone(),
            place: format!("{} {}", same.definition(), same.place()).trim().to_owned(),
            count: counted(same.all.len(), "place"),
            facts,
            sides: sides(value(&first.old_schema).as_ref(), value(&first.new_schema).as_ref()),
            members: if same.all.len() > 1 { same.all.iter().map(member).collect() } else { Vec::new() },
        }
    }

    /// Changes that are alike in all that an id covers have one id.
    fn name_uniquely(&mut self, taken: &mut BTreeSet<String>) {
        let numbered = (2_usize..).map(|number| format!("{}-{number}", self.anchor));
        let free = std::iter::once(self.anchor.clone()).chain(numbered).find(|name| !taken.contains(name));
        self.anchor = free.unwrap_or_default();
        taken.insert(self.anchor.clone());
        self.members.iter_mut().for_each(|(anchor, ..)| {
            if *anchor != self.anchor && !taken.insert(anchor.clone()) {
                anchor.clone_from(&self.anchor);
            }
        });
    }
}
