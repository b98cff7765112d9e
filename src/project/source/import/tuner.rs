//! Caches of Kernel Tuner as hints for a search: the configurations of a cache, the fastest first, in the tunables of a kernel. A cache does not say which source,
//! compiler and arguments it was made with, so its times are no measurements here. Pure; reads no files.

use std::collections::BTreeMap;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Value as TomlValue};

use super::traces::Json;
use kforge_types::model::TuneValue;

/// Why a cache gives no hints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CacheFault {
    /// It is not JSON, or it is cut in another place than at its end.
    #[error("it is not a cache of Kernel Tuner: {0}")]
    Form(String),
    /// A field is missing, or is not what it must be.
    #[error("`{field}` {message}")]
    Field {
        /// The field.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// Times cannot be compared.
    #[error("its `objective` is `{0}`, and hints are ordered by `time`")]
    Objective(String),
    /// The kernel has none of its parameters.
    #[error("none of its parameters ({}) is a tunable of the kernel ({}): name pairs with `--map PARAMETER=TUNABLE`", parameters.join(", "), tunables.join(", "))]
    NoTunables {
        /// The parameters.
        parameters: Vec<String>,
        /// The kernel's tunables.
        tunables: Vec<String>,
    },
    /// No configuration is left.
    #[error("none of its {0} configurations is in the space of the kernel and has a time")]
    NoConfigurations(usize),
}

/// A cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// The device, as the cache names it.
    pub device: String,
    /// The kernel, as the cache names it.
    pub kernel: String,
    /// The parameters, in order.
    pub parameters: Vec<String>,
    /// The configurations with their times in milliseconds, if they have one.
    pub configurations: Vec<(BTreeMap<String, TuneValue>, Option<f64>)>,
}

/// The hints of a cache for a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Hints {
    /// Values of tunables, the fastest first.
    pub hints: Vec<BTreeMap<String, TuneValue>>,
    /// Parameters that are no tunables.
    pub unknown: Vec<String>,
    /// How many configurations are not in the space of the kernel.
    pub outside: usize,
    /// How many have no time.
    pub untimed: usize,
}

impl Cache {
    /// Reads a cache. Kernel Tuner appends to a cache and closes it at the end, so its closing brackets may be missing.
    ///
    /// # Errors
    /// It is not a cache.
    pub fn read(text: &str) -> Result<Self, CacheFault> {
        let open = text.trim_end().trim_end_matches(',');
        let json = Json::read(text).or_else(|why| Json::read(&format!("{open}}}\n}}")).map_err(|_| why));
        let json = json.map_err(|why| CacheFault::Form(why.message))?;
        let of = |key: &str| entry(&json, key).ok_or_else(|| fault(key, "is missing"));
        let text = |key: &str| match of(key)? {
            Json::Text(text) => Ok(text.clone()),
            _ => Err(fault(key, "is no text")),
        };
        if let Some(Json::Text(objective)) = entry(&json, "objective")
            && objective != "time"
        {
            return Err(CacheFault::Objective(objective.clone()));
        }
        let Json::List(keys) = of("tune_params_keys")? else { return Err(fault("tune_params_keys", "is no list")) };
        let name = |(at, key): (usize, &Json)| match key {
            Json::Text(text) => Ok(text.clone()),
            _ => Err(fault(&format!("tune_params_keys.{at}"), "is no text")),
        };
        let parameters: Vec<String> = keys.iter().enumerate().map(name).collect::<Result<_, _>>()?;
        let Json::Map(entries) = of("cache")? else { return Err(fault("cache", "is no object")) };
        let mut configurations = vec![];
        for (key, own) in entries {
            let mut values = BTreeMap::new();
            for parameter in &parameters {
                let field = format!("cache.{key}.{parameter}");
                let value = entry(own, parameter).ok_or_else(|| fault(&field, "is missing"))?;
                values.insert(
                    parameter.clone(),
                    tune_value(value).ok_or_else(|| fault(&field, "is no value of a tunable"))?,
                );
            }
            // A configuration that failed has a word in place of a time.
            let time = match entry(own, "time") {
                Some(Json::Number(number)) => number.as_f64().filter(|time| time.is_finite() && *time > 0.0),
                _ => None,
            };
            configurations.push((values, time));
        }
        Ok(Cache { device: text("device_name")?, kernel: text("kernel_name")?, parameters, configurations })
    }

