//! A definition on a real API server: created, replaced by another and taken away, each awaited; and what of its objects
//! is compared.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::poll::poll;
use crate::support::wait_until;

/// A definition is established in less than a second; a machine under load takes longer.
const DEADLINE: Duration = Duration::from_secs(60);
const COLLECTION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// One, as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition<'v>(pub(super) &'v Value);

impl<'v> Definition<'v> {
    fn text(self, pointer: &str) -> &'v str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn name(self) -> &'v str {
        self.text("/metadata/name")
    }

    pub(super) fn group(self) -> &'v str {
        self.text("/spec/group")
    }

    pub(super) fn kind(self) -> &'v str {
        self.text("/spec/names/kind")
    }

    pub(super) fn converts_with_a_webhook(self) -> bool {
        self.text("/spec/conversion/strategy") == "Webhook"
    }

    pub(super) fn versions(self) -> impl Iterator<Item = &'v Value> {
        self.0["spec"]["versions"].as_array().into_iter().flatten()
    }

    pub(super) fn version(self, name: &str) -> Option<&'v Value> {
        self.versions().find(|version| version["name"] == name)
    }

    pub(super) fn serves(self, name: &str) -> bool {
        self.version(name).is_some_and(|version| version["served"] == true)
    }

    /// Versions whose objects can be read here, where no webhook runs.
    pub(super) fn readable(self) -> impl Iterator<Item = &'v str> {
        let converts = self.converts_with_a_webhook();
        let readable = move |version: &&Value| version["served"] == true && (!converts || version["storage"] == true);
        self.versions().filter(readable).filter_map(|version| version["name"].as_str())
    }

    /// Whether status is written by itself.
    pub(super) fn has_status(self, version: &str) -> bool {
        self.version(version).is_some_and(|version| version["subresources"]["status"].is_object())
    }

    /// Where objects of a version are, in the namespace where they are in one.
    pub(super) fn collection(self, version: &str, namespace: &str) -> String {
        let within =
            if self.text("/spec/scope") == "Namespaced" { format!("namespaces/{namespace}/") } else { String::new() };
        format!("/apis/{}/{version}/{within}{}", self.group(), self.text("/spec/names/plural"))
    }

    fn path(self) -> String {
        format!("{COLLECTION}/{}", self.name())
    }

    /// Puts it on the server; an error is what the server says.
    pub(super) fn create(self, api: &ApiClient) -> Result<(), String> {
        let answer = api.post(COLLECTION, &self.sent());
        if answer.status == 201 { Ok(()) } else { Err(answer.message().to_owned()) }
    }

    /// Without what the server writes.
    fn sent(self) -> Value {
        let mut sent = self.0.clone();
        if let Some(fields) = sent.as_object_mut() {
            fields.shift_remove("status");
        }
        sent
    }

    /// Until its objects can be created; `status.storedVersions` is what it says then.
    pub(super) fn await_established(self, api: &ApiClient) {
        let established = wait_until("the definition is established", DEADLINE, || {
            let definition = api.get(&self.path()).ok();
            let conditions = definition["status"]["conditions"].as_array()?;
            let holds = |it: &Value| it["type"] == "Established" && it["status"] == "True";
            conditions.iter().any(holds).then_some(definition)
        });
        for version in self.readable() {
            let collection = self.collection(version, "default");
            wait_until("the version is served", DEADLINE, || (api.get(&collection).status == 200).then_some(()));
        }
        let stored = &self.0["status"]["storedVersions"];
        if !stored.is_null() && *stored != established["status"]["storedVersions"] {
            api.merge_patch(&format!("{}/status", self.path()), &json!({"status": {"storedVersions": stored}})).ok();
        }
    }

    /// What `status.storedVersions` is.
    pub(super) fn stored_versions(self, api: &ApiClient) -> Value {
        api.get(&self.path()).ok()["status"]["storedVersions"].take()
    }

    /// Puts `new` in its place, with a column of this name; an error is what the server says.
    pub(super) fn replace(self, api: &ApiClient, new: Definition<'_>, column: &str) -> Result<(), String> {
        let mut spec = new.0["spec"].clone();
        for version in spec["versions"].as_array_mut().into_iter().flatten() {
            let named = json!({"name": column, "type": "string", "jsonPath": ".kind"});
            match version["additionalPrinterColumns"].as_array_mut() {
                Some(columns) => columns.push(named),
                None => version["additionalPrinterColumns"] = json!([named]),
            }
        }
        loop {
            let mut definition = api.get(&self.path()).ok();
            definition["spec"] = spec.clone();
            let answer = api.put(&self.path(), &definition);
            match answer.status {
                200 => return Ok(()),
                // Its status was written meanwhile.
                409 => {}
                _ => return Err(answer.message().to_owned()),
            }
        }
    }

    /// Until all that is read is read by it, which the column of [`Self::replace`] shows.
    pub(super) fn await_in_effect(self, api: &ApiClient, column: &str) {
        for version in self.readable() {
            let collection = self.collection(version, "default");
            wait_until("the new definition is in effect", DEADLINE, || {
                let table = api.get_as(&collection, "application/json;as=Table;v=v1;g=meta.k8s.io");
                let columns = table.body["columnDefinitions"].as_array()?.clone();
                columns.iter().any(|it| it["name"] == column).then_some(())
            });
        }
    }

    /// Begins to take it away, with all its objects.
    pub(super) fn delete(self, api: &ApiClient) {
        api.delete(&self.path());
    }

    /// Until another of the same name can be created.
    pub(super) fn await_gone(self, api: &ApiClient) {
        wait_until("the definition is gone", DEADLINE, || (api.get(&self.path()).status == 404).then_some(()));
    }
}

/// What an answer is once it is this one: what a path leads to changes a moment after its definition.
pub(super) fn comes_to_answer(api: &ApiClient, path: &str, status: u16) -> bool {
    poll(DEADLINE, || (api.get(path).status == status).then_some(())).is_some()
}

/// The object without what the server adds.
pub(super) fn content(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("metadata");
    }
    object
}

/// Whether all that was there is there still; new fields may have defaults.
pub(super) fn keeps(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            before.iter().all(|(name, before)| now.get(name).is_some_and(|now| keeps(before, now)))
        }
        (Value::Array(before), Value::Array(now)) => {
            before.len() == now.len() && before.iter().zip(now).all(|(before, now)| keeps(before, now))
        }
        // The server writes a whole number without its fraction.
        (Value::Number(before), Value::Number(now)) => before == now || before.as_f64() == now.as_f64(),
        _ => before == now,
    }
}
