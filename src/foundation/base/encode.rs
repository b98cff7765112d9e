//! The canonical encoding of everything that enters a key. Knows values; does not know which step they belong to.
//!
//! One walk over a value serves two writers: [`Hasher`] feeds blake3, and [`Lines`] writes the same fields as text. What `kforge explain` prints is therefore
//! exactly what was hashed. Every field carries its path, a tag and the length of its bytes, so no two values share an encoding:
//!
//! | value | tag | bytes |
//! |---|---|---|
//! | null | `n` | none |
//! | boolean | `b` | one byte |
//! | integer | `i` | i128, little endian |
//! | float | `f` | IEEE bits, little endian (minus zero and zero differ) |
//! | text | `s` | UTF-8 |
//! | list | `l` | its length, then its items as fields `path[0]`... |
//! | map | `m` | its length, then its entries in the order of their keys |

use std::collections::BTreeMap;

use serde_json::Value;

use super::Digest;

/// Receives the fields of a value in canonical order.
pub trait FieldWriter {
    /// Receives one field: its path, the tag of its kind, its bytes, and its value as text.
    fn field(&mut self, path: &str, tag: u8, bytes: &[u8], text: &dyn Fn() -> String);
}

/// Walks `value` in canonical order and hands each field to `writer`.
pub fn write_value(path: &str, value: &Value, writer: &mut dyn FieldWriter) {
    walk(&mut String::from(path), value, writer);
}

/// Reuses one string for all paths, because every step of every build forms a key.
fn walk(path: &mut String, value: &Value, writer: &mut dyn FieldWriter) {
    match value {
        Value::Null => writer.field(path, b'n', &[], &|| "null".into()),
        Value::Bool(b) => writer.field(path, b'b', &[u8::from(*b)], &|| b.to_string()),
        Value::Number(n) => match n.as_i128() {
            Some(i) => writer.field(path, b'i', &i.to_le_bytes(), &|| i.to_string()),
            None => {
                let f = n.as_f64().unwrap_or(f64::NAN);
                writer.field(path, b'f', &f.to_bits().to_le_bytes(), &|| format!("{f:?}"));
            }
        },
        Value::String(s) => writer.field(path, b's', s.as_bytes(), &|| s.clone()),
        Value::Array(items) => {
            writer.field(path, b'l', &(items.len() as u64).to_le_bytes(), &|| format!("{} items", items.len()));
            for (i, item) in items.iter().enumerate() {
                below(path, &[&format!("[{i}]")], item, writer);
            }
        }
        Value::Object(map) => {
            writer.field(path, b'm', &(map.len() as u64).to_le_bytes(), &|| format!("{} entries", map.len()));
            let dot = if path.is_empty() { "" } else { "." };
            if map.keys().is_sorted() {
                map.iter().for_each(|(key, item)| below(path, &[dot, key], item, writer));
            } else {
                // Sort here, because a dependency may switch serde_json to insertion order.
                let sorted: BTreeMap<&String, &Value> = map.iter().collect();
                sorted.into_iter().for_each(|(key, item)| below(path, &[dot, key], item, writer));
            }
        }
    }
}

/// Walks `item` at `path` followed by `parts`.
fn below(path: &mut String, parts: &[&str], item: &Value, writer: &mut dyn FieldWriter) {
    let length = path.len();
    parts.iter().for_each(|p| path.push_str(p));
    walk(path, item, writer);
    path.truncate(length);
}

/// Hashes fields with blake3 in derive-key mode. All fields are hashed in one call at the end, which costs a third of hashing each piece.
pub struct Hasher {
    context: String,
    encoding: Vec<u8>,
}

impl Hasher {
    /// A hasher whose results differ from the results under every other `context`.
    pub fn new(context: &str) -> Self {
        Hasher { context: context.to_string(), encoding: Vec::with_capacity(2048) }
    }

    fn part(&mut self, bytes: &[u8]) {
        self.encoding.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.encoding.extend_from_slice(bytes);
    }

    /// The digest of all fields so far. Its size is the size of their encoding.
    pub fn finish(&self) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key(&self.context);
        hasher.update(&self.encoding);
        Digest::from_parts(*hasher.finalize().as_bytes(), self.encoding.len() as u64)
    }
}

impl FieldWriter for Hasher {
    fn field(&mut self, path: &str, tag: u8, bytes: &[u8], _: &dyn Fn() -> String) {
        self.part(path.as_bytes());
        self.encoding.push(tag);
        self.part(bytes);
    }
}

/// Collects fields for people: one `(path, text)` per field. The length of a list or map appears under `path.len`.
#[derive(Default)]
pub struct Lines {
    /// The fields in canonical order.
    pub fields: Vec<(String, String)>,
}

impl FieldWriter for Lines {
    fn field(&mut self, path: &str, tag: u8, _: &[u8], text: &dyn Fn() -> String) {
        if !matches!(tag, b'l' | b'm') {
            self.fields.push((path.to_string(), text()));
        } else {
            self.fields.push((format!("{path}.len"), text()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hash(value: &Value) -> Digest {
        let mut hasher = Hasher::new("test");
        write_value("", value, &mut hasher);
        hasher.finish()
    }

    #[test]
    fn order_of_insertion_does_not_matter() {
        let a: Value = serde_json::from_str(r#"{"x":1,"y":[true,null]}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"y":[true,null],"x":1}"#).unwrap();
        assert_eq!(hash(&a), hash(&b));
    }

    #[test]
    fn values_that_look_alike_differ() {
        let all = [
            json!({"a":"1"}),
            json!({"a":1}),
            json!({"a":1.0}),
            json!({"a":true}),
            json!({"a":null}),
            json!({"a":[1]}),
            json!({"a":{}}),
            json!({"a":[]}),
            json!({"ab":"c"}),
            json!({"a":"bc"}),
            json!({"a":["b","c"]}),
            json!({"a":["bc"]}),
            json!({"a":-0.0}),
            json!({"a":0.0}),
        ];
        let digests: std::collections::BTreeSet<Digest> = all.iter().map(hash).collect();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn the_context_separates() {
        assert_ne!(Hasher::new("a").finish(), Hasher::new("b").finish());
    }
}
