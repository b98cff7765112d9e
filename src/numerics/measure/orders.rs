//! What pairs say of two kernels, over one or more shapes, and whether the two orders agree in which they were timed. Knows blocks and which binary came first
//! in each; does not know who compares them.
//!
//! # When the orders disagree
//!
//! In half of the blocks A comes first, in the other half B. A kernel that profits from its place gives two answers, and their median is neither. The orders
//! are *apart* if each has at least six blocks with samples and the 95 % intervals of their medians do not overlap. Of two samples of one distribution, 1.3 %
//! are apart with eight blocks each; then more blocks are taken, and 0.3 % are apart with both eight and sixteen. The orders *disagree* if they are apart and
//! their answers at a margin differ; the answer is then undecided, whatever all blocks together say.
//!
//! Over several shapes, the answer is also undecided if the orders of any single shape disagree: the blocks over all shapes are only as many as the shape with
//! the fewest has, so a disagreement that takes more blocks to see would be lost, and opposite ones at two shapes would cancel.

use super::stats::{Paired, answer, block_interval, median, over_shapes};
use kforge_types::record::timing::{PairsObserved, Side};

/// The least number of blocks of each order: with fewer, an interval of 95 % would be wider than all of them.
const LEAST: usize = 6;

/// A median and the ends of its 95 % interval, as logarithms of (time of A / time of B).
type Interval = (f64, f64, f64);

/// What the blocks of each order say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Orders {
    /// The blocks in which A came first.
    pub a_first: Interval,
    /// The blocks in which B came first.
    pub b_first: Interval,
}

impl Orders {
    /// The two orders of pairs at these shapes; none if the orders were not recorded, or if one has too few blocks.
    pub fn of(shapes: &[&PairsObserved]) -> Option<Self> {
        Self::of_blocks(&ByOrder::of(shapes))
    }

    fn of_blocks(blocks: &ByOrder) -> Option<Self> {
        let of = |blocks: &[Vec<f64>]| (blocks.len() >= LEAST).then(|| block_interval(blocks)).flatten();
        Some(Orders { a_first: of(&blocks.a_first)?, b_first: of(&blocks.b_first)? })
    }

    /// Whether their intervals do not overlap.
    pub fn are_apart(&self) -> bool {
        let ((_, a_low, a_high), (_, b_low, b_high)) = (self.a_first, self.b_first);
        a_high < b_low || b_high < a_low
    }

    /// Whether they disagree at a margin.
    pub fn disagree(&self, margin: f64) -> bool {
        self.are_apart() && answer(self.a_first, margin) != answer(self.b_first, margin)
    }
}

/// The blocks of each order over the shapes. Both are empty if the orders were not recorded at all of them.
#[derive(Debug, Clone, Default, PartialEq)]
struct ByOrder {
    a_first: Vec<Vec<f64>>,
    b_first: Vec<Vec<f64>>,
}

impl ByOrder {
    fn of(shapes: &[&PairsObserved]) -> Self {
        let of = |side: Side| {
            let at = |seen: &&PairsObserved| -> Vec<Vec<f64>> {
                let with =
                    seen.blocks.iter().zip(&seen.first).filter(|(block, first)| **first == side && !block.is_empty());
                with.map(|(block, _)| block.clone()).collect()
            };
            let each: Vec<Vec<Vec<f64>>> = shapes.iter().map(at).collect();
            over_shapes(&each.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        ByOrder { a_first: of(Side::A), b_first: of(Side::B) }
    }

    fn is_recorded(&self) -> bool {
        !self.a_first.is_empty() || !self.b_first.is_empty()
    }
}

/// The medians of blocks minus those of others, for as many as both have.
fn difference(of: &[Vec<f64>], less: &[Vec<f64>]) -> Vec<Vec<f64>> {
    of.iter().zip(less).map(|(x, y)| vec![median(x) - median(y)]).collect()
}

/// Pairs of A and B over all shapes at which they are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Log-ratios of (time of A / time of B) in each block, over the shapes.
    pub blocks: Vec<Vec<f64>>,
    /// The median over the blocks, and its interval.
    pub interval: Interval,
    /// What each order says over all shapes.
    pub orders: Option<Orders>,
    /// What each order says at single shapes, if there are several: of those shapes that have enough blocks of each order.
    pub single: Vec<Orders>,
    /// The blocks of each order.
    by_order: ByOrder,
}

impl Comparison {
    /// The comparison over these shapes; none if pairs do not suffice for an interval.
    pub fn of(shapes: &[&PairsObserved]) -> Option<Self> {
        let blocks = over_shapes(&shapes.iter().map(|seen| seen.blocks.as_slice()).collect::<Vec<_>>());
        let single = shapes.iter().filter(|_| shapes.len() > 1).filter_map(|seen| Orders::of(&[seen])).collect();
        let by_order = ByOrder::of(shapes);
        let orders = Orders::of_blocks(&by_order);
        Some(Comparison { interval: block_interval(&blocks)?, orders, single, by_order, blocks })
    }

