//! Tables of a manifest as JSON. Knows their order, which counts: of inputs, outputs, parameters and tunables. Does not know what keys mean.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A table. Its keys have the order in which they were sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table(Vec<(String, TableValue)>);

/// A value of a table.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names of the types")]
pub enum TableValue {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<TableValue>),
    Table(Table),
}

impl Table {
    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&TableValue> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// How many values it holds, with those of tables and lists within it.
    pub fn values(&self) -> usize {
        fn of(value: &TableValue) -> usize {
            match value {
                TableValue::List(list) => 1 + list.iter().map(of).sum::<usize>(),
                TableValue::Table(table) => 1 + table.values(),
                _ => 1,
            }
        }
        self.0.iter().map(|(_, value)| of(value)).sum()
    }

    /// Gives a key a value: in its place if the table has the key, otherwise at the end.
    pub fn set(&mut self, key: &str, value: impl Into<TableValue>) {
        match self.0.iter_mut().find(|(own, _)| own == key) {
            Some((_, old)) => *old = value.into(),
            None => self.0.push((key.into(), value.into())),
        }
    }

    /// As TOML: a line for each key. Tables within it are inline, because tables with lines of their own would come after the other keys.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        for (key, value) in &self.0 {
            quoted(key, &mut out);
            out.push_str(" = ");
            value.write(&mut out);
            out.push('\n');
        }
        out
    }
}

impl From<&str> for TableValue {
    fn from(text: &str) -> Self {
        TableValue::Text(text.into())
    }
}

impl From<String> for TableValue {
    fn from(text: String) -> Self {
        TableValue::Text(text)
    }
}

impl From<Table> for TableValue {
    fn from(table: Table) -> Self {
        TableValue::Table(table)
    }
}

impl From<Vec<TableValue>> for TableValue {
    fn from(list: Vec<TableValue>) -> Self {
        TableValue::List(list)
    }
}

impl TableValue {
    /// Writes it as TOML in one line.
    fn write(&self, out: &mut String) {
        match self {
            TableValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            TableValue::Integer(value) => out.push_str(&value.to_string()),
            TableValue::Float(value) => out.push_str(&toml::Value::Float(*value).to_string()),
            TableValue::Text(text) => quoted(text, out),
            TableValue::List(list) => {
                out.push('[');
                for (at, value) in list.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    value.write(out);
                }
                out.push(']');
            }
            TableValue::Table(table) => {
                out.push('{');
                for (at, (key, value)) in table.0.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { " " });
                    quoted(key, out);
                    out.push_str(" = ");
                    value.write(out);
                }
                out.push_str(if table.is_empty() { "}" } else { " }" });
            }
        }
    }
}

/// Writes a text as a basic string of TOML.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for TableValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            TableValue::Bool(value) => serializer.serialize_bool(*value),
            TableValue::Integer(value) => serializer.serialize_i64(*value),
            TableValue::Float(value) => serializer.serialize_f64(*value),
            TableValue::Text(text) => serializer.serialize_str(text),
            TableValue::List(list) => list.serialize(serializer),
            TableValue::Table(table) => table.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor)
    }
}

impl<'de> Deserialize<'de> for TableValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl schemars::JsonSchema for Table {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Table".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object", "additionalProperties": true, "description": "A table of a manifest. The order of its keys counts." })
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = Table;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table, A::Error> {
        let (mut entries, mut seen) = (vec![], std::collections::HashSet::new());
        while let Some((key, value)) = map.next_entry::<String, TableValue>()? {
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format_args!("the key `{key}` is there twice")));
            }
            entries.push((key, value));
        }
        Ok(Table(entries))
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = TableValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean, a number, a text, a list or an object")
    }

    fn visit_bool<E>(self, value: bool) -> Result<TableValue, E> {
        Ok(TableValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<TableValue, E> {
        Ok(TableValue::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<TableValue, E> {
        let value = i64::try_from(value);
        value.map(TableValue::Integer).map_err(|_| E::custom("an integer is larger than 9223372036854775807"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<TableValue, E> {
        Ok(TableValue::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<TableValue, E> {
        Ok(TableValue::Text(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<TableValue, E> {
        Ok(TableValue::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TableValue, A::Error> {
        let mut all = vec![];
        while let Some(value) = list.next_element()? {
            all.push(value);
        }
        Ok(TableValue::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TableValue, A::Error> {
        TableVisitor.visit_map(map).map(TableValue::Table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_in_json_and_in_toml() {
        let text = r#"{"x":{"b":1,"a":[true,-2.5,"q\"\\\n\u007f"]},"a b":{}}"#;
        let table: Table = serde_json::from_str(text).unwrap();
        assert_eq!(table.keys().collect::<Vec<_>>(), ["x", "a b"]);
        let again: Table = serde_json::from_str(&serde_json::to_string(&table).unwrap()).unwrap();
        assert_eq!(again, table);
        assert_eq!(table.values(), 7);
        let toml = table.to_toml();
        assert_eq!(toml, "\"x\" = { \"b\" = 1, \"a\" = [true, -2.5, \"q\\\"\\\\\\u000A\\u007F\"] }\n\"a b\" = {}\n");
        let read: toml::Table = toml::from_str(&toml).unwrap();
        assert_eq!(read["x"]["a"][2].as_str(), Some("q\"\\\n\u{7f}"));
        for number in ["1e-6", "1e300", "0.1", "-0.0", "3.0"] {
            let table: Table = serde_json::from_str(&format!("{{\"a\":{number}}}")).unwrap();
            let read: toml::Table = toml::from_str(&table.to_toml()).unwrap();
            assert_eq!(read["a"].as_float(), number.parse().ok(), "{number}");
        }
    }

    #[test]
    fn what_is_no_value_of_toml_is_refused_with_what_it_is() {
        for (text, said) in [
            (r#"{"a":null}"#, "invalid type: null, expected a boolean, a number, a text, a list or an object"),
            (r#"{"a":18446744073709551615}"#, "an integer is larger"),
            (r#"{"a":1,"a":2}"#, "the key `a` is there twice"),
            ("[]", "invalid type: sequence, expected an object"),
        ] {
            let error = serde_json::from_str::<Table>(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
