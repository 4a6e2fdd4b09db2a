//! The input of every rule: the change set and the cluster facts that rules asked for, as plain data.
//! A saved facts file is this, serialised; Secrets are masked before it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pushback_conversion::GivenPlan;
use pushback_crd::schema::pipeline::Server;
use pushback_crd::words;
use pushback_objects::invocation::Invocation;
use pushback_objects::object::{ObjectKey, ObjectRef};
use pushback_objects::source::{Document, PathSegment, Position, Positions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cascade::{DeletedOwner, Dependent, UnlistedKind};

mod derived;
mod images;
mod needs;
mod pod_admission;

pub use derived::{DerivedChange, DerivedCrds, UnreadableSource};
pub use images::ImageLookup;
pub use pod_admission::{PodAdmission, PodRefusal};

words! {
    /// What apply does to one object.
    #[derive(Default)]
    pub enum Operation {
        /// The object does not exist yet.
        Create = "create",
        /// The object exists and differs.
        Update = "update",
        /// The object is deleted and created again.
        Replace = "replace",
        /// The object is deleted.
        Delete = "delete",
        /// Nothing is written.
        #[default]
        Noop = "noop",
        /// The object must exist already; nothing is written.
        Exists = "exists",
    }
}

impl Operation {
    /// Whether the operation writes to the cluster.
    #[must_use]
    pub fn writes(self) -> bool {
        self.applies() || self == Self::Delete
    }

    /// Whether the operation writes the manifest.
    #[must_use]
    pub fn applies(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Replace)
    }
}

/// Whether the API server has checked the change in a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state", content = "reason")]
pub enum Verification {
    /// The server accepted it.
    Server,
    /// Nothing is written, so there is nothing to check.
    #[default]
    NotNeeded,
    /// The server could not check it, for this reason. Never a reason to refuse.
    NotVerified(String),
    /// The server rejected it; the findings of rule `server` say why.
    Refused,
}

/// A field whose value this change takes over from another field manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TakenField {
    /// Path for display: `spec.template.spec.containers[name=web].image`.
    pub path: String,
    /// Path in the manifest, to find its position in the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<PathSegment>,
    /// The other manager's value, masked if secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// The new value, masked if secret; `None` if the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// What one field manager loses through a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TakenFrom {
    /// Name of the field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// Subresource, such as `scale`; empty for the object itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// Time of its last write, as the server reports it; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub time: String,
    /// Whether this is the deploy tool that managed the object before. All its fields pass to the app.
    pub predecessor: bool,
    /// Fields whose value it loses. Fields with equal values become shared and are not listed.
    pub fields: Vec<TakenField>,
}

/// The planned change of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The object, in the API version of the live side.
    pub object: ObjectRef,
    /// Plural resource name, such as `deployments`; empty if the kind is not served yet.
    pub resource: String,
    /// Whether its kind is namespaced.
    pub namespaced: bool,
    /// What apply does to the object.
    pub operation: Operation,
    /// The manifest as sent; `None` for deletes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Arc<Value>>,
    /// The live object; `None` if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Arc<Value>>,
    /// The object after the change, from the server's dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<Value>>,
    /// Whether the server has checked the change.
    pub verification: Verification,
    /// Positions in the input; `None` for deletes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<Arc<Positions>>,
    /// The delete only releases the object: it stays in the cluster and no longer belongs to the app.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orphaned: bool,
    /// Field managers that lose fields, in the order of the object's `managedFields`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_from: Vec<TakenFrom>,
}

impl Change {
    /// Whether the live object is deleted, even if another one replaces it.
    #[must_use]
    pub fn ends_live_object(&self) -> bool {
        match self.operation {
            Operation::Delete => !self.orphaned,
            Operation::Replace => true,
            Operation::Create | Operation::Update | Operation::Noop | Operation::Exists => false,
        }
    }

