//! Pairs CRDs of one name that are in several files, file by file. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::input::Manifest;

/// A CRD of the base and the one that is compared with it.
pub type VariantPair = (Manifest, Manifest);

/// Makes the best pair of each CRD the one in the manifests, and returns the other pairs. A file that only the base has
/// is paired with the most similar new one: whoever used it has to change to another. A file that only the new side has
/// is not compared.
pub fn pair_variants(old: (&mut [Manifest], Vec<Manifest>), new: (&mut [Manifest], Vec<Manifest>)) -> Vec<VariantPair> {
    let (old_manifests, old_variants) = old;
    let (new_manifests, new_variants) = new;
    let names: BTreeSet<String> =
        old_variants.iter().chain(&new_variants).map(|variant| variant.object.name.clone()).collect();
    let mut further = Vec::new();
    for name in names {
        let is_named = |manifest: &&Manifest| manifest.object.is_definition() && manifest.object.name == name;
        let all = |manifests: &[Manifest], variants: &[Manifest]| -> Vec<Manifest> {
            manifests.iter().chain(variants).filter(is_named).cloned().collect()
        };
        let (before, after) = (all(old_manifests, &old_variants), all(new_manifests, &new_variants));
        let mut pairs = pair(&before, &after).into_iter();
        let Some((one, other)) = pairs.next() else { continue };
        for (manifests, chosen) in [(&mut *old_manifests, one), (&mut *new_manifests, other)] {
            if let Some(place) = manifests.iter_mut().find(|manifest| is_named(&&**manifest)) {
                *place = chosen;
            }
        }
        further.extend(pairs.filter(|(one, other)| one.value != other.value));
    }
    further
}

/// A pair for each old one, in the order of the old ones.
fn pair(old: &[Manifest], new: &[Manifest]) -> Vec<VariantPair> {
    let likeness = |one: &Manifest, other: &Manifest| {
        let (one, other) = (Path::new(one.positions.file()), Path::new(other.positions.file()));
        one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
    };
    let mut ranked: Vec<(usize, usize, usize)> = Vec::new();
    for (before, one) in old.iter().enumerate() {
        ranked.extend(new.iter().enumerate().map(|(after, other)| (likeness(one, other), before, after)));
    }
    ranked.sort_by_key(|(likeness, before, after)| (std::cmp::Reverse(*likeness), *before, *after));
    let mut pairs: BTreeMap<usize, usize> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (_, before, after) in &ranked {
        if !pairs.contains_key(before) && taken.insert(*after) {
            pairs.insert(*before, *after);
        }
    }
    for (_, before, after) in ranked {
        pairs.entry(before).or_insert(after);
    }
    pairs.into_iter().map(|(before, after)| (old[before].clone(), new[after].clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pushback_objects::{ObjectRef, Positions};
    use serde_json::json;

    use super::*;

    fn crd(file: &str, content: u32) -> Manifest {
        let value = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.ex.com"}, "spec": {"content": content}});
        Manifest { object: ObjectRef::of(&value), value, positions: Arc::new(Positions::of_file(file)) }
    }

    fn pairs(old: &[(&str, u32)], new: &[(&str, u32)]) -> Vec<(u64, u64)> {
        let crds = |files: &[(&str, u32)]| -> Vec<Manifest> { files.iter().map(|it| crd(it.0, it.1)).collect() };
        let (mut old, mut new) = (crds(old), crds(new));
        let (old_variants, new_variants) = (old.split_off(1), new.split_off(1));
        let further = pair_variants((&mut old, old_variants), (&mut new, new_variants));
        let content = |manifest: &Manifest| manifest.value["spec"]["content"].as_u64().unwrap_or_default();
        let first = (content(&old[0]), content(&new[0]));
        std::iter::once(first).chain(further.iter().map(|(one, other)| (content(one), content(other)))).collect()
    }

    #[test]
    fn variants_are_paired_file_by_file() {
        let old = [("git:main:crd/full/foos.yaml", 1), ("git:main:crd/minimal/foos.yaml", 2)];
        assert_eq!(pairs(&old, &[("crd/minimal/foos.yaml", 12), ("crd/full/foos.yaml", 11)]), [(1, 11), (2, 12)]);
        // Equal variants are not a further pair.
        assert_eq!(pairs(&old, &[("crd/full/foos.yaml", 11), ("crd/minimal/foos.yaml", 2)]), [(1, 11)]);
        // Of a removed variant, the users have to take the other one.
        assert_eq!(pairs(&old, &[("crd/minimal/foos.yaml", 12)]), [(1, 12), (2, 12)]);
        // Nobody uses an added one yet.
        assert_eq!(pairs(&old[1..], &[("crd/full/foos.yaml", 11), ("crd/minimal/foos.yaml", 12)]), [(2, 12)]);
    }
}
