//! Adds changes of definitions to the rows of the components that own them, as the published report does.

use std::collections::BTreeMap;

use pushback_objects::object::{ObjectExt, ObjectRef};

use super::super::difference::{Change, ChangeType, ComponentChange, DefinitionChange, MatchType};
use super::super::model::{Component, Definition, Release};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

/// Adds every change to the row of the component that owns the definition, if there is exactly one.
pub(super) fn attach(old: &Release, new: &Release, changes: &[DefinitionChange], rows: &mut Vec<ComponentChange>) {
    let mut owners: BTreeMap<&str, Option<(String, String, bool)>> = BTreeMap::new();
    for change in changes {
        let owner = owners.entry(&change.crd_name).or_insert_with(|| {
            // A removed definition has its owner on the old side only.
            let found = |release, is_new: bool| owner(release, &change.crd_name).map(|(one, two)| (one, two, is_new));
            found(new, true).or_else(|| found(old, false))
        });
        if let Some((operator, component, is_new)) = owner {
            row(rows, operator, component, *is_new).changes.push(pointer(change));
        }
    }
}

fn pointer(change: &DefinitionChange) -> Change {
    let object = ObjectRef {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        kind: KIND.to_owned(),
        namespace: String::new(),
        name: change.crd_name.clone(),
    };
    let schema = |value: &serde_json::Value| Some(value.clone()).filter(|value| !value.is_null());
    let pointer = Change::new(ChangeType::CrdSchemaChange, change.severity, &change.path, &change.detail);
    let pointer = pointer.object(&object).values(schema(&change.old_schema), schema(&change.new_schema));
    Change { id: change.id.clone(), position: change.position.clone(), ..pointer }
}

/// The row of a component; a new one if nothing else in it changed.
fn row<'r>(
    rows: &'r mut Vec<ComponentChange>,
    operator: &str,
    component: &str,
    is_new: bool,
) -> &'r mut ComponentChange {
    let is_it = |row: &ComponentChange| {
        let name = if is_new { &row.component_name } else { row.renamed_from.as_ref().unwrap_or(&row.component_name) };
        let other_side = if is_new { MatchType::Removed } else { MatchType::Added };
        row.operator == operator && name == component && row.match_type != other_side
    };
    let index = rows.iter().position(is_it).unwrap_or_else(|| {
        rows.push(ComponentChange {
            operator: operator.to_owned(),
            component_name: component.to_owned(),
            match_type: MatchType::Exact,
            score: None,
            renamed_from: None,
            changes: Vec::new(),
        });
        rows.len() - 1
    });
    &mut rows[index]
}

/// Operator and component that own a definition: the one that manages it, else the one that manages an object of its
/// kind, else the only one in the release.
fn owner(release: &Release, definition: &str) -> Option<(String, String)> {
    let all = || {
        release.operators.iter().flat_map(|operator| operator.components.iter().map(move |one| (&operator.name, one)))
    };
    let only = |test: &dyn Fn(&Component) -> bool| {
        let mut found = all().filter(|(_, component)| test(component));
        let first = found.next()?;
        found.next().is_none().then(|| (first.0.clone(), first.1.name.clone()))
    };
    let (group, kind) = release.definitions.iter().find(|one| one.name == definition).map(of_objects)?;
    let manages = |group: &str, kind: &str, name: Option<&str>| {
        only(&|component| {
            component.resources.iter().any(|resource| {
                let object = &resource.object;
                object.group == group && object.kind == kind && name.is_none_or(|name| object.name == name)
            })
        })
    };
    manages(GROUP, KIND, Some(definition)).or_else(|| manages(group, kind, None)).or_else(|| only(&|_| true))
}

/// Group and kind of a definition's objects.
fn of_objects(definition: &Definition) -> (&str, &str) {
    (definition.value.text("/spec/group"), definition.value.text("/spec/names/kind"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::super::super::difference::{CrdVerdict, ReleaseDiff, Severity};
    use super::super::super::model::{Operator, Resource};
    use super::*;

    fn definition() -> Definition {
        let value = json!({"spec": {"group": "example.com", "names": {"kind": "Widget"}}});
        Definition { name: "widgets.example.com".to_owned(), value: Arc::new(value), positions: None }
    }

    fn change() -> DefinitionChange {
        DefinitionChange {
            path: "spec.storage".to_owned(),
            change_type: ChangeType::FieldRemoved,
            severity: Severity::Breaking,
            old_schema: json!({"type": "object"}),
            new_schema: Value::Null,
            detail: "field removed".to_owned(),
            verdict: CrdVerdict::Breaking,
            reason: String::new(),
            crd_name: "widgets.example.com".to_owned(),
            version: "v1".to_owned(),
            keyword: String::new(),
            id: "1234".to_owned(),
            position: None,
            proved: Vec::new(),
        }
    }

    /// Group, kind and name.
    type Managed = (&'static str, &'static str, &'static str);

    /// A release of components with the objects that they manage.
    fn release(components: &[(&str, Option<Managed>)]) -> Release {
        let component = |&(name, managed): &(&str, Option<Managed>)| {
            let object = |(group, kind, name): Managed| ObjectRef {
                group: group.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                ..ObjectRef::default()
            };
            let resources = managed.map(|managed| Resource { object: object(managed), ..Resource::default() });
            Component { name: name.to_owned(), resources: resources.into_iter().collect(), ..Component::default() }
        };
        let components = components.iter().map(component).collect();
        let operator = Operator { name: "o".to_owned(), components, ..Operator::default() };
        Release { operators: vec![operator], definitions: vec![definition()], ..Release::default() }
    }

    fn rows(release: &Release) -> Vec<ComponentChange> {
        let mut rows = Vec::new();
        attach(release, release, &[change()], &mut rows);
        rows
    }

    #[test]
    fn the_component_that_owns_a_definition_has_its_changes() {
        let own = (GROUP, KIND, "widgets.example.com");
        for (components, owner) in [
            (vec![("a", None), ("b", Some(own))], Some("b")),
            (vec![("a", Some(("example.com", "Widget", "x"))), ("b", None)], Some("a")),
            (vec![("a", Some(("other.com", "Widget", "x"))), ("b", None)], None),
            (vec![("only", None)], Some("only")),
            (vec![("a", Some(own)), ("b", Some(own))], None),
            (vec![], None),
        ] {
            let rows = rows(&release(&components));
            assert_eq!(rows.first().map(|row| row.component_name.as_str()), owner, "{components:?}");
        }
    }

    #[test]
    fn a_change_has_the_published_form_and_counts_once() {
        let rows = rows(&release(&[("only", None)]));
        let written = serde_json::to_value(&rows[0].changes[0]).unwrap();
        assert_eq!(
            written,
            json!({
                "id": "1234",
                "type": "CRDSchemaChange",
                "severity": "breaking",
                "path": "spec.storage",
                "message": "field removed",
                "object": {
                    "group": GROUP, "version": "v1", "kind": KIND, "namespace": "", "name": "widgets.example.com"
                },
                "old": {"type": "object"},
            })
        );
        let mut diff = ReleaseDiff { component_changes: rows, crd_changes: vec![change()], ..ReleaseDiff::default() };
        diff.summarise();
        assert_eq!((diff.summary.breaking_changes, diff.summary.components_modified), (1, 1));
    }
}
