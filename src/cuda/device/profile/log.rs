//! Parses the output of `ncu --csv --page raw`: its messages, and one row per profiled launch. Knows the format, but not what a metric is for.
//!
//! | line | meaning |
//! |---|---|
//! | `==PROF== ...`, `==WARNING== ...` | progress |
//! | `==ERROR== ...` | an error; `ncu` may still continue |
//! | the first line that begins with `"ID"` | the names of the columns |
//! | the next line | the units of the columns |
//! | other lines that begin with a quotation mark | one launch each |
//!
//! A metric that `ncu` does not have on the device has no column, and no message reports that (observed with 2025.3.1 on an H200). Counts have commas between
//! thousands.

use std::collections::BTreeMap;

/// The column that identifies the launch of a row, before the columns of metrics.
const KERNEL: &str = "Kernel Name";

/// One launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Profiled {
    /// The name of the kernel in `ncu`'s output.
    pub(super) kernel: String,
    /// The cells by column name.
    cells: BTreeMap<String, String>,
}

/// The parsed output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// The errors that `ncu` reports, in order.
    pub(super) errors: Vec<String>,
    /// The profiled launches, in order.
    pub(super) launches: Vec<Profiled>,
    units: BTreeMap<String, String>,
}

/// Why a launch has no value for a metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// There is no such column.
    #[error("`ncu` has no `{0}`")]
    None(String),
    /// The value is not a number.
    #[error("`{metric}` is `{text}`")]
    NotNumber {
        /// The metric.
        metric: String,
        /// The text of the cell.
        text: String,
    },
    /// The unit is unknown.
    #[error("`{metric}` is in `{unit}`, an unknown unit")]
    Unit {
        /// The metric.
        metric: String,
        /// The unit.
        unit: String,
    },
}

impl Log {
    /// Parses the output.
    ///
    /// # Errors
    /// A row does not have as many cells as there are columns, or a cell does not end: the text is truncated or has another format.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut log = Log::default();
        let mut rows = vec![];
        for line in text.lines() {
            match line.strip_prefix("==ERROR== ") {
                Some(error) => log.errors.push(error.trim().to_string()),
                None if line.starts_with('"') => rows.push(cells(line)?),
                None => {}
            }
        }
        let mut rows = rows.into_iter();
        let Some(names) = rows.next() else { return Ok(log) };
        let named = |row: Vec<String>| match row.len() == names.len() {
            true => Ok(names.iter().cloned().zip(row).collect::<BTreeMap<_, _>>()),
            false => Err(format!("a row has {} cells where there are {} columns", row.len(), names.len())),
        };
        log.units = rows.next().map(named).transpose()?.unwrap_or_default();
        for row in rows {
            let cells = named(row)?;
            let kernel = cells.get(KERNEL).cloned().ok_or_else(|| format!("no column is called `{KERNEL}`"))?;
            log.launches.push(Profiled { kernel, cells });
        }
        Ok(log)
    }

    /// Whether there is a column with this name.
    pub(super) fn has(&self, metric: &str) -> bool {
        self.units.contains_key(metric)
    }

    /// The value of a metric for a launch, in bytes, nanoseconds, cycles, percent or plain counts.
    ///
    /// # Errors
    /// The value is missing, is not a number, or has an unknown unit.
    pub(super) fn value(&self, launch: &Profiled, metric: &str) -> Result<f64, ValueError> {
        let none = || ValueError::None(metric.to_string());
        let (text, unit) = launch.cells.get(metric).zip(self.units.get(metric)).ok_or_else(none)?;
        let number = text.replace(',', "").trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let number = number.ok_or_else(|| ValueError::NotNumber { metric: metric.to_string(), text: text.clone() })?;
        let scale = scale(unit).ok_or_else(|| ValueError::Unit { metric: metric.to_string(), unit: unit.clone() })?;
        Ok(number * scale)
    }
}