    /// The hints for a kernel with these tunables. `renamed` are pairs of a parameter and a tunable; the others go by their names. At most `most` are given.
    ///
    /// # Errors
    /// There are none.
    pub fn hints(
        &self,
        tunables: &[(String, Vec<TuneValue>)],
        renamed: &[(String, String)],
        most: usize,
    ) -> Result<Hints, CacheFault> {
        let tunable = |parameter: &String| {
            let name = renamed.iter().find(|(from, _)| from == parameter).map_or(parameter, |(_, to)| to);
            tunables.iter().find(|(own, _)| own == name)
        };
        let unknown: Vec<String> = self.parameters.iter().filter(|name| tunable(name).is_none()).cloned().collect();
        if unknown.len() == self.parameters.len() {
            let tunables = tunables.iter().map(|(name, _)| name.clone()).collect();
            return Err(CacheFault::NoTunables { parameters: unknown, tunables });
        }
        let (mut outside, mut untimed) = (0, 0);
        let mut timed: Vec<(f64, BTreeMap<String, TuneValue>)> = vec![];
        for (values, time) in &self.configurations {
            let known = values.iter().filter_map(|(parameter, value)| Some((tunable(parameter)?, value)));
            let known: Vec<_> = known.collect();
            if known.iter().any(|((_, all), value)| !all.contains(value)) {
                outside += 1;
                continue;
            }
            match time {
                Some(time) => {
                    let hint = known.into_iter().map(|((name, _), value)| (name.clone(), value.clone())).collect();
                    timed.push((*time, hint));
                }
                None => untimed += 1,
            }
        }
        timed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut hints: Vec<BTreeMap<String, TuneValue>> = vec![];
        for (_, hint) in timed {
            if !hints.contains(&hint) && hints.len() < most {
                hints.push(hint);
            }
        }
        if hints.is_empty() {
            return Err(CacheFault::NoConfigurations(self.configurations.len()));
        }
        Ok(Hints { hints, unknown, outside, untimed })
    }
}

/// The text of a manifest with these hints of a kernel in place of earlier ones; none if it has no table of tunables for it.
pub fn with_hints(manifest: &str, kernel: &str, hints: &[BTreeMap<String, TuneValue>]) -> Option<String> {
    let mut document: DocumentMut = manifest.parse().ok()?;
    let tune = document.get_mut("kernel")?.get_mut(kernel)?.get_mut("tune")?.as_table_like_mut()?;
    let mut list = Array::new();
    for hint in hints {
        let table: InlineTable = hint.iter().map(|(name, value)| (name.as_str(), toml_value(value))).collect();
        let mut value = TomlValue::InlineTable(table);
        value.decor_mut().set_prefix("\n  ");
        list.push_formatted(value);
    }
    list.set_trailing("\n");
    list.set_trailing_comma(true);
    tune.insert("hints", Item::Value(TomlValue::Array(list)));
    Some(document.to_string())
}

fn toml_value(value: &TuneValue) -> TomlValue {
    match value {
        TuneValue::Int(number) => TomlValue::from(*number),
        TuneValue::Bool(truth) => TomlValue::from(*truth),
        TuneValue::Str(text) => TomlValue::from(text.as_str()),
    }
}

fn tune_value(value: &Json) -> Option<TuneValue> {
    match value {
        Json::Bool(truth) => Some(TuneValue::Bool(*truth)),
        Json::Number(number) => number.as_i64().map(TuneValue::Int),
        Json::Text(text) => Some(TuneValue::Str(text.clone())),
        _ => None,
    }
}

fn entry<'j>(json: &'j Json, key: &str) -> Option<&'j Json> {
    match json {
        Json::Map(all) => all.iter().find(|(own, _)| own == key).map(|(_, value)| value),
        _ => None,
    }
}

