//! Where a build's time went, as a self-contained HTML page. Knows when steps started and how long they took; does not measure.
//!
//! The critical path is observed: it goes from the step that ended last back, at each step, to the required step that ended last. The time between the end of
//! one step and the start of the next is waiting.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use kforge_types::record::event::{StepCounts, StepFinished};
use kforge_types::record::{Outcome, StepKind};

/// The page's template.
const PAGE: &str = include_str!("timings.html");
/// Width of the chart's inner area, height of a lane and height of the axis above the lanes, in pixels.
const WIDTH: f64 = 1150.0;
const LANE: f64 = 22.0;
const AXIS: f64 = 20.0;
/// Rows in the table of the slowest steps.
const SLOWEST: usize = 20;

/// The timings of a build.
#[derive(Debug, Clone, Default)]
pub struct BuildTimings {
    /// What was built: `quickstart`.
    pub title: String,
    /// When it ran and with what, in one line.
    pub subtitle: String,
    /// Its wall time in milliseconds.
    pub wall_ms: u64,
    /// The number of steps with each outcome.
    pub counts: StepCounts,
    /// The most steps that ran at once.
    pub jobs: u32,
    /// The steps that ended. Steps that did not run may be left out.
    pub steps: Vec<StepFinished>,
    /// For every step of the plan: the steps that it needs.
    pub needs: HashMap<String, Vec<String>>,
}

#[derive(Serialize)]
struct Page {
    title: String,
    subtitle: String,
    cards: Vec<Card>,
    chart: Chart,
    bars: Vec<Bar>,
    kinds: Vec<KindRow>,
    path: Vec<Row>,
    slowest: Vec<Row>,
}

#[derive(Serialize)]
struct Card {
    name: &'static str,
    value: String,
    bad: bool,
}

#[derive(Serialize)]
struct Chart {
    width: f64,
    height: f64,
    ticks: Vec<Tick>,
}

#[derive(Serialize)]
struct Tick {
    x: f64,
    text: String,
}

#[derive(Serialize)]
struct Bar {
    id: String,
    about: String,
    x: f64,
    y: f64,
    width: f64,
    color: &'static str,
    critical: bool,
    text: String,
}

#[derive(Serialize)]
struct KindRow {
    name: &'static str,
    color: &'static str,
    count: usize,
    total: String,
    mean: String,
    share: String,
    width: f64,
}

#[derive(Serialize)]
struct Row {
    id: String,
    kind: &'static str,
    color: &'static str,
    started: String,
    waited: String,
    took: String,
    why: String,
    width: f64,
}

/// A step that ran.
struct TimedStep<'b> {
    step: &'b StepFinished,
    start: u64,
    end: u64,
}

/// The page's template is broken: an error of kforge.
#[derive(Debug, thiserror::Error)]
#[error("BUG: the page of timings does not render: {0:#}")]
pub struct NotRendered(minijinja::Error);

/// The page of a build.
///
/// # Errors
/// The page's template is broken, which is a bug.
pub fn page(build: &BuildTimings) -> Result<String, NotRendered> {
    let mut ran: Vec<TimedStep<'_>> = build
        .steps
        .iter()
        .filter_map(|step| {
            let start = step.started_ms?;
            Some(TimedStep { step, start, end: start + step.duration_ms })
        })
        .collect();
    ran.sort_by(|a, b| (a.start, &a.step.id).cmp(&(b.start, &b.step.id)));
    let path = critical(&ran, &build.needs);
    let wall = ran.iter().map(|r| r.end).max().unwrap_or(0).max(build.wall_ms).max(1);
    let lanes = lanes(&ran);
    let page = Page {
        title: build.title.clone(),
        subtitle: build.subtitle.clone(),
        cards: cards(build, &ran),
        chart: chart(wall, lanes.iter().max().map_or(0, |most| most + 1)),
        bars: bars(&ran, &lanes, &path, wall),
        kinds: kinds(&ran),
        path: path_rows(&ran, &path),
        slowest: slowest(&ran),
    };
    let rendered = minijinja::Environment::new().render_named_str("timings.html", PAGE, minijinja::value::Serde(&page));
    rendered.map_err(NotRendered)
}

