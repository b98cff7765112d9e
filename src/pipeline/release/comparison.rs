//! How the champions of one state compare with those of another, shape by shape: the document, its decisions, and its text forms. Pure; takes no times and no
//! pairs.
//!
//! | known | decision |
//! |---|---|
//! | both are the same machine code under the same launches | same |
//! | pairs of both on one device | the interval of their ratio, compared with the margin |
//! | benches of both on devices of one class, at different times | faster or slower if they differ by more than the margin and [`APART`], else undecided |
//! | one of these says slower, but the head has no evidence of the base's champion, which it also has | undecided |
//! | less | unknown, with the reason |

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

use super::bundle::TimedChampion;
use kforge_foundation::base::unhidden;
use kforge_numerics::measure::orders::Comparison as Pairs;
use kforge_numerics::measure::paired::{self, difference, figures, percent};
use kforge_numerics::measure::stats::{Paired, median};
use kforge_types::record::timing::PairsObserved;
use kforge_types::record::{FORMAT_VERSION, FindingKind};

/// By how much medians of separate runs of one binary may differ as clocks and temperatures change: the same share within which select uses pairs.
pub const APART: f64 = 0.05;

/// The number of slower kernels that a conclusion names: as many as a reader takes in at a glance.
const NAMED: usize = 3;

/// The subject of a comparison: a kernel on a target at a shape, for one choice of types.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Seat {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// Types, if the operator has a choice: `T=f16`.
    pub types: String,
    /// The target.
    pub target: String,
    /// The shape.
    pub shape: String,
}

impl Seat {
    /// The seat of a champion.
    pub fn of(champion: &TimedChampion) -> Self {
        let TimedChampion { package, kernel, types, target, shape, .. } = champion.clone();
        Seat { package, kernel, types, target, shape }
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seat { package, kernel, types, target, shape } = self;
        let types = if types.is_empty() { String::new() } else { format!(" [{types}]") };
        write!(f, "{package}/{kernel}{types} on {target} at {shape}")
    }
}

/// How the head's champion compares with the base's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Slower by more than the margin.
    Slower,
    /// Faster by more than the margin.
    Faster,
    /// Within the margin.
    Same,
    /// Both were timed, but what is known does not decide.
    Undecided,
    /// There are no comparable times.
    Unknown,
}

impl Change {
    /// The word for the change.
    pub fn name(self) -> &'static str {
        match self {
            Change::Slower => Paired::Slower.name(),
            Change::Faster => Paired::Faster.name(),
            Change::Same => Paired::Same.name(),
            Change::Undecided => Paired::Undecided.name(),
            Change::Unknown => "unknown",
        }
    }

    fn painted(self) -> String {
        let style = match self {
            Change::Slower => AnsiColor::Red.on_default().bold(),
            Change::Faster => AnsiColor::Green.on_default().bold(),
            Change::Same => Style::new(),
            Change::Undecided | Change::Unknown => AnsiColor::Yellow.on_default(),
        };
        format!("{style}{:<9}{style:#}", self.name())
    }
}

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decision {
    /// How the champions compare.
    pub change: Change,
    /// Time of the head over time of the base, minus one: the median, and for pairs the ends of its 95 % interval.
    pub difference: Option<(f64, Option<(f64, f64)>)>,
    /// Why, in a line.
    pub because: String,
}

impl Decision {
    /// Nothing could be compared.
    pub fn unknown(because: impl Into<String>) -> Self {
        Decision { change: Change::Unknown, difference: None, because: because.into() }
    }

    /// Both are the same.
    pub fn identical() -> Self {
        Decision {
            change: Change::Same,
            difference: None,
            because: "the same machine code under the same launches".into(),
        }
    }

