//! Floats that may be infinite or NaN, in JSON and in manifests. JSON has no such numbers, so they are the strings `"inf"`, `"-inf"` and `"nan"` there. Finite
//! floats stay numbers, so no key of a finite value depends on this file. Knows spellings; does not know where such a value may be stated.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// The word for a float that is not finite; none for a finite one. All NaNs are one value.
pub fn word(value: f64) -> Option<&'static str> {
    match value {
        f64::INFINITY => Some("inf"),
        f64::NEG_INFINITY => Some("-inf"),
        value if value.is_nan() => Some("nan"),
        _ => None,
    }
}

/// The float that is not finite that a text names: one of TOML's spellings `inf`, `+inf`, `-inf`, `nan`, `+nan`, `-nan`. None for any other text.
pub fn constant(text: &str) -> Option<f64> {
    match text.trim() {
        "inf" | "+inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "nan" | "+nan" | "-nan" => Some(f64::NAN),
        _ => None,
    }
}

/// Writes a float: a number if it is finite, otherwise its word.
pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match word(*value) {
        Some(word) => word.serialize(serializer),
        None => value.serialize(serializer),
    }
}

/// Reads a number, or a word for a float that is not finite.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(Real)
}

struct Real;

impl Visitor<'_> for Real {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"inf\", \"-inf\" or \"nan\"")
    }

    fn visit_f64<E>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_u64<E>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        constant(text).ok_or_else(|| E::custom(format!("`{text}` is neither a number nor `inf`, `-inf` or `nan`")))
    }
}

/// What a float looks like in JSON, for schemas.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum RealSchema {
    /// A finite number.
    Number(f64),
    /// A number that is not finite.
    Word(RealWord),
}

/// A number that is not finite.
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum RealWord {
    /// Positive infinity.
    #[serde(rename = "inf")]
    Infinity,
    /// Negative infinity.
    #[serde(rename = "-inf")]
    NegativeInfinity,
    /// Not a number.
    #[serde(rename = "nan")]
    Nan,
}

#[cfg(test)]
mod tests {
    use crate::model::{Init, Scalar};

    #[test]
    fn finite_values_are_numbers_and_others_are_words() {
        let json = |value: f64| serde_json::to_string(&(Scalar::Float(value), Init::Constant(value))).unwrap();
        assert_eq!(json(0.5), r#"[{"float":0.5},{"constant":0.5}]"#);
        assert_eq!(json(3.0), r#"[{"float":3.0},{"constant":3.0}]"#);
        assert_eq!(json(f64::NEG_INFINITY), r#"[{"float":"-inf"},{"constant":"-inf"}]"#);
        for value in [1e-6, 7.0, f64::MAX, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN] {
            let (scalar, init): (Scalar, Init) = serde_json::from_str(&json(value)).unwrap();
            let (Scalar::Float(scalar), Init::Constant(init)) = (scalar, init) else { panic!("floats") };
            let canonical = if value.is_nan() { f64::NAN } else { value };
            assert_eq!([scalar.to_bits(), init.to_bits()], [canonical.to_bits(); 2], "{value}");
        }
        // A float without a fraction may be written as an integer.
        assert_eq!(serde_json::from_str::<Scalar>(r#"{"float":3}"#).unwrap(), Scalar::Float(3.0));
        assert!(serde_json::from_str::<Scalar>(r#"{"float":"infinity"}"#).is_err());
        assert!(serde_json::from_str::<Scalar>(r#"{"float":null}"#).is_err());
    }
}
