//! Tests of sizes by how kernels go through dims.

use super::*;

#[test]
fn every_axis_of_a_grid_has_several_blocks_and_a_rest_and_less_than_one_block() {
    for step in [2, 4, 8, 16, 32, 64, 128, 192, 256, 1024] {
        for count in 1..=3 {
            for kind in [Sizes::Elements, Sizes::Rows, Sizes::Product, Sizes::Unknown] {
                let covers = vec![Cover::Grid(step); count];
                let none = vec![1; count];
                let of = |size| sizes(&covers, kind, size, &none);
                assert!(of(Size::Small).iter().all(|n| *n >= 1 && *n < step), "{covers:?}");
                let ragged = of(Size::Ragged);
                assert!(ragged.iter().all(|n| *n > step && n % step != 0), "{covers:?} {ragged:?}");
                assert!(of(Size::Large).iter().all(|n| *n >= 2 * step && n % step == 0), "{covers:?}");
                if count == 1 {
                    assert!(ragged[0] > 2 * step);
                }
            }
        }
    }
}

#[test]
fn sizes_are_multiples_of_what_a_kernel_serves() {
    for by in [2, 4, 8, 32, 128, 512] {
        for step in [1, 32, 256] {
            for size in [Size::Small, Size::Ragged, Size::Large] {
                let found = sizes(&[Cover::Grid(step)], Sizes::Elements, size, &[by]);
                assert!(found[0] > 0 && found[0] % by == 0, "{by} {step} {size:?} {found:?}");
                if size == Size::Ragged {
                    assert!(found[0] > 2 * step.min(by) && (by % step == 0 || found[0] % step != 0), "{found:?}");
                }
            }
        }
    }
}

#[test]
fn many_dims_stay_few_elements() {
    for cover in [Cover::Serial, Cover::Loop(256), Cover::Threads(256), Cover::Block, Cover::Grid(1)] {
        for size in [Size::Small, Size::Ragged, Size::Large] {
            let all = [cover, Cover::Grid(16), Cover::Grid(16), cover];
            let found = sizes(&all, Sizes::Unknown, size, &[1; 4]);
            assert!(found.iter().product::<i64>() <= MOST_ELEMENTS * 6, "{all:?} {size:?} {found:?}");
        }
    }
}

#[test]
fn whole_blocks_of_different_dims_differ() {
    for cover in [Cover::Serial, Cover::Loop(256), Cover::Threads(16), Cover::Block, Cover::Grid(1), Cover::Grid(32)] {
        for kind in [Sizes::Elements, Sizes::Rows, Sizes::Product, Sizes::Unknown] {
            for by in [1, 4, 16] {
                for count in 2..=3 {
                    let by = if matches!(cover, Cover::Threads(_)) { 1 } else { by };
                    let found = sizes(&vec![cover; count], kind, Size::Large, &vec![by; count]);
                    let different: std::collections::BTreeSet<&i64> = found.iter().collect();
                    assert_eq!(different.len(), count, "{cover:?} {kind:?} {by} {found:?}");
                    assert!(found.iter().all(|size| *size > 0 && size % by == 0), "{found:?}");
                }
            }
        }
    }
}
