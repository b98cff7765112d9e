//! The OpenAPI document, made from the types of the interface and from tables of routes. Knows no route by itself.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// Makes the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a type, for tables of routes.
pub(crate) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A parameter in the query of a route.
pub(crate) struct Query {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it means.
    pub(crate) about: &'static str,
    /// Its type.
    pub(crate) schema: SchemaOf,
}

/// An answer of a route.
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// When it is given.
    pub(crate) about: &'static str,
    /// The type of its body.
    pub(crate) body: Body,
}

/// The body of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// JSON of a type.
    Json(SchemaOf),
    /// Server-sent events whose data are JSON of a type.
    Events(SchemaOf),
    /// Of another media type.
    Other(&'static str),
}

/// A route: a method and a path.
pub(crate) struct Route {
    /// The method in small letters.
    pub(crate) method: &'static str,
    /// The path, with parameters in braces.
    pub(crate) path: &'static str,
    /// What it does, in a few words.
    pub(crate) summary: &'static str,
    /// Whether it needs no token.
    pub(crate) open: bool,
    /// The parameters of its query.
    pub(crate) query: &'static [Query],
    /// The type of its body, if it has one.
    pub(crate) body: Option<SchemaOf>,
    /// Its answers.
    pub(crate) answers: &'static [Answer],
}

/// The document of these routes. Every route that needs a token, or has a body, may also answer with an error of `error`.
pub(crate) fn document(routes: &[&Route], error: SchemaOf) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let error = error(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        entry[route.method] = operation(route, &error, &mut generator);
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "kforge serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Evaluation of GPU kernels as a service.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, error: &Schema, generator: &mut SchemaGenerator) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    for query in route.query {
        let schema = (query.schema)(generator);
        parameters.push(json!({ "name": query.name, "in": "query", "description": query.about, "schema": schema }));
    }
    let mut answers: Map<String, Value> = Map::new();
    for answer in route.answers {
        let content = match answer.body {
            Body::Json(of) => json!({ "application/json": { "schema": of(generator) } }),
            Body::Events(of) => json!({ "text/event-stream": { "schema": of(generator) } }),
            Body::Other(media) => json!({ media: {} }),
        };
        answers.insert(answer.status.to_string(), json!({ "description": answer.about, "content": content }));
    }
    if !route.open {
        let content = json!({ "application/json": { "schema": error } });
        answers.insert("default".into(), json!({ "description": "An error.", "content": content }));
    }
    let mut operation = json!({ "summary": route.summary, "parameters": parameters, "responses": answers });
    if let Some(body) = route.body {
        let content = json!({ "application/json": { "schema": body(generator) } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    if route.open {
        operation["security"] = json!([]);
    }
    operation
}