    /// Decides from pairs of the head (A) and the base (B).
    pub fn by_pairs(seen: &PairsObserved, margin: f64, on: &str) -> Self {
        let Some(pairs) = Pairs::of(&[seen]) else {
            let because = format!("too few of the pairs on {on} have samples");
            return Decision { change: Change::Undecided, difference: None, because };
        };
        let (middle, low, high) = pairs.interval;
        let because = match pairs.contested(margin) {
            None => format!("in pairs on {on}"),
            Some(orders) => format!(
                "in pairs on {on}; the two orders disagree: {} where the head came first, {} where the base did",
                difference(orders.a_first.0.exp_m1()),
                difference(orders.b_first.0.exp_m1())
            ),
        };
        let change = match pairs.decide(margin) {
            Paired::Faster => Change::Faster,
            Paired::Slower => Change::Slower,
            Paired::Same => Change::Same,
            Paired::Undecided => Change::Undecided,
        };
        let difference = Some((middle.exp_m1(), Some((low.exp_m1(), high.exp_m1()))));
        Decision { change, difference, because }
    }

    /// Decides from samples of separate runs, in nanoseconds, on devices of one class.
    pub fn by_benches(head: &[f64], base: &[f64], margin: f64, on: &str) -> Self {
        if head.is_empty() || base.is_empty() {
            return Decision::unknown(format!("not timed in pairs, and one has no samples on {on}"));
        }
        let ratio = median(head) / median(base);
        let edge = (1.0 + margin) * (1.0 + APART);
        let change = match ratio {
            r if r > edge => Change::Slower,
            r if r < 1.0 / edge => Change::Faster,
            _ => Change::Undecided,
        };
        let mut because = format!("timed separately on {on}");
        if change == Change::Undecided {
            because += &format!(", and only pairs can show a difference of less than {:.0} %", 100.0 * (edge - 1.0));
        }
        Decision { change, difference: Some((ratio - 1.0, None)), because }
    }

    /// A slower head, if the head also has the variant that is the base's champion, but no evidence of it that counts: that variant may be faster than the head's
    /// champion, so the decision is open. Other variants without evidence leave it as it is, or a new variant would hide every slowdown.
    #[must_use]
    pub fn may_be_faster(self, champion: &str) -> Self {
        let lacks = "has no evidence in the head that counts, and may be faster";
        let because = format!("{}; the base's champion `{champion}` {lacks}", self.because);
        Decision { change: Change::Undecided, because, ..self }
    }
}

/// A kernel at a shape, compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Row {
    /// What is compared.
    pub seat: Seat,
    /// The base's champion.
    pub base: String,
    /// The head's champion.
    pub head: String,
    /// The decision.
    pub decision: Decision,
}

/// A kernel of the head that was not built for a target. The target is not timed, so no row is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Unbuilt {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// Whether one of its steps failed. Otherwise the comparing machine lacks something, which says nothing about the kernel.
    pub failed: bool,
    /// Why, in a line.
    pub because: String,
}

impl fmt::Display for Unbuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unbuilt { package, kernel, target, failed, because } = self;
        let was = if *failed { "could not be" } else { "was not" };
        write!(f, "`{package}/{kernel}` {was} built for `{target}`: {because}")
    }
}

/// A kernel of the head that is wrong on a target or does not run there, or an operator that cannot tell correct from wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Wrong {
    /// The package.
    pub package: String,
    /// The kernel; empty if it is the operator that cannot tell correct from wrong.
    pub kernel: String,
    /// The operator.
    pub operator: String,
    /// The target; empty if it is the operator that cannot tell correct from wrong.
    pub target: String,
    /// The first step that reports it, and its message, in a line.
    pub because: String,
    /// The finding that decides that step's verdict; none if only values are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingKind>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { package, kernel, operator, target, because, finding } = self;
        let is = match finding.and_then(FindingKind::not_run) {
            Some(_) => "has a variant that does not run",
            None => "is wrong",
        };
        match kernel.is_empty() {
            true => write!(f, "`{package}/{operator}` cannot tell correct from wrong: {because}"),
            false => write!(f, "`{package}/{kernel}` {is} on `{target}`: {because}"),
        }
    }
}

