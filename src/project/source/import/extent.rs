//! Which dim counts the elements of an output, by the index of its stores: `y[c] = ...` where the body compares `c` with a dim, or `y[blockIdx.x]` where
//! the grid is one. Knows one index by one variable; products and sums are not plain.

use super::super::declarations::closing;
use super::super::tokens::Token;
use super::expression::Expression;
use super::kernel::Kernel;

/// The dim that the index of every store to a tensor goes through; none if an index does not show it plainly.
pub(super) fn extent(kernel: &Kernel, tensor: &str, dims: &[String]) -> Option<String> {
    let body = &kernel.body;
    let stores = (0..body.len()).filter(|at| body[*at].is(tensor) && body.get(at + 1).is_some_and(|t| t.is("[")));
    let mut found: Option<String> = None;
    for at in stores {
        let index = &body[at + 2..closing(body, at + 1)?];
        let dim = through(kernel, index, dims, 4)?;
        if found.get_or_insert_with(|| dim.clone()) != &dim {
            return None;
        }
    }
    found
}

/// The dim that an index goes through.
fn through(kernel: &Kernel, index: &[Token], dims: &[String], depth: usize) -> Option<String> {
    let body = &kernel.body;
    // The block's own number, where the grid has one for each.
    if let [block, dot, axis] = index
        && block.is("blockIdx")
        && dot.is(".")
    {
        let axis = ["x", "y", "z"].iter().position(|name| axis.is(name))?;
        return match kernel.grid.known.get(axis)? {
            Expression::Name(dim) if dims.contains(dim) => Some(dim.clone()),
            _ => None,
        };
    }
    let [variable] = index else { return None };
    if !variable.is_word() {
        return None;
    }
    // Several names may stand for a dim: what the launch passes for it.
    let stands = |token: &Token| {
        let of = |dim: &&String| {
            token.is(dim) || kernel.integers.get(&token.text).is_some_and(|e| *e == Expression::Name((*dim).clone()))
        };
        dims.iter().find(of).filter(|_| token.is_word())
    };
    let compared: Vec<&String> = (0..body.len())
        .filter(|at| body[*at].is(&variable.text) && at.checked_sub(1).is_none_or(|before| !body[before].is(".")))
        .filter_map(|at| {
            let bound = |sign: usize| {
                let equal = usize::from(body.get(sign + 1).is_some_and(|t| t.is("=") && t.glued));
                let bound = body.get(sign + 1 + equal).and_then(stands)?;
                // `c < cols`, `c >= cols`; not `c < cols / 2`.
                let ends = body
                    .get(sign + 2 + equal)
                    .is_some_and(|t| [")", ";", "&", "|", "?", ","].iter().any(|end| t.is(end)));
                let plain = body[sign].is("<") && equal == 0 || body[sign].is(">") && equal == 1;
                (ends && plain).then_some(bound)
            };
            let after = body.get(at + 1).filter(|t| t.is("<") || t.is(">")).and_then(|_| bound(at + 1));
            // `cols > c`, `cols <= c`
            let before = || {
                let equal = usize::from(at >= 1 && body[at - 1].is("="));
                let sign = at.checked_sub(1 + equal)?;
                let plain = body[sign].is(">") && equal == 0 || body[sign].is("<") && equal == 1;
                body.get(sign.checked_sub(1)?).filter(|_| plain).and_then(stands)
            };
            after.or_else(before)
        })
        .collect();
    if let [first, rest @ ..] = &compared[..] {
        return rest.iter().all(|other| other == first).then(|| (*first).clone());
    }
    // `int row = blockIdx.x;`, as long as it is set once.
    let mut set = (1..body.len().saturating_sub(2))
        .filter(|at| body[*at].is(&variable.text) && body[at + 1].is("=") && !body[at + 2].is("="));
    let (at, None) = (set.next()?, set.next()) else { return None };
    let end = super::scope::end(body, at + 2);
    if depth == 0 { None } else { through(kernel, &body[at + 2..end], dims, depth - 1) }
}
