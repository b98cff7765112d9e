//! The page of a history: its numbers are those of the document, names stay text, it stays small. What is read of a repository is tested with real ones, in
//! `tests/virtual_device/history.rs`.

mod repository;

use super::*;
use crate::release::comparison::Seat;
use crate::report::page::tests::read::{Page, Table};

const KINDS: [PointChange; 4] = [PointChange::First, PointChange::Time, PointChange::Champion, PointChange::Code];

fn commit(number: usize) -> String {
    format!("{:040x}", 0x00ab_cdef_0123_u64 * (number as u64 + 1))
}

/// A history of so many commits and kernels.
fn synthetic(commits: usize, kernels: usize) -> History {
    let commits: Vec<HistoryCommit> = (0..commits)
        .map(|n| HistoryCommit {
            commit: commit(n),
            at: format!("2026-{:02}-{:02}T10:00:00Z", n / 28 + 1, n % 28 + 1),
            subject: format!("Change {n}"),
            bundles: 2,
        })
        .collect();
    let point = |kernel: usize, (position, commit): (usize, &HistoryCommit)| {
        let ns = 1234.5 * (kernel + 1) as f64 * (1.0 - 0.013 * position as f64);
        HistoryPoint {
            commit: commit.commit.clone(),
            variant: format!("V={}", position / 2),
            change: KINDS[position % KINDS.len()],
            median_ns: ns,
            interval_ns: (position % 3 != 2).then_some((ns * 0.995, ns * 1.0075)),
            samples: 100 + position as u64,
            binary: None,
            measured_at: commit.at.clone(),
            driver: "580.1".into(),
            kforge: "0.1.0".into(),
            bundle: "evidence/h.kfe".into(),
            record: Digest::of(b"record"),
            standing: if position % 2 == 0 { Standing::Claimed } else { Standing::Signed },
            signer: (position % 2 == 1).then(|| "ci@x".to_string()),
        }
    };
    let series = (0..kernels).map(|kernel| HistorySeries {
        seat: Seat {
            package: "p".into(),
            kernel: format!("k{kernel:03}"),
            types: String::new(),
            target: "h".into(),
            shape: "big".into(),
        },
        device: "Virtual H (sm_90, driver 580)".into(),
        hot: kernel % 2 == 1,
        points: commits.iter().enumerate().map(|at| point(kernel, at)).collect(),
        absent: vec![],
    });
    let series = series.collect();
    History { head: commit(commits.len() - 1), kforge: "0.1.0".into(), commits, series, ..History::default() }
}

/// The value of a shown time in nanoseconds, and half of its last place.
fn ns(text: &str, unit: &str) -> (f64, f64) {
    let per = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        other => panic!("`{other}`"),
    };
    let places = text.split_once('.').map_or(0, |(_, after)| after.len());
    (text.parse::<f64>().unwrap() * per, 0.5001 * per * 10f64.powi(-(places as i32)))
}

#[track_caller]
fn same(text: &str, unit: &str, expected: &serde_json::Value) {
    let (shown, half) = ns(text, unit);
    let expected = expected.as_f64().unwrap();
    assert!((shown - expected).abs() <= half, "{text} {unit} is shown, expected {expected}");
}

/// Compares the cells of a time with those of the document.
#[track_caller]
fn times(time: &str, ends: &str, point: &serde_json::Value) {
    let (value, unit) = time.split_once(' ').unwrap();
    same(value, unit, &point["median_ns"]);
    match point["interval_ns"].as_array() {
        None => assert_eq!(ends, "unknown"),
        Some(expected) => {
            let words: Vec<&str> = ends.split(' ').collect();
            let [low, "to", high, unit] = words[..] else { panic!("{ends}") };
            same(low, unit, &expected[0]);
            same(high, unit, &expected[1]);
        }
    }
}

fn table<'p>(page: &'p Page, label: &str) -> &'p Table {
    page.tables.iter().find(|table| table.label == label).unwrap_or_else(|| panic!("no table `{label}`"))
}

#[test]
fn labels_of_variants_break_after_their_tunables() {
    let mut history = synthetic(2, 1);
    history.series[0].points.iter_mut().for_each(|point| point.variant = "A=1,B=2".into());
    let text = page(&history);
    assert_eq!(text.matches("<code>A=1,<wbr>B=2</code>").count(), 1 + history.series[0].points.len(), "{text}");
}

#[test]
fn every_number_of_the_page_is_that_of_the_document() {
    let history = synthetic(6, 3);
    let page = Page::read(&page(&history));
    let json = serde_json::to_value(&history).unwrap();
    let all = json["series"].as_array().unwrap();
    let now = table(&page, "champions at the newest commit");
    assert_eq!(now.rows.len(), all.len());
    for (row, series) in now.rows.iter().zip(all) {
        let point = series["points"].as_array().unwrap().last().unwrap();
        assert_eq!(row[1].text, point["variant"].as_str().unwrap());
        times(&row[2].text, &row[3].text, point);
        let mut earlier = series["points"].as_array().unwrap().iter().rev();
        let since = earlier.find(|point| point["change"] == "champion" || point["change"] == "first").unwrap();
        assert_eq!(row[4].text, since["commit"].as_str().unwrap()[..12]);
        let changes = series["points"].as_array().unwrap().iter().filter(|point| point["change"] == "champion").count();
        assert_eq!(row[5].text, changes.to_string());
    }
    let plotted: Vec<&Table> = page.tables.iter().filter(|table| table.head.contains(&"samples".to_string())).collect();
    assert_eq!(plotted.len(), all.len());
    for (table, series) in plotted.into_iter().zip(all) {
        let points = series["points"].as_array().unwrap();
        assert_eq!(table.rows.len(), points.len());
        // The newest is the first row.
        for (row, point) in table.rows.iter().zip(points.iter().rev()) {
            assert!(row[0].text.starts_with(&point["commit"].as_str().unwrap()[..12]));
            assert!(row[0].text.ends_with(&point["measured_at"].as_str().unwrap()[..10]));
            assert_eq!(row[1].text, point["variant"].as_str().unwrap());
            times(&row[3].text, &row[4].text, point);
            assert_eq!(row[5].text, point["samples"].to_string());
            let signed = if point["standing"] == "signed" { "signed by `ci@x`" } else { "claimed" };
            let from = format!("measured {}, evidence/h.kfe", &point["measured_at"].as_str().unwrap()[..10]);
            assert_eq!((row[6].text.as_str(), &row[6].small[..]), (signed, &[from][..]));
        }
    }
    let commits = table(&page, "commits that changed a bundle");
    assert_eq!((commits.rows.len(), commits.rows[0][1].text.as_str()), (6, "Change 5"));
}

