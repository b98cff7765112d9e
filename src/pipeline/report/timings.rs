//! Where a build's time went, as a self-contained HTML page. Knows when steps started and how long they took; does not measure.
//!
//! The critical path is observed: it goes from the step that ended last back, at each step, to the step whose end let it start. That is the step that released
//! the slot or the memory for which it waited last; for a step that waited for no slot, the required step that ended last. The time between the end of one
//! step and the start of the next is waiting that nobody can be named for.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use kforge_types::record::event::{StepCounts, StepFinished, Wait, WaitReason};
use kforge_types::record::{Outcome, StepKind};

/// The page's template.
const PAGE: &str = include_str!("timings.html");
/// Width of the chart's inner area, height of a lane and height of the axis above the lanes, in pixels.
const WIDTH: f64 = 1150.0;
const LANE: f64 = 22.0;
const AXIS: f64 = 20.0;
/// Rows in the table of the slowest steps.
const SLOWEST: usize = 20;
/// Rows in the table of the critical path: with one slot, every step is on it.
const PATH: usize = 100;

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
    waits: Vec<WaitRow>,
    path: Vec<Row>,
    /// Steps of the path, and how many of them the table leaves out.
    on_path: usize,
    left_out: usize,
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

/// What steps waited for, all together.
#[derive(Serialize)]
struct WaitRow {
    reason: &'static str,
    count: usize,
    total: String,
    longest: String,
    id: String,
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
    /// On the path: how it follows from the step before.
    after: String,
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
        waits: waits(&ran),
        on_path: path.len(),
        left_out: path.len().saturating_sub(PATH),
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
        // Events of an earlier kforge name nobody.
        next = released(ran[i].step)
            .and_then(|(_, by)| at.get(by).copied())
            .or_else(|| last_needed(&ran[i].step.id, ran, &at, needs));
    }
    path.reverse();
    path
}

/// The wait that ended when a step started, and the step that ended it.
fn released(step: &StepFinished) -> Option<(&Wait, &str)> {
    // A step waits for slots once what it needs is there, so the wait for a slot ended last.
    let named = |wait: &'_ &Wait| wait.released_by.is_some();
    let of_slot = |wait: &'_ &Wait| wait.reason != WaitReason::Dependency;
    let wait = step.waits.iter().filter(named).max_by_key(|wait| of_slot(wait))?;
    Some((wait, wait.released_by.as_deref()?))
}

/// The time that a step waited for slots and memory, in milliseconds.
fn waited(step: &StepFinished) -> u64 {
    step.waits.iter().filter(|wait| wait.reason != WaitReason::Dependency).map(|wait| wait.ms).sum()
}

