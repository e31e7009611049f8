//! A validator for the part of JSON Schema that our schemas use: a library for all of it would bring more crates
//! than the program has. A keyword that is not known here fails, so that nothing goes unchecked.

use std::path::Path;

use plumb_model::{Finding, Unjudged};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Keywords that say nothing about a value.
const WORDS: [&str; 5] = ["$schema", "$id", "$defs", "title", "description"];

/// The schema of a command's JSON.
pub struct Schema {
    pub root: Value,
}

/// A value as the type that it is the serialisation of, serialised again.
fn read_back<T: DeserializeOwned + Serialize>(value: &Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value.clone())?)
}

/// Those of a list that do not read back into equal values. The summary is not read: it follows from the others.
fn unread(
    document: &Value,
    at: &str,
    read_back: fn(&Value) -> serde_json::Result<Value>,
) -> Vec<String> {
    let listed = document.pointer(at).and_then(Value::as_array);
    let fault = |value: &Value| {
        let mut value = value.clone();
        value.as_object_mut()?.remove("summary");
        match read_back(&value) {
            Ok(back) if back == value => None,
            Ok(back) => Some(format!("{at}: read {value} back as {back}")),
            Err(error) => Some(format!("{at}: {value} does not read back: {error}")),
        }
    };
    listed.into_iter().flatten().filter_map(fault).collect()
}

impl Schema {
    /// Reads the schema of a command.
    pub fn read(command: &str) -> Schema {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{command}.json"));
        let text = std::fs::read_to_string(path).expect("a readable schema");
        Schema {
            root: serde_json::from_str(&text).expect("a schema in JSON"),
        }
    }

    /// Everything in `document` that the schema does not allow.
    pub fn faults(&self, document: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(&self.root, document, "", &mut faults);
        faults.extend(unread(document, "/findings", read_back::<Finding>));
        for unknown in ["/result/unknown", "/result/whole/unknown"] {
            faults.extend(unread(document, unknown, read_back::<Unjudged>));
        }
        faults
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let schema = match schema {
            Value::Bool(true) => return,
            Value::Bool(false) => return faults.push(format!("{at}: nothing is allowed here")),
            schema => schema
                .as_object()
                .expect("a schema is an object or a truth value"),
        };
        for (keyword, wanted) in schema {
            let fits = match keyword.as_str() {
                "type" => one_or_many(wanted).any(|name| has_type(value, name)),
                "enum" => list(wanted).contains(value),
                "const" => wanted == value,
                "minimum" => value
                    .as_f64()
                    .is_none_or(|number| number >= wanted.as_f64().expect("a number")),
                "minItems" => value
                    .as_array()
                    .is_none_or(|items| items.len() >= size(wanted)),
                "maxItems" => value
                    .as_array()
                    .is_none_or(|items| items.len() <= size(wanted)),
                "$ref" => {
                    self.check_reference(wanted.as_str().expect("a reference"), value, at, faults);
                    true
                }
                "anyOf" => list(wanted).iter().any(|one| {
                    let mut its = Vec::new();
                    self.check(one, value, at, &mut its);
                    its.is_empty()
                }),
                "required" => {
                    let lacks = |name: &&Value| value.get(name.as_str().expect("a name")).is_none();
                    let missing = list(wanted)
                        .iter()
                        .filter(lacks)
                        .filter(|_| value.is_object());
                    faults.extend(
                        missing.map(|name| format!("{at}: {name} is required and missing")),
                    );
                    true
                }
                "properties" | "additionalProperties" | "items" | "prefixItems" => true,
                word if WORDS.contains(&word) => true,
                other => {
                    panic!("the schema uses `{other}`, which this test does not know: teach it")
                }
            };
            if !fits {
                let shown: String = value.to_string().chars().take(80).collect();
                faults.push(format!("{at}: {shown} is against {keyword} {wanted}"));
            }
        }
        self.check_members(schema, value, at, faults);
    }

    /// Members of objects and elements of arrays.
    fn check_members(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        at: &str,
        faults: &mut Vec<String>,
    ) {
        if let Some(members) = value.as_object() {
            let named = schema.get("properties").and_then(Value::as_object);
            for (name, member) in members {
                let rule = named
                    .and_then(|named| named.get(name))
                    .or(schema.get("additionalProperties"));
                if let Some(rule) = rule {
                    self.check(rule, member, &format!("{at}/{name}"), faults);
                }
            }
        }
        if let Some(items) = value.as_array() {
            let first = schema.get("prefixItems").map(list).unwrap_or_default();
            for (number, item) in items.iter().enumerate() {
                if let Some(rule) = first.get(number).or(schema.get("items")) {
                    self.check(rule, item, &format!("{at}/{number}"), faults);
                }
            }
        }
    }

    /// Checks against a definition of this schema, `#/…`, or of that of another command, `command.json#/…`.
    fn check_reference(&self, reference: &str, value: &Value, at: &str, faults: &mut Vec<String>) {
        let (file, pointer) = reference.split_once('#').expect("a definition in a schema");
        if let Some(command) = file.strip_suffix(".json") {
            return Schema::read(command).check_reference(
                &format!("#{pointer}"),
                value,
                at,
                faults,
            );
        }
        let definition = self
            .root
            .pointer(pointer)
            .unwrap_or_else(|| panic!("the schema lacks {pointer}"));
        self.check(definition, value, at, faults);
    }
}

/// The elements of a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn size(value: &Value) -> usize {
    value.as_u64().expect("a number of items") as usize
}

fn one_or_many(value: &Value) -> impl Iterator<Item = &str> {
    let many = value
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or(std::slice::from_ref(value));
    many.iter()
        .map(|name| name.as_str().expect("name of a type"))
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("the schema names a type {other}"),
    }
}
