//! Clusters, cooperative launches and programmatic dependent launches: what they bind to, and which errors they can give.

use super::{error, launched, package, read, under};
use crate::model::grid::Room;
use crate::model::{KernelLaunch, Launch};

const EXAMPLE: &str = include_str!("example.toml");

/// The example for GPUs only, with more keys in its launch.
fn with(more: &str) -> String {
    EXAMPLE
        .replace("[targets.cpu]", "[targets.old]\narch = \"sm_80\"\n[targets.small]\narch = \"sm_120\"")
        .replace("targets = [\"cpu\", \"h200\"]", "targets = [\"h200\"]")
        .replace("block = [\"BLOCK\"]\n", &format!("block = [\"BLOCK\"]\n{more}\n"))
}

/// The first variant's launches at a shape.
fn bound(text: &str, shape: &str) -> Vec<KernelLaunch> {
    let (launches, _) = launched(&package(text), shape);
    launches
        .into_iter()
        .filter_map(|launch| match launch {
            Launch::Kernel(kernel) => Some(kernel),
            Launch::Memset { .. } => None,
        })
        .collect()
}

#[test]
fn what_a_launch_does_not_state_is_not_in_keys() {
    let text = serde_json::to_string(&bound(EXAMPLE, "llama")).unwrap();
    assert!(!text.contains("cluster") && !text.contains("pdl"), "{text}");
    assert!(text.contains("\"cooperative\":false"), "{text}");
}

#[test]
fn clusters_and_cooperation_are_bound_as_stated() {
    let text = with("cluster = [\"BLOCK // 64\"]\ncooperative = true")
        .replace("grid = [\"rows\"]", "grid = [\"2 * rows\", 4]");
    let [launch] = &bound(&text, "llama")[..] else { panic!("one launch") };
    assert_eq!((launch.cluster, launch.cooperative, launch.pdl), (Some([2, 1, 1]), true, false));
    // A cluster of one block is no cluster, so a method that is turned off this way also runs where there are no clusters.
    let text = with("cluster = [1, 1]").replace("targets = [\"h200\"]", "targets = [\"old\", \"h200\"]");
    assert_eq!(bound(&text, "llama")[0].cluster, None);
}

#[test]
fn a_dependent_launch_overlaps_the_kernel_before_it_and_nothing_else() {
    let second = "[[kernel.rms_norm.launch]]\nentry = \"more\"\ngrid = [1]\nblock = [32]\npdl = true\n";
    let main = "args = [\"x\", \"w\", \"y\", \"rows\", \"cols\", \"eps\"]\n";
    let after = |more: &str| with("").replace(main, &format!("{main}{more}\n{second}"));
    let pdl = |text: &str| bound(text, "ragged").iter().map(|l| l.pdl).collect::<Vec<_>>();
    assert_eq!(pdl(&after("")), [false, true]);
    // The launch that it would overlap is left out at this shape.
    assert_eq!(pdl(&after("when = \"rows > 8\"")), [false]);
    let memset = "[[kernel.rms_norm.launch]]\nmemset = \"y\"\nwhen = \"rows > 8\"\n";
    assert_eq!(pdl(&after(memset)), [false, true]);
    assert_eq!(pdl(&with("pdl = true\nrepeat = 3")), [false, true, true]);

    let first = error(&with("pdl = true"));
    assert_eq!((first.code, under(&first)), ("manifest.conflict", "pdl"));
    assert!(first.message.contains("no kernel is launched before it"), "{}", first.message);
    let unconditional = memset.replace("when = \"rows > 8\"\n", "");
    let late = error(&after(&unconditional));
    assert!(late.message.contains("a memset is launched before it"), "{}", late.message);
}

#[test]
fn a_grid_is_made_of_whole_clusters() {
    let odd = error(&with("cluster = [2]"));
    assert_eq!((odd.code, under(&odd)), ("manifest.launch-limit", "\"rows\""));
    assert_eq!(odd.message, "3 blocks along x are not a multiple of the cluster's 2");
    assert!(odd.hints[0].contains("ceil_div(n, 2) * 2"), "{:?}", odd.hints);
    // An axis that the grid leaves out has one block.
    let missing = error(&with("cluster = [1, 4]"));
    assert_eq!(
        (under(&missing), missing.message.as_str()),
        ("4", "1 blocks along y are not a multiple of the cluster's 4")
    );
}

#[test]
fn a_grid_that_depends_on_the_device_stays_an_expression() {
    let text = EXAMPLE
        .replace("grid = [\"rows\"]", "grid = [\"min(sm_count * occupancy, rows)\", \"4 if T == \\\"f32\\\" else 2\"]");
    let [launch] = &bound(&text, "llama")[..] else { panic!("one launch") };
    let open = launch.open_grid.as_ref().unwrap();
    assert_eq!((launch.grid, open.extents[0].as_str()), ([0; 3], "min(sm_count * occupancy, rows)"));
    assert_eq!(serde_json::to_string(&open.names).unwrap(), "{\"T\":\"f32\",\"rows\":8192}");
    assert_eq!(launch.grid_in(Room { processors: 132, occupancy: 8 }), Ok([1056, 4, 1]));
    // A grid that does not depend on the device is a number.
    assert_eq!(bound(EXAMPLE, "llama")[0].open_grid, None);
}

#[test]
fn clusters_are_no_larger_than_the_target_has_them() {
    let grid = |text: String| text.replace("grid = [\"rows\"]", "grid = [\"ceil_div(rows, 16) * 16\", 4]");
    let on = |target: &str, cluster: &str| {
        let text = grid(with(&format!("cluster = {cluster}")));
        text.replace("targets = [\"h200\"]", &format!("targets = [\"{target}\"]"))
    };
    package(&on("h200", "[16]"));
    package(&on("small", "[8]"));
    let large = error(&on("small", "[4, 4]"));
    assert_eq!((large.code, under(&large)), ("manifest.launch-limit", "4, 4"));
    assert_eq!(large.expected.as_deref(), Some("at most 8 blocks on sm_120"));
    let old = error(&on("old", "[2]"));
    assert_eq!(old.expected.as_deref(), Some("no clusters: sm_80 has none, they came with sm_90"));
    assert_eq!(error(&on("h200", "[16, 4]")).message, "a cluster of 64 blocks");
    assert_eq!(error(&on("h200", "[32]")).expected.as_deref(), Some("1 to 16 blocks of a cluster along x"));
}

#[test]
fn dependent_launches_need_an_architecture_that_has_them() {
    let text = with("pdl = true\nrepeat = 2").replace("targets = [\"h200\"]", "targets = [\"old\"]");
    let error = error(&text);
    assert_eq!((error.code, under(&error)), ("manifest.launch-limit", "pdl"));
    assert_eq!(error.expected.as_deref(), Some("sm_90 or newer, not sm_80"));
}

#[test]
fn memsets_have_none_of_it() {
    let text = with("").replace("entry = \"rms_norm<T, BLOCK, VEC>\"", "memset = \"y\"\ncooperative = true");
    let (_, _, found) = read(&text);
    assert!(found.iter().any(|d| d.code == "manifest.conflict" && under(d) == "cooperative"));
}
