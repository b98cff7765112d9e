//! The JSON Schema of `kernel.toml`, built from the field tables that decoding uses. Knows the types of values, and the words that editors complete.

use serde_json::{Map, Value, json};

use super::fields::{MANIFEST, TOLERANCE};
use super::spec::{Spec, Ty, Vocabulary};
use crate::model::DType;
use crate::model::target::CAPABILITIES;

/// Names of dtypes in other languages: likely a mistake for one of kforge's, and no name for a type of an operator.
const FOREIGN_DTYPES: &str = "(?:bfloat|double|float|half|int|long|short|uint)(?:[0-9]+(?:_t)?)?";

/// The JSON Schema of `kernel.toml`, given the names of built-in operators.
pub fn schema(builtins: &[&str]) -> Value {
    let writer = Writer { builtins };
    let mut root = writer.table(&MANIFEST);
    if let Some(object) = root.as_object_mut() {
        object.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        object.insert("$id".into(), json!("urn:kforge:schema:manifest"));
        object.insert("title".into(), json!("kernel.toml"));
    }
    root
}

struct Writer<'b> {
    builtins: &'b [&'b str],
}

impl Writer<'_> {
    fn table(&self, spec: &Spec) -> Value {
        let mut properties = Map::new();
        for field in spec.fields.iter() {
            let mut value = self.of(&field.ty);
            if let Some(object) = value.as_object_mut() {
                object.insert("description".into(), json!(field.doc));
            }
            properties.insert(field.name.into(), value);
        }
        let required: Vec<&str> = spec.fields.iter().filter(|f| f.required).map(|f| f.name).collect();
        json!({
            "type": "object",
            "description": spec.doc,
            "properties": properties,
            "required": required,
            "additionalProperties": spec.rest.as_ref().map_or(json!(false), |(_, ty)| self.of(ty)),
        })
    }

    fn of(&self, ty: &Ty) -> Value {
        match ty {
            Ty::Str(what) => json!({"type": "string", "description": what}),
            Ty::Known(vocabulary, what) => {
                let mut value = self.words(*vocabulary);
                if let Some(object) = value.as_object_mut() {
                    object.insert("description".into(), json!(what));
                }
                value
            }
            Ty::Int => json!({"type": "integer"}),
            Ty::Number => json!({"type": "number"}),
            Ty::Bool => json!({"type": "boolean"}),
            Ty::True => json!({"const": true}),
            Ty::Words(now, _) => json!({"enum": now}),
            Ty::Expr(what) => json!({"type": ["string", "number", "boolean"], "description": what}),
            Ty::List(item) => json!({"type": "array", "items": self.of(item)}),
            Ty::Some(item, least, most) => {
                let mut list = json!({"type": "array", "items": self.of(item), "minItems": least});
                if let (Some(object), true) = (list.as_object_mut(), *most != usize::MAX) {
                    object.insert("maxItems".into(), json!(most));
                }
                list
            }
            Ty::Table(spec) => self.table(spec),
            Ty::Map(_, item) => json!({"type": "object", "additionalProperties": self.of(item)}),
            Ty::Any(options) => json!({"anyOf": options.iter().map(|ty| self.of(ty)).collect::<Vec<_>>()}),
            Ty::Tolerance => {
                let tolerance = self.table(&TOLERANCE);
                json!({"anyOf": [tolerance, {"type": "object", "additionalProperties": tolerance}]})
            }
        }
    }

    /// The words of a vocabulary, and a pattern for what it takes beyond them.
    fn words(&self, vocabulary: Vocabulary) -> Value {
        let dtypes = || DType::ALL.map(DType::name);
        match vocabulary {
            Vocabulary::Dtype => json!({"enum": dtypes()}),
            Vocabulary::DtypeOrType => {
                let pattern = format!("^(?!{FOREIGN_DTYPES}$)[A-Za-z_][A-Za-z0-9_]*$");
                json!({"type": "string", "pattern": pattern, "examples": dtypes()})
            }
            Vocabulary::Arch => {
                let names = |least: u32, suffix: &str| -> Vec<String> {
                    CAPABILITIES.iter().filter(|c| **c >= least).map(|c| format!("sm_{c}{suffix}")).collect()
                };
                let all = [vec!["cpu".to_string()], names(0, ""), names(90, "a"), names(100, "f")].concat();
                json!({"enum": all})
            }
            Vocabulary::Builtin => json!({"enum": self.builtins}),
            Vocabulary::Reference => {
                let builtins = self.builtins.join("|");
                let examples: Vec<String> = self.builtins.iter().map(|name| format!("builtin:{name}")).collect();
                let pattern = format!("^(?:builtin:(?:{builtins})|(?!builtin:).+::.+)$");
                json!({"type": "string", "pattern": pattern, "examples": examples})
            }
        }
    }
}