#[test]
fn points_stand_along_commits_in_the_forms_of_their_changes_and_newer_ones_to_the_right() {
    let text = page(&synthetic(4, 1));
    let plot = &text[text.find("<svg class=y").unwrap()..];
    let plot = &plot[..plot.find("</section>").unwrap()];
    let cx =
        |part: &str| part.split_once("cx=").map(|(_, rest)| rest.split('%').next().unwrap().parse::<f64>().unwrap());
    let dots: Vec<f64> = plot.split("<circle").skip(1).filter_map(cx).collect();
    assert_eq!(dots, [2.0, 34.0, 98.0], "two measurements and other machine code");
    assert!(plot.contains("<svg x=66% y="), "another champion is a diamond");
    assert_eq!(plot.matches("<circle class=o").count(), 1);
    assert!(plot.contains("<title>") && plot.contains(", V=1, another champion</title>"));
}

#[test]
fn hostile_names_show_as_text() {
    let clean = Page::read(&page(&synthetic(3, 2)));
    for hostile in ["<script>document.title='taken'</script>", "\"><img src=x onerror=alert(1)>", "\u{202e}txt.exe"] {
        let mut history = synthetic(3, 2);
        history.commits.iter_mut().for_each(|commit| commit.subject.push_str(hostile));
        for series in &mut history.series {
            series.seat.kernel.push_str(hostile);
            series.seat.shape.push_str(hostile);
            series.device.push_str(hostile);
            for point in &mut series.points {
                point.variant.push_str(hostile);
                point.bundle.push_str(hostile);
                point.measured_at.push_str(hostile);
                point.signer.iter_mut().for_each(|signer| signer.push_str(hostile));
            }
        }
        let text = page(&history);
        let read = Page::read(&text);
        // Names have places at which lines may break.
        let elements = |page: &Page| page.elements.iter().filter(|name| *name != "wbr").cloned().collect::<Vec<_>>();
        assert_eq!((elements(&read), &read.attributes), (elements(&clean), &clean.attributes), "{hostile}");
        assert!(!text.contains('\u{202e}'));
        assert!(read.text.contains(&hostile.replace('\u{202e}', "\\u{202e}")), "{hostile}");
    }
    let mut long = synthetic(2, 1);
    long.commits[0].subject = "x".repeat(300);
    assert!(page(&long).contains(&format!("{}…", "x".repeat(100))));
}

#[test]
fn a_hundred_kernels_over_a_hundred_commits_stay_below_three_hundred_kilobytes() {
    let history = synthetic(100, 100);
    let text = page(&history);
    assert!(text.len() < 300_000, "{} bytes", text.len());
    let read = Page::read(&text);
    assert_eq!(table(&read, "champions at the newest commit").rows.len(), 100);
    assert!(read.text.contains("left out, so that the page stays small"));
    for link in &read.links {
        let id = link.strip_prefix('#').unwrap_or_else(|| panic!("{link}"));
        assert_eq!(read.ids.iter().filter(|known| *known == id).count(), 1, "{link}");
    }
    let few = page(&synthetic(3, 100));
    assert!(few.len() < 300_000 && !few.contains("left out"), "{} bytes", few.len());
    assert!(page(&synthetic(1, 1000)).len() < 300_000);
}

#[test]
fn what_is_missing_is_said_at_the_top_and_what_is_gone_is_no_champion() {
    let mut history = synthetic(3, 1);
    history.shallow = true;
    history.cut = Some(Cut::Commits(100));
    history.unread = vec![OddBundle { commit: commit(1), path: "evidence/bad.kfe".into(), why: "damaged <b>".into() }];
    history.series[0].points.pop();
    history.series[0].absent.push(commit(2));
    let read = Page::read(&page(&history));
    for text in ["the clone is shallow", "100 commits that changed a bundle are the limit", "1 bundle was not read"] {
        assert!(read.text.contains(text), "{text}");
    }
    let unread = table(&read, "Bundles that were not read");
    assert_eq!(
        unread.rows[0].iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>(),
        ["evidence/bad.kfe", &commit(1)[..12], "damaged <b>"]
    );
    let now = table(&read, "champions at the newest commit");
    assert_eq!((now.rows[0][1].text.as_str(), now.rows[0][4].text.as_str()), ("none", &commit(2)[..12]));
    assert!(read.text.contains("no bundle has it"));
    for request in ["http://", "https://", "src=", "url(", "<link", "<img"] {
        assert!(!page(&history).contains(request), "{request}");
    }
}
