//! JSON with its keys in the order of the file, and fields that know their path. Order matters: it is that of arguments and results.

use std::fmt;

use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Number;

/// What a file does not have as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}`{field}` {message}", line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct Malformed {
    /// The line, from 1, of a file that holds a document in each line.
    pub line: Option<u32>,
    /// The field: `inputs.x.dtype`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl Malformed {
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Malformed { line: None, field: field.into(), message: message.into() }
    }

    pub(super) fn at(self, line: u32) -> Self {
        Malformed { line: Some(line), ..self }
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names of JSON")]
pub enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Json>),
    /// In the order of the file. No key is there twice.
    Map(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text.
    ///
    /// # Errors
    /// It is not JSON, or a key is there twice.
    pub fn read(text: &str) -> Result<Json, Malformed> {
        serde_json::from_str(text).map_err(|why| Malformed::new("$", format!("is not JSON: {why}")))
    }

    fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a truth value",
            Json::Number(_) => "a number",
            Json::Text(_) => "a text",
            Json::List(_) => "a list",
            Json::Map(_) => "an object",
        }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => to.serialize_unit(),
            Json::Bool(value) => to.serialize_bool(*value),
            Json::Number(number) => number.serialize(to),
            Json::Text(text) => to.serialize_str(text),
            Json::List(all) => to.collect_seq(all),
            Json::Map(all) => to.collect_map(all.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
                Ok(Json::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
                Ok(Json::Number(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
                Ok(Json::Number(value.into()))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
                Number::from_f64(value).map(Json::Number).ok_or_else(|| E::custom("a number is not finite"))
            }

            fn visit_str<E>(self, value: &str) -> Result<Json, E> {
                Ok(Json::Text(value.to_string()))
            }

            fn visit_string<E>(self, value: String) -> Result<Json, E> {
                Ok(Json::Text(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
                let mut all = vec![];
                while let Some(one) = list.next_element()? {
                    all.push(one);
                }
                Ok(Json::List(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
                let mut all: Vec<(String, Json)> = vec![];
                while let Some((key, value)) = map.next_entry::<String, Json>()? {
                    if all.iter().any(|(other, _)| *other == key) {
                        return Err(A::Error::custom(format!("the key `{key}` is there twice")));
                    }
                    all.push((key, value));
                }
                Ok(Json::Map(all))
            }
        }
        from.deserialize_any(Any)
    }
}

/// A value and its path.
#[derive(Debug, Clone)]
pub(super) struct Field<'j> {
    pub(super) path: String,
    pub(super) value: &'j Json,
}

impl<'j> Field<'j> {
    /// The whole document.
    pub(super) fn root(value: &'j Json) -> Self {
        Field { path: String::new(), value }
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> Malformed {
        Malformed::new(if self.path.is_empty() { "$" } else { &self.path }, message)
    }

    fn expected(&self, what: &str) -> Malformed {
        self.wrong(format!("is {}, expected {what}", self.value.kind()))
    }

    fn below(&self, key: &str, value: &'j Json) -> Self {
        let path = if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) };
        Field { path, value }
    }

    /// The entries of an object, in order.
    pub(super) fn map(&self) -> Result<Vec<(&'j str, Field<'j>)>, Malformed> {
        let Json::Map(all) = self.value else { return Err(self.expected("an object")) };
        Ok(all.iter().map(|(key, value)| (key.as_str(), self.below(key, value))).collect())
    }

    /// A key of an object; none if it is missing or null.
    pub(super) fn get(&self, key: &str) -> Result<Option<Field<'j>>, Malformed> {
        let found = self.map()?.into_iter().find(|(own, _)| *own == key).map(|(_, field)| field);
        Ok(found.filter(|field| *field.value != Json::Null))
    }

    /// A key that an object must have.
    pub(super) fn need(&self, key: &str) -> Result<Field<'j>, Malformed> {
        let missing = || self.below(key, self.value).wrong("is missing");
        self.get(key)?.ok_or_else(missing)
    }

    pub(super) fn text(&self) -> Result<&'j str, Malformed> {
        match self.value {
            Json::Text(text) if !text.is_empty() => Ok(text),
            Json::Text(_) => Err(self.wrong("is empty")),
            _ => Err(self.expected("a text")),
        }
    }

    pub(super) fn bool(&self) -> Result<bool, Malformed> {
        match self.value {
            Json::Bool(value) => Ok(*value),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<Field<'j>>, Malformed> {
        let Json::List(all) = self.value else { return Err(self.expected("a list")) };
        Ok(all.iter().enumerate().map(|(at, value)| self.below(&at.to_string(), value)).collect())
    }

    /// An integer that is not negative.
    pub(super) fn unsigned(&self) -> Result<u64, Malformed> {
        match self.value {
            Json::Number(number) => {
                number.as_u64().ok_or_else(|| self.wrong(format!("is {number}, expected an integer from 0")))
            }
            _ => Err(self.expected("an integer from 0")),
        }
    }

    /// A number that is not negative.
    pub(super) fn amount(&self) -> Result<f64, Malformed> {
        let number = match self.value {
            Json::Number(number) => number.as_f64(),
            _ => return Err(self.expected("a number")),
        };
        number.filter(|x| *x >= 0.0).ok_or_else(|| self.wrong("is negative"))
    }
}