/// The cells of a row: in quotation marks, with a doubled quotation mark for one in the text, separated by commas.
fn cells(line: &str) -> Result<Vec<String>, String> {
    let mut cells = vec![];
    let mut rest = line;
    loop {
        let inner =
            rest.strip_prefix('"').ok_or_else(|| format!("a cell does not begin with `\"`: `{}`", cut(rest)))?;
        let mut cell = String::new();
        let mut at = inner;
        loop {
            let end = at.find('"').ok_or("a cell does not end")?;
            cell.push_str(&at[..end]);
            at = &at[end + 1..];
            match at.strip_prefix('"') {
                Some(more) => {
                    cell.push('"');
                    at = more;
                }
                None => break,
            }
        }
        cells.push(cell);
        match at.strip_prefix(',') {
            Some(more) => rest = more,
            None if at.trim().is_empty() => return Ok(cells),
            None => return Err(format!("a cell is followed by `{}`", cut(at))),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The factor from a unit of `ncu` to ours: `Mbyte/s` is a million. `--print-units base` requests base units, including nanoseconds; the other units are for
/// versions that scale anyway.
fn scale(unit: &str) -> Option<f64> {
    let (what, per) = unit.split_once('/').map_or((unit, ""), |(what, per)| (what, per));
    let scale = match what {
        "" | "%" | "byte" | "cycle" | "inst" | "block" | "register" | "warp" | "sector" | "request" | "ns"
        | "nsecond" => 1.0,
        "us" | "usecond" | "Kbyte" | "Kcycle" | "Kinst" => 1e3,
        "ms" | "msecond" | "Mbyte" | "Mcycle" | "Minst" => 1e6,
        "s" | "second" | "Gbyte" => 1e9,
        "Tbyte" => 1e12,
        _ => return None,
    };
    // Rates are per second; other ratios are not scaled.
    match per {
        "" | "s" | "second" | "cycle" | "thread" | "warp" | "inst" => Some(scale),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Three launches on an H200 with Nsight Compute 2025.3.1, without the columns of the device's attributes.
    pub(in super::super) const THREE: &str = include_str!("fixtures/three.csv");

    #[test]
    fn launches_units_and_counts_are_read_from_what_ncu_wrote_on_a_device() {
        let log = Log::read(THREE).unwrap();
        let names: Vec<&str> = log.launches.iter().map(|l| l.kernel.as_str()).collect();
        assert_eq!(names, ["scale", "sums", "void tmpl<3>(float *, const float *, int)"]);
        let of = |metric: &str| log.launches.iter().map(|l| log.value(l, metric).unwrap()).collect::<Vec<_>>();
        assert_eq!(of("sm__inst_executed.sum"), [2_228_224.0, 8_863_744.0, 2_228_224.0]);
        assert_eq!(of("gpu__time_duration.sum"), [12_640.0, 20_224.0, 12_640.0]);
        assert_eq!(of("dram__bytes.sum.per_second"), [1_372_050_632_911.39, 829_759_493_670.89, 1_372_394_936_708.86]);
        assert_eq!(of("sm__inst_executed.avg.per_cycle_active"), [0.82, 1.83, 0.81]);
        assert_eq!(of("launch__registers_per_thread"), [16.0; 3]);
        assert_eq!(of("launch__waves_per_multiprocessor"), [15.52; 3]);
        assert!(log.errors.is_empty());
        let absent = "smsp__warp_issue_stalled_memory_dependency_per_warp_active.pct";
        assert!(!log.has(absent) && log.value(&log.launches[0], absent).is_err());
    }

    #[test]
    fn where_nothing_was_profiled_there_are_no_launches_and_errors_are_kept() {
        let log = Log::read(include_str!("fixtures/no_kernels.csv")).unwrap();
        assert_eq!((log.launches.len(), log.errors.len()), (0, 0));
        let log = Log::read(include_str!("fixtures/exited.csv")).unwrap();
        assert_eq!(log.errors, ["The application returned an error code (3)."]);
        let log = Log::read(include_str!("fixtures/fault.csv")).unwrap();
        assert_eq!(log.errors[..2], ["An error was reported by the driver:", "LaunchFailed"]);
        assert_eq!(Log::read(""), Ok(Log::default()));
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_refused_and_odd_cells_are_no_numbers() {
        let whole = THREE.trim_end();
        let why = Log::read(&whole[..whole.len() - 8]).unwrap_err();
        assert!(why.contains("cells where there are") || why.contains("does not end"), "{why}");
        assert!(Log::read("\"ID\",x\n").unwrap_err().contains("does not begin"));
        assert!(Log::read("\"ID\"x\n").unwrap_err().contains("is followed by `x`"));
        let log = Log::read(
            "\"Kernel Name\",\"a\",\"b\",\"c\"\n\"\",\"%\",\"Kbyte\",\"mile\"\n\"say \"\"x\"\"\",\"n/a\",\"1.5\",\"2\"\n",
        );
        let log = log.unwrap();
        let of = |metric: &str| log.value(&log.launches[0], metric);
        assert_eq!(log.launches[0].kernel, "say \"x\"");
        assert_eq!(
            (of("a"), of("b")),
            (Err(ValueError::NotNumber { metric: "a".into(), text: "n/a".into() }), Ok(1500.0))
        );
        assert!(of("c").unwrap_err().to_string().contains("is in `mile`"));
    }

    #[test]
    fn units_come_to_bytes_nanoseconds_and_rates_by_the_second() {
        for (unit, want) in
            [("ns", 1.0), ("usecond", 1e3), ("Gbyte/s", 1e9), ("Tbyte/second", 1e12), ("inst/cycle", 1.0)]
        {
            assert_eq!(scale(unit), Some(want), "{unit}");
        }
        assert_eq!((scale("byte/hour"), scale("parsec")), (None, None));
    }
}
