//! Random schemas and objects from one grammar, for tests that compare two judgements of the same input. The same seed
//! gives the same schemas and objects.

mod damage;
pub mod edit;
mod formats;
mod words;

use serde_json::{Map, Value, json};

use self::words::{FORMATS, NAMES, PATTERNS, TEXTS};
use super::Schema;
use super::pipeline::Resource;

/// A resource with this schema.
#[must_use]
pub fn resource(schema: &Schema) -> Resource<'_> {
    Resource {
        schema,
        group: "example.com",
        version: "v1",
        kind: "Test",
        status: false,
        scale: None,
        preserve_unknown_fields: false,
    }
}

/// A pseudo-random generator.
#[derive(Clone, Debug)]
pub struct Generator {
    state: u64,
}

impl Generator {
    /// A generator with the sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number of the sequence (SplitMix64).
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draw() >> 33).unwrap_or_default() % end
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A schema of one version: an object whose `spec` has a random schema.
    pub fn schema(&mut self) -> Value {
        json!({"type": "object", "properties": {"spec": self.node(3)}})
    }

    /// A random schema of one node.
    pub fn node(&mut self, depth: usize) -> Value {
        let mut node = match self.below(if depth == 0 { 5 } else { 10 }) {
            0 | 1 => self.string(),
            2 => self.number(),
            3 => self.int_or_string(),
            4 => json!({"type": "boolean"}),
            5 | 6 => self.array(depth),
            _ => self.object(depth),
        };
        if self.chance(12) {
            node["nullable"] = true.into();
        }
        if self.chance(15) && node["x-kubernetes-int-or-string"].is_null() {
            self.combine(&mut node);
        }
        if self.chance(10) {
            self.rule(&mut node);
        }
        if self.chance(12) {
            let default = self.value(&node);
            if !default.is_null() {
                node["default"] = default;
            }
        }
        // Indexing reads an absent key as null.
        if let Value::Object(map) = &mut node {
            map.retain(|_, value| !value.is_null());
        }
        node
    }

    fn string(&mut self) -> Value {
        let mut node = json!({"type": "string"});
        match self.below(6) {
            0 => node["format"] = (*self.pick(&FORMATS)).into(),
            1 => node["pattern"] = (*self.pick(&PATTERNS)).into(),
            2 => node["enum"] = (0..=self.below(3)).map(|_| *self.pick(&TEXTS)).collect(),
            _ => {}
        }
        self.string_bounds(&mut node);
        node
    }

    fn string_bounds(&mut self, node: &mut Value) {
        if self.chance(25) {
            node["minLength"] = self.below(3).into();
        }
        if self.chance(25) {
            node["maxLength"] = (1 + self.below(4)).into();
        }
    }

    fn number(&mut self) -> Value {
        let is_integer = self.chance(65);
        let mut node = json!({"type": if is_integer { "integer" } else { "number" }});
        match self.below(6) {
            0 => node["format"] = (*self.pick(&["int32", "int64", "float", "double", "date"])).into(),
            1 => node["enum"] = (0..=self.below(2)).map(|_| self.bound(is_integer)).collect(),
            2 => {
                node["multipleOf"] = if is_integer {
                    (1 + self.below(4)).into()
                } else {
                    (*self.pick(&[0.5, 0.1, 2.0, 2.5, 1.0])).into()
                }
            }
            _ => {}
        }
        self.number_bounds(&mut node, is_integer);
        node
    }

    fn number_bounds(&mut self, node: &mut Value, is_integer: bool) {
        for (limit, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
            if self.chance(25) {
                node[limit] = self.bound(is_integer);
                if self.chance(30) {
                    node[exclusive] = true.into();
                }
            }
        }
    }

    fn bound(&mut self, is_integer: bool) -> Value {
        if self.chance(6) {
            return self.pick(&edges()).clone();
        }
        if is_integer || self.chance(50) {
            (i64::try_from(self.below(12)).unwrap_or_default() - 3).into()
        } else {
            (*self.pick(&[0.5, 2.5, -1.5, 1e10, 3.0])).into()
        }
    }

    fn int_or_string(&mut self) -> Value {
        let mut node = json!({"x-kubernetes-int-or-string": true});
        match self.below(4) {
            0 => node["anyOf"] = json!([{"type": "integer"}, {"type": "string"}]),
            1 => node["allOf"] = json!([{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"maxLength": 2}]),
            2 if self.chance(20) => node["allOf"] = json!([{"format": *self.pick(&FORMATS)}]),
            _ => {}
        }
        if self.chance(30) {
            self.string_bounds(&mut node);
        }
        if self.chance(30) {
            self.number_bounds(&mut node, true);
        }
        if self.chance(15) {
            node["pattern"] = (*self.pick(&PATTERNS)).into();
        }
        if self.chance(15) {
            node["enum"] = json!([*self.pick(&TEXTS), self.bound(true)]);
        }
        node
    }

    fn array(&mut self, depth: usize) -> Value {
        let mut node = json!({"type": "array"});
        match self.below(5) {
            0 => {
                let mut items = self.node(0);
                if let Value::Object(map) = &mut items {
                    map.remove("nullable");
                    map.remove("default");
                }
                node["items"] = items;
                node["x-kubernetes-list-type"] = "set".into();
            }
            1 => {
                let mut items = json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]});
                let mut keys = vec!["k"];
                if self.chance(50) {
                    items["properties"]["p"] = json!({"type": "integer", "default": 1});
                    keys.push("p");
                }
                items["properties"]["v"] = self.node(depth - 1);
                node["items"] = items;
                node["x-kubernetes-list-type"] = "map".into();
                node["x-kubernetes-list-map-keys"] = keys.into();
            }
            _ => node["items"] = self.node(depth - 1),
        }
        if self.chance(20) {
            node["minItems"] = self.below(3).into();
        }
        if self.chance(20) {
            node["maxItems"] = (1 + self.below(3)).into();
        }
        node
    }

    fn object(&mut self, depth: usize) -> Value {
        let mut node = json!({"type": "object"});
        match self.below(8) {
            0 => {
                node["additionalProperties"] = self.node(depth - 1);
            }
            1 => node["additionalProperties"] = true.into(),
            2 => node["x-kubernetes-preserve-unknown-fields"] = true.into(),
            3 => {
                node["x-kubernetes-embedded-resource"] = true.into();
                if self.chance(70) {
                    node["x-kubernetes-preserve-unknown-fields"] = true.into();
                } else {
                    node["properties"] = json!({"a": self.node(depth - 1)});
                }
            }
            choice => {
                let mut properties = Map::new();
                for _ in 0..=self.below(3) {
                    properties.insert((*self.pick(&NAMES)).to_owned(), self.node(depth - 1));
                }
                let required: Vec<Value> =
                    properties.keys().filter(|_| self.below(100) < 30).map(|name| name.as_str().into()).collect();
                if !required.is_empty() {
                    node["required"] = required.into();
                }
                node["properties"] = properties.into();
                if choice == 7 && self.chance(50) {
                    node["x-kubernetes-preserve-unknown-fields"] = true.into();
                }
                if self.chance(10) {
                    node["x-kubernetes-map-type"] = (*self.pick(&["atomic", "granular"])).into();
                }
            }
        }
        if self.chance(10) {
            node["minProperties"] = (1 + self.below(2)).into();
        }
        if self.chance(10) {
            node["maxProperties"] = (1 + self.below(3)).into();
        }
        node
    }

    /// Adds a rule of `x-kubernetes-validations`.
    fn rule(&mut self, node: &mut Value) {
        let names: Vec<&str> =
            node["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let rule = match node["type"].as_str().unwrap_or_default() {
            "string" if node["format"].is_null() => (*self.pick(&[
                "self.size() > 1",
                "self.startsWith('a')",
                "self.matches('^[a-c]+$')",
                "self == oldSelf",
                "self in ['a', 'ab', '65']",
                "self.contains('b') || self < 'b'",
            ]))
            .to_owned(),
            "integer" => {
                (*self.pick(&["self > 0", "self >= oldSelf", "self % 2 == 0", "self + 1 < 6", "10 / self > 1"]))
                    .to_owned()
            }
            "number" => (*self.pick(&["self > 0.5", "self >= oldSelf"])).to_owned(),
            "boolean" => (*self.pick(&["self", "!self", "self == oldSelf"])).to_owned(),
            "array" => (*self.pick(&[
                "self.size() < 2",
                "self.size() >= oldSelf.size()",
                "self.all(x, x == x)",
                "self.exists_one(x, true)",
            ]))
            .to_owned(),
            "object" if names.contains(&"a") && names.contains(&"b") && self.chance(50) => {
                "!has(self.a) || !has(self.b) || dyn(self.a) == dyn(self.b)".to_owned()
            }
            "object" if names.contains(&"a") => {
                (*self.pick(&["has(self.a)", "!has(self.a) || self.a == self.a", "has(self.a) == has(oldSelf.a)"]))
                    .to_owned()
            }
            _ => return,
        };
        let mut validation = json!({"rule": rule});
        if rule.contains("oldSelf") && self.chance(20) {
            validation = json!({"rule": format!("!oldSelf.hasValue() || {}", rule.replace("oldSelf", "oldSelf.value()")), "optionalOldSelf": true});
        }
        node["x-kubernetes-validations"] = json!([validation]);
    }

    /// Adds `allOf`, `anyOf`, `oneOf` or `not`.
    fn combine(&mut self, node: &mut Value) {
        let branches: Vec<Value> = (0..=self.below(2)).map(|_| self.branch(node, 2)).collect();
        match self.below(4) {
            0 => node["allOf"] = branches.into(),
            1 => node["anyOf"] = branches.into(),
            2 => node["oneOf"] = branches.into(),
            _ => node["not"] = self.branch(node, 2),
        }
    }

    /// Constraints on values of `node` that a structural schema allows inside its combinators.
    fn branch(&mut self, node: &Value, depth: usize) -> Value {
        let mut branch = json!({});
        match node["type"].as_str().unwrap_or_default() {
            "string" => {
                self.string_bounds(&mut branch);
                if self.chance(40) {
                    branch["pattern"] = (*self.pick(&PATTERNS)).into();
                }
                if self.chance(25) {
                    branch["enum"] = (0..=self.below(3)).map(|_| *self.pick(&TEXTS)).collect();
                }
                if self.chance(15) {
                    branch["format"] = (*self.pick(&FORMATS)).into();
                }
            }
            kind @ ("integer" | "number") => {
                self.number_bounds(&mut branch, kind == "integer");
                if self.chance(20) {
                    branch["multipleOf"] = (1 + self.below(3)).into();
                }
                if self.chance(15) {
                    branch["enum"] = (0..=self.below(4)).map(|_| self.bound(kind == "integer")).collect();
                }
            }
            "array" => {
                branch[*self.pick(&["minItems", "maxItems"])] = (1 + self.below(2)).into();
                if depth > 0 && self.chance(40) {
                    branch["items"] = self.branch(&node["items"], depth - 1);
                }
            }
            "object" => {
                let properties = node["properties"].as_object();
                for (name, property) in properties.into_iter().flatten() {
                    if depth > 0 && self.chance(50) {
                        branch["properties"][name] = self.branch(property, depth - 1);
                    }
                    if self.chance(40) {
                        let mut required: Vec<Value> = branch["required"].as_array().cloned().unwrap_or_default();
                        required.push(name.as_str().into());
                        branch["required"] = required.into();
                    }
                }
                if properties.is_none() || self.chance(20) {
                    branch[*self.pick(&["minProperties", "maxProperties"])] = (1 + self.below(2)).into();
                }
            }
            _ => branch["enum"] = json!([true]),
        }
        if let Value::Object(map) = &mut branch {
            map.retain(|_, value| !value.is_null());
        }
        branch
    }

    /// An object of kind `Test` in `example.com/v1` that is nearly valid.
    pub fn object_of(&mut self, schema: &Value) -> Value {
        let spec = self.value(&schema["properties"]["spec"]);
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Test", "metadata": {"name": "a"}});
        if self.chance(95) {
            object["spec"] = spec;
        }
        object
    }

    /// A value that is valid for the node, or nearly so.
    pub fn value(&mut self, node: &Value) -> Value {
        if self.chance(5) {
            return self.noise();
        }
        let mut merged = node.clone();
        if self.chance(50) {
            let branches = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| node[*keyword].as_array());
            let branches: Vec<&Value> = branches.flatten().collect();
            if !branches.is_empty()
                && let (Value::Object(merged), Some(branch)) = (&mut merged, self.pick(&branches).as_object())
            {
                for (keyword, value) in branch.iter().filter(|(keyword, _)| *keyword != "properties") {
                    merged.insert(keyword.clone(), value.clone());
                }
            }
        }
        if let Some(allowed) = merged["enum"].as_array().filter(|_| self.below(100) < 75) {
            return self.pick(allowed).clone();
        }
        match merged["type"].as_str() {
            Some("string") if merged["format"].is_string() && self.chance(15) => json!([*self.pick(&TEXTS)]),
            Some("string") => (*self.pick(&TEXTS)).into(),
            Some("integer" | "number") => self.numeric(&merged),
            Some("boolean") => self.chance(50).into(),
            Some("array") => self.list(&merged),
            Some("object") => self.map(&merged),
            _ if merged["x-kubernetes-int-or-string"] == true => {
                if self.chance(50) {
                    (*self.pick(&TEXTS)).into()
                } else {
                    self.numeric(&merged)
                }
            }
            _ => self.noise(),
        }
    }

    fn numeric(&mut self, node: &Value) -> Value {
        let limit = node[*self.pick(&["minimum", "maximum", "multipleOf"])].as_f64();
        let offset = *self.pick(&[-1.0, -0.5, 0.0, 0.0, 0.5, 1.0]);
        let is_integer = node["type"] != "number";
        match limit.filter(|_| self.below(100) < 60) {
            // Nearly a multiple: the server ignores digits beyond the ninth.
            Some(limit) if !is_integer && self.chance(15) => (limit * 3.0 * (1.0 + 1e-9)).into(),
            #[expect(clippy::cast_possible_truncation, reason = "cut at the ends of 64 bits, where the bound is")]
            Some(limit) if (limit + offset).fract() == 0.0 && (is_integer || self.chance(50)) => {
                ((limit + offset) as i64).into()
            }
            Some(limit) => (limit + offset).into(),
            None => {
                let pool = [
                    json!(0),
                    json!(1),
                    json!(-1),
                    json!(2),
                    json!(5),
                    json!(65),
                    json!(97),
                    json!(2.0),
                    json!(2.5),
                    json!(-3.0),
                    json!(1e-7),
                    json!(5.000_000_000_1),
                    json!(2_147_483_648_i64),
                    json!(1e300),
                    json!(9_007_199_254_740_993_i64),
                    json!(i64::MAX),
                    json!(9_223_372_036_854_775_808_u64),
                ];
                let common = if self.chance(70) { 10 } else { pool.len() };
                pool[self.below(common)].clone()
            }
        }
    }

    fn list(&mut self, node: &Value) -> Value {
        let mut items: Vec<Value> = Vec::new();
        for _ in 0..self.below(4) {
            let item = if !items.is_empty() && self.chance(25) {
                self.pick(&items).clone()
            } else {
                self.value(&node["items"])
            };
            items.push(item);
        }
        items.into()
    }

    fn map(&mut self, node: &Value) -> Value {
        let mut map = Map::new();
        if node["x-kubernetes-embedded-resource"] == true {
            for (key, value) in [("apiVersion", json!("v1")), ("kind", json!("Pod")), ("metadata", self.metadata())] {
                if self.chance(90) {
                    let value = if self.chance(95) { value } else { self.noise() };
                    map.insert(key.to_owned(), value);
                }
            }
        }
        let required: Vec<&str> = node["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, property) in node["properties"].as_object().into_iter().flatten() {
            let percent = if required.contains(&name.as_str()) { 90 } else { 60 };
            if self.chance(percent) {
                map.insert(name.clone(), self.value(property));
            }
        }
        if node["additionalProperties"].is_object() {
            for _ in 0..self.below(3) {
                map.insert((*self.pick(&NAMES)).to_owned(), self.value(&node["additionalProperties"]));
            }
        }
        if self.chance(15) {
            map.insert((*self.pick(&NAMES)).to_owned(), self.noise());
        }
        map.into()
    }

    fn metadata(&mut self) -> Value {
        let pool = [
            json!({}),
            json!({"name": "a"}),
            json!({"labels": {"a": "b"}}),
            json!({"labels": {"a": null}}),
            json!({"labels": {"-": "b"}}),
            json!({"unknown": 1, "name": "a"}),
            json!({"name": 1}),
            json!({"finalizers": ["a/b"]}),
            json!({"generation": 2.0}),
            json!({"creationTimestamp": null}),
            json!({"namespace": "UPPER"}),
            json!({"name": "a/b"}),
            json!({"ownerReferences": [{"name": "a", "x": 1}]}),
            json!({"annotations": {"A": ""}}),
        ];
        self.pick(&pool).clone()
    }

    fn noise(&mut self) -> Value {
        let pool = [
            json!(null),
            json!(null),
            json!(true),
            json!(0),
            json!(1.5),
            json!("a"),
            json!([]),
            json!([null]),
            json!([{"a": 1}]),
            json!({}),
            json!({"a": 1}),
            json!({"a": null, "b": {"c": [1]}}),
        ];
        self.pick(&pool).clone()
    }

    /// A changed value: some parts are replaced by nearly valid ones, some are removed.
    pub fn change(&mut self, node: &Value, value: &Value) -> Value {
        match value {
            _ if self.chance(15) => self.value(node),
            Value::Object(map) => {
                let child = |key: &str| {
                    let property = &node["properties"][key];
                    if property.is_null() { &node["additionalProperties"] } else { property }
                };
                let mut changed = Map::new();
                for (key, value) in map {
                    if self.chance(95) {
                        changed.insert(key.clone(), self.change(child(key), value));
                    }
                }
                changed.into()
            }
            Value::Array(items) => {
                let mut changed: Vec<Value> = Vec::new();
                for item in items {
                    if self.chance(90) {
                        changed.push(self.change(&node["items"], item));
                    }
                }
                if self.chance(15) {
                    changed.reverse();
                }
                if self.chance(15) {
                    changed.push(self.value(&node["items"]));
                }
                changed.into()
            }
            value => value.clone(),
        }
    }
}

/// Numbers at the limits of 32 and 64 bits, and beyond.
fn edges() -> [Value; 9] {
    [
        json!(i64::MAX),
        json!(i64::MIN),
        json!(9_223_372_036_854_774_784_i64),
        json!(-9_223_372_036_854_774_784_i64),
        json!(u64::MAX),
        json!(-1e19),
        json!(i32::MAX),
        json!(i32::MIN),
        json!(2_147_483_648_i64),
    ]
}
