//! What entries reach: from their names through every declaration and macro of those names. The head of the room has the reasons.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::part::{Part, What};
use super::tokens::{Token, words};
use super::{Group, Sources};

pub(super) const COUNTER: &str = "__COUNTER__";

/// How the macros of CUDA's headers begin that annotate functions.
const ANNOTATIONS: [&str; 5] = ["_CCCL_", "_LIBCUDACXX_", "CUB_", "THRUST_", "CUDART_"];

/// Whether a word is an annotation of CUDA's headers.
pub(super) fn is_annotation(token: &Token) -> bool {
    ANNOTATIONS.iter().any(|start| token.text.starts_with(start))
}

impl Sources<'_> {
    /// The declarations that entries reach.
    pub(super) fn reached<'t>(
        &self,
        entries: &[String],
        given: impl IntoIterator<Item = &'t str>,
    ) -> BTreeSet<(usize, usize)> {
        let known = self.known();
        let mut by_name: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        let every = || {
            let of = |(g, group): (usize, &Group)| (0..group.parts.len()).map(move |p| (g, p)).collect::<Vec<_>>();
            self.groups.iter().enumerate().flat_map(of)
        };
        for at in every() {
            for name in &self.part(at).names {
                by_name.entry(name).or_default().push(at);
            }
        }
        let counters = self.counters();
        by_name.entry(COUNTER).or_default().extend(&counters);
        let host = self.host_code(&by_name);
        // Where every header is here, such a name is a mistake, which the compiler reports.
        let foreign = if self.lacks_library { self.foreign(&by_name, &host) } else { BTreeSet::new() };
        let mut kept: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut open: VecDeque<String> = entries.iter().flat_map(|entry| words(entry)).collect();
        open.extend(given.into_iter().flat_map(words));
        for file in self.files.iter().filter(|file| file.fragment) {
            open.extend(file.tokens.iter().filter(|t| t.is_word()).map(|t| t.text.clone()));
        }
        let implied = self.implied();
        let mut roots: Vec<(usize, usize)> = every()
            .filter(|at| {
                let part = self.part(*at);
                let used_unnamed = part.names.contains("operator")
                    || implied.always.contains(at)
                    || part.device && matches!(part.what, What::Variable | What::Several);
                let declared = || {
                    let after = part.tokens.iter().position(|t| t.is("namespace") || t.is("enum")).unwrap_or(0);
                    let path = part.tokens[after + 1..].iter().skip_while(|t| !t.is_word() && !t.is("::"));
                    let path: Vec<Token> = path.cloned().collect();
                    match part.tokens[after].is("enum") {
                        true => {
                            let last = path.iter().rfind(|t| t.is_word());
                            known.foreign(&path).is_none() && last.is_some_and(|t| self.declared.contains(&t.text))
                        }
                        false => known.has_namespace(&path),
                    }
                };
                used_unnamed && !host.contains(at) && !foreign.contains(at)
                    || part.what == What::Using && declared()
                    || self.groups[at.0].stays
            })
            .collect();
        loop {
            for at in roots.drain(..) {
                // Declarations that cannot be told apart stay together.
                let parts =
                    if self.groups[at.0].texts.is_ok() { at.1..at.1 + 1 } else { 0..self.groups[at.0].parts.len() };
                for at in parts.map(|part| (at.0, part)) {
                    if kept.insert(at) {
                        open.extend(self.part(at).uses.iter().cloned());
                    }
                }
            }
            let Some(name) = open.pop_front() else { break };
            if !seen.insert(name.clone()) {
                continue;
            }
            open.extend(self.macros.words(&name));
            let all = by_name.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            if name == COUNTER {
                roots.extend(all);
                continue;
            }
            let of_device = |part: &Part| part.surely_device && part.what != What::Variable;
            let device: Vec<_> = all.iter().filter(|at| of_device(self.part(**at))).collect();
            let plain = |at: &&(usize, usize)| !foreign.contains(*at);
            let overload = |at: &(usize, usize)| {
                let part = self.part(*at);
                let forward = device.iter().any(|other| self.part(**other).parameters == part.parameters);
                let annotated = part.header.iter().any(is_annotation);
                let host = !part.device && !part.constexpr && !annotated && !self.all_device;
                let host = host && !device.is_empty() && !forward;
                part.what == What::Function && host && !known.may_be_annotated(part)
            };
            let left_out = |at: &(usize, usize)| {
                host.contains(at)
                    || overload(at)
                    || foreign.contains(at)
                        && self.part(*at).is_overload()
                        && all.iter().filter(plain).any(|other| !host.contains(other))
            };
            roots.extend(all.iter().filter(|at| !left_out(at)));
            let looked_up = implied.by_name.get(&name).into_iter().flatten();
            roots.extend(looked_up.filter(|at| !host.contains(*at) && !foreign.contains(*at)));
        }
        // An assertion holds for what is kept if it names only that.
        let names: BTreeSet<&String> = kept.iter().flat_map(|at| &self.part(*at).names).collect();
        let about_kept = |at: &(usize, usize)| {
            let part = self.part(*at);
            let known_names =
                || part.uses.iter().all(|name| !by_name.contains_key(name.as_str()) || names.contains(name));
            part.what == What::Assertion && !foreign.contains(at) && known_names()
        };
        kept.extend(every().filter(about_kept));
        kept
    }

    /// Declarations that count with `__COUNTER__`: if one stays, all stay, so that each gets its number.
    pub(super) fn counters(&self) -> Vec<(usize, usize)> {
        let counts = |t: &Token| t.is(COUNTER);
        if !self.files.iter().any(|file| {
            file.tokens.iter().any(|t| counts(t) || t.directive().is_some_and(|(_, text)| text.contains(COUNTER)))
        }) {
            return vec![];
        }
        let of = |(g, group): (usize, &Group)| (0..group.parts.len()).map(move |p| (g, p)).collect::<Vec<_>>();
        let all = self.groups.iter().enumerate().flat_map(of);
        all.filter(|at| self.macros.reached(&self.part(*at).tokens).is_none_or(|names| names.contains(COUNTER)))
            .collect()
    }

    /// Host code beyond doubt, and functions without annotation that call it.
    fn host_code(&self, by_name: &BTreeMap<&str, Vec<(usize, usize)>>) -> BTreeSet<(usize, usize)> {
        let known = self.known();
        let every: Vec<(usize, usize)> =
            self.groups.iter().enumerate().flat_map(|(g, group)| (0..group.parts.len()).map(move |p| (g, p))).collect();
        if self.all_device {
            return BTreeSet::new();
        }
        let mut host: BTreeSet<_> = every.iter().filter(|at| known.is_host(self.part(**at))).copied().collect();
        // An alias of a namespace that nothing declares.
        host.extend(every.iter().copied().filter(|at| {
            let text = &self.part(*at).tokens;
            let target = text.iter().position(|t| t.is("=")).filter(|_| text[0].is("namespace"));
            target.is_some_and(|target| !known.has_namespace(&text[target + 1..]))
        }));
        loop {
            let calls_host = |at: &&(usize, usize)| {
                let part = self.part(**at);
                let only_host = |name: &String| {
                    let all = by_name.get(name.as_str()).map_or(&[][..], Vec::as_slice);
                    !all.is_empty() && !part.names.contains(name) && all.iter().all(|other| host.contains(other))
                };
                part.what == What::Function && !part.device && !host.contains(*at) && part.calls.iter().any(only_host)
            };
            let more: Vec<_> = every.iter().filter(calls_host).copied().collect();
            if more.is_empty() {
                return host;
            }
            host.extend(more);
        }
    }
}
