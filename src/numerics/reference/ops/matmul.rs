//! matmul: batched matrix products with transposes, scaling, bias and activation.

use super::elementwise::Places;
use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{
    Builtin, Kind, Produced, SettingKind, Use, Work, no_hint, optional, read, setting, written,
};
use crate::reference::check::Check;
use crate::reference::error::{Error, Factor};
use crate::reference::formula::{ACTIVATIONS, activation};
use crate::reference::gemm::{Matrix, Product, ProductBackend, is_large, multiply_anywhere};
use crate::reference::values::Values;
use kforge_foundation::base::pieces::{self, PIECE};

/// `c = activation(alpha * a @ b + beta * c + bias)`.
pub(in crate::reference) static MATMUL: Builtin = Builtin {
    name: "matmul",
    doc: "activation(alpha * a @ b + beta * c + bias), where leading axes are batches that broadcast; integers are exact without alpha, beta and \
          activation; scale: |alpha| |a| @ |b| + |beta| |c| + |bias|, whatever the activation",
    slots: &[
        read("a", Kind::Any, "[..., m, k], or [..., k, m] with `transpose_a`"),
        read("b", Kind::Any, "[..., k, n], or [..., n, k] with `transpose_b`"),
        optional("bias", Use::In, Kind::Any, "any shape that broadcasts to `c`: [n], or [m, 1]"),
        written("c", Kind::Any, "[..., m, n]; an inout if `beta` is given"),
    ],
    settings: &[
        setting("transpose_a", SettingKind::Flag, "whether `a` is stored transposed; default false"),
        setting("transpose_b", SettingKind::Flag, "whether `b` is stored transposed; default false"),
        setting("alpha", SettingKind::Number, "the factor of the product; default 1"),
        setting("beta", SettingKind::Number, "the factor of the previous `c`; default 0"),
        setting("activation", SettingKind::Word(&ACTIVATIONS), "applied last; default `none`"),
    ],
    large: &[],
    check,
    run,
    work: |bound| match Dims::new(bound) {
        Ok(d) => Work { flops: 2.0 * (d.batches() * d.m * d.n) as f64 * d.k as f64, reduction: d.k as u64 },
        Err(_) => Work { flops: 0.0, reduction: 1 },
    },
    hint: no_hint,
};

/// Elements of the largest matrix of a product that may be computed by a backend; none for a product that may not.
pub(in crate::reference) fn handed_over(bound: &Bound<'_>) -> Option<usize> {
    let Dims { m, n, k, .. } = Dims::new(bound).ok().filter(|_| bound.builtin.name == MATMUL.name)?;
    is_large(m, k, n).then(|| (m * k).max(k * n).max(m * n))
}

/// The extents of a product.
struct Dims {
    m: usize,
    n: usize,
    k: usize,
    batch: Vec<usize>,
    batch_a: Vec<usize>,
    batch_b: Vec<usize>,
    transposed: [bool; 2],
}

impl Dims {
    fn new(bound: &Bound<'_>) -> Result<Self, Error> {
        let (a, b) = (bound.dims("a"), bound.dims("b"));
        let (name_a, name_b) = (bound.own_name("a"), bound.own_name("b"));
        let transposed = [bound.flag("transpose_a"), bound.flag("transpose_b")];
        let split = |shape: &[usize], name: &str, transposed: bool| match shape {
            [batch @ .., rows, columns] if transposed => Ok((batch.to_vec(), *columns, *rows)),
            [batch @ .., rows, columns] => Ok((batch.to_vec(), *rows, *columns)),
            _ => Err(Error::Rank { tensor: name.to_owned(), rank: shape.len(), expected: "at least 2" }),
        };
        let (batch_a, m, k) = split(&a, name_a, transposed[0])?;
        let (batch_b, k_b, n) = split(&b, name_b, transposed[1])?;
        if k != k_b {
            let factor = |name: &str, shape: Vec<usize>, k| Box::new(Factor { tensor: name.to_owned(), shape, k });
            return Err(Error::InnerExtents(factor(name_a, a, k), factor(name_b, b, k_b)));
        }
        let batch = broadcast(&batch_a, &batch_b).ok_or_else(|| {
            let of = |name: &str, batch: &[usize]| Box::new((name.to_owned(), batch.to_vec()));
            Error::Batches(of(name_a, &batch_a), of(name_b, &batch_b))
        })?;
        Ok(Dims { m, n, k, batch, batch_a, batch_b, transposed })
    }

    fn batches(&self) -> usize {
        self.batch.iter().product()
    }

    fn shape(&self) -> Vec<usize> {
        let mut shape = self.batch.clone();
        shape.extend([self.m, self.n]);
        shape
    }
}

