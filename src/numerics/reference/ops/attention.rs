//! attention: scaled dot products, softmax, weighted sum; causal, grouped heads, paged keys and values.

use super::softmax::peak_and_sum;
use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{Builtin, Kind, Produced, SettingKind, Use, Work, optional, read, setting, written};
use crate::reference::check::Check;
use crate::reference::error::{Error, Range};
use crate::reference::gemm::{Matrix, multiply};
use crate::reference::values::Values;
use kforge_foundation::base::pieces;
use kforge_types::model::Init;

/// `o = softmax(scale * q @ k^T) @ v`.
pub(in crate::reference) static ATTENTION: Builtin = Builtin {
    name: "attention",
    doc: "softmax(scale * q @ k^T) @ v for every batch and head. Each of the hkv heads of `k` and `v` serves h / hkv neighbouring heads of `q`. \
          With `causal` the last query sees every key, the one before it all but the last, and so on (aligned at the end, as FlashAttention \
          does); a query that sees none gives 0 and an lse of minus infinity. With `page_table`, key j of batch b lies in row j % page_size of \
          page page_table[b, j / page_size]. Scale: of o, the softmax times |v|; of lse, |lse| + |largest score|",
    slots: &[
        read("q", Kind::Float, "[b, h, m, d], or [b, m, h, d] with layout `bshd`, or [b, h, d] for one query"),
        read("k", Kind::Float, "[b, hkv, n, d], or [b, n, hkv, d], or with pages [pages, page_size, hkv, d]"),
        read("v", Kind::Float, "as `k`, with dv in place of d"),
        optional("page_table", Use::In, Kind::Int, "[b, pages a batch]"),
        optional("lengths", Use::In, Kind::Int, "[b]: the number of keys that count, from 0; default all"),
        written("o", Kind::Float, "as `q`, with dv in place of d"),
        optional(
            "lse",
            Use::Out,
            Kind::Float,
            "[b, h, m], or [b, h] for one query: log of the sum of exponentials of the scores",
        ),
    ],
    settings: &[
        setting("scale", SettingKind::Number, "the factor of the scores; default 1 / sqrt(d)"),
        setting("causal", SettingKind::Flag, "whether later keys are hidden; default false"),
        setting("layout", SettingKind::Word(&["bhsd", "bshd"]), "the order of axes without pages; default `bhsd`"),
    ],
    large: &[],
    check,
    run,
    work: |bound| match Dims::new(bound) {
        Ok(d) => {
            let pairs: usize = (0..d.m).map(|i| d.visible(i, d.n)).sum();
            Work {
                flops: 2.0 * (d.b * d.h) as f64 * pairs as f64 * (d.d + d.dv) as f64,
                reduction: d.n.max(d.d) as u64,
            }
        }
        Err(_) => Work { flops: 0.0, reduction: 1 },
    },
    hint: |bound, slot| {
        let dims = Dims::new(bound).ok()?;
        match slot {
            "page_table" => Some(Init::Permutation(dims.pages.max(1) as i64)),
            "lengths" => Some(Init::Range(dims.n.min(1) as f64, dims.n as f64)),
            _ => None,
        }
    },
};

/// The extents of the problem.
#[derive(Debug, Clone, Copy)]
struct Dims {
    b: usize,
    h: usize,
    hkv: usize,
    m: usize,
    /// Keys per batch, or room for them.
    n: usize,
    d: usize,
    dv: usize,
    /// 0 without pages.
    pages: usize,
    page_size: usize,
    causal: bool,
    sequence_first: bool,
    single: bool,
}