/// What steps waited for besides what they need, in order.
fn waits(ran: &[TimedStep<'_>]) -> Vec<WaitRow> {
    let mut by: BTreeMap<WaitReason, Vec<(u64, &str)>> = BTreeMap::new();
    for r in ran {
        for wait in r.step.waits.iter().filter(|wait| wait.reason != WaitReason::Dependency && wait.ms > 0) {
            by.entry(wait.reason).or_default().push((wait.ms, &r.step.id));
        }
    }
    by.into_iter()
        .map(|(reason, all)| {
            let (longest, id) = all.iter().copied().max().unwrap_or_default();
            WaitRow {
                reason: reason.name(),
                count: all.len(),
                total: time(all.iter().map(|(ms, _)| ms).sum()),
                longest: time(longest),
                id: id.into(),
            }
        })
        .collect()
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

/// The rows of the path, of a long one those whose steps took longest.
fn path_rows(ran: &[TimedStep<'_>], path: &[usize]) -> Vec<Row> {
    let took = |i: usize| ran[i].end - ran[i].start;
    let mut longest = path.to_vec();
    longest.sort_by_key(|i| std::cmp::Reverse(took(*i)));
    longest.truncate(PATH);
    let longest: HashSet<usize> = longest.into_iter().collect();
    let most = path.iter().map(|i| took(*i)).max().unwrap_or(0).max(1);
    let before = std::iter::once(None).chain(path.iter().map(|i| Some(&ran[*i])));
    path.iter()
        .zip(before)
        .filter(|(i, _)| longest.contains(i))
        .map(|(i, before)| {
            let r = &ran[*i];
            let gap = r.start.saturating_sub(before.map_or(0, |before| before.end));
            Row { waited: time(gap), after: after(r, before), width: percent(took(*i), most), ..row(r) }
        })
        .collect()
}

/// How a step on the path follows from the one before it.
fn after(r: &TimedStep<'_>, before: Option<&TimedStep<'_>>) -> String {
    let Some(before) = before else { return String::new() };
    match released(r.step) {
        Some((wait, by)) if by == before.step.id && wait.reason != WaitReason::Dependency => {
            format!("waited {} for {}, which the step before held", time(wait.ms), wait.reason.name())
        }
        _ => "needs the step before".into(),
    }
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
        waited: time(waited(r.step)),
        after: String::new(),
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
            waits: vec![],
        }
    }

    fn waiting(step: StepFinished, reason: WaitReason, ms: u64, by: &str) -> StepFinished {
        StepFinished {
            waits: [step.waits.clone(), vec![Wait { reason, ms, released_by: Some(by.into()) }]].concat(),
            ..step
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
    fn the_path_follows_who_held_the_slot_and_says_so() {
        // Three compilations for one slot, and a step that needs the first of them and waits for a device.
        let slot = |id: &str, start: u64, by: &str| waiting(step(id, start, 300), WaitReason::Processor, start, by);
        let verify = waiting(step("k/verify", 900, 50), WaitReason::Dependency, 300, "k/compile");
        let verify = waiting(verify, WaitReason::Device, 600, "i/bench");
        let steps = vec![
            step("k/compile", 0, 300),
            slot("j/compile", 300, "k/compile"),
            waiting(
                waiting(step("i/bench", 600, 300), WaitReason::Dependency, 10, "k/compile"),
                WaitReason::Processor,
                590,
                "j/compile",
            ),
            verify,
        ];
        let needs = [("k/verify".to_string(), vec!["k/compile".to_string()])].into();
        let build = BuildTimings { steps, needs, wall_ms: 1000, jobs: 1, ..build() };
        let ran: Vec<TimedStep<'_>> = build
            .steps
            .iter()
            .map(|s| TimedStep { step: s, start: s.started_ms.unwrap(), end: s.started_ms.unwrap() + s.duration_ms })
            .collect();
        let ids = |path: &[usize]| path.iter().map(|i| ran[*i].step.id.clone()).collect::<Vec<_>>();
        let path = critical(&ran, &build.needs);
        assert_eq!(ids(&path), ["k/compile", "j/compile", "i/bench", "k/verify"]);
        let after: Vec<String> = path_rows(&ran, &path).into_iter().map(|row| row.after).collect();
        assert_eq!(after[0], "");
        assert_eq!(after[2], "waited 590 ms for a processor slot, which the step before held");
        assert_eq!(after[3], "waited 600 ms for a device slot, which the step before held");
        let all: Vec<(&str, usize, String)> =
            waits(&ran).into_iter().map(|row| (row.reason, row.count, row.total)).collect();
        assert_eq!(all, [("a processor slot", 2, "890 ms".into()), ("a device slot", 1, "600 ms".into())]);
        // Without who held what, as in the events of an earlier kforge, the path follows what steps need.
        let old: Vec<StepFinished> = build.steps.iter().map(|s| StepFinished { waits: vec![], ..s.clone() }).collect();
        let ran: Vec<TimedStep<'_>> = old
            .iter()
            .map(|s| TimedStep { step: s, start: s.started_ms.unwrap(), end: s.started_ms.unwrap() + s.duration_ms })
            .collect();
        assert_eq!(ids(&critical(&ran, &build.needs)), ["k/compile", "k/verify"]);
        let page = page(&build).unwrap();
        assert!(page.contains("which the step before held") && page.contains("a device slot"), "{page}");
    }

    #[test]
    fn of_a_long_path_the_steps_that_took_longest_are_shown() {
        let id = |n: u64| format!("k{n}/compile");
        let steps = (0..120u64).map(|n| {
            let one = step(&id(n), n * 10, if n % 6 == 0 { 2 } else { 9 });
            if n == 0 { one } else { waiting(one, WaitReason::Processor, n * 10, &id(n - 1)) }
        });
        let build = BuildTimings { steps: steps.collect(), needs: HashMap::new(), ..build() };
        let page = page(&build).unwrap();
        assert!(page.contains("20 of the 120 steps on the path, which took least, are left out."), "{page}");
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
