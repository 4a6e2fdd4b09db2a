//! The definitions of a release, for the benchmarks: a file or a folder of them, and the schemas in it.

use std::collections::BTreeMap;
use std::path::Path;

use pushback_crd::schema::Schema;
use pushback_crd::schema::pipeline::Resource;
use pushback_manifest::yaml::{Limits, load};
use serde_json::Value;

/// The schemas of a release, each under the name of its definition and its version.
pub(crate) type Schemas = BTreeMap<(String, String), Schema>;

/// A file, or all of a folder.
pub(crate) fn texts(path: &str) -> Vec<Vec<u8>> {
    let path = Path::new(path);
    let mut files: Vec<_> = match std::fs::read_dir(path) {
        Ok(files) => files.map(|file| file.expect("a file").path()).collect(),
        Err(_) => vec![path.to_owned()],
    };
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("definitions")).collect()
}

/// The documents of these texts.
pub(crate) fn documents(texts: &[Vec<u8>]) -> Vec<Value> {
    let of = |text: &Vec<u8>| load("crds.yaml", text, &Limits::default()).expect("YAML").documents;
    texts.iter().flat_map(of).map(|document| document.value).collect()
}

/// The schemas of these definitions.
pub(crate) fn schemas(definitions: &[Value]) -> Schemas {
    let versions = definitions.iter().flat_map(|definition| {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        versions.map(move |version| (name, version))
    });
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    versions
        .map(|(name, version)| {
            ((name.to_owned(), text_of(&version["name"])), Schema::of(&version["schema"]["openAPIV3Schema"]))
        })
        .collect()
}

/// What two releases both have: old and new.
pub(crate) fn pairs<'s>(old: &'s Schemas, new: &'s Schemas) -> impl Iterator<Item = [Resource<'s>; 2]> {
    old.iter().filter_map(|(key, old)| {
        let new = new.get(key)?;
        let resource = |schema| Resource {
            schema,
            group: "example.com",
            version: &key.1,
            kind: "Example",
            status: false,
            scale: None,
            preserve_unknown_fields: false,
        };
        Some([resource(old), resource(new)])
    })
}
