//! Objects that the garbage collector deletes with their owners.

use super::*;

fn owner() -> Value {
    with_uid(object("ex.com/v1", "Owner", "owner"))
}

fn crd(name: &str) -> Value {
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
}

fn controlled(dependent: Value) -> Value {
    let mut dependent = owned(dependent, "owner");
    dependent["metadata"]["ownerReferences"][0]["controller"] = json!(true);
    dependent
}

fn labelled(mut object: Value, app: &str) -> Value {
    object["metadata"]["labels"] = json!({"kapp.k14s.io/app": app});
    object
}

/// The findings without the remedies, under the settings of the default set.
fn by_default(changes: Vec<Change>, cluster: &Cluster) -> String {
    let changes = ChangeSet { app: "shop".into(), deletes_app: cluster.deletes_app, changes, ..ChangeSet::default() };
    let selection = select(None, None).expect("the defaults are valid");
    let mut selection = selection;
    selection.rules.retain(|selected| selected.rule.meta().name == NAME);
    let side = if cluster.directory { ClusterSide::Directory } else { ClusterSide::Server };
    let mut session = Session::of(selection, changes, ClusterFacts { side, ..ClusterFacts::default() });
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        let answers: Vec<_> = needs.into_iter().map(|need| (need.clone(), cluster.answer(&session, &need))).collect();
        session.answer(answers);
    }
    reported(&session.finish(Judgement::default(), &[], "2026-01-01").0)
}

