//! The order in which the variants of a kernel are compiled where past durations do not decide. Knows the values of tunables; does not know what they mean. Pure.

use kforge_types::model::{TuneValue, Variant};

/// The positions of variants in the order in which their compilation starts: the smallest, the largest, the next smallest, the next largest, and so on.
///
/// Tunables are mostly tile sizes and unroll factors, and a larger product means more code and a longer compilation. Small variants come first so that a device
/// gets work early. Large ones are not last, because they would end long after all others while processors idle. If size does not predict the duration, this
/// order is as good as any other.
pub(super) fn by_turns(variants: &[&Variant]) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..variants.len()).collect();
    sorted.sort_by(|a, b| size(variants[*a]).total_cmp(&size(variants[*b])));
    let half = sorted.len().div_ceil(2);
    let (small, large) = sorted.split_at(half);
    let mut large = large.iter().rev();
    small.iter().flat_map(|small| std::iter::once(small).chain(large.next())).copied().collect()
}

/// The product of a variant's integers, where values below 1 count as 1. Compares variants of one kernel.
fn size(variant: &Variant) -> f64 {
    let of = |value: &TuneValue| match value {
        TuneValue::Int(i) => (*i as f64).max(1.0),
        TuneValue::Bool(_) | TuneValue::Str(_) => 1.0,
    };
    variant.values.values().map(of).product()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn variant(order: u32, values: &[(&str, TuneValue)]) -> Variant {
        let values: BTreeMap<String, TuneValue> = values.iter().map(|(n, v)| ((*n).to_string(), v.clone())).collect();
        Variant { values, label: order.to_string(), order }
    }

    fn order(variants: &[Variant]) -> Vec<usize> {
        by_turns(&variants.iter().collect::<Vec<_>>())
    }

    #[test]
    fn small_and_large_variants_come_by_turns() {
        let sizes = [(64, 8), (8, 8), (8, 16), (32, 32), (16, 16)];
        let of =
            |(at, (x, y)): (u32, &(i64, i64))| variant(at, &[("X", TuneValue::Int(*x)), ("Y", TuneValue::Int(*y))]);
        let variants: Vec<Variant> = (0..).zip(&sizes).map(of).collect();
        assert_eq!(order(&variants), [1, 3, 2, 0, 4], "products 512, 64, 128, 1024, 256");
        assert_eq!(order(&variants[..4]), [1, 3, 2, 0]);
        assert_eq!(order(&[]), [0; 0]);
    }

    #[test]
    fn values_without_a_size_leave_every_variant_its_one_turn() {
        let values = [TuneValue::Str("row".into()), TuneValue::Bool(true), TuneValue::Int(0), TuneValue::Int(-4)];
        let variants: Vec<Variant> = (0..).zip(values).map(|(at, v)| variant(at, &[("A", v)])).collect();
        assert_eq!(order(&variants), [0, 3, 1, 2]);
    }
}