/// The lane of each step: the first that is free when it starts.
fn lanes(ran: &[TimedStep<'_>]) -> Vec<usize> {
    let mut free: Vec<u64> = Vec::new();
    ran.iter()
        .map(|r| {
            // A step that took no time still occupies its lane.
            let end = r.end.max(r.start + 1);
            match free.iter().position(|at| *at <= r.start) {
                Some(lane) => {
                    free[lane] = end;
                    lane
                }
                None => {
                    free.push(end);
                    free.len() - 1
                }
            }
        })
        .collect()
}

/// Positions of the steps on the critical path, first to last.
fn critical(ran: &[TimedStep<'_>], needs: &HashMap<String, Vec<String>>) -> Vec<usize> {
    let at: HashMap<&str, usize> = ran.iter().enumerate().map(|(i, r)| (r.step.id.as_str(), i)).collect();
    let mut path: Vec<usize> = Vec::new();
    let mut next = (0..ran.len()).max_by_key(|i| (ran[*i].end, *i));
    while let Some(i) = next.filter(|i| !path.contains(i)) {
        path.push(i);
        next = last_needed(&ran[i].step.id, ran, &at, needs);
    }
    path.reverse();
    path
}

/// The step that ended last among those that a step needs. A step that did not run is replaced by the steps that it needs, because another step with the same
/// key may have run in its place.
fn last_needed(
    id: &str,
    ran: &[TimedStep<'_>],
    at: &HashMap<&str, usize>,
    needs: &HashMap<String, Vec<String>>,
) -> Option<usize> {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = vec![id];
    let mut last = None;
    while let Some(id) = open.pop() {
        for need in needs.get(id).into_iter().flatten().filter(|n| seen.insert(n)) {
            match at.get(need.as_str()) {
                Some(i) => last = last.max(Some((ran[*i].end, *i))),
                None => open.push(need),
            }
        }
    }
    last.map(|(_, i)| i)
}

fn cards(build: &BuildTimings, ran: &[TimedStep<'_>]) -> Vec<Card> {
    let work: u64 = ran.iter().map(|r| r.end - r.start).sum();
    let c = &build.counts;
    let card = |name, value: String| Card { name, value, bad: false };
    let mut cards = vec![
        card("wall time", time(build.wall_ms)),
        card("work in steps", time(work)),
        card("steps at once, mean", format!("{:.1} of {}", work as f64 / build.wall_ms.max(1) as f64, build.jobs)),
        card("executed", c.executed.to_string()),
        card("fresh", c.fresh.to_string()),
    ];
    for (name, n, bad) in
        [("unavailable", c.unavailable, false), ("skipped", c.skipped, false), ("failed", c.failed, true)]
    {
        if n > 0 {
            cards.push(Card { name, value: n.to_string(), bad });
        }
    }
    cards
}

fn chart(wall: u64, lanes: usize) -> Chart {
    let step = tick(wall);
    let ticks = (0..=wall / step).map(|i| Tick { x: scale(i * step, wall), text: time(i * step) }).collect();
    Chart { width: WIDTH, height: AXIS + LANE * lanes as f64 + 4.0, ticks }
}

/// Milliseconds between the marks of the axis: a round number that gives about ten marks.
fn tick(wall: u64) -> u64 {
    let rough = (wall / 10).max(1);
    let power = 10u64.pow(rough.ilog10());
    [1, 2, 5, 10].into_iter().map(|m| m * power).find(|t| *t >= rough).unwrap_or(power)
}

fn scale(at: u64, wall: u64) -> f64 {
    (at as f64 / wall as f64 * (WIDTH - 60.0) * 10.0).round() / 10.0
}

fn bars(ran: &[TimedStep<'_>], lanes: &[usize], path: &[usize], wall: u64) -> Vec<Bar> {
    ran.iter()
        .zip(lanes)
        .enumerate()
        .map(|(i, (r, lane))| {
            let width = (scale(r.end, wall) - scale(r.start, wall)).max(1.5);
            // As many letters as fit, or none if only a few would.
            let fits = ((width - 8.0) / 6.9) as usize;
            let owner = r.step.id.rsplit_once('/').map_or(r.step.id.as_str(), |(owner, _)| owner);
            let text = if fits < 6 { String::new() } else { short(owner, fits) };
            let outcome = match &r.step.outcome {
                Outcome::Failed(why) => format!("failed: {why}"),
                _ => r.step.summary.clone(),
            };
            Bar {
                id: r.step.id.clone(),
                about: [format!("{} from {}", time(r.end - r.start), time(r.start)), outcome]
                    .join("\n")
                    .trim_end()
                    .into(),
                x: scale(r.start, wall),
                y: AXIS + LANE * *lane as f64,
                width,
                color: r.step.kind.descriptor().color,
                critical: path.contains(&i),
                text,
            }
        })
        .collect()
}

/// The last characters of an id: the part that distinguishes steps.
fn short(id: &str, letters: usize) -> String {
    let all: Vec<char> = id.chars().collect();
    if all.len() <= letters {
        return id.into();
    }
    std::iter::once('…').chain(all[all.len() + 1 - letters..].iter().copied()).collect()
}

fn kinds(ran: &[TimedStep<'_>]) -> Vec<KindRow> {
    let mut by: BTreeMap<StepKind, (usize, u64)> = BTreeMap::new();
    for r in ran {
        let entry = by.entry(r.step.kind).or_default();
        *entry = (entry.0 + 1, entry.1 + (r.end - r.start));
    }
    let all: u64 = by.values().map(|(_, ms)| ms).sum::<u64>().max(1);
    let most = by.values().map(|(_, ms)| *ms).max().unwrap_or(0).max(1);
    let mut rows: Vec<(StepKind, usize, u64)> = by.into_iter().map(|(kind, (n, ms))| (kind, n, ms)).collect();
    rows.sort_by_key(|(kind, _, ms)| (std::cmp::Reverse(*ms), *kind));
    rows.into_iter()
        .map(|(kind, count, ms)| KindRow {
            name: kind.name(),
            color: kind.descriptor().color,
            count,
            total: time(ms),
            mean: time(ms / count.max(1) as u64),
            share: format!("{:.0} %", ms as f64 / all as f64 * 100.0),
            width: percent(ms, most),
        })
        .collect()
}

fn path_rows(ran: &[TimedStep<'_>], path: &[usize]) -> Vec<Row> {
    let most = path.iter().map(|i| ran[*i].end - ran[*i].start).max().unwrap_or(0).max(1);
    let before = std::iter::once(0).chain(path.iter().map(|i| ran[*i].end));
    path.iter()
        .zip(before)
        .map(|(i, before)| {
            let r = &ran[*i];
            Row { waited: time(r.start.saturating_sub(before)), width: percent(r.end - r.start, most), ..row(r) }
        })
        .collect()
}

fn slowest(ran: &[TimedStep<'_>]) -> Vec<Row> {
    let mut all: Vec<&TimedStep<'_>> = ran.iter().collect();
    all.sort_by_key(|r| (std::cmp::Reverse(r.end - r.start), &r.step.id));
    all.into_iter().take(SLOWEST).map(row).collect()
}

fn row(r: &TimedStep<'_>) -> Row {
    let why = r.step.why.as_ref().map(|why| match &why.field {
        Some(field) => format!("{} {}", field, why.code),
        None => why.code.clone(),
    });
    Row {
        id: r.step.id.clone(),
        kind: r.step.kind.name(),
        color: r.step.kind.descriptor().color,
        started: time(r.start),
        waited: String::new(),
        took: time(r.end - r.start),
        why: why.unwrap_or_default(),
        width: 0.0,
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    (part as f64 / whole as f64 * 1000.0).round() / 10.0
}

/// A time as text: `12 ms`, `3.4 s`, `2 min 5 s`.
fn time(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..100_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::event::{CacheOrigin, Labels};

    fn step(id: &str, start: u64, took: u64) -> StepFinished {
        StepFinished {
            id: id.into(),
            kind: id.rsplit('/').next().unwrap().parse().unwrap(),
            labels: Labels::default(),
            outcome: Outcome::Executed,
            verdict: None,
            cache: CacheOrigin::None,
            key: None,
            result: None,
            why: None,
            product: None,
            evidence: None,
            summary: "fine & <well>".into(),
            notes: vec![],
            trouble: None,
            interrupted: false,
            duration_ms: took,
            started_ms: Some(start),
        }
    }

    fn build() -> BuildTimings {
        let steps = vec![
            step("k/compile", 0, 400),
            step("j/compile", 0, 900),
            step("k/verify", 950, 50),
            step("j/verify", 400, 100),
        ];
        let needs = |id: &str, on: &str| (id.to_string(), vec![on.to_string(), "fresh/oracle".into()]);
        let through = |id: &str, on: &str| (id.to_string(), vec![on.to_string()]);
        BuildTimings {
            title: "p".into(),
            wall_ms: 1000,
            jobs: 2,
            steps,
            needs: [needs("k/verify", "j/inspect"), needs("j/verify", "k/compile"), through("j/inspect", "j/compile")]
                .into(),
            ..BuildTimings::default()
        }
    }

    #[test]
    fn steps_that_overlap_stand_in_lanes_of_their_own() {
        let build = build();
        let ran: Vec<TimedStep<'_>> = build
            .steps
            .iter()
            .map(|s| TimedStep { step: s, start: s.started_ms.unwrap(), end: s.started_ms.unwrap() + s.duration_ms })
            .collect();
        let mut ran = ran;
        ran.sort_by_key(|r| (r.start, r.step.id.clone()));
        let placed: Vec<(&str, usize)> = ran.iter().map(|r| r.step.id.as_str()).zip(lanes(&ran)).collect();
        assert_eq!(placed, [("j/compile", 0), ("k/compile", 1), ("j/verify", 1), ("k/verify", 0)]);
        let path: Vec<&str> = critical(&ran, &build.needs).iter().map(|i| ran[*i].step.id.as_str()).collect();
        assert_eq!(path, ["j/compile", "k/verify"]);
    }

    #[test]
    fn the_page_stands_alone_and_escapes_what_it_shows() {
        let page = page(&build()).unwrap();
        assert!(page.replace("&#x2f;", "/").contains("k/verify") && page.contains("fine &amp; &lt;well&gt;"));
        for outside in ["http:", "https:", "src=", "<link", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(
            super::page(&BuildTimings { title: "p".into(), ..BuildTimings::default() })
                .unwrap()
                .contains("Nothing ran")
        );
    }

    #[test]
    fn marks_of_the_axis_are_round_and_few() {
        for wall in [1, 9, 10, 999, 1000, 12_345, 7_200_000] {
            let n = wall / tick(wall);
            assert!((1..=10).contains(&n), "{wall}: {n}");
        }
        assert_eq!((time(12), time(3450), time(125_000)), ("12 ms".into(), "3.5 s".into(), "2 min 5 s".into()));
    }
}