impl Dims {
    fn new(bound: &Bound<'_>) -> Result<Self, Error> {
        let sequence_first = bound.word("layout", "bhsd") == "bshd";
        let rank = |slot: &str, rank: usize, expected: &'static str| Error::Rank {
            tensor: bound.own_name(slot).to_owned(),
            rank,
            expected,
        };
        let four = |slot: &str| {
            let shape = bound.dims(slot);
            <[usize; 4]>::try_from(shape.as_slice()).map_err(|_| rank(slot, shape.len(), "4"))
        };
        let single = bound.dims("q").len() == 3;
        let [b, h, m, d] = match bound.dims("q").as_slice() {
            [b, h, d] => [*b, *h, 1, *d],
            _ if sequence_first => {
                let [b, m, h, d] = four("q")?;
                [b, h, m, d]
            }
            _ => four("q")?,
        };
        let (k, v) = (four("k")?, four("v")?);
        let paged = bound.shape("page_table");
        let (hkv, n, pages, page_size) = match &paged {
            Some(table) => match table.as_slice() {
                [_, row] => (k[2], row * k[1], k[0], k[1]),
                _ => return Err(rank("page_table", table.len(), "2")),
            },
            None if sequence_first => (k[2], k[1], 0, 0),
            None => (k[1], k[2], 0, 0),
        };
        let causal = bound.flag("causal");
        Ok(Dims { b, h, hkv, m, n, d, dv: v[3], pages, page_size, causal, sequence_first, single })
    }

    /// How many of `keys` keys are visible to query `i`.
    fn visible(&self, i: usize, keys: usize) -> usize {
        if self.causal { (keys + i + 1).saturating_sub(self.m) } else { keys }
    }

    /// The position of the first of `width` values of query `i`.
    fn query(&self, b: usize, h: usize, i: usize, width: usize) -> usize {
        let row = if self.sequence_first && !self.single {
            (b * self.m + i) * self.h + h
        } else {
            (b * self.h + h) * self.m + i
        };
        row * width
    }

    /// The position of the first of `width` values of key `j`. With `table`, the key's page is looked up there.
    fn key(&self, b: usize, h: usize, j: usize, width: usize, table: Option<&[i64]>) -> usize {
        let row = match table {
            Some(table) => {
                let page = table[b * (self.n / self.page_size) + j / self.page_size] as usize;
                (page * self.page_size + j % self.page_size) * self.hkv + h
            }
            None if self.sequence_first => (b * self.n + j) * self.hkv + h,
            None => (b * self.hkv + h) * self.n + j,
        };
        row * width
    }
}

fn check(check: &mut Check<'_>) {
    let dims = match Dims::new(&check.bound) {
        Ok(dims) => dims,
        Err(error) => return check.error(error),
    };
    let Dims { b, h, hkv, m, n, d, dv, .. } = dims;
    if hkv == 0 || h % hkv != 0 {
        check.error(format!("{h} heads of queries over {hkv} heads of keys, expected a whole multiple"));
    }
    let keys = |width: usize| {
        if dims.page_size > 0 {
            [dims.pages, dims.page_size, hkv, width]
        } else if dims.sequence_first {
            [b, n, hkv, width]
        } else {
            [b, hkv, n, width]
        }
    };
    check.shape("k", &keys(d), "batches, heads and width as those of `q`");
    check.shape("v", &keys(dv), "that of `k` but for the last axis");
    let (output, lse) = if dims.single {
        (vec![b, h, dv], vec![b, h])
    } else if dims.sequence_first {
        (vec![b, m, h, dv], vec![b, h, m])
    } else {
        (vec![b, h, m, dv], vec![b, h, m])
    };
    check.shape("o", &output, "that of `q` with the last axis of `v`");
    check.shape("lse", &lse, "one value a query");
    check.shape("lengths", &[b], "one length a batch");
    if let Some(table) = check.bound.shape("page_table") {
        check.shape("page_table", &[b, table[1]], "one row a batch");
        if dims.page_size == 0 {
            check.error("pages of no keys, expected at least one key a page");
        }
    }
}

fn run(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let bound = &call.bound;
    let dims = Dims::new(bound)?;
    let factor = bound.number("scale").unwrap_or(1.0 / (dims.d as f64).sqrt());
    let (q, k, v) = (call.float("q")?, call.float("k")?, call.float("v")?);
    let table = if call.slot("page_table")?.is_some() { Some(call.ints("page_table")?) } else { None };
    let lengths = lengths(call, &dims)?;
    if let Some(table) = table {
        check_pages(call, &dims, table, &lengths)?;
    }
    let heads: Vec<Head> = pieces::items(dims.b * dims.h, |bh| {
        let (b, h) = (bh / dims.h, bh % dims.h);
        let gather = |values: &[f64], width: usize| -> Vec<f64> {
            let head = h / (dims.h / dims.hkv);
            (0..lengths[b]).flat_map(|j| &values[dims.key(b, head, j, width, table)..][..width]).copied().collect()
        };
        let queries: Vec<f64> =
            (0..dims.m).flat_map(|i| &q[dims.query(b, h, i, dims.d)..][..dims.d]).map(|x| x * factor).collect();
        head(&dims, &queries, &gather(&k, dims.d), &gather(&v, dims.dv), lengths[b], scale)
    });
    let place = |of: fn(&Head) -> &[f64]| {
        let mut whole = vec![0.0; dims.b * dims.h * dims.m * dims.dv];
        for (bh, head) in heads.iter().enumerate() {
            for i in 0..dims.m {
                let at = dims.query(bh / dims.h, bh % dims.h, i, dims.dv);
                whole[at..at + dims.dv].copy_from_slice(&of(head)[i * dims.dv..][..dims.dv]);
            }
        }
        whole
    };
    let mut produced =
        Produced::one("o", Values::Float(place(|head| &head.o)), scale.then(|| place(|head| &head.scale)));
    let lse = heads.iter().flat_map(|head| head.lse.iter().copied()).collect();
    let peaks = scale.then(|| heads.iter().flat_map(|head| head.lse_scale.iter().copied()).collect());
    produced.put("lse", Values::Float(lse), peaks);
    Ok(produced)
}

