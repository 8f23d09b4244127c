//! Bytes read a second from each level of memory: sums of words over a set that fits it and not the level before.

use super::{Rate, median_rate};
use std::{cell::RefCell, fs, hint::black_box, time::Duration};

/// A set this large lies in memory on every machine of today.
const MEMORY_SET: usize = 512 << 20;

/// `(name, its size, the set to read)` of each level, by what the system says of its caches, or by common sizes.
pub(super) fn levels() -> [(&'static str, usize, usize); 4] {
    let [l1, l2, l3] =
        [(0, 32 << 10), (2, 1 << 20), (3, 32 << 20)].map(|(index, common)| size(index).unwrap_or(common));
    [
        ("L1", l1, l1 / 2),
        ("L2", l2, (l2 / 2).max(2 * l1)),
        // Some virtual machines share a cache that they may fill in part only.
        ("L3", l3, (l3 / 4).max(2 * l2)),
        ("memory", usize::MAX, MEMORY_SET.max(4 * l3)),
    ]
}

/// Bytes of the first core's cache, as Linux tells them; index 1 is the instructions'.
fn size(index: usize) -> Option<usize> {
    let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
    fs::read_to_string(path).ok()?.trim().strip_suffix('K')?.parse::<usize>().ok().map(|kib| kib << 10)
}

/// The rate at which a set of so many bytes is read; a shared level is shared by the cores' own sets.
pub(super) fn rate(set: usize, cores: usize, time: Duration) -> Rate {
    thread_local!(static SET: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) });
    let read = |bytes: usize| {
        move || {
            SET.with_borrow_mut(|words| {
                words.resize(bytes / 8, 1);
                // Many passes a call where the set is small.
                let passes = ((1 << 20) / bytes.max(1)).max(1);
                for _ in 0..passes {
                    black_box(sum(black_box(words)));
                }
                (passes * bytes) as f64
            })
        }
    };
    let shared = set > 4 << 20;
    let all = if shared { set / cores } else { set };
    let rate = Rate { one: median_rate(1, time, &read(set)), all: median_rate(cores, time, &read(all)) };
    SET.with_borrow_mut(|words| *words = Vec::new());
    rate
}

fn sum(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has the feature.
            return unsafe { sum_512(words) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has the feature.
            return unsafe { sum_256(words) };
        }
    }
    sum_by(words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sum_512(words: &[u64]) -> u64 {
    use std::arch::x86_64::*;
    let mut acc = [_mm512_setzero_si512(); 8];
    let (lines, rest) = words.as_chunks::<64>();
    for line in lines {
        for (acc, eight) in acc.iter_mut().zip(line.as_chunks::<8>().0) {
            // SAFETY: the array has the 64 bytes that are read.
            *acc = _mm512_add_epi64(*acc, unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) });
        }
    }
    acc.into_iter().map(|acc| _mm512_reduce_add_epi64(acc) as u64).fold(sum_by(rest), u64::wrapping_add)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_256(words: &[u64]) -> u64 {
    sum_by(words)
}

/// In 32 sums, which the compiler turns into the vectors of its target.
#[inline(always)]
fn sum_by(words: &[u64]) -> u64 {
    let mut acc = [0u64; 32];
    let (blocks, rest) = words.as_chunks::<32>();
    for block in blocks {
        for (acc, &word) in acc.iter_mut().zip(block) {
            *acc = acc.wrapping_add(word);
        }
    }
    acc.iter().chain(rest).fold(0, |sum, &word| sum.wrapping_add(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_once() {
        let words: Vec<u64> = (0..1000).map(|i| i * i).collect();
        for len in [0, 1, 31, 32, 63, 64, 65, 1000] {
            let expected: u64 = words[..len].iter().sum();
            assert_eq!(sum(&words[..len]), expected);
            assert_eq!(sum_by(&words[..len]), expected);
        }
    }

    #[test]
    fn levels_grow() {
        let levels = levels();
        assert!(levels.is_sorted_by(|a, b| a.1 < b.1 && a.2 < b.2), "{levels:?}");
    }
}