/// How two states compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Version of this format.
    pub format_version: u32,
    /// The state to compare with: a revision, a bundle, or a binary.
    pub base: String,
    /// The compared state: a revision, or the working tree.
    pub head: String,
    /// Share of time within which both champions count as the same.
    pub margin: f64,
    /// The seats of both states, in order.
    pub rows: Vec<Row>,
    /// The seats that only the head has.
    pub added: Vec<Seat>,
    /// The seats that only the base has.
    pub removed: Vec<Seat>,
    /// Kernels of the head that were not built and so are not compared.
    #[serde(default)]
    pub unbuilt: Vec<Unbuilt>,
    /// Wrong kernels of the head, on any target.
    #[serde(default)]
    pub wrong: Vec<Wrong>,
}

impl Comparison {
    /// An empty comparison.
    pub fn new(base: String, head: String, margin: f64) -> Self {
        let (rows, added, removed, unbuilt, wrong) = (vec![], vec![], vec![], vec![], vec![]);
        Comparison { format_version: FORMAT_VERSION, base, head, margin, rows, added, removed, unbuilt, wrong }
    }

    /// The number of rows with this change.
    pub fn count(&self, change: Change) -> usize {
        self.rows.iter().filter(|row| row.decision.change == change).count()
    }

    /// All counts in a line: `1 slower, 2 same`.
    pub fn summary(&self) -> String {
        self.counted(|_| String::new())
    }

    /// The counts, and how many kernels are wrong or could not be built: `2 same, 1 wrong`.
    pub fn heading(&self) -> String {
        let failed = self.unbuilt.iter().filter(|unbuilt| unbuilt.failed).count();
        let unbuilt = if failed > 0 { format!(", {failed} could not be built") } else { String::new() };
        let wrong = if self.wrong.is_empty() { String::new() } else { format!(", {} wrong", self.wrong.len()) };
        format!("{}{unbuilt}{wrong}", self.summary())
    }

    /// The counts with the names of slower rows: `4 slower (p/a on h at x, p/b on h at x, p/c on h at x and 1 more), 2 same`.
    pub fn conclusion(&self) -> String {
        self.counted(|change| if change == Change::Slower { format!(" ({})", self.slower()) } else { String::new() })
    }

    fn counted(&self, beside: impl Fn(Change) -> String) -> String {
        if self.rows.is_empty() {
            return "nothing was compared".into();
        }
        let all = [Change::Slower, Change::Faster, Change::Same, Change::Undecided, Change::Unknown];
        let some = all.into_iter().filter(|change| self.count(*change) > 0);
        let told = some.map(|change| format!("{} {}{}", self.count(change), change.name(), beside(change)));
        told.collect::<Vec<_>>().join(", ")
    }

    /// The slower rows by name, slowest first; those beyond [`NAMED`] are only counted.
    fn slower(&self) -> String {
        let mut rows: Vec<&Row> = self.rows.iter().filter(|row| row.decision.change == Change::Slower).collect();
        let by = |row: &Row| row.decision.difference.map_or(0.0, |(middle, _)| middle);
        rows.sort_by(|a, b| by(b).total_cmp(&by(a)).then(a.seat.cmp(&b.seat)));
        let named: Vec<String> = rows.iter().take(NAMED).map(|row| row.seat.to_string()).collect();
        let rest = rows.len() - named.len();
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        named.join(", ") + &more
    }