    /// Whether the change can be judged by itself. The effect of a definition, a namespace or a role, or of a deletion,
    /// depends on the other changes.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        let is_bearing = match self.object.group.as_str() {
            "" => ["Namespace", "PersistentVolume", "PersistentVolumeClaim"].contains(&self.object.kind.as_str()),
            "apiextensions.k8s.io" | "rbac.authorization.k8s.io" => true,
            _ => false,
        };
        // An unknown resource is resolved by a definition in the change set.
        !is_bearing && !self.ends_live_object() && !self.resource.is_empty()
    }

    /// The object after the change: the server's answer, else the manifest.
    #[must_use]
    pub fn after(&self) -> Option<&Value> {
        if self.operation == Operation::Delete {
            return None;
        }
        self.result.as_deref().or(self.desired.as_deref()).or(self.live.as_deref())
    }

    /// Position in the input of a path in the manifest.
    #[must_use]
    pub fn locate(&self, path: &[PathSegment]) -> Option<Position> {
        self.positions.as_ref().map(|positions| positions.locate(path))
    }
}

/// All changes of a run, sorted by object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSet {
    /// Name of the app; empty if none is named, and the base of a comparison counts as the app.
    pub app: String,
    /// The user deletes the whole app by name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletes_app: bool,
    /// The changes, sorted by object.
    pub changes: Vec<Change>,
    /// Live objects of the app that are neither in the changes nor deleted: kept by `--patch` or an annotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Arc<Value>>,
    /// CRDs whose present conversion backend this run deletes before they name its successor, because change rules order
    /// it so.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub early_backends: BTreeSet<ObjectKey>,
    /// Changes of CRDs that controllers make from objects of this change set. They follow from the changes and the
    /// answers, so a facts file does not have them.
    #[serde(skip)]
    pub derived: DerivedCrds,
}

impl ChangeSet {
    /// Finds the change of one object, or of a CRD that follows from the change of another one.
    #[must_use]
    pub fn find(&self, key: &ObjectKey) -> Option<&Change> {
        let derived = self.derived.changes.iter().map(|derived| &derived.change);
        self.changes.iter().chain(derived).find(|change| change.object.key() == *key)
    }

    /// The changes of CRDs: those of the change set, then those that follow from changes of other objects.
    pub fn crds(&self) -> impl Iterator<Item = &Change> {
        let own = self.changes.iter().filter(|change| change.object.is_definition());
        own.chain(self.derived.changes.iter().map(|derived| &derived.change))
    }
}

/// The source of the cluster facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterSide {
    /// An API server.
    #[default]
    Server,
    /// A directory or git ref: no users, no permissions, no admission.
    Directory,
}

/// The cluster, as far as rules need to know it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterFacts {
    /// Display name of the cluster: `dir:./live`, or a server's address.
    pub description: String,
    /// Whether this is an API server or a directory.
    pub side: ClusterSide,
    /// Server version `(major, minor)`; `None` on a directory.
    pub version: Option<(u32, u32)>,
    /// Kubernetes version that the user asks about instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_version: Option<(u32, u32)>,
}

impl ClusterFacts {
    /// The API server that objects are judged by: the version that the user asks about, else that of the cluster, else the
    /// newest one that is known.
    #[must_use]
    pub fn judged_server(&self) -> Server {
        self.asked_version.or(self.version).map_or_else(Server::default, |(_, minor)| Server { minor })
    }

    /// Returns whether the user asks about another version than the cluster has.
    #[must_use]
    pub fn is_about_another_version(&self) -> bool {
        self.asked_version.is_some_and(|asked| Some(asked) != self.version)
    }
}

