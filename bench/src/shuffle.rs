//! The order within a round. What one contestant leaves to the kernel (a network namespace to tear down, say)
//! is paid by whoever runs next, so the next must not always be the same one. Seeded alike every time: two
//! runs differ by the machine.

#[derive(Debug)]
pub(crate) struct Shuffle(u64);

impl Shuffle {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// Fisher–Yates. The modulo's bias is nothing at these lengths.
    pub(crate) fn apply<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = (self.next() % (last as u64 + 1)) as usize;
            items.swap(last, other);
        }
    }

    /// xorshift64: never zero from a seed that is not.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_neighbours_comes_up_about_as_often() {
        let mut shuffle = Shuffle::new();
        let mut follows = [[0_u32; 3]; 3];
        let mut order = [0, 1, 2];
        for _ in 0..6_000 {
            shuffle.apply(&mut order);
            for pair in order.windows(2) {
                follows[pair[0]][pair[1]] += 1;
            }
        }
        for (first, row) in follows.iter().enumerate() {
            for (second, &count) in row.iter().enumerate() {
                let expected = if first == second { 0..=0 } else { 1_800..=2_200 };
                assert!(expected.contains(&count), "{first} then {second}: {count}");
            }
        }
    }
}
