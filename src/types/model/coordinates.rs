//! How elements of tensors are shown to people: by coordinates rather than by a number. Knows extents and strides; does not know values.

/// The coordinates of an element, `[18, 103]`, from its row-major index. None for an index outside the tensor, and for a tensor with fewer than two axes, where
/// the index says as much.
pub fn coordinates(index: u64, shape: &[u64]) -> Option<String> {
    let elements = shape.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent))?;
    if shape.len() < 2 || index >= elements {
        return None;
    }
    let mut rest = index;
    let mut at: Vec<u64> = vec![];
    for extent in shape.iter().rev() {
        at.push(rest % extent);
        rest /= extent;
    }
    at.reverse();
    Some(listed(&at))
}

/// An element for people, from its row-major index: its [`coordinates`], or its index if it has none.
pub fn element(index: u64, shape: &[u64]) -> String {
    coordinates(index, shape).unwrap_or_else(|| index.to_string())
}

/// An element for people, from its position in the buffer, counted in elements. `axes` are the extent and the stride of each axis. Shows the position itself if
/// there are fewer than two axes, if the position is outside the tensor, or if it is in a gap between elements.
pub fn stored(place: i64, axes: &[(u64, u64)]) -> String {
    within(place, axes).unwrap_or_else(|| place.to_string())
}

fn within(place: i64, axes: &[(u64, u64)]) -> Option<String> {
    let mut rest = u64::try_from(place).ok().filter(|_| axes.len() > 1)?;
    // Divide by the widest stride first. Narrower strides divide the rest.
    let mut by_stride: Vec<usize> = (0..axes.len()).collect();
    by_stride.sort_by_key(|axis| std::cmp::Reverse(axes[*axis].1));
    let mut at = vec![0; axes.len()];
    for axis in by_stride {
        let (extent, stride) = axes[axis];
        at[axis] = rest.checked_div(stride).unwrap_or(0).min(extent.checked_sub(1)?);
        rest -= at[axis] * stride;
    }
    (rest == 0).then(|| listed(&at))
}

fn listed(at: &[u64]) -> String {
    let at: Vec<String> = at.iter().map(u64::to_string).collect();
    format!("[{}]", at.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Role, Tensor};

    #[test]
    fn an_element_of_several_axes_has_coordinates_and_others_a_number() {
        assert_eq!(element(513, &[3, 257]), "[1, 256]");
        assert_eq!(element(23, &[2, 3, 4]), "[1, 2, 3]");
        for (index, shape) in [(7, &[9][..]), (7, &[]), (771, &[3, 257]), (0, &[0, 4]), (5, &[u64::MAX, 2, 2])] {
            assert_eq!(element(index, shape), index.to_string(), "{shape:?}");
        }
    }

    #[test]
    fn a_place_in_a_buffer_has_the_coordinates_of_the_element_that_lies_there() {
        for strides in [[12, 4, 1], [1, 2, 6], [40, 10, 2], [4, 8, 1], [12, 0, 1]] {
            let tensor =
                Tensor { strides: strides.to_vec(), ..Tensor::dense("x", Role::Input, DType::F32, &[2, 3, 4]) };
            for index in 0..24 {
                // Elements that share a position are shown as the first of them.
                let place = tensor.offset_of(index);
                let first = (0..24).find(|i| tensor.offset_of(*i) == place).unwrap();
                assert_eq!(stored(place as i64, &tensor.axes()), element(first, &tensor.shape), "{strides:?}");
            }
        }
        let gaps = [(2, 3), (2, 1)];
        assert_eq!([-1, 2, 4, 5].map(|at| stored(at, &gaps)), ["-1", "2", "[1, 1]", "5"]);
        assert_eq!(stored(0, &[(0, 3), (2, 1)]), "0");
        assert_eq!(stored(3, &[(9, 1)]), "3");
    }
}
