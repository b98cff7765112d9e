//! For random workspaces, machines and edits: a build that continues from known results equals one that starts with only the same records.

use std::fmt::Write;

use serde_json::Value;

use crate::lab::{Lab, MANIFEST, Machine};
use crate::project::Built;
use crate::random::Random;

/// The numbers of workspaces, and of edits of each.
const TRIED: (usize, usize) = (5, 5);

/// The contents of a workspace; each edit changes one of them.
#[derive(Debug, Clone)]
struct Made {
    /// For each kernel: its values of V, the number that its code returns, and the number of comments above it.
    kernels: Vec<(Vec<u32>, u64, u64)>,
    tolerance: u64,
    /// The extents of bench shapes.
    bench: Vec<u64>,
    select: &'static str,
    method: Option<u32>,
    signature: &'static str,
    /// How the space is searched.
    search: &'static str,
}

const SEARCHES: [&str; 4] = [
    "",
    "tune.strategy = \"random\"\ntune.budget = { variants = 3 }",
    "tune.strategy = \"annealing\"\ntune.budget = { seconds = 2 }",
    "tune.strategy = \"model\"\ntune.budget = { variants = 2 }\ntune.seed = 4",
];

const SELECTS: [&str; 4] = ["{}", "\"one\"", "{ per = \"shape\" }", "{ classes = 2 }"];

const VALUES: [u32; 5] = [1, 2, 4, 8, 16];

impl Made {
    fn random(random: &mut Random) -> Self {
        let kernels = (0..1 + random.below(2)).map(|_| (values(random), random.below(9), 0)).collect();
        let bench = if random.below(2) == 0 { vec![64] } else { vec![64, 96] };
        let select = SELECTS[random.below(4) as usize];
        let method = (random.below(2) == 0).then(|| VALUES[random.below(5) as usize]);
        Made {
            kernels,
            tolerance: 1,
            bench,
            select,
            method,
            signature: "LDG",
            search: SEARCHES[random.below(4) as usize],
        }
    }

    fn edit(&mut self, random: &mut Random) -> &'static str {
        let at = random.below(self.kernels.len() as u64) as usize;
        match random.below(9) {
            0 => (self.kernels[at].1 += 10, "code").1,
            1 => (self.kernels[at].2 += 1, "a comment").1,
            2 => (self.tolerance += 1, "the tolerance").1,
            3 => (self.kernels[at].0 = values(random), "tunables").1,
            4 => (self.bench = if self.bench.len() == 1 { vec![64, 96] } else { vec![96] }, "bench shapes").1,
            5 => (self.select = SELECTS[random.below(4) as usize], "classes").1,
            8 => (self.search = SEARCHES[random.below(4) as usize], "the search").1,
            6 => (self.method = Some(VALUES[random.below(5) as usize]), "a method").1,
            _ => (self.signature = if self.signature == "LDG" { "STG" } else { "LDG" }, "a signature").1,
        }
    }

    fn write(&self, lab: &Lab) {
        let (head, _) = MANIFEST.split_once("[kernel.k]").unwrap();
        let mut text = head.replace("1e-6", &format!("{}e-6", self.tolerance));
        let shapes: String =
            self.bench.iter().map(|n| format!("shapes.b{n} = {{ n = {n}, role = \"bench\" }}\n")).collect();
        text = text.replace("shapes.big = { n = 100, role = \"bench\" }\n", &shapes);
        for (i, (values, code, comments)) in self.kernels.iter().enumerate() {
            let _ = writeln!(
                text,
                "[kernel.k{i}]\noperator = \"twice\"\nsource = \"k{i}.cu\"\ntargets = [\"h\"]\nselect = {}\ntune.V = {values:?}\n\
                 launch = [{{ entry = \"k{i}<V>\", grid = [\"n\"], block = [\"32\"], args = [\"x\", \"y\", \"n\"] }}]",
                self.select
            );
            let _ = writeln!(text, "{}", self.search);
            if let Some(off) = self.method {
                let _ = writeln!(
                    text,
                    "methods.\"memory.x\" = {{ off = {{ V = {off} }}, sass.any = ['{}'] }}",
                    self.signature
                );
            }
            let comments = "// A comment.\n".repeat(*comments as usize);
            let code = format!(
                "{comments}#pragma sass k{i}<[48]> LDG.E.128 2\ntemplate <int V> __global__ void k{i}(const float *x, float *y, int n) {{ {code}; }}\n"
            );
            lab.project.write(&format!("k{i}.cu"), &code);
        }
        lab.project.write("kernel.toml", &text);
    }
}

