//! Ownership of the fields that an experiment changes. A patch makes its sender the owner of what it sets; a revert
//! must return the fields to their managers, because an apply neither prunes nor recognises fields that it silently
//! lost.

use pushback_cluster::FIELD_MANAGER;
use pushback_cluster::managed_fields::{self as fields, Element, FieldSet, ManagerEntry, Owner};
use serde_json::{Map, Value, json};

use super::place::{Place, Segment};

/// The `managedFields` entries that own these places, reduced to them. Entries of subresources are left to those who
/// write them.
#[must_use]
pub fn of_places<'p>(live: &Value, places: impl Iterator<Item = &'p Place>) -> Vec<Value> {
    let paths: Vec<Vec<Element>> = places.map(path).collect();
    let owning = |entry: ManagerEntry| {
        let nothing = FieldSet::default();
        let fields = paths.iter().fold(nothing, |owned, path| owned.union(&owned_at(&entry.fields, path)));
        (!fields.is_empty()).then(|| ManagerEntry { fields, ..entry }.to_value())
    };
    entries(live).into_iter().filter_map(owning).collect()
}

/// All entries of `managedFields` except those of subresources.
#[must_use]
pub fn of_object(live: &Value) -> Vec<Value> {
    entries(live).iter().map(ManagerEntry::to_value).collect()
}

/// Whether somebody has taken a place since an experiment changed it: they own more of it than in the `held` entries.
/// Entries as `held` do not count: the former manager of a map that lost its keys keeps the map.
#[must_use]
pub fn is_taken(live: &Value, place: &Place, held: &[Value]) -> bool {
    takers(live, place, held).any(|owner| !is_of_patches(&owner))
}

/// Whether the app itself has taken it: then its manifest determines the value.
#[must_use]
pub fn is_taken_by_app(live: &Value, place: &Place, held: &[Value]) -> bool {
    takers(live, place, held).any(|owner| owner.manager == FIELD_MANAGER && owner.operation == "Apply")
}

/// Owners of more of a place than in the `held` entries.
fn takers(live: &Value, place: &Place, held: &[Value]) -> impl Iterator<Item = Owner> {
    let path = path(place);
    let held = parsed(held);
    entries(live).into_iter().filter_map(move |entry| {
        let before = held.iter().filter(|held| is_same_manager(&held.owner, &entry.owner));
        let before = before.fold(FieldSet::default(), |all, held| all.union(&held.fields));
        let taken = owned_at(&entry.fields, &path).difference(&before);
        (!taken.is_empty()).then_some(entry.owner)
    })
}

/// The operation that returns fields: those that our patches own go to the managers in `before`, or to nobody if nobody
/// owned them, such as defaults. What somebody has taken since stays theirs. `None` if nothing is to be returned.
#[must_use]
pub fn give_back<'p>(live: &Value, places: impl Iterator<Item = &'p Place>, before: &[Value]) -> Option<Value> {
    let mut now = fields::managers(live).ok()?;
    let (own, former): (Vec<ManagerEntry>, Vec<ManagerEntry>) =
        parsed(before).into_iter().partition(|entry| is_of_patches(&entry.owner));
    let ours = &now.iter().find(|entry| is_of_patches(&entry.owner))?.fields;
    let nothing = FieldSet::default();
    let taken = places.fold(nothing, |taken, place| taken.union(&owned_at(ours, &path(place))));
    let taken = own.iter().fold(taken, |taken, entry| taken.difference(&entry.fields));
    if taken.is_empty() {
        return None;
    }
    for entry in now.iter_mut().filter(|entry| is_of_patches(&entry.owner)) {
        entry.fields = entry.fields.difference(&taken);
    }
    for former in former {
        let fields = former.fields.intersection(&taken);
        match now.iter_mut().find(|entry| is_same(&entry.owner, &former.owner)) {
            // Paths may differ in another version.
            Some(entry) if entry.owner.api_version == former.owner.api_version => {
                entry.fields = entry.fields.union(&fields);
            }
            Some(_) => {}
            None => now.push(ManagerEntry { owner: former.owner, fields }),
        }
    }
    now.retain(|entry| !entry.fields.is_empty());
    Some(replacement(&now.iter().map(ManagerEntry::to_value).collect::<Vec<Value>>()))
}

/// The operation that restores all managers of a re-created object; `None` if it had none.
#[must_use]
pub fn give_all_back(before: &[Value]) -> Option<Value> {
    (!before.is_empty()).then(|| replacement(before))
}