/// One fact that a rule asks the cluster for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "need")]
pub enum Need {
    /// A live object, answered by [`Answer::Object`].
    Object {
        /// Reference to the object.
        object: ObjectRef,
    },
    /// The user's permissions in a namespace (SelfSubjectRulesReview), answered by [`Answer::AccessRules`].
    AccessRules {
        /// Namespace to review.
        namespace: String,
    },
    /// Whether the user may do one thing (SelfSubjectAccessReview), answered by [`Answer::Allowed`].
    Access {
        /// Verb, such as `create`.
        verb: String,
        /// API group.
        group: String,
        /// Plural resource; `*` for all.
        resource: String,
        /// Subresource; may be empty.
        subresource: String,
        /// Namespace; empty for cluster-wide.
        namespace: String,
        /// Object name; empty for all.
        name: String,
    },
    /// All stored objects of a kind, streamed page by page through the rule's `fold`, answered by [`Answer::Folded`].
    Objects {
        /// API group.
        group: String,
        /// API version to read the objects in.
        version: String,
        /// Kind.
        kind: String,
        /// Plural resource name.
        resource: String,
        /// Maximum number of objects; 0 for all.
        limit: u64,
    },
    /// Number of stored objects of a kind, answered by [`Answer::Count`].
    ObjectCount {
        /// API group.
        group: String,
        /// API version to list the objects in.
        version: String,
        /// Kind.
        kind: String,
        /// Plural resource name.
        resource: String,
    },
    /// Operator models in the file or folder named by a setting, answered by [`Answer::Models`]. They are read with the
    /// input, so that an error in them is an input error.
    Models {
        /// File, folder, URL or git ref, like the value of `-f`.
        path: String,
    },
    /// The conversion plans of the run, answered by [`Answer::ConversionPlans`]. They are read with the input, and known
    /// without being asked for.
    ConversionPlans,
    /// Which of these objects exist, and what can be named in them, answered by [`Answer::Existing`].
    Existing {
        /// API group.
        group: String,
        /// Kind.
        kind: String,
        /// Namespace; empty for cluster-scoped kinds.
        namespace: String,
        /// Names to look for.
        names: BTreeSet<String>,
    },
    /// Number of Pods that a label selector selects, answered by [`Answer::Count`]; more than one is not counted.
    PodCount {
        /// Namespace of the Pods.
        namespace: String,
        /// Label selector in the syntax of `kubectl -l`.
        selector: String,
    },
    /// What the program of a policy's rule says, answered by [`Answer::Program`].
    Program {
        /// Name of the rule.
        rule: String,
        /// Number of the definition, from 0.
        number: usize,
    },
    /// All objects of all kinds in a namespace, streamed like `Objects`, answered by [`Answer::Listed`].
    NamespaceContents {
        /// Namespace to list.
        namespace: String,
        /// Group and kind of the resources to skip.
        except: BTreeSet<(String, String)>,
    },
    /// Everything that the garbage collector deletes together with these objects, answered by [`Answer::Dependents`].
    Dependents {
        /// The objects that the change set deletes.
        owners: BTreeSet<DeletedOwner>,
    },
    /// The dry run of a Pod as a controller makes it from the template of a workload, answered by
    /// [`Answer::PodAdmission`].
    PodAdmission {
        /// The workload.
        workload: ObjectRef,
    },
    /// A registry's answer about an image, answered by [`Answer::Image`].
    Image {
        /// Name of the image, as a Pod has it.
        image: String,
        /// Platforms for which it must exist.
        platforms: Vec<String>,
    },
}

/// A set of needs, to be gathered together.
pub type Needs = BTreeSet<Need>;

/// One rule of a SelfSubjectRulesReview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccessRule {
    /// Verbs, such as `get`.
    pub verbs: Vec<String>,
    /// API groups; the empty string is the core group.
    pub api_groups: Vec<String>,
    /// Plural resources; `resource/subresource` for subresources.
    pub resources: Vec<String>,
    /// Object names; empty for all.
    pub resource_names: Vec<String>,
}

/// The answer to a [`Need`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "answer")]
#[non_exhaustive]
pub enum Answer {
    /// The object; `None` if it does not exist.
    Object {
        /// The live object.
        object: Option<Arc<Value>>,
    },
    /// The user's rules in the namespace.
    AccessRules {
        /// Rules as the server returned them.
        rules: Vec<AccessRule>,
        /// Whether the server says that the list may be incomplete.
        incomplete: bool,
    },
    /// What a program has said.
    Program {
        /// Its answer.
        output: Value,
    },
    /// Whether the user may do it.
    Allowed {
        /// True if the server allows it.
        allowed: bool,
        /// Reason given by the server.
        reason: String,
    },
    /// The final states of the rules' `fold`; a rule reads its own with [`Facts::folded`].
    Folded {
        /// Map from rule name to its state, as built by [`crate::Session::fold`].
        state: Value,
        /// Number of objects streamed.
        examined: u64,
        /// Whether the limit ended the stream early.
        cut: bool,
    },
    /// The final states of the rules' `fold` over many kinds.
    Listed {
        /// Map from rule name to its state.
        state: Value,
        /// Number of objects streamed.
        examined: u64,
        /// Kinds whose objects are missing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unlisted: Vec<UnlistedKind>,
    },
    /// The objects that are deleted with their owners.
    Dependents {
        /// The objects, sorted.
        objects: Vec<Dependent>,
        /// Kinds whose objects are missing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unlisted: Vec<UnlistedKind>,
    },
    /// The number of objects.
    Count {
        /// Number of objects.
        objects: u64,
        /// Whether there are more, and the server does not say how many.
        more: bool,
    },
    /// The objects that exist.
    Existing {
        /// What can be named in each, by name: keys of a ConfigMap or Secret, ports of a Service; `None` if not known.
        parts: BTreeMap<String, Option<BTreeSet<String>>>,
    },
    /// The registry's answer about an image.
    Image {
        /// The answer.
        lookup: ImageLookup,
    },
    /// The server's answer to the dry run of a Pod.
    PodAdmission {
        /// The answer.
        admission: PodAdmission,
    },
    /// The operator models, in input order.
    Models {
        /// One document per model.
        documents: Vec<Document>,
    },
    /// The conversion plans, one for each definition that has one.
    ConversionPlans {
        /// The plans.
        plans: Vec<GivenPlan>,
    },
    /// The fact is not available.
    Unable {
        /// Why it is not available.
        reason: String,
    },
}

