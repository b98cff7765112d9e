//! A random forest for regression (Breiman 2001): trees over bootstrap samples, each split chosen among some of the features. Small
//! and exact: a search has some hundred rows.

use super::draws::Draws;

/// The number of trees in a forest.
const TREES: usize = 40;

/// A node of a tree, in a list of nodes.
enum Node {
    /// The mean cost of the rows that end here.
    Leaf(f64),
    /// Rows whose feature is at most the threshold go left.
    Split { feature: usize, at_most: f64, left: usize, right: usize },
}

/// A fitted forest.
pub(super) struct Forest(Vec<Vec<Node>>);

/// Rows and their costs.
pub(super) struct Table<'a> {
    pub(super) rows: &'a [Vec<f64>],
    pub(super) costs: &'a [f64],
}

impl Forest {
    /// Fits the trees to at least one row.
    pub(super) fn fit(table: &Table<'_>, seed: u64, stream: u64) -> Self {
        let tree = |nth: u64| {
            let mut draws = Draws::new(seed, (stream << 8) + nth);
            let n = table.rows.len();
            let mut rows: Vec<usize> = (0..n).map(|_| draws.below(n)).collect();
            let mut nodes = vec![];
            grow(table, &mut rows, &mut draws, &mut nodes);
            nodes
        };
        Forest((0..TREES as u64).map(tree).collect())
    }

    /// The mean of the trees' predictions, and their standard deviation.
    pub(super) fn predict(&self, row: &[f64]) -> (f64, f64) {
        let said: Vec<f64> = self.0.iter().map(|tree| follow(tree, row)).collect();
        let mean = said.iter().sum::<f64>() / said.len() as f64;
        let variance = said.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / said.len() as f64;
        (mean, variance.sqrt())
    }
}

fn follow(tree: &[Node], row: &[f64]) -> f64 {
    let mut at = 0;
    loop {
        match &tree[at] {
            Node::Leaf(cost) => return *cost,
            Node::Split { feature, at_most, left, right } => {
                at = if row[*feature] <= *at_most { *left } else { *right }
            }
        }
    }
}

/// Adds the tree of these rows to the nodes and returns the position of its root.
fn grow(table: &Table<'_>, rows: &mut [usize], draws: &mut Draws, nodes: &mut Vec<Node>) -> usize {
    let here = nodes.len();
    let mean = rows.iter().map(|r| table.costs[*r]).sum::<f64>() / rows.len() as f64;
    nodes.push(Node::Leaf(mean));
    let Some((feature, at_most)) = split(table, rows, draws) else { return here };
    rows.sort_by(|a, b| table.rows[*a][feature].total_cmp(&table.rows[*b][feature]));
    let middle = rows.partition_point(|r| table.rows[*r][feature] <= at_most);
    let (low, high) = rows.split_at_mut(middle);
    let left = grow(table, low, draws, nodes);
    let right = grow(table, high, draws, nodes);
    nodes[here] = Node::Split { feature, at_most, left, right };
    here
}

/// The split, among two thirds of the features, that leaves the least spread; none if no feature separates the rows.
fn split(table: &Table<'_>, rows: &[usize], draws: &mut Draws) -> Option<(usize, f64)> {
    let width = table.rows.first().map_or(0, Vec::len);
    let mut features: Vec<usize> = (0..width).collect();
    draws.shuffle(&mut features);
    let tried = (2 * width).div_ceil(3);
    let mut best: Option<(f64, usize, f64)> = None;
    for (nth, feature) in features.into_iter().enumerate() {
        if nth >= tried && best.is_some() {
            break;
        }
        let mut sorted: Vec<(f64, f64)> = rows.iter().map(|r| (table.rows[*r][feature], table.costs[*r])).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (n, total) = (sorted.len() as f64, sorted.iter().map(|s| s.1).sum::<f64>());
        let mut sum = 0.0;
        for (i, pair) in sorted.windows(2).enumerate() {
            sum += pair[0].1;
            let left = (i + 1) as f64;
            if pair[0].0 < pair[1].0 {
                // The part of the spread that the split explains, from the squared sums of its two sides; more is better.
                let explained = sum * sum / left + (total - sum).powi(2) / (n - left) - total * total / n;
                if explained > 1e-12 && best.is_none_or(|(b, ..)| explained > b) {
                    best = Some((explained, feature, f64::midpoint(pair[0].0, pair[1].0)));
                }
            }
        }
    }
    best.map(|(_, feature, at_most)| (feature, at_most))
}
