//! Halving of blocks of keys, as far as it needs no database.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Blocks with more rows than this are all the same to the one who looks for the largest.
pub(crate) const ENOUGH: i64 = 2_000;

/// How many blocks are halved between two looks at the table.
const ROUND: usize = 32;

/// A block of 2^`bits` places, of which the first is a multiple of that. The larger is the one with more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Block {
    /// How many rows it has, or [`ENOUGH`].
    rows: i64,
    bits: u32,
    /// The lower is halved first.
    order: Reverse<u128>,
    pub(crate) first: u128,
}

impl Block {
    fn new(first: u128, bits: u32) -> Self {
        Block {
            rows: 0,
            bits,
            order: Reverse(first),
            first,
        }
    }

    pub(crate) fn last(&self) -> u128 {
        self.first | 1_u128.checked_shl(self.bits).map_or(u128::MAX, |size| size - 1)
    }

    fn halves(&self) -> [Block; 2] {
        let bits = self.bits - 1;
        [
            Block::new(self.first, bits),
            Block::new(self.first | 1 << bits, bits),
        ]
    }
}

/// Where blocks begin, but for the first, when those with the most rows were halved until there are about as many as are
/// wanted. `count` gives the numbers of rows of some blocks; it is asked for each block but once, and for many at a time.
pub(crate) fn starts<E>(
    min: u128,
    max: u128,
    wanted: usize,
    mut count: impl FnMut(&[Block]) -> Result<Vec<i64>, E>,
) -> Result<Vec<u128>, E> {
    let bits = u128::BITS - (min ^ max).leading_zeros();
    let first = min.checked_shr(bits).unwrap_or(0).checked_shl(bits).unwrap_or(0);
    let mut whole = [Block::new(first, bits)];
    whole[0].rows = count(&whole)?[0];
    let mut blocks = BinaryHeap::from(whole);
    // Those that cannot be halved.
    let mut small = Vec::new();
    loop {
        let spare = wanted.saturating_sub(blocks.len() + small.len());
        let round = largest(&mut blocks, &mut small, spare.min(ROUND));
        if round.is_empty() {
            break;
        }
        // Where a block's rows are known, those of its right half are what the left one leaves.
        let mut asked = Vec::new();
        for block in &round {
            let [left, right] = block.halves();
            asked.push(left);
            asked.extend((block.rows >= ENOUGH).then_some(right));
        }
        let mut counts = count(&asked)?.into_iter();
        for block in round {
            let [mut left, mut right] = block.halves();
            left.rows = counts.next().unwrap_or(0);
            right.rows = match block.rows {
                ENOUGH.. => counts.next().unwrap_or(0),
                exact => exact - left.rows,
            };
            blocks.extend([left, right].into_iter().filter(|half| half.rows > 0));
        }
    }
    let mut starts: Vec<u128> = blocks.iter().chain(&small).map(|block| block.first).collect();
    starts.sort_unstable();
    Ok(starts.split_off(1.min(starts.len())))
}

/// Takes the blocks with the most rows out, and others that have more than half as many.
fn largest(blocks: &mut BinaryHeap<Block>, small: &mut Vec<Block>, most: usize) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    while found.len() < most {
        let enough = found.first().map_or(0, |block| block.rows / 2);
        let Some(block) = blocks.peek().filter(|block| block.rows > enough.max(1)).copied() else {
            break;
        };
        blocks.pop();
        if block.bits == 0 {
            small.push(block);
        } else {
            found.push(block);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Block, ENOUGH, starts};

    /// The starts, and how many blocks were counted in how many looks.
    fn starts_of(keys: &[u128], wanted: usize) -> (Vec<u128>, usize, usize) {
        let (mut looks, mut blocks) = (0, 0);
        let count = |asked: &[Block]| {
            looks += 1;
            blocks += asked.len();
            let below = |place| keys.partition_point(|key| *key < place);
            let rows = |block: &Block| {
                let end = block.last().checked_add(1).map_or(keys.len(), below);
                ENOUGH.min((end - below(block.first)) as i64)
            };
            Ok::<_, ()>(asked.iter().map(rows).collect())
        };
        let starts = starts(keys[0], keys[keys.len() - 1], wanted, count).unwrap();
        (starts, looks, blocks)
    }

    #[test]
    fn as_many_blocks_as_are_wanted_are_found_in_few_looks() {
        let keys: Vec<u128> = (0..200_000).map(|key| key * 3 + 7).collect();
        for wanted in [1, 2, 64, 1000, 65_535] {
            let (starts, looks, blocks) = starts_of(&keys, wanted);
            assert_eq!(starts.len() + 1, wanted);
            assert!(starts.is_sorted());
            assert!(blocks <= 2 * wanted + 64, "{blocks} blocks for {wanted}");
            assert!(looks <= wanted / 16 + 20, "{looks} looks for {wanted}");
        }
    }

    #[test]
    fn no_block_keeps_most_of_the_rows() {
        // Clusters far apart and of different density, at both ends of all places.
        let mut keys: Vec<u128> = (0..1000).collect();
        keys.extend((0..3000).map(|key| 1 << 90 | key << 20));
        keys.extend((0..500).map(|key| u128::MAX - 2 * key));
        keys.sort_unstable();
        let (starts, ..) = starts_of(&keys, 32);
        assert_eq!(starts.len(), 31);
        let mut ends: Vec<usize> = starts
            .iter()
            .map(|start| keys.partition_point(|key| key < start))
            .collect();
        ends.push(keys.len());
        let largest = ends
            .iter()
            .scan(0, |before, end| Some(end - std::mem::replace(before, *end)))
            .max();
        assert!(largest.unwrap() <= 512, "{largest:?}");
    }

    #[test]
    fn single_keys_are_not_split() {
        assert_eq!(starts_of(&[5], 64).0, []);
        assert_eq!(starts_of(&[0, u128::MAX], 64).0, [1 << 127]);
        assert_eq!(starts_of(&[6, 7], 64).0, [7]);
    }
}