/// A rule's own share of a folded stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Folded<'a> {
    /// The stream was read.
    State {
        /// Final state of the rule's `fold`; `Null` if there was no page.
        state: &'a Value,
        /// Number of objects streamed.
        examined: u64,
        /// Whether the limit ended the stream early.
        cut: bool,
    },
    /// The stream is not available, for this reason.
    Unable(&'a str),
}

/// Everything that a rule may read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// All changes of the run.
    pub changes: ChangeSet,
    /// The cluster that they are made in.
    pub cluster: ClusterFacts,
    /// Names of the rules in the run: a rule leaves a finding to another rule that judges it better.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rules: BTreeSet<String>,
    /// The command line of the run, for remedies that give it back with another option.
    #[serde(default, skip_serializing_if = "Invocation::is_empty")]
    pub invocation: Invocation,
    /// Needs that were asked for, with their answers.
    #[serde(with = "answers_as_list")]
    pub answers: BTreeMap<Need, Answer>,
}

impl Facts {
    /// Whether an API server answers, and not files.
    #[must_use]
    pub fn are_of_a_server(&self) -> bool {
        self.cluster.side == ClusterSide::Server
    }

    /// The answer to a need; `Unable` if it was not asked for.
    #[must_use]
    pub fn answer(&self, need: &Need) -> Answer {
        self.answers
            .get(need)
            .cloned()
            .unwrap_or_else(|| Answer::Unable { reason: "the fact was not asked for".to_owned() })
    }

    /// The conversion plan for a definition, if the run has one.
    #[must_use]
    pub fn conversion_plan(&self, definition: &str) -> Option<&GivenPlan> {
        match self.answers.get(&Need::ConversionPlans)? {
            Answer::ConversionPlans { plans } => plans.iter().find(|plan| plan.definition == definition),
            _ => None,
        }
    }

    /// A rule's share of a streamed answer; `None` if the need has not been answered yet.
    #[must_use]
    pub fn folded(&self, rule: &str, need: &Need) -> Option<Folded<'_>> {
        Some(match self.answers.get(need)? {
            Answer::Folded { state, examined, cut } => {
                Folded::State { state: state.get(rule).unwrap_or(&Value::Null), examined: *examined, cut: *cut }
            }
            Answer::Listed { state, examined, .. } => {
                Folded::State { state: state.get(rule).unwrap_or(&Value::Null), examined: *examined, cut: false }
            }
            Answer::Unable { reason } => Folded::Unable(reason),
            _ => Folded::Unable("the answer does not fit the question"),
        })
    }

    /// Kinds whose objects are missing in the answer to a need.
    #[must_use]
    pub fn unlisted(&self, need: &Need) -> &[UnlistedKind] {
        match self.answers.get(need) {
            Some(Answer::Listed { unlisted, .. } | Answer::Dependents { unlisted, .. }) => unlisted,
            _ => &[],
        }
    }
}

/// Answers in JSON, whose maps have no keys but text: a list of pairs.
pub mod answers_as_list {
    use super::{Answer, BTreeMap, Need};
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes them.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(answers: &BTreeMap<Need, Answer>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(answers)
    }

    /// Reads them.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Need, Answer>, D::Error> {
        Ok(Vec::<(Need, Answer)>::deserialize(deserializer)?.into_iter().collect())
    }
}
