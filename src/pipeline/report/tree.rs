//! A plan as a tree of text. Knows the graph's edges; the caller says what a step lacks.

use std::collections::HashSet;
use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use kforge_engine::{Graph, Index, Lack};
use kforge_types::record::StepKind;

const DIM: Style = Style::new().dimmed();
const OPEN: Style = AnsiColor::Yellow.on_default();

/// Which part of the plan is shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct View {
    /// Show the steps that depend on a step below it, instead of the steps that it depends on.
    pub invert: bool,
    /// The number of levels below the first; none for all.
    pub depth: Option<usize>,
    /// Start from the steps of this kind instead of from the ends of the plan.
    pub stage: Option<StepKind>,
}

/// The tree with ANSI styles. A step whose branches were already shown is marked `(*)`. `lacks` says what each node lacks, in order.
pub fn text(graph: &Graph, lacks: &[Option<Lack>], view: View) -> String {
    let mut writer = Writer { graph, lacks, view, shown: HashSet::new(), out: String::new() };
    for root in roots(graph, view) {
        writer.node(root, "", "", 0);
    }
    writer.out
}

fn roots(graph: &Graph, view: View) -> Vec<Index> {
    let all = 0..graph.len() as Index;
    let mut roots: Vec<Index> = match view.stage {
        Some(kind) => all.filter(|i| graph.node(*i).kind == kind).collect(),
        None if view.invert => all.filter(|i| graph.dependencies(*i).next().is_none()).collect(),
        None => all.filter(|i| graph.dependents(*i).next().is_none()).collect(),
    };
    roots.sort_by(|a, b| graph.node(*a).id.cmp(&graph.node(*b).id));
    roots
}

struct Writer<'g> {
    graph: &'g Graph,
    lacks: &'g [Option<Lack>],
    view: View,
    shown: HashSet<Index>,
    out: String,
}

impl Writer<'_> {
    fn node(&mut self, at: Index, lead: &str, below: &str, depth: usize) {
        let node = self.graph.node(at);
        let mut children: Vec<Index> =
            if self.view.invert { self.graph.dependents(at).collect() } else { self.graph.dependencies(at).collect() };
        children.sort_by(|a, b| self.graph.node(*a).id.cmp(&self.graph.node(*b).id));
        children.dedup();
        let again = !children.is_empty() && !self.shown.insert(at);
        let mark = if again { format!(" {DIM}(*){DIM:#}") } else { String::new() };
        let missing = self.lacks[at as usize].as_ref().map(|lack| match lack {
            Lack::Unavailable(why) => format!(" {OPEN}(unavailable: {why}){OPEN:#}"),
            Lack::Unless(why) => format!(" {OPEN}(unavailable unless its result is known: {why}){OPEN:#}"),
        });
        let (owner, kind) = node.id.rsplit_once('/').map_or(("", node.id.as_str()), |(o, k)| (o, k));
        let slash = if owner.is_empty() { "" } else { "/" };
        let _ = writeln!(
            self.out,
            "{DIM}{lead}{DIM:#}{owner}{slash}{bold}{kind}{bold:#}{mark}{}",
            missing.unwrap_or_default(),
            bold = Style::new().bold()
        );
        if again || self.view.depth.is_some_and(|most| depth >= most) {
            return;
        }
        for (i, child) in children.iter().enumerate() {
            let last = i + 1 == children.len();
            let (branch, rest) = if last { ("└── ", "    ") } else { ("├── ", "│   ") };
            self.node(*child, &format!("{below}{branch}"), &format!("{below}{rest}"), depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use kforge_engine::{InputRef, Node, Rank, Resources, Source};
    use kforge_types::record::Form;
    use kforge_types::record::event::Labels;

    fn node(id: &str, reads: &[&str]) -> Node {
        let kind: StepKind = id.rsplit('/').next().unwrap().parse().unwrap();
        let input = |from: &&str| {
            let source = Source::Output { node: (*from).into(), name: "x".into(), required: true };
            ((*from).to_string(), InputRef { source, form: Form::Blob })
        };
        Node {
            id: id.into(),
            labels: Labels::default(),
            rank: Rank { round: 0, phase: 0, wave: 0, kind },
            kind,
            params: serde_json::Value::Null,
            inputs: reads.iter().map(input).collect::<BTreeMap<_, _>>(),
            after: vec![],
            product: None,
            resources: Resources::default(),
            time_limit_s: 1,
            unavailable: None,
            expands: false,
            advisory: false,
        }
    }

    fn shown(view: View) -> String {
        let nodes = vec![
            node("k/generate", &[]),
            node("k/a/compile", &["k/generate"]),
            node("k/a/verify", &["k/a/compile"]),
            node("k/a/bench", &["k/a/compile"]),
        ];
        let graph = Graph::new(nodes).unwrap_or_else(|e| panic!("{e}"));
        let lack = |node: &Node| match node.kind {
            StepKind::Bench => Some(Lack::Unavailable("no device".into())),
            StepKind::Verify => Some(Lack::Unless("no device".into())),
            _ => None,
        };
        let lacks: Vec<_> = graph.nodes().map(lack).collect();
        anstream::adapter::strip_str(&text(&graph, &lacks, view)).to_string()
    }

    #[test]
    fn what_is_shown_above_is_only_marked() {
        let expected = "k/a/bench (unavailable: no device)\n└── k/a/compile\n    └── k/generate\n\
                        k/a/verify (unavailable unless its result is known: no device)\n└── k/a/compile (*)\n";
        assert_eq!(shown(View::default()), expected);
    }

    #[test]
    fn it_can_be_turned_around_cut_off_and_begun_at_a_kind() {
        let view = View { invert: true, depth: Some(1), stage: None };
        assert_eq!(shown(view), "k/generate\n└── k/a/compile\n");
        let view = View { stage: Some(StepKind::Compile), ..View::default() };
        assert_eq!(shown(view), "k/a/compile\n└── k/generate\n");
    }
}
