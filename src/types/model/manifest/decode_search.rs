//! Reads how a kernel's tunables are searched, from `tune`. Knows the keys and their limits. Kinds of values were checked before.

use std::collections::BTreeMap;

use toml::de::DeTable;

use super::decode_kernel::tune_value;
use super::read::{Reader, integer, sub};
use crate::model::search::{Budget, Search, Strategy};
use crate::model::{Text, TuneValue};

/// Keys of `tune` that are not tunables.
pub(super) const TUNE_KEYS: [&str; 5] = ["where", "strategy", "budget", "seed", "hints"];

impl Reader<'_> {
    /// The strategy, budget and seed in the table of a kernel or template.
    pub(super) fn search(&mut self, table: &DeTable<'_>) -> Search {
        let Some(tune) = sub(table, "tune") else { return Search::default() };
        let stated = self.text(tune, "strategy");
        let all = [Strategy::Exhaustive, Strategy::Random, Strategy::Annealing, Strategy::Model];
        // A word that is not a strategy has been reported with the table's keys.
        let strategy = stated.as_ref().and_then(|text| all.into_iter().find(|s| s.name() == text.as_str()));
        let other_word = stated.is_some() && strategy.is_none();
        let strategy = strategy.unwrap_or_default();
        for key in ["budget", "seed", "hints"] {
            if let Some((at, _)) = tune.get_key_value(key).filter(|_| strategy == Strategy::Exhaustive && !other_word) {
                self.wrong(
                    "manifest.conflict",
                    format!("`{key}` has no effect on an exhaustive search, which visits every variant"),
                    at.span(),
                    "`strategy = \"random\"`, `\"annealing\"` or `\"model\"` beside it, or neither",
                );
            }
        }
        Search { strategy, budget: self.budget(tune), seed: self.least(tune, "seed", 0).unwrap_or(0) }
    }

    /// The values that a search visits first, for a kernel with these tunables.
    pub(super) fn hints(
        &mut self,
        table: &DeTable<'_>,
        tunables: &[(Text, Vec<TuneValue>)],
    ) -> Vec<BTreeMap<String, TuneValue>> {
        let stated = sub(table, "tune").and_then(|tune| tune.get("hints")).and_then(|value| value.get_ref().as_array());
        let mut out = vec![];
        for hint in stated.into_iter().flat_map(|list| list.iter()).filter_map(|one| one.get_ref().as_table()) {
            let mut values = BTreeMap::new();
            for (name, value) in hint {
                let Some(read) = tune_value(value.get_ref()) else { continue };
                let known = tunables.iter().find(|(tunable, _)| tunable.value == *name.get_ref());
                match known {
                    Some((_, all)) if all.contains(&read) => drop(values.insert(name.get_ref().to_string(), read)),
                    Some((tunable, _)) => self.wrong(
                        "manifest.value",
                        format!("`{tunable}` does not take {read}"),
                        value.span(),
                        "a value of its list",
                    ),
                    None => self.wrong(
                        "manifest.unknown-key",
                        format!("`{}` is no tunable of the kernel", name.get_ref()),
                        name.span(),
                        "tunables of `tune`",
                    ),
                }
            }
            out.push(values);
        }
        out
    }

    fn budget(&mut self, tune: &DeTable<'_>) -> Budget {
        let Some(stated) = sub(tune, "budget") else { return Budget::default() };
        if stated.is_empty()
            && let Some((at, _)) = tune.get_key_value("budget")
        {
            self.wrong(
                "manifest.length",
                "`budget` is empty".into(),
                at.span(),
                "`variants`, `seconds` or both, or no `budget` for 64 variants",
            );
        }
        let variants = self.least(stated, "variants", 1).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        Budget { variants, seconds: self.least(stated, "seconds", 1) }
    }

    /// An integer that must not be smaller than `least`.
    fn least(&mut self, table: &DeTable<'_>, key: &str, least: u64) -> Option<u64> {
        let value = table.get(key)?;
        let number = integer(value.get_ref())?;
        let fits = u64::try_from(number).ok().filter(|n| *n >= least);
        if fits.is_none() {
            let expected = format!("{least} or more");
            self.wrong("manifest.value", format!("`{key}` cannot be {number}"), value.span(), &expected);
        }
        fits
    }
}