/// Some values, in any order.
fn values(random: &mut Random) -> Vec<u32> {
    let mut left = VALUES.to_vec();
    (0..2 + random.below(3)).map(|_| left.remove(random.below(left.len() as u64) as usize)).collect()
}

/// A machine on which many variants are about equally fast at each shape, and one may be wrong or throttled.
fn machine(random: &mut Random) -> Machine {
    let mut machine = Machine { noise: 0.01, drift: 0.01, ..Machine::default() };
    for (kernel, value) in (0..2).flat_map(|k| VALUES.map(|v| (k, v))) {
        let fault = match random.below(14) {
            0 => "error = 1.0",
            1 => "throttled = 1.0",
            2 => "fault = \"crash\"",
            _ => "",
        };
        for shape in [" grid 64,", " grid 96,", ""] {
            let ns = 1000 + 5 * random.below(20);
            machine = machine.rule(&format!("^k{kernel}<{value}>{shape}"), &format!("ns = {ns}.0\n{fault}"));
        }
    }
    machine
}

/// What must not differ: keys and results of steps, verdicts, champions, the exit code.
fn said(built: &Built) -> (impl PartialEq + std::fmt::Debug, i32) {
    let mut champions: Vec<String> = built.events("champion").map(Value::to_string).collect();
    champions.sort();
    let mut verdicts: Vec<String> = built.finished().map(|s| format!("{} {}", s["id"], s["verdict"])).collect();
    verdicts.sort();
    ((built.keys(), verdicts, champions), built.code())
}

#[test]
#[ignore = "second tier: random sequences of builds"]
fn going_on_equals_beginning_anew_with_the_same_records() {
    let mut random = Random::seeded();
    for w in 0..TRIED.0 {
        let mut made = Made::random(&mut random);
        let mut on = machine(&mut random);
        let lab = Lab::new(&on);
        let mut told = vec![];
        for edit in 0..=TRIED.1 {
            let mut words = vec!["--keep-going"];
            if edit > 0 {
                match random.below(6) {
                    0 => {
                        on = Machine { seed: on.seed + 1, day: on.day + 1, ..on };
                        words.push("--remeasure");
                        told.push("measured again");
                    }
                    1 => {
                        on.device = [None, Some(("Virtual H", "590.1")), Some(("Virtual X", "580.1"))]
                            [random.below(3) as usize];
                        told.push("another device");
                    }
                    _ => told.push(made.edit(&mut random)),
                }
            }
            made.write(&lab);
            lab.on(&on);
            let went_on = lab.project.build(&words);
            let anew = lab.anew(&format!("anew-{w}-{edit}"));
            lab.give_evidence(&anew);
            let began = anew.project.build(&["--keep-going", "-j4"]);
            assert!([0, 100].contains(&went_on.code()), "{told:?} of {made:?}: {}", went_on.stderr());
            let asked = began
                .executed()
                .into_iter()
                .filter(|id| ["/verify", "/bench", "/pairs"].iter().any(|k| id.ends_with(k)));
            assert_eq!(asked.collect::<Vec<_>>(), Vec::<String>::new(), "{told:?} of {made:?}");
            assert_eq!(said(&went_on), said(&began), "{told:?} of {made:?}");
            assert_eq!(lab.project.report(), anew.project.report(), "{told:?} of {made:?}");
        }
    }
}