fn fault(field: &str, message: &str) -> CacheFault {
    CacheFault::Field { field: field.into(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache whose entries are these texts, closed or not.
    fn cache(entries: &str, end: &str) -> String {
        format!(
            "{{\n\"device_name\": \"A\",\n\"kernel_name\": \"conv\",\n\"problem_size\": [64],\n\"tune_params_keys\": [\"block_size_x\", \"VEC\"],\n\"tune_params\": {{}},\n\"objective\": \"time\",\n\"cache\": {{\n{entries}{end}"
        )
    }

    const ENTRIES: &str = "\"32,1\": {\"block_size_x\": 32, \"VEC\": 1, \"time\": 3.5},\n\"64,1\": {\"block_size_x\": 64, \"VEC\": 1, \"time\": 1.5},\n\
        \"128,1\": {\"block_size_x\": 128, \"VEC\": 1, \"time\": 1.0},\n\"64,2\": {\"block_size_x\": 64, \"VEC\": 2, \"time\": \"CompilationFailedConfig\"},\n\
        \"32,2\": {\"block_size_x\": 32, \"VEC\": 2, \"time\": 2.5}";

    fn tunables() -> Vec<(String, Vec<TuneValue>)> {
        let ints = |all: &[i64]| all.iter().map(|n| TuneValue::Int(*n)).collect();
        vec![("BLOCK".into(), ints(&[32, 64])), ("VEC".into(), ints(&[1, 2]))]
    }

    fn map() -> Vec<(String, String)> {
        vec![("block_size_x".into(), "BLOCK".into())]
    }

    #[test]
    fn configurations_become_hints_the_fastest_first() {
        let hints = Cache::read(&cache(ENTRIES, "}\n}")).unwrap().hints(&tunables(), &map(), 2).unwrap();
        let of = |block: i64, vec: i64| {
            BTreeMap::from([("BLOCK".to_string(), TuneValue::Int(block)), ("VEC".to_string(), TuneValue::Int(vec))])
        };
        assert_eq!(hints, Hints { hints: vec![of(64, 1), of(32, 2)], unknown: vec![], outside: 1, untimed: 1 });
        // A parameter that is no tunable is left out, and configurations that differ in it only are one.
        let one = Cache::read(&cache(ENTRIES, "}\n}")).unwrap().hints(&tunables()[1..], &[], 9).unwrap();
        assert_eq!((one.hints.len(), &one.unknown[..]), (2, &["block_size_x".to_string()][..]));
    }

    #[test]
    fn a_cache_that_was_not_closed_is_read_and_one_that_is_cut_is_not() {
        let whole = Cache::read(&cache(ENTRIES, "}\n}")).unwrap();
        for end in ["", ",", ",\n"] {
            assert_eq!(Cache::read(&cache(ENTRIES, end)).as_ref(), Ok(&whole), "{end:?}");
        }
        let text = cache(ENTRIES, "}\n}");
        assert!(matches!(Cache::read(&text[..text.len() - 12]), Err(CacheFault::Form(_))));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let fault = |text: &str| Cache::read(text).unwrap_err().to_string();
        assert_eq!(fault(&cache("\"1\": {\"VEC\": 1}", "}}")), "`cache.1.block_size_x` is missing");
        assert_eq!(
            fault(&cache("\"1\": {\"VEC\": 1, \"block_size_x\": []}", "}}")),
            "`cache.1.block_size_x` is no value of a tunable"
        );
        let energy = cache(ENTRIES, "}}").replace("\"objective\": \"time\"", "\"objective\": \"energy\"");
        assert!(fault(&energy).contains("`objective` is `energy`"));
        assert_eq!(fault("{\"cache\": {}}"), "`tune_params_keys` is missing");
        let none = Cache::read(&cache(ENTRIES, "}}")).unwrap().hints(&[("N".into(), vec![])], &[], 4).unwrap_err();
        assert!(none.to_string().contains("none of its parameters (block_size_x, VEC) is a tunable of the kernel (N)"));
        let outside = [("VEC".to_string(), vec![TuneValue::Int(8)])];
        let none = Cache::read(&cache(ENTRIES, "}}")).unwrap().hints(&outside, &[], 4).unwrap_err();
        assert_eq!(none, CacheFault::NoConfigurations(5));
    }

    #[test]
    fn hints_take_the_place_of_earlier_ones_in_the_manifest() {
        let manifest = "[kernel.k]\noperator = \"o\"\ntune.BLOCK = [32, 64] # mine\ntune.hints = [{ BLOCK = 1 }]\n";
        let hint = BTreeMap::from([("BLOCK".to_string(), TuneValue::Int(64))]);
        let text = with_hints(manifest, "k", &[hint]).unwrap();
        assert!(
            text.contains("[32, 64] # mine") && text.contains("{ BLOCK = 64 }") && !text.contains("BLOCK = 1 "),
            "{text}"
        );
        assert_eq!(with_hints(manifest, "other", &[]), None);
    }
}
