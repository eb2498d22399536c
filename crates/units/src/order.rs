//! The order of lists. `sort_by_key` is two kilobytes of the lab's page for each kind of list; these are not.

/// Where the first of rows of any kind is, the second, ... Those of equal keys stay as they were.
pub fn ascending(keys: &[(u64, u32)]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..keys.len()).collect();
    places.sort_by_key(|&place| keys[place]);
    places
}

/// A short list in order, by insertion: what is equal stays as it was.
pub fn put_in_order<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..list.len() {
        let last = key(&list[end]);
        let place = list[..end].partition_point(|each| key(each) <= last);
        list[place..=end].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::{ascending, put_in_order};

    #[test]
    fn equal_keys_stay_as_they_were() {
        assert_eq!(ascending(&[(3, 0), (1, 1), (3, 0), (1, 0)]), [3, 1, 0, 2]);
        let mut list = [(3, 'a'), (1, 'b'), (3, 'c'), (2, 'd'), (1, 'e')];
        put_in_order(&mut list, |each| each.0);
        assert_eq!(list, [(1, 'b'), (1, 'e'), (2, 'd'), (3, 'a'), (3, 'c')]);
    }
}