/// How many keys each batch has.
fn lengths(call: &Call<'_>, dims: &Dims) -> Result<Vec<usize>, Error> {
    if call.slot("lengths")?.is_none() {
        return Ok(vec![dims.n; dims.b]);
    }
    let name = call.bound.own_name("lengths");
    let stated = call.ints("lengths")?.iter().enumerate();
    stated
        .map(|(b, length)| {
            let fits = usize::try_from(*length).ok().filter(|length| *length <= dims.n);
            fits.ok_or_else(|| Error::OutOfRange {
                tensor: name.to_owned(),
                place: vec![b],
                found: *length,
                expected: Range::UpTo(dims.n),
            })
        })
        .collect()
}

/// Checks that every page that a length reaches exists.
fn check_pages(call: &Call<'_>, dims: &Dims, table: &[i64], lengths: &[usize]) -> Result<(), Error> {
    let row = dims.n / dims.page_size;
    for (b, length) in lengths.iter().enumerate() {
        for p in 0..length.div_ceil(dims.page_size) {
            let page = table[b * row + p];
            if !usize::try_from(page).is_ok_and(|page| page < dims.pages) {
                let name = call.bound.own_name("page_table");
                return Err(Error::OutOfRange {
                    tensor: name.to_owned(),
                    place: vec![b, p],
                    found: page,
                    expected: Range::Page(dims.pages.max(1) - 1),
                });
            }
        }
    }
    Ok(())
}

/// The results of one head: rows of queries.
struct Head {
    o: Vec<f64>,
    scale: Vec<f64>,
    lse: Vec<f64>,
    lse_scale: Vec<f64>,
}

/// Queries that are processed together, so that the memory for scores grows only with the keys.
const CHUNK: usize = 64;

fn head(dims: &Dims, q: &[f64], k: &[f64], v: &[f64], n: usize, scale: bool) -> Head {
    let mut made = Head {
        o: vec![0.0; dims.m * dims.dv],
        scale: vec![0.0; if scale { dims.m * dims.dv } else { 0 }],
        lse: vec![f64::NEG_INFINITY; dims.m],
        lse_scale: vec![0.0; dims.m],
    };
    if n == 0 {
        return made;
    }
    let magnitudes: Vec<f64> = if scale { v.iter().map(|x| x.abs()).collect() } else { Vec::new() };
    for first in (0..dims.m).step_by(CHUNK) {
        let rows = CHUNK.min(dims.m - first);
        let mut scores = vec![0.0; rows * n];
        let queries = Matrix { values: q, start: first * dims.d, row: dims.d, column: 1 };
        multiply(rows, dims.d, n, queries, Matrix { values: k, start: 0, row: 1, column: dims.d }, &mut scores);
        for (row, scores) in scores.chunks_mut(n).enumerate() {
            let (seen, hidden) = scores.split_at_mut(dims.visible(first + row, n));
            hidden.fill(0.0);
            if seen.is_empty() {
                continue;
            }
            let (peak, total) = peak_and_sum(seen);
            seen.iter_mut().for_each(|s| *s = libm::exp(*s - peak) / total);
            made.lse[first + row] = peak + libm::log(total);
            made.lse_scale[first + row] = made.lse[first + row].abs() + peak.abs();
        }
        let weights = Matrix { values: &scores, start: 0, row: n, column: 1 };
        let range = first * dims.dv..(first + rows) * dims.dv;
        let of = |values| Matrix { values, start: 0, row: dims.dv, column: 1 };
        multiply(rows, n, dims.dv, weights, of(v), &mut made.o[range.clone()]);
        if scale {
            multiply(rows, n, dims.dv, weights, of(&magnitudes), &mut made.scale[range]);
        }
    }
    made
}
