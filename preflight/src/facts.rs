//! What rules judge: the change set, and the cluster facts that they asked for, as plain data.
//! A saved facts file is this, serialised; Secrets are masked before it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::{ObjectExt, ObjectKey, ObjectRef};
use crate::source::{Document, PathSegment, Position, Positions};
use crate::words;

words! {
    /// What is going to be done to one object.
    pub enum Operation {
        /// It does not exist yet.
        Create = "create",
        /// It exists and differs.
        Update = "update",
        /// It is deleted and created anew.
        Replace = "replace",
        /// It is deleted.
        Delete = "delete",
        /// Nothing is written.
        Noop = "noop",
        /// It must exist already; nothing is written.
        Exists = "exists",
    }
}

impl Operation {
    /// Whether it writes to the cluster.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Replace | Self::Delete)
    }
}

/// Whether the API server has seen the change in a dry-run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state", content = "reason")]
pub enum Verification {
    /// It has, and accepted it.
    Server,
    /// Nothing to verify: nothing is written.
    NotNeeded,
    /// It could not; the reason says why. Never a reason to refuse.
    NotVerified(String),
    /// It refused; the findings of rule `server` say what.
    Refused,
}

/// A field whose value a change takes from another field manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TakenField {
    /// The path as it is shown, `spec.template.spec.containers[name=web].image`.
    pub path: String,
    /// Where it is in the manifest, for its place in the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<PathSegment>,
    /// The other manager's value, masked where it is secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// The value that takes its place, masked; `None` where the field goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// What one field manager loses by a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TakenFrom {
    /// Name of the field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// `scale` and the like; empty for the object itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// When it wrote the object last, as the server says it; empty where unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub time: String,
    /// A deploy tool whose object this has been until now: everything that it owned becomes the app's.
    pub predecessor: bool,
    /// The fields whose values it loses. Fields of equal value are shared from then on, and are not among them.
    pub fields: Vec<TakenField>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The object as the live side knows it.
    pub object: ObjectRef,
    /// Plural resource name, such as `deployments`; empty where the kind is not served yet.
    pub resource: String,
    /// Whether its kind is namespaced.
    pub namespaced: bool,
    /// What is done.
    pub operation: Operation,
    /// The manifest as it is sent; `None` for deletes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Arc<Value>>,
    /// The live object; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Arc<Value>>,
    /// What the object becomes, as the server's dry-run answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<Value>>,
    /// Whether the server has seen it.
    pub verification: Verification,
    /// Places in the input; `None` for deletes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<Arc<Positions>>,
    /// The delete only lets go of the object: it stays, and no longer belongs to the app.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orphaned: bool,
    /// Whose fields it takes over, in the order of the object's `managedFields`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_from: Vec<TakenFrom>,
}

impl Change {
    /// Whether the live object ceases to exist, be it that another one takes its place.
    #[must_use]
    pub fn ends_live_object(&self) -> bool {
        match self.operation {
            Operation::Delete => !self.orphaned,
            Operation::Replace => true,
            Operation::Create | Operation::Update | Operation::Noop | Operation::Exists => false,
        }
    }

    /// Whether what it means shows in itself. What a definition, a namespace or a role means, and what goes with an
    /// object that ends, shows among the other changes only.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        let is_bearing = match self.object.group.as_str() {
            "" => ["Namespace", "PersistentVolume", "PersistentVolumeClaim"].contains(&self.object.kind.as_str()),
            "apiextensions.k8s.io" | "rbac.authorization.k8s.io" => true,
            _ => false,
        };
        // Where the resource is not known, a definition of the set tells it.
        !is_bearing && !self.ends_live_object() && !self.resource.is_empty()
    }

    /// What the object will be: the server's answer, or else the manifest.
    #[must_use]
    pub fn after(&self) -> Option<&Value> {
        if self.operation == Operation::Delete {
            return None;
        }
        self.result.as_deref().or(self.desired.as_deref()).or(self.live.as_deref())
    }

    /// Where a path of the manifest stands in the input.
    #[must_use]
    pub fn locate(&self, path: &[PathSegment]) -> Option<Position> {
        self.positions.as_ref().map(|positions| positions.locate(path))
    }
}