fn replacement(entries: &[Value]) -> Value {
    json!({"op": "add", "path": "/metadata/managedFields", "value": entries})
}

/// Unreadable entries count as nobody's and are left as they are.
fn entries(live: &Value) -> Vec<ManagerEntry> {
    let mut entries = fields::managers(live).unwrap_or_default();
    entries.retain(|entry| entry.owner.subresource.is_empty());
    entries
}

fn parsed(before: &[Value]) -> Vec<ManagerEntry> {
    entries(&json!({"metadata": {"managedFields": before}}))
}

/// The part of a set at a path: what continues the path, or an atomic field above it.
fn owned_at(set: &FieldSet, path: &[Element]) -> FieldSet {
    let mut owned = set.difference(&set.without(path));
    let above = (1..path.len()).map(|length| &path[..length]);
    if let Some(whole) = above.into_iter().find(|path| set.below(path).is_some_and(FieldSet::is_leaf)) {
        owned.insert(whole);
    }
    owned
}

fn path(place: &Place) -> Vec<Element> {
    let element = |part: &Segment| match part {
        Segment::Key(key) => Element::field(key),
        Segment::Named(name) => Element::key(&Map::from_iter([("name".to_owned(), name.as_str().into())])),
    };
    place.parts().iter().map(element).collect()
}

fn is_of_patches(owner: &Owner) -> bool {
    owner.manager == FIELD_MANAGER && owner.operation == "Update" && owner.subresource.is_empty()
}

/// The same manager, in any version.
fn is_same_manager(one: &Owner, other: &Owner) -> bool {
    (&one.manager, &one.operation) == (&other.manager, &other.operation)
}

