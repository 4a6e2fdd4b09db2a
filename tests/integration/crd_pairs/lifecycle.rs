//! The pairs about a definition as a whole on a real API server: what it refuses, what it no longer serves, what is lost
//! between versions, and that objects of a safe pair stay as they are in every version.

use pushback_crd::schema::Schema;
use pushback_crd::schema::pipeline::{self, Resource, Server};
use pushback_crd::schema::testing::Generator;
use serde_json::Value;

use super::definition::Definition;
use super::trial::{Tally, Trial, run};
use super::{At, Pair, judge, pairs};
use crate::support::case::show;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![ApiServer: the_api_server_treats_definitions_and_versions_as_found]
}

fn the_api_server_treats_definitions_and_versions_as_found() {
    let cluster = TestCluster::shared();
    let of_definitions = |pair: &Pair| pair.at == At::Definition && pair.refused.is_none();
    let trials: Vec<Trial> = pairs().into_iter().filter(of_definitions).map(trial).collect();
    let Tally { witnesses, definitions, masked, kept, wrong } =
        run(cluster.api(), &cluster.namespace("lifecycle"), &trials);
    show(&format!(
        "{} pairs about definitions: {definitions} findings about the definition and {witnesses} with a witness confirmed, \
         {masked} behind a refusal, {kept} objects kept",
        trials.len()
    ));
    assert!(wrong.is_empty(), "{} otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(definitions > 10 && witnesses > 3 && kept > 10, "{definitions} {witnesses} {kept}");
}

fn trial(pair: Pair) -> Trial {
    let (old, new) = (pair.before(), pair.after());
    let given = pair.objects.iter().map(|object| {
        let (_, version) = object["apiVersion"].as_str().and_then(|it| it.split_once('/')).expect("a version");
        (version.to_owned(), object.clone())
    });
    let made = Definition(&old).readable().filter_map(|version| Some((version.to_owned(), plain(&old, version)?)));
    Trial { plain: given.chain(made).collect(), findings: judge(&old, &new).findings, name: pair.name, old, new }
}

/// An object that the definition takes as it is, with something in it.
fn plain(definition: &Value, version: &str) -> Option<Value> {
    let definition = Definition(definition);
    let schema = &definition.version(version)?["schema"]["openAPIV3Schema"];
    let read = Schema::of(schema);
    let (group, kind) = (definition.group(), definition.kind());
    let resource =
        Resource { schema: &read, group, version, kind, status: false, scale: None, preserve_unknown_fields: false };
    let mut generator = Generator::new(1);
    let made = |_| {
        let mut made = generator.object_of(schema);
        made["apiVersion"] = format!("{group}/{version}").into();
        made["kind"] = kind.into();
        let admission = pipeline::create(&resource, Server::default(), &made);
        (admission.accepted() == Some(true) && !admission.loses()).then_some(admission.object)
    };
    let taken: Vec<Value> = (0..50).filter_map(made).collect();
    taken.into_iter().max_by_key(|object| object.as_object().map_or(0, serde_json::Map::len))
}
