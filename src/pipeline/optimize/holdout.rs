//! What no text for an agent may contain: the names of holdout shapes, and the numbers that would reveal them. Knows operators; does not know where texts come
//! from.
//!
//! Not every number reveals something: small ones and powers of two occur in any kernel, and the numbers of shown shapes are known anyway.

use std::collections::BTreeSet;

use kforge_types::model::bound::Scalar;
use kforge_types::model::{Operator, Shape, ShapeRole};

/// Numbers below this reveal nothing.
const SMALL: u64 = 100;

/// The names and numbers that are held back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBack {
    names: BTreeSet<String>,
    numbers: BTreeSet<u64>,
}

impl HeldBack {
    /// Collects them from these operators.
    pub fn of<'o>(operators: impl IntoIterator<Item = &'o Operator>) -> Self {
        let mut all = HeldBack::default();
        for operator in operators {
            let (held, shown): (Vec<&Shape>, Vec<&Shape>) =
                operator.shapes.iter().partition(|shape| shape.role == ShapeRole::Holdout);
            let known: BTreeSet<u64> = shown.into_iter().flat_map(numbers).collect();
            let telling = |n: &u64| *n >= SMALL && !n.is_power_of_two() && !known.contains(n);
            all.numbers.extend(held.iter().flat_map(|shape| numbers(shape)).filter(telling));
            all.names.extend(held.iter().map(|shape| shape.name.clone()).filter(|name| !name.is_empty()));
        }
        all
    }

    /// Whether a text reveals any of them: a name as a whole word, or a number in any spelling, such as `7919`, `7919u`, `7919.0f`, `0x1eef` or `softmax_7919`.
    pub fn is_in(&self, text: &str) -> bool {
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let named = self.names.iter().any(|name| {
            text.match_indices(name.as_str()).any(|(at, _)| {
                let before = text[..at].chars().next_back().is_some_and(part);
                let after = text[at + name.len()..].chars().next().is_some_and(part);
                !before && !after
            })
        });
        // C++ separates digits with quotes.
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '\''));
        let mut values = words.flat_map(|word| spelled(&word.replace('\'', "")));
        named || values.any(|value| self.numbers.contains(&value))
    }
}

/// The numbers that a word spells: each run of digits, such as `7919` in `rows_7919` and in `7919u`, and, after a prefix, the value in base 16, 8 or 2.
fn spelled(word: &str) -> Vec<u64> {
    let lower = word.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0b", 2), ("0", 8)];
    let based = prefixes.into_iter().filter_map(|(prefix, base)| {
        let rest = lower.strip_prefix(prefix)?;
        let end = rest.find(|c: char| !c.is_digit(base)).unwrap_or(rest.len());
        u64::from_str_radix(&rest[..end], base).ok()
    });
    let runs = lower.split(|c: char| !c.is_ascii_digit()).filter_map(|run| run.parse().ok());
    based.chain(runs).collect()
}

/// The integers of a shape.
fn numbers(shape: &Shape) -> Vec<u64> {
    let params = shape.params.values().filter_map(|value| match value {
        Scalar::Int(n) => Some(*n),
        Scalar::Float(_) | Scalar::Bool(_) => None,
    });
    shape.dims.values().copied().chain(params).map(i64::unsigned_abs).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kforge_foundation::base::SourceFile;

    #[test]
    fn names_and_telling_numbers_of_shapes_that_are_held_back_are_found() {
        let text = "[package]\nname = \"p\"\n[operator.o]\ndims = [\"n\", \"m\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\", \"m\"] }\n\
            outputs.y = { dtype = \"f32\", shape = [\"n\", \"m\"] }\nreference = \"builtin:softmax\"\n\
            shapes.shown = { n = 1000, m = 3 }\nshapes.quiet = { n = 1000, m = 7919, role = \"holdout\" }\n\
            shapes.round = { n = 4096, m = 77, role = \"holdout\" }\n";
        let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: text.into() });
        let operator = kforge_types::model::parse(&file).0.unwrap().operators.remove(0);
        let held = HeldBack::of([&operator]);
        for told in [
            "if (m == 7919)",
            "m >= 7919u",
            "7919.0f",
            "7'919",
            "// as at quiet: fast",
            "= -7919;",
            "m == 0x1EEF",
            "m == 0x1eefull",
            "0b1'1110'1110'1111",
            "017357",
            "softmax_7919",
            "rows7919x3",
        ] {
            assert!(held.is_in(told), "{told}");
        }
        for plain in ["quietly", "be_quiet", "n == 1000", "tile 4096", "m == 77", "17919", "79190", "0x1EEF0", "0x", ""]
        {
            assert!(!held.is_in(plain), "{plain}");
        }
        assert!(!HeldBack::default().is_in("7919 quiet"));
    }
}