/// The shape that two shapes broadcast to (trailing axes aligned, 1 stretches); none if they do not broadcast.
pub(in crate::reference) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], i: usize| (i + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// For every element of `shape`, the element of a tensor of shape `of` that broadcasts there.
pub(in crate::reference) fn broadcast_places(shape: &[usize], of: &[usize]) -> Vec<usize> {
    let mut places = vec![0usize];
    for (axis, extent) in shape.iter().enumerate() {
        let own = (axis + of.len()).checked_sub(shape.len());
        let stride = match own {
            Some(own) if of[own] != 1 => of[own + 1..].iter().product(),
            _ => 0,
        };
        places = places.iter().flat_map(|p| (0..*extent).map(move |i| p + i * stride)).collect();
    }
    places
}

fn check(check: &mut Check<'_>) {
    let dims = match Dims::new(&check.bound) {
        Ok(dims) => dims,
        Err(error) => return check.error(error),
    };
    let shape = dims.shape();
    check.shape("c", &shape, "[..., m, n] of the product");
    if let Some(bias) = check.bound.shape("bias")
        && broadcast(&bias, &shape).as_ref() != Some(&shape)
    {
        let name = check.bound.own_name("bias").to_owned();
        check.error(format!("`{name}` has shape {bias:?}, expected one that broadcasts to {shape:?}"));
    }
    let reads_c = check.bound.tensor("c").is_some_and(|c| c.role == kforge_types::model::Role::Inout);
    let beta = check.bound.number("beta").is_some_and(|beta| beta != 0.0);
    if beta && !reads_c {
        let name = check.bound.own_name("c").to_owned();
        check.error(format!("`beta` reads the previous value of `{name}`; declare it under `inouts`"));
    }
}

fn run(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let dims = Dims::new(&call.bound)?;
    let bound = &call.bound;
    let activation_name = bound.word("activation", "none");
    let plain = bound.number("alpha").is_none() && bound.number("beta").is_none() && activation_name == "none";
    let bias_is_int = call.slot("bias")?.is_none_or(|(values, _)| matches!(values, Values::Int(_)));
    if let (Values::Int(a), Values::Int(b), true, true) = (call.values("a")?, call.values("b")?, plain, bias_is_int) {
        return exact(call, &dims, a, b, scale);
    }
    let (alpha, beta) = (bound.number("alpha").unwrap_or(1.0), bound.number("beta").unwrap_or(0.0));
    let (a, b, bias) = (call.float("a")?, call.float("b")?, call.float_if("bias")?);
    let old = if beta == 0.0 { None } else { call.float_if("c")? };
    let shape = dims.shape();
    let bias_places = Places::new(&bound.dims("bias"), &shape);
    let apply = activation(&activation_name);
    let finish = |mut c: Vec<f64>, absolute: bool| {
        let magnitude = |x: f64| if absolute { x.abs() } else { x };
        let each = |i: usize, c: &mut f64| {
            *c *= magnitude(alpha);
            if let Some(old) = &old {
                *c += magnitude(beta) * magnitude(old[i]);
            }
            if let Some(bias) = &bias {
                *c += magnitude(bias[bias_places.of(i, bias.len())]);
            }
            if !absolute {
                *c = apply(*c);
            }
        };
        pieces::chunks(&mut c, PIECE, |at, c| c.iter_mut().enumerate().for_each(|(i, c)| each(at * PIECE + i, c)));
        c
    };
    let c = finish(product(&dims, &a, &b, call.elsewhere), false);
    let scales = scale.then(|| {
        let absolute = |values: &[f64]| values.iter().map(|x| x.abs()).collect::<Vec<_>>();
        finish(product(&dims, &absolute(&a), &absolute(&b), call.elsewhere), true)
    });
    Ok(Produced::one("c", Values::Float(c), scales))
}

fn product(dims: &Dims, a: &[f64], b: &[f64], elsewhere: Option<&dyn ProductBackend>) -> Vec<f64> {
    let (m, n, k) = (dims.m, dims.n, dims.k);
    let mut c = vec![0.0; dims.batches() * m * n];
    let (of_a, of_b) = (broadcast_places(&dims.batch, &dims.batch_a), broadcast_places(&dims.batch, &dims.batch_b));
    if m * n == 0 {
        return c;
    }
    for (batch, c) in c.chunks_mut(m * n).enumerate() {
        let (row, column) = if dims.transposed[0] { (1, m) } else { (k, 1) };
        let left = Matrix { values: a, start: of_a[batch] * m * k, row, column };
        let (row, column) = if dims.transposed[1] { (1, k) } else { (n, 1) };
        let right = Matrix { values: b, start: of_b[batch] * k * n, row, column };
        multiply_anywhere(&Product { m, k, n, a: left, b: right }, c, elsewhere);
    }
    c
}

/// The product of integers, wrapping in 64 bits. A scale is used only if the output is of floats.
fn exact(call: &Call<'_>, dims: &Dims, a: &[i64], b: &[i64], scale: bool) -> Result<Produced, Error> {
    let (m, n, k) = (dims.m, dims.n, dims.k);
    let bias = match call.slot("bias")? {
        Some(_) => Some((call.ints("bias")?, broadcast_places(&dims.shape(), &call.bound.dims("bias")))),
        None => None,
    };
    let (of_a, of_b) = (broadcast_places(&dims.batch, &dims.batch_a), broadcast_places(&dims.batch, &dims.batch_b));
    let mut c = Vec::with_capacity(dims.batches() * m * n);
    let mut scales = scale.then(Vec::new);
    for batch in 0..dims.batches() {
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let mut total = bias.as_ref().map_or(0, |(bias, places)| bias[places[c.len()]]);
            let mut magnitude = total.unsigned_abs() as f64;
            for l in 0..k {
                let left = if dims.transposed[0] { l * m + i } else { i * k + l };
                let right = if dims.transposed[1] { j * k + l } else { l * n + j };
                let (x, y) = (a[of_a[batch] * m * k + left], b[of_b[batch] * k * n + right]);
                total = total.wrapping_add(x.wrapping_mul(y));
                magnitude += x.unsigned_abs() as f64 * y.unsigned_abs() as f64;
            }
            c.push(total);
            scales.iter_mut().for_each(|scales| scales.push(magnitude));
        }
    }
    Ok(Produced::one("c", Values::Int(c), scales))
}