/// Compares managers as the server does: one that applies is the same in every version.
fn is_same(one: &Owner, other: &Owner) -> bool {
    let is_applier = one.operation == "Apply";
    (&one.manager, &one.operation, &one.subresource) == (&other.manager, &other.operation, &other.subresource)
        && (is_applier || one.api_version == other.api_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2026-11-21T12:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn object(entries: &[Value]) -> Value {
        json!({"metadata": {"managedFields": entries}})
    }

    fn mode() -> Place {
        Place::keys(["data", "mode"])
    }

    #[test]
    fn a_field_is_its_managers_again_and_what_else_has_changed_stays() {
        let applied = json!({"f:data": {"f:level": {}, "f:mode": {}}});
        let before = of_places(&object(&[entry("pushback", "Apply", &applied)]), [mode()].iter());
        assert_eq!(before, [entry("pushback", "Apply", &json!({"f:data": {"f:mode": {}}}))]);
        let mark =
            json!({"f:metadata": {"f:annotations": {"f:pushback.dev/experiment": {}}}, "f:data": {"f:mode": {}}});
        let now = object(&[
            entry("pushback", "Apply", &json!({"f:data": {"f:level": {}}})),
            entry("kubectl-edit", "Update", &json!({"f:data": {"f:more": {}}})),
            entry("pushback", "Update", &mark),
        ]);
        let operation = give_back(&now, [mode()].iter(), &before).expect("there is something to give");
        assert_eq!(operation["path"], "/metadata/managedFields");
        let given = operation["value"].as_array().expect("entries");
        assert_eq!(given[0], entry("pushback", "Apply", &applied));
        assert_eq!(given[1], entry("kubectl-edit", "Update", &json!({"f:data": {"f:more": {}}})));
        let left = json!({"f:metadata": {"f:annotations": {"f:pushback.dev/experiment": {}}}});
        assert_eq!(given[2], entry("pushback", "Update", &left));
    }

    #[test]
    fn a_manager_that_had_nothing_else_is_there_again() {
        let applied = json!({"f:subjects": {}});
        let before = of_places(&object(&[entry("helm", "Update", &applied)]), [Place::keys(["subjects"])].iter());
        let now = object(&[entry("pushback", "Update", &applied)]);
        let operation = give_back(&now, [Place::keys(["subjects"])].iter(), &before).expect("something to give");
        assert_eq!(operation["value"], json!([entry("helm", "Update", &applied)]));
    }

    #[test]
    fn what_somebody_has_taken_since_is_not_given_to_another() {
        let field = json!({"f:data": {"f:mode": {}}});
        let before = of_places(&object(&[entry("pushback", "Apply", &field)]), [mode()].iter());
        let now =
            object(&[entry("kubectl", "Apply", &field), entry("pushback", "Update", &json!({"f:data": {"f:x": {}}}))]);
        assert_eq!(give_back(&now, [mode()].iter(), &before), None);
        assert!(is_taken(&now, &mode(), &[]));
        assert!(!is_taken(&now, &mode(), &[entry("kubectl", "Apply", &field)]));
        let untaken = object(&[
            entry("kubectl", "Update", &json!({"f:data": {".": {}, "f:level": {}}})),
            entry("pushback", "Update", &field),
        ]);
        assert!(!is_taken(&untaken, &mode(), &[]));
        assert!(!is_taken_by_app(&now, &mode(), &[]));
        assert!(is_taken_by_app(&object(&[entry("pushback", "Apply", &field)]), &mode(), &[]));
    }

    #[test]
    fn a_map_that_is_left_to_its_manager_without_its_keys_is_not_taken() {
        let bucket = Place::keys(["spec", "storage", "bucket"]);
        let emptied = entry("kubectl-client-side-apply", "Update", &json!({"f:spec": {"f:storage": {}}}));
        let ours = entry("pushback", "Update", &json!({"f:spec": {"f:storage": {"f:bucket": {}}}}));
        let now = object(&[emptied.clone(), ours]);
        assert!(!is_taken(&now, &bucket, &of_places(&now, [bucket.clone()].iter())));
        // Somebody else has applied the whole map since.
        let now = object(&[emptied.clone(), entry("helm", "Apply", &json!({"f:spec": {"f:storage": {}}}))]);
        assert!(is_taken(&now, &bucket, &[emptied]));
    }

    #[test]
    fn what_was_nobodys_is_nobodys_again() {
        let default = json!({"f:spec": {"f:keep": {}}});
        let place = Place::keys(["spec", "keep"]);
        let applied = entry("pushback", "Apply", &json!({"f:spec": {"f:schedule": {}}}));
        let before = of_places(&object(std::slice::from_ref(&applied)), [place.clone()].iter());
        assert_eq!(before, Vec::<Value>::new());
        let now = object(&[applied.clone(), entry("pushback", "Update", &default)]);
        let operation = give_back(&now, [place.clone()].iter(), &before).expect("there is something to give");
        assert_eq!(operation["value"], json!([applied]));
        // Our patches still own what they owned before.
        let before = [entry("pushback", "Update", &default)];
        assert_eq!(give_back(&now, [place].iter(), &before), None);
    }

    #[test]
    fn a_map_that_is_owned_as_one_comes_back_as_one() {
        let place = Place::keys(["spec", "options", "mode"]);
        let whole = json!({"f:spec": {"f:options": {}}});
        let before = of_places(&object(&[entry("pushback", "Apply", &whole)]), [place.clone()].iter());
        let now = object(&[entry("pushback", "Update", &whole)]);
        let operation = give_back(&now, [place].iter(), &before).expect("there is something to give");
        assert_eq!(operation["value"], json!([entry("pushback", "Apply", &whole)]));
    }

    #[test]
    fn elements_of_lists_are_found_by_their_name_and_status_is_its_writers() {
        let named = Segment::Named("two".to_owned());
        let place =
            Place::new(vec![Segment::Key("webhooks".to_owned()), named, Segment::Key("failurePolicy".to_owned())]);
        let fields = json!({"f:webhooks": {"k:{\"name\":\"two\"}": {".": {}, "f:failurePolicy": {}, "f:name": {}}}});
        let mut status = entry("manager", "Update", &fields);
        status["subresource"] = json!("status");
        let before = of_places(&object(&[entry("pushback", "Apply", &fields), status]), [place].iter());
        let only = json!({"f:webhooks": {"k:{\"name\":\"two\"}": {"f:failurePolicy": {}}}});
        assert_eq!(before, [entry("pushback", "Apply", &only)]);
    }

    #[test]
    fn what_cannot_be_understood_is_left_as_it_is() {
        let broken = entry("pushback", "Update", &json!({"x:": {}}));
        assert_eq!(
            give_back(
                &object(std::slice::from_ref(&broken)),
                [mode()].iter(),
                &[entry("a", "Apply", &json!({"f:data": {}}))]
            ),
            None
        );
        assert_eq!(of_places(&object(&[broken]), [mode()].iter()), Vec::<Value>::new());
    }
}
