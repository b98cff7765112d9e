//! Operators that kernels share, and the shapes at which each is tried: the demands of all of its kernels together.

use std::collections::BTreeSet;

use super::covers::{Cover, covers, joined, least};
use super::guess::{Guess, Tensor};
use super::kernel::Kernel;
use super::sizes::{Size, exceed_threads, sizes};
use super::strides::{Pass, exceed, pass};
use super::triton::TYPE;

/// An operator that is written once.
pub(super) struct Operator {
    pub(super) name: String,
    /// What is equal for all kernels that share it.
    key: String,
    pub(super) guess: Guess,
    /// The kernels by index.
    pub(super) kernels: Vec<usize>,
    /// By position of a dim: the number that divides it for each kernel, in the order of `kernels`.
    multiples: Vec<Vec<i64>>,
    /// How its kernels go through each dim.
    covers: Vec<Cover>,
    /// The least size of each dim with which every kernel has a block.
    least: Vec<i64>,
    /// The largest pass of a kernel whose grid has a limit.
    pass: Option<Pass>,
}

impl Operator {
    pub(super) fn known(&self) -> bool {
        self.guess.reference.is_some()
    }

    /// For a dim: the number that divides it in shapes that every kernel serves, and in those that the least demanding kernel serves.
    fn divisors(&self, dim: usize) -> (i64, i64) {
        let of = |kernel: &Vec<i64>| kernel.get(dim).copied().unwrap_or(1);
        let all = self.multiples.iter().map(of).fold(1, common_multiple);
        let least = self.multiples.iter().min_by_key(|kernel| kernel.iter().product::<i64>());
        (all, least.map_or(1, of))
    }
}

/// The least number that both divide.
pub(super) fn common_multiple(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}

/// What divides the dims of a kernel, by position.
fn multiples(guess: &Guess) -> Vec<i64> {
    guess.dims.iter().map(|dim| guess.multiples.get(dim).copied().unwrap_or(1).max(1)).collect()
}

/// The largest divisor of a dim with which kernels share an operator: its large shape must be one that they all serve.
const MOST_SHARED: i64 = 512;

/// A name of the manifest: letters, digits and `_`.
pub(super) fn identifier(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("k{plain}") }
}

/// What kernels that share an operator have in common.
fn key(guess: &Guess) -> String {
    let dim =
        |text: &String| guess.dims.iter().position(|d| d == text).map_or_else(|| text.clone(), |at| format!("#{at}"));
    let tensor = |t: &Tensor| format!("{:?} {} {:?}", t.role, t.dtype, t.shape.iter().map(dim).collect::<Vec<_>>());
    let floats: Vec<&str> = guess.floats.iter().map(|(_, d)| *d).collect();
    let tensors: Vec<String> = guess.tensors.iter().map(tensor).collect();
    format!("{} {tensors:?} {floats:?} {:?} {}", guess.kind, guess.tolerance, guess.dims.len())
}

/// Operators in order of their first kernels, those with a reference first.
pub(super) fn operators(kernels: &[Kernel], guesses: &[Guess]) -> Vec<Operator> {
    let mut out: Vec<Operator> = vec![];
    for (index, guess) in guesses.iter().enumerate() {
        let multiples = multiples(guess);
        let shared = guess.reference.is_some()
            && guess.tensors.iter().all(|t| t.check.is_none())
            && multiples.iter().all(|by| *by <= MOST_SHARED && by & (by - 1) == 0);
        let own = if shared { key(guess) } else { format!("{index}") };
        let covers = covers(&kernels[index], guess);
        match out.iter_mut().find(|o| o.key == own) {
            Some(operator) => {
                operator.kernels.push(index);
                operator.multiples.push(multiples);
                operator.least =
                    operator.least.iter().zip(least(&kernels[index], guess)).map(|(a, b)| *a.max(&b)).collect();
                operator.pass = operator.pass.take().into_iter().chain(pass(&kernels[index], guess)).max();
                operator.covers = operator.covers.iter().zip(covers).map(|(a, b)| joined(*a, b)).collect();
            }
            None => out.push(Operator {
                name: String::new(),
                key: own,
                guess: guess.clone(),
                kernels: vec![index],
                multiples: vec![multiples],
                covers,
                least: least(&kernels[index], guess),
                pass: pass(&kernels[index], guess),
            }),
        }
    }
    out.sort_by_key(|operator| operator.guess.reference.is_none());
    let mut taken = BTreeSet::new();
    for operator in &mut out {
        let base = match operator.guess.reference {
            Some(_) => {
                let dtype = operator.guess.tensors.first().map_or("", |t| t.dtype);
                match dtype {
                    TYPE => identifier(&operator.guess.kind),
                    _ => identifier(&format!("{}_{dtype}", operator.guess.kind)),
                }
            }
            None => identifier(&kernels[operator.kernels[0]].name),
        };
        let mut name = base.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        operator.name = name;
    }
    out
}

/// The shapes of an operator: name, a size for each dim, whether it is timed.
pub(super) fn shapes(operator: &Operator) -> Vec<(&'static str, Vec<i64>, bool)> {
    let guess = &operator.guess;
    if guess.dims.is_empty() {
        return vec![("only", vec![], false)];
    }
    let divisors: Vec<(i64, i64)> = (0..guess.dims.len()).map(|dim| operator.divisors(dim)).collect();
    let all: Vec<i64> = divisors.iter().map(|(all, _)| *all).collect();
    let least: Vec<i64> = divisors.iter().map(|(_, least)| *least).collect();
    let of = |size: Size, multiples: &[i64]| {
        let found = sizes(&operator.covers, guess.sizes, size, multiples);
        let fitting = |(at, size): (usize, i64)| {
            let by = multiples.get(at).copied().unwrap_or(1).max(1);
            let least = operator.least.get(at).copied().unwrap_or(1);
            if size < least { (least + by - 1) / by * by } else { size }
        };
        found.into_iter().enumerate().map(fitting).collect::<Vec<_>>()
    };
    let (mut ragged, mut large) = (of(Size::Ragged, &least), of(Size::Large, &all));
    if let Some(pass) = &operator.pass {
        exceed(pass, &of(Size::Small, &all), &mut ragged, &mut large, [&least, &all]);
    }
    let mut small = of(Size::Small, &least);
    exceed_threads(&operator.covers, &ragged, &least, &mut small);
    let mut out = vec![("small", small, false), ("ragged", ragged, false)];
    if all != least {
        // The kernels with the largest vectors or tiles serve none of those.
        out.push(("partial", of(Size::Ragged, &all), false));
    }
    out.push(("large", large, true));
    // The last one stays: it is timed.
    let mut seen: Vec<Vec<i64>> = vec![];
    out.reverse();
    out.retain(|(_, sizes, _)| {
        !seen.contains(sizes) && {
            seen.push(sizes.clone());
            true
        }
    });
    out.reverse();
    out
}