    /// The comparison as terminal text with ANSI styles, slower rows first.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for row in self.sorted() {
            let difference = row
                .decision
                .difference
                .map(|(median, ends)| format!("  {}", figures(median, ends)))
                .unwrap_or_default();
            let _ = writeln!(
                out,
                "{}  {}  {}{difference}  ({})",
                row.decision.change.painted(),
                row.seat,
                variants(row),
                row.decision.because
            );
        }
        for (what, seats) in [("added", &self.added), ("removed", &self.removed)] {
            for seat in seats {
                let _ = writeln!(out, "{what:<9}  {seat}");
            }
        }
        if let Some(legend) = self.legend() {
            let dim = Style::new().dimmed();
            let _ = writeln!(out, "{dim}{legend}{dim:#}");
        }
        out
    }

    /// What the figures mean, and the margin that decides; none if nothing has figures.
    fn legend(&self) -> Option<String> {
        let any = self.rows.iter().any(|row| row.decision.difference.is_some());
        any.then(|| paired::legend("the head", "the base", self.margin))
    }

    /// Base and head, and the margin of the comparison.
    pub fn title(&self) -> String {
        format!("{} with {} at a margin of {}", self.head, self.base, percent(self.margin))
    }

    /// The comparison as a comment on a pull request.
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "### kforge compare: {}\n\n`{}` against `{}`, margin {:.1} %\n\n| | kernel | target | shape | variant | time | |\n|---|---|---|---|---|---|---|\n",
            self.heading(),
            self.head,
            self.base,
            100.0 * self.margin
        );
        for row in self.sorted() {
            let Seat { package, kernel, types, target, shape } = &row.seat;
            let change = match row.decision.change {
                Change::Slower => "**slower**",
                other => other.name(),
            };
            let types = if types.is_empty() { String::new() } else { format!(" [{types}]") };
            let cells = [
                change.to_string(),
                format!("{package}/{kernel}{types}"),
                target.clone(),
                shape.clone(),
                variants(row),
                row.decision.difference.map(|(median, ends)| figures(median, ends)).unwrap_or_default(),
                row.decision.because.clone(),
            ];
            let _ = writeln!(out, "| {} |", cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).join(" | "));
        }
        for (what, seats) in [("added", &self.added), ("removed", &self.removed)] {
            if !seats.is_empty() {
                let seats: Vec<String> = seats.iter().map(Seat::to_string).collect();
                let _ = writeln!(out, "\n{what}: {}", seats.join("; "));
            }
        }
        if let Some(legend) = self.legend() {
            let _ = writeln!(out, "\n{legend}");
        }
        let beside = self.unbuilt.iter().map(Unbuilt::to_string).chain(self.wrong.iter().map(Wrong::to_string));
        for line in beside {
            let _ = writeln!(out, "\n{line}");
        }
        unhidden(&out)
    }

    /// The rows, slower ones first.
    pub(super) fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| (row.decision.change, &row.seat));
        rows
    }
}