/// All changes of a run, sorted by object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSet {
    /// App name.
    pub app: String,
    /// The user deletes the whole app, by its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletes_app: bool,
    /// The changes.
    pub changes: Vec<Change>,
    /// CustomResourceDefinitions of the live side that the input lacks, sorted by object. Only where no app is named, so
    /// that nothing is pruned: a comparison of files then still sees that a definition has gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_definitions: Vec<MissingDefinition>,
}

/// A definition that the live side has and the input has not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingDefinition {
    /// The definition.
    pub object: ObjectRef,
    /// As the live side has it.
    pub live: Arc<Value>,
}

impl ChangeSet {
    /// The change of one object.
    #[must_use]
    pub fn find(&self, key: &ObjectKey) -> Option<&Change> {
        self.changes.iter().find(|change| change.object.key() == *key)
    }

    /// How many changes do `operation`.
    #[must_use]
    pub fn count(&self, operation: Operation) -> usize {
        self.changes.iter().filter(|change| change.operation == operation).count()
    }
}

/// The kind of cluster that the facts come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterSide {
    /// An API server.
    #[default]
    Server,
    /// A directory or git ref: no users, no permissions, no admission.
    Directory,
}

/// The cluster, as far as rules need it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterFacts {
    /// How the cluster is shown: `dir:./live`, a server's address.
    pub description: String,
    /// API server or directory.
    pub side: ClusterSide,
    /// Server version `(major, minor)`; `None` on a directory.
    pub version: Option<(u32, u32)>,
}

/// One fact that a rule asks the cluster for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "need")]
pub enum Need {
    /// The live object: [`Answer::Object`].
    Object {
        /// Which.
        object: ObjectRef,
    },
    /// What this user may do in a namespace, a SelfSubjectRulesReview: [`Answer::AccessRules`].
    AccessRules {
        /// The namespace.
        namespace: String,
    },
    /// Whether this user may do one thing, a SelfSubjectAccessReview: [`Answer::Allowed`].
    Access {
        /// Verb, such as `create`.
        verb: String,
        /// API group.
        group: String,
        /// Plural resource, `*` for all.
        resource: String,
        /// Subresource, or empty.
        subresource: String,
        /// Namespace; empty for cluster-wide.
        namespace: String,
        /// Object name; empty for all.
        name: String,
    },
    /// All stored objects of a kind, streamed page by page through the rule's `fold`: [`Answer::Folded`].
    Objects {
        /// API group.
        group: String,
        /// API version to read them in.
        version: String,
        /// Kind.
        kind: String,
        /// Plural resource.
        resource: String,
        /// Stop after this many objects; 0 for all.
        limit: u64,
    },
    /// The operator models of a file or folder that a setting names: [`Answer::Models`]. Read with the input, so that
    /// what is wrong with them is an error of the input.
    Models {
        /// File, folder, URL or git ref, as `-f` takes it.
        path: String,
    },
    /// All objects of all kinds in a namespace, streamed in the same way: [`Answer::Folded`].
    NamespaceContents {
        /// The namespace.
        namespace: String,
        /// Group and kind of what is not asked for.
        except: BTreeSet<(String, String)>,
    },
}

impl Need {
    /// Whether the fact tells what goes with the object of a change: the objects of a definition's kind, what is in a
    /// namespace, the volume of a claim. What it says may be outdated by the time the change is made.
    #[must_use]
    pub fn tells_what_goes_with(&self, change: &Change) -> bool {
        let live = change.live.as_deref();
        let text = |pointer: &str| live.map(|live| live.text(pointer)).unwrap_or_default();
        let is = |group: &str, kind: &str| change.object.group == group && change.object.kind == kind;
        match self {
            Self::Objects { group, kind, .. } => {
                is("apiextensions.k8s.io", "CustomResourceDefinition")
                    && (group.as_str(), kind.as_str()) == (text("/spec/group"), text("/spec/names/kind"))
            }
            Self::NamespaceContents { namespace, .. } => is("", "Namespace") && *namespace == change.object.name,
            Self::Object { object } => {
                is("", "PersistentVolumeClaim")
                    && (object.group.as_str(), object.kind.as_str()) == ("", "PersistentVolume")
                    && object.name == text("/spec/volumeName")
            }
            Self::AccessRules { .. } | Self::Access { .. } | Self::Models { .. } => false,
        }
    }
}