    /// X and Y from the comparisons of both, as A, with one third variant. If the orders of either disagree, so do they here.
    ///
    /// Each comparison has its own orders and its own number of blocks, so only blocks of the same order are subtracted: what X gains from coming first, Y
    /// gains, too. Where the orders were not recorded, blocks are subtracted in the order in which they were taken.
    pub fn through(x: &Self, y: &Self, margin: f64) -> Option<Self> {
        let by_order = match x.by_order.is_recorded() && y.by_order.is_recorded() {
            true => ByOrder {
                a_first: difference(&x.by_order.a_first, &y.by_order.a_first),
                b_first: difference(&x.by_order.b_first, &y.by_order.b_first),
            },
            false => ByOrder::default(),
        };
        let blocks = match by_order.is_recorded() {
            true => [&by_order.a_first[..], &by_order.b_first].concat(),
            false => difference(&x.blocks, &y.blocks),
        };
        let orders = x.contested(margin).or(y.contested(margin));
        Some(Comparison { interval: block_interval(&blocks)?, orders, single: vec![], by_order, blocks })
    }

    /// The typical log-ratio.
    pub fn typical(&self) -> f64 {
        median(&self.blocks.concat())
    }

    /// The orders over all shapes if they disagree at a margin, or else those of the first shape at which they do.
    pub fn contested(&self, margin: f64) -> Option<Orders> {
        self.orders.iter().chain(&self.single).find(|orders| orders.disagree(margin)).copied()
    }

