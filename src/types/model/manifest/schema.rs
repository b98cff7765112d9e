//! The JSON Schema of `kernel.toml`, built from the field tables that decoding uses. Like any schema, knows only the types of values.

use serde_json::{Map, Value, json};

use super::fields::{MANIFEST, TOLERANCE};
use super::spec::{Spec, Ty};

/// The JSON Schema of `kernel.toml`.
pub fn schema() -> Value {
    let mut root = table(&MANIFEST);
    if let Some(object) = root.as_object_mut() {
        object.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        object.insert("title".into(), json!("kernel.toml"));
    }
    root
}

fn table(spec: &Spec) -> Value {
    let mut properties = Map::new();
    for field in spec.fields.iter() {
        let mut value = of(&field.ty);
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
        "additionalProperties": spec.rest.as_ref().map_or(json!(false), |(_, ty)| of(ty)),
    })
}

fn of(ty: &Ty) -> Value {
    match ty {
        Ty::Str(what) => json!({"type": "string", "description": what}),
        Ty::Int => json!({"type": "integer"}),
        Ty::Number => json!({"type": "number"}),
        Ty::Bool => json!({"type": "boolean"}),
        Ty::True => json!({"const": true}),
        Ty::Words(now, _) => json!({"enum": now}),
        Ty::Expr(what) => json!({"type": ["string", "number", "boolean"], "description": what}),
        Ty::List(item) => json!({"type": "array", "items": of(item)}),
        Ty::Some(item, least, most) => {
            let mut list = json!({"type": "array", "items": of(item), "minItems": least});
            if let (Some(object), true) = (list.as_object_mut(), *most != usize::MAX) {
                object.insert("maxItems".into(), json!(most));
            }
            list
        }
        Ty::Table(spec) => table(spec),
        Ty::Map(_, item) => json!({"type": "object", "additionalProperties": of(item)}),
        Ty::Any(options) => json!({"anyOf": options.iter().map(of).collect::<Vec<_>>()}),
        Ty::Tolerance => {
            json!({"anyOf": [table(&TOLERANCE), {"type": "object", "additionalProperties": table(&TOLERANCE)}]})
        }
    }
}