/// A set of needs; asked for together.
pub type Needs = BTreeSet<Need>;

/// One rule of a SelfSubjectRulesReview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccessRule {
    /// Verbs.
    pub verbs: Vec<String>,
    /// API groups.
    pub api_groups: Vec<String>,
    /// Resources, `resource/subresource` for subresources.
    pub resources: Vec<String>,
    /// Object names; empty means all.
    pub resource_names: Vec<String>,
}

/// The answer to a [`Need`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "answer")]
pub enum Answer {
    /// The object, or `None` where it does not exist.
    Object {
        /// The live object.
        object: Option<Arc<Value>>,
    },
    /// The user's rules in the namespace.
    AccessRules {
        /// The rules.
        rules: Vec<AccessRule>,
        /// The server says that the list may lack some.
        incomplete: bool,
    },
    /// Whether it is allowed.
    Allowed {
        /// Allowed.
        allowed: bool,
        /// Reason given by the server.
        reason: String,
    },
    /// The states that the rules' `fold` ended with; a rule reads its own with [`Facts::folded`].
    Folded {
        /// A map from rule name to its state, as [`crate::Session::fold`] makes it.
        state: Value,
        /// How many objects went through.
        examined: u64,
        /// Whether the limit cut the stream short.
        cut: bool,
    },
    /// The models, in input order.
    Models {
        /// The documents.
        documents: Vec<Document>,
    },
    /// The fact could not be had.
    Unable {
        /// Why.
        reason: String,
    },
}

/// A rule's own part of a folded stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Folded<'a> {
    /// The stream went through.
    State {
        /// The state that the rule's `fold` ended with; `Null` where no page came.
        state: &'a Value,
        /// How many objects went through.
        examined: u64,
        /// Whether the limit cut the stream short.
        cut: bool,
    },
    /// It could not be had.
    Unable(&'a str),
}

/// Everything that a rule may look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The change set.
    pub changes: ChangeSet,
    /// The cluster.
    pub cluster: ClusterFacts,
    /// The rules of the run: one leaves to another what that one judges better.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rules: BTreeSet<String>,
    /// What was asked and answered.
    #[serde(with = "answers_as_list")]
    pub answers: BTreeMap<Need, Answer>,
}

impl Facts {
    /// The answer to a need; a need that nobody asked for is `Unable`.
    #[must_use]
    pub fn answer(&self, need: &Need) -> Answer {
        self.answers
            .get(need)
            .cloned()
            .unwrap_or_else(|| Answer::Unable { reason: "the fact was not asked for".to_owned() })
    }

    /// The part of a stream's answer that belongs to the rule called `rule`; `None` where nobody has asked yet.
    #[must_use]
    pub fn folded(&self, rule: &str, need: &Need) -> Option<Folded<'_>> {
        Some(match self.answers.get(need)? {
            Answer::Folded { state, examined, cut } => {
                Folded::State { state: state.get(rule).unwrap_or(&Value::Null), examined: *examined, cut: *cut }
            }
            Answer::Unable { reason } => Folded::Unable(reason),
            _ => Folded::Unable("the answer does not fit the question"),
        })
    }
}

mod answers_as_list {
    use super::{Answer, BTreeMap, Need};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(answers: &BTreeMap<Need, Answer>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(answers)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Need, Answer>, D::Error> {
        Ok(Vec::<(Need, Answer)>::deserialize(deserializer)?.into_iter().collect())
    }
}