    /// How A compares with B at a margin. Undecided if the orders disagree.
    pub fn decide(&self, margin: f64) -> Paired {
        match self.contested(margin) {
            Some(_) => Paired::Undecided,
            None => answer(self.interval, margin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks in which A and B come first in turn, around a centre for each order.
    fn pairs(blocks: usize, a_first: f64, b_first: f64, spread: f64) -> PairsObserved {
        let noise = |block: usize| spread * ((block / 2 * 7 % 5) as f64 / 2.0 - 1.0);
        let of = |block: usize| vec![noise(block) + if block.is_multiple_of(2) { a_first } else { b_first }; 4];
        let first = (0..blocks).map(|block| if block.is_multiple_of(2) { Side::A } else { Side::B }).collect();
        PairsObserved { blocks: (0..blocks).map(of).collect(), first }
    }

    fn of(seen: &PairsObserved) -> Comparison {
        Comparison::of(&[seen]).unwrap()
    }

    #[test]
    fn orders_that_agree_decide_together() {
        for (centre, answer) in [(0.05, Paired::Slower), (-0.05, Paired::Faster), (0.0, Paired::Same)] {
            let seen = of(&pairs(16, centre, centre + 0.0005, 0.002));
            assert_eq!((seen.contested(0.01), seen.decide(0.01)), (None, answer));
        }
    }

    #[test]
    fn orders_that_are_apart_with_other_answers_are_undecided() {
        let seen = pairs(16, 0.03, 0.001, 0.002);
        let orders = of(&seen).contested(0.01).unwrap();
        assert!(orders.a_first.0 > 0.025 && orders.b_first.0 < 0.005, "{orders:?}");
        assert_eq!(of(&seen).decide(0.01), Paired::Undecided);
        // Turned, each order has the other sign.
        let turned = of(&seen.turned()).contested(0.01).unwrap();
        assert_eq!((turned.a_first.0, turned.b_first.0), (-orders.b_first.0, -orders.a_first.0));
    }

    #[test]
    fn a_difference_between_orders_that_changes_no_answer_does_not_matter() {
        let seen = of(&pairs(16, 0.08, 0.03, 0.002));
        assert!(seen.orders.unwrap().are_apart());
        assert_eq!((seen.contested(0.01), seen.decide(0.01)), (None, Paired::Slower));
    }

    #[test]
    fn few_blocks_wide_blocks_and_blocks_without_samples_do_not_disagree() {
        assert_eq!(of(&pairs(11, 0.03, 0.001, 0.002)).orders, None, "five blocks of one order");
        assert!(of(&pairs(12, 0.03, 0.001, 0.002)).contested(0.01).is_some());
        assert!(!of(&pairs(16, 0.03, 0.001, 0.04)).orders.unwrap().are_apart());
        let mut dropped = pairs(16, 0.03, 0.001, 0.002);
        dropped.blocks[..6].fill(vec![]);
        assert_eq!(of(&dropped).orders, None);
        let before = PairsObserved { first: vec![], ..pairs(16, 0.03, 0.001, 0.002) };
        assert_eq!(of(&before).orders, None, "observed before orders were recorded");
    }

    #[test]
    fn shapes_are_weighed_within_each_order() {
        // The first block of one shape has the order of the second block of the other.
        let (up, down) = (pairs(16, 0.03, 0.0, 0.002), pairs(16, 0.0, 0.03, 0.002));
        let both = Comparison::of(&[&up, &down]).unwrap();
        assert!(!both.orders.unwrap().are_apart(), "over the shapes they cancel");
        assert!(both.contested(0.01).is_some(), "at each shape they disagree");
        assert!(Comparison::of(&[&up, &up]).unwrap().contested(0.01).is_some());
        let shifted = PairsObserved {
            blocks: up.blocks.iter().skip(1).chain(&up.blocks[..1]).cloned().collect(),
            first: up.first.iter().skip(1).chain(&up.first[..1]).copied().collect(),
        };
        assert!(Comparison::of(&[&up, &shifted]).unwrap().orders.unwrap().disagree(0.01));
    }

    #[test]
    fn through_a_third_variant_blocks_of_the_same_order_are_subtracted() {
        // Coming first costs 6 %. X is 4 % slower than Y in either order; their steps drew other orders and took other numbers of blocks.
        let (x, y) = (pairs(8, -0.04, -0.10, 0.001), pairs(11, -0.08, -0.14, 0.001));
        let shifted = PairsObserved { blocks: y.blocks[1..].to_vec(), first: y.first[1..].to_vec() };
        for y in [of(&y), of(&shifted)] {
            let seen = Comparison::through(&of(&x), &y, 0.01).unwrap();
            assert_eq!((seen.blocks.len(), seen.decide(0.01)), (8, Paired::Slower));
            assert!(seen.interval.1 > 0.03 && seen.interval.2 < 0.05, "{:?}", seen.interval);
            let turned = Comparison::through(&y, &of(&x), 0.01).unwrap();
            assert_eq!(turned.decide(0.01), Paired::Faster);
        }
        // Without recorded orders, block by block.
        let unordered = |seen: &PairsObserved| of(&PairsObserved { first: vec![], ..seen.clone() });
        for x in [of(&x), unordered(&x)] {
            assert_eq!(Comparison::through(&x, &unordered(&y), 0.01).unwrap().decide(0.01), Paired::Slower);
            assert_eq!(Comparison::through(&x, &unordered(&shifted), 0.01).unwrap().decide(0.01), Paired::Undecided);
        }
        // Orders that disagree in one comparison leave the answer undecided.
        let contested = of(&pairs(16, 0.05, 0.0, 0.001));
        assert_eq!(Comparison::through(&contested, &of(&y), 0.01).unwrap().decide(0.01), Paired::Undecided);
    }

    #[test]
    fn orders_that_disagree_at_one_shape_are_seen_beside_a_shape_with_few_blocks() {
        let (few, many) = (pairs(8, 0.05, 0.05, 0.002), pairs(32, 0.08, 0.0, 0.002));
        for shapes in [[&few, &many], [&many, &few]] {
            let seen = Comparison::of(&shapes).unwrap();
            assert_eq!((seen.blocks.len(), seen.orders), (8, None), "four blocks of each order over both shapes");
            assert_eq!(answer(seen.interval, 0.01), Paired::Slower);
            assert_eq!(seen.contested(0.01), Orders::of(&[&many]));
            assert_eq!(seen.decide(0.01), Paired::Undecided);
        }
        let agreeing = pairs(32, 0.08, 0.06, 0.002);
        let seen = Comparison::of(&[&few, &agreeing]).unwrap();
        assert_eq!((seen.contested(0.01), seen.decide(0.01)), (None, Paired::Slower));
    }
}
