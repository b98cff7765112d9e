//! An operator seen as rows that are reduced: how many rows a tensor has, and how long they are. Knows shapes as the manifest writes them.

use serde::Serialize;

use super::context::{Context, Tensor, widest};

/// A tensor as rows.
#[derive(Debug, Serialize)]
pub(super) struct Rows {
    /// An expression for the number of rows.
    count: String,
    /// An expression for the elements of a row.
    length: String,
    /// An expression for the bytes of the widest element among the tensors with rows of the same length.
    widest: String,
}

/// The tensor in that slot as rows along the setting `axis`, by default the last axis. Error: the axes are not the last ones.
pub(super) fn of(context: &Context, slot: &str) -> Result<Rows, String> {
    let tensor = context.slots.get(slot).ok_or_else(|| format!("it has no tensor `{slot}`"))?;
    let rank = tensor.shape.len();
    let stated: Option<Vec<i64>> = match context.attributes.get("axis") {
        None => Some(vec![-1]),
        Some(serde_json::Value::Array(list)) => list.iter().map(serde_json::Value::as_i64).collect(),
        Some(one) => one.as_i64().map(|axis| vec![axis]),
    };
    let stated = stated.ok_or("its `axis` is not a number")?;
    if context.params.iter().any(|p| p.name == "axis") {
        return Err("its `axis` is a param".into());
    }
    let mut axes: Vec<i64> = stated.iter().map(|a| if *a < 0 { a + rank as i64 } else { *a }).collect();
    axes.sort_unstable();
    let first = rank.saturating_sub(axes.len());
    if !axes.iter().copied().eq((first..rank).map(|axis| axis as i64)) {
        return Err(format!(
            "it reduces along axis {stated:?}, but the template reduces the last axes of `{}`",
            tensor.name
        ));
    }
    let product = |extents: &[String]| match extents {
        [] => "1".to_string(),
        many => many.iter().map(|e| format!("({e})")).collect::<Vec<_>>().join(" * "),
    };
    let plain = |extents: &[String]| match extents {
        [one] => one.clone(),
        many => product(many),
    };
    let length = &tensor.shape[first..];
    let as_long = |t: &&Tensor| t.shape.ends_with(length);
    let widest = widest(context.tensors.iter().filter(as_long));
    Ok(Rows { count: plain(&tensor.shape[..first]), length: plain(length), widest })
}