#[test]
fn crd_owned_by_a_deleted_object_is_refused() {
    for dependent in [owned(crd("gadgets.ex.com"), "owner"), controlled(crd("gadgets.ex.com"))] {
        let found = by_default(vec![delete(owner())], &Cluster::with(&[dependent]));
        insta::allow_duplicates! {
            insta::assert_snapshot!(found, @"
            Refused
            dependentsDeleted Error Owner.ex.com owner: the Owner is deleted, and the garbage collector deletes 1 object outside the app with it: CustomResourceDefinition gadgets.ex.com
            ");
        }
    }
}

#[test]
fn object_owned_by_a_deleted_crd_itself_is_refused() {
    let definition = with_uid(crd("gadgets.ex.com"));
    let dependent = owned(object("v1", "ConfigMap", "shop/theirs"), "gadgets.ex.com");
    for change in [delete(definition.clone()), replace(definition)] {
        let found = by_default(vec![change], &Cluster::with(std::slice::from_ref(&dependent)));
        assert!(found.contains("dependentsDeleted Error CustomResourceDefinition gadgets.ex.com"), "{found}");
    }
}

#[test]
fn object_made_by_a_controller_is_expected_and_any_other_is_outside() {
    let made = controlled(object("ex.com/v1", "Revision", "shop/made"));
    assert_eq!(by_default(vec![delete(owner())], &Cluster::with(&[made])), "Passed\n");
    let written = owned(object("v1", "Secret", "shop/written"), "owner");
    let found = by_default(vec![delete(owner())], &Cluster::with(&[written]));
    assert!(found.starts_with("Refused\ndependentsDeleted"), "{found}");
    let of_other_app = labelled(controlled(object("v1", "ConfigMap", "shop/theirs")), "other");
    let found = by_default(vec![delete(labelled(owner(), "shop"))], &Cluster::with(&[of_other_app]));
    assert!(found.starts_with("Refused\ndependentsDeleted"), "{found}");
}

#[test]
fn objects_below_an_object_outside_the_app_are_outside_too() {
    let outside = owned(object("ex.com/v1", "Foo", "shop/outside"), "owner");
    let mut below = controlled(object("v1", "ConfigMap", "shop/below"));
    below["metadata"]["ownerReferences"][0]["uid"] = json!("outside");
    let found = by_default(vec![delete(owner())], &Cluster::with(&[outside, below]));
    assert!(found.contains("deletes 2 objects outside the app"), "{found}");
}

#[test]
fn object_that_the_app_keeps_is_not_deleted_with_its_owner() {
    let kept = labelled(owned(object("v1", "ConfigMap", "shop/kept"), "owner"), "shop");
    let keep = change(Operation::Noop, Some(kept.clone()), Some(kept.clone()));
    let found = by_default(vec![delete(owner()), keep], &Cluster::with(std::slice::from_ref(&kept)));
    insta::assert_snapshot!(found, @"
    Refused
    ownObjectDeleted Error ConfigMap shop/kept: the app keeps it, but the garbage collector deletes it with its owner, Owner.ex.com owner
    ");
    // The manifest has no owner references, and its apply leaves those of others.
    let manifest = labelled(object("v1", "ConfigMap", "shop/kept"), "shop");
    for operation in [Operation::Noop, Operation::Update] {
        let keep = Change { result: None, ..change(operation, Some(kept.clone()), Some(manifest.clone())) };
        let found = by_default(vec![delete(owner()), keep], &Cluster::with(std::slice::from_ref(&kept)));
        assert!(found.starts_with("Refused\nownObjectDeleted"), "{operation:?}: {found}");
    }
    // A change that removes the owner reference keeps it.
    let mut free = kept.clone();
    free["metadata"]["ownerReferences"] = json!([]);
    let release = change(Operation::Update, Some(kept.clone()), Some(free));
    assert_eq!(by_default(vec![delete(owner()), release], &Cluster::with(std::slice::from_ref(&kept))), "Passed\n");
    // The change set deletes both.
    assert_eq!(by_default(vec![delete(owner()), delete(kept.clone())], &Cluster::with(&[kept])), "Passed\n");
}

#[test]
fn object_created_with_a_deleted_owner_is_refused() {
    let new = owned(object("v1", "ConfigMap", "shop/new"), "owner");
    let create = change(Operation::Create, None, Some(new));
    let found = by_default(vec![delete(owner()), create], &Cluster::default());
    assert!(found.starts_with("Refused\nownObjectDeleted"), "{found}");
}

#[test]
fn claim_of_a_deleted_owner_is_refused_if_its_volume_is_deleted() {
    let mut claim = controlled(claim("pv-1"));
    claim["spec"]["volumeName"] = json!("pv-1");
    let with = |policy: &str| Cluster::with(&[claim.clone(), volume(policy)]);
    let found = by_default(vec![delete(owner())], &with("Delete"));
    assert!(found.starts_with("Refused\npersistentVolumeClaimDeleted"), "{found}");
    assert_eq!(by_default(vec![delete(owner())], &with("Retain")), "Passed\n");
    // Deleting the app by name asks for the deletion of its data.
    let wanted = Cluster { deletes_app: true, ..with("Delete") };
    let found = by_default(vec![delete(owner())], &wanted);
    assert!(found.starts_with("Warned\npersistentVolumeClaimDeleted"), "{found}");
}

#[test]
fn kinds_that_cannot_be_listed_are_named_once() {
    let missing = |resource: &str| UnlistedKind {
        resource: resource.to_owned(),
        namespace: String::new(),
        reason: format!("no right to list {resource} in all namespaces"),
    };
    let cluster = Cluster { unlisted: vec![missing("a.ex.com"), missing("b.ex.com")], ..Cluster::default() };
    let two = || vec![delete(owner()), delete(with_uid(object("ex.com/v1", "Owner", "second")))];
    insta::assert_snapshot!(by_default(two(), &cluster), @"
    Warned
    notListed Warning Owner.ex.com owner: it is not known what else the deletions of this run delete: no right to list a.ex.com in all namespaces, no right to list b.ex.com in all namespaces
    ");
    assert!(run(two(), &cluster).starts_with("Unable"), "a rule that is named is unable");
}

#[test]
fn folder_warns_of_a_claim_and_a_namespace_and_refuses_nothing() {
    let folder = Cluster { directory: true, ..Cluster::default() };
    let found = by_default(vec![delete(claim("")), delete(namespace())], &folder);
    assert!(found.starts_with("Warned\n"), "{found}");
    assert_eq!(found.matches("Warning").count(), 2, "{found}");
}
