//! Asks the server ahead what rules are sure to ask about a write, while the objects are still being compared:
//! preflight then does not wait for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use pushback_cluster::Cluster;
use pushback_preflight::registry;
use pushback_preflight::rule::Rule;
use pushback_preflight::selection::Selection;
use pushback_preflight::{Answer, Need, Needs};
use tokio::task::JoinHandle;

use super::gather;

/// Questions that have been asked ahead.
#[derive(Debug)]
pub struct Ahead {
    cluster: Arc<dyn Cluster>,
    rules: Vec<&'static dyn Rule>,
    asked: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    namespaces: BTreeSet<String>,
    answers: BTreeMap<Need, JoinHandle<Result<Answer, String>>>,
}

impl Ahead {
    /// Asks ahead for these rules; a directory is asked nothing.
    #[must_use]
    pub fn new(cluster: Arc<dyn Cluster>, selection: &Selection) -> Self {
        let selected = if cluster.capabilities().server { selection.rules.as_slice() } else { &[] };
        let rules = selected.iter().map(|selected| selected.rule).collect();
        Self { cluster, rules, asked: Mutex::default() }
    }

    /// The cluster that is asked.
    pub(super) fn cluster(&self) -> &dyn Cluster {
        &*self.cluster
    }

    /// The answers to these needs as far as they were asked ahead, and the needs that are still open. A question whose
    /// answer failed is open again; the answers to what is not needed are forgotten.
    pub(super) async fn answers(&self, needs: Needs) -> (Vec<(Need, Answer)>, Needs) {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        let mut answers = Vec::new();
        let mut open = Needs::new();
        for need in needs {
            let answer = match asked.answers.remove(&need) {
                Some(answer) => answer.await.ok().and_then(Result::ok),
                None => None,
            };
            match answer {
                Some(answer) => answers.push((need, answer)),
                None => _ = open.insert(need),
            }
        }
        (answers, open)
    }

    /// Keeps answers for the rules.
    pub(super) fn keep(&self, answers: impl Iterator<Item = (Need, Answer)>) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = answers.map(|(need, answer)| (need, tokio::spawn(std::future::ready(Ok(answer)))));
        asked.answers.extend(kept);
    }

    /// Asks ahead about a write in a namespace, or of a cluster-scoped object if it is empty.
    pub fn write_in(&self, namespace: &str) {
        if self.rules.is_empty() {
            return;
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.namespaces.insert(namespace.to_owned()) {
            return;
        }
        for need in self.rules.iter().flat_map(|rule| registry::needs_of_write_in(*rule, namespace)) {
            asked.answers.entry(need).or_insert_with_key(|need| {
                let (cluster, need) = (Arc::clone(&self.cluster), need.clone());
                tokio::spawn(async move { gather::review(&*cluster, &need).await })
            });
        }
    }
}