/// The champions, or one name if both are the same variant.
pub(super) fn variants(row: &Row) -> String {
    let named = |label: &str| if label.is_empty() { "the only variant".to_string() } else { label.to_string() };
    match row.base == row.head {
        true => named(&row.head),
        false => format!("{}, was {}", named(&row.head), named(&row.base)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::timing::Side;

    fn pairs(low: f64, high: f64) -> PairsObserved {
        let blocks = (0..=20).map(|i| vec![(low + (high - low) * f64::from(i) / 20.0).ln_1p()]).collect();
        PairsObserved { blocks, first: vec![] }
    }

    #[test]
    fn orders_that_disagree_are_undecided_with_both_answers() {
        let first: Vec<Side> = (0..16).map(|i| if i % 2 == 0 { Side::A } else { Side::B }).collect();
        let block = |(i, side): (usize, &Side)| vec![if *side == Side::A { 0.04 } else { 0.0 } + 0.0001 * i as f64];
        let seen = PairsObserved { blocks: first.iter().enumerate().map(block).collect(), first };
        let decision = Decision::by_pairs(&seen, 0.01, "X");
        assert_eq!(decision.change, Change::Undecided);
        assert!(
            decision.because.contains("the two orders disagree: +4.2 % where the head came first, +0."),
            "{decision:?}"
        );
        assert_eq!(Decision::by_pairs(&seen, 0.1, "X").change, Change::Same, "both orders lead to the same answer");
    }

    #[test]
    fn pairs_decide_against_the_margin() {
        let of = |low, high, margin| Decision::by_pairs(&pairs(low, high), margin, "X").change;
        assert_eq!(of(0.02, 0.03, 0.01), Change::Slower);
        assert_eq!(of(-0.03, -0.02, 0.01), Change::Faster);
        assert_eq!(of(-0.003, 0.003, 0.01), Change::Same);
        assert_eq!(of(-0.02, 0.04, 0.01), Change::Undecided);
        assert_eq!(of(0.02, 0.03, 0.05), Change::Same, "another margin");
        let few = PairsObserved { blocks: vec![vec![0.1], vec![]], first: vec![] };
        let few = Decision::by_pairs(&few, 0.01, "X");
        assert_eq!((few.change, few.difference), (Change::Undecided, None));
    }

    #[test]
    fn what_was_timed_apart_is_decided_only_beyond_what_clocks_do() {
        let of = |head: f64| Decision::by_benches(&[head; 3], &[100.0; 3], 0.01, "X").change;
        assert_eq!((of(107.0), of(94.0)), (Change::Slower, Change::Faster));
        assert_eq!((of(105.0), of(100.0), of(95.0)), (Change::Undecided, Change::Undecided, Change::Undecided));
        assert_eq!(Decision::by_benches(&[], &[1.0], 0.01, "X").change, Change::Unknown);
    }

    #[test]
    fn a_slower_head_is_undecided_if_the_champion_of_the_base_may_be_faster() {
        let slower = Decision::by_pairs(&pairs(0.02, 0.03), 0.01, "X");
        let open = slower.clone().may_be_faster("V=2");
        assert_eq!((open.change, open.difference), (Change::Undecided, slower.difference));
        let because =
            "in pairs on X; the base's champion `V=2` has no evidence in the head that counts, and may be faster";
        assert_eq!(open.because, because);
    }

    #[test]
    fn people_see_what_is_slower_first_and_what_came_and_went() {
        let seat = |kernel: &str| Seat {
            package: "p".into(),
            kernel: kernel.into(),
            types: String::new(),
            target: "h".into(),
            shape: "big".into(),
        };
        let row = |kernel: &str, decision| Row { seat: seat(kernel), base: "V=1".into(), head: "V=2".into(), decision };
        let mut all = Comparison::new("main".into(), "the working tree".into(), 0.01);
        all.rows = vec![row("a|b", Decision::identical()), row("b", Decision::by_pairs(&pairs(0.02, 0.03), 0.01, "X"))];
        (all.added, all.removed) = (vec![seat("new")], vec![seat("old")]);
        assert_eq!(all.summary(), "1 slower, 1 same");
        assert_eq!(all.conclusion(), "1 slower (p/b on h at big), 1 same");
        assert_eq!(Comparison { rows: vec![], ..all.clone() }.summary(), "nothing was compared");
        let text = anstream::adapter::strip_str(&all.text()).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("slower     p/b on h at big  V=2, was V=1  +2.5 % [+2."), "{text}");
        assert!(lines[1].starts_with("same       p/a|b on h at big"), "{text}");
        let legend = "signs: + means that the head is slower than the base, - that it is faster; brackets hold the interval of 95 %; the margin is 1 %";
        assert_eq!(&lines[2..], ["added      p/new on h at big", "removed    p/old on h at big", legend]);
        assert_eq!(all.title(), "the working tree with main at a margin of 1 %");
        let same = Comparison { rows: vec![all.rows[0].clone()], ..all.clone() };
        assert!(!same.text().contains("+ means") && !same.markdown().contains("+ means"), "there are no figures");
        let markdown = all.markdown();
        assert!(markdown.contains("| **slower** | p/b | h | big | V=2, was V=1 | +2.5 %"), "{markdown}");
        assert!(markdown.contains(&format!("\n\n{legend}\n")), "{markdown}");
        assert!(markdown.contains("p/a\\|b") && markdown.contains("added: p/new on h at big"), "{markdown}");
        // If many are slower, the slowest are named.
        let slower = |kernel: &str, by: f64| row(kernel, Decision::by_pairs(&pairs(by, by + 0.01), 0.01, "X"));
        all.rows = vec![slower("a", 0.02), slower("b", 0.05), slower("c", 0.09), slower("d", 0.03)];
        all.rows.push(row("e", Decision::identical()));
        let names = "p/c on h at big, p/b on h at big, p/d on h at big";
        assert_eq!(all.conclusion(), format!("4 slower ({names} and 1 more), 1 same"));
        all.rows.remove(0);
        assert_eq!(all.conclusion(), format!("3 slower ({names}), 1 same"));
        assert_eq!(all.summary(), "3 slower, 1 same");
    }
}
