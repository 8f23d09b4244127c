//! Which accesses of shared memory are ordered, and which race.
//!
//! Each warp counts its epochs: a barrier ends one. What a warp knows of the others' epochs is a vector clock, which barriers,
//! fences and mbarriers join. Each byte remembers its last write and its last reads; an access races with a remembered one
//! of another warp whose epoch the accessing warp does not know to have ended, and with one of another lane of its own warp
//! in the same epoch.

use super::shadow::{Cell, Shadow};
use super::tag::{ORDERED, Race, Tag, UNDER_WAY};
use crate::step::each;
use std::collections::BTreeMap;

/// What is known of the accesses of a block's shared memory.
#[derive(Debug)]
pub(crate) struct Races {
    shadow: Shadow,
    clocks: Clocks,
    /// By warp: what it knew at its last fence, which its strong writes publish.
    fenced: Vec<Vec<u64>>,
    /// By warp: what its strong reads have found published, which its next fence makes known.
    seen: Vec<Vec<u64>>,
    /// What has been published, by the place that was written.
    published: BTreeMap<u64, Vec<u64>>,
    /// What warps had done when their threads ended.
    ended: Vec<u64>,
    /// What has been published at mbarriers, by their addresses.
    mbarriers: Vec<(u64, Vec<u64>)>,
}

/// Who knows of which epochs.
#[derive(Debug)]
struct Clocks {
    /// By warp: what it knows of each warp's epochs; its own is the one it is in.
    warps: Vec<Vec<u64>>,
    /// By warp, while some of its lanes have met without the others: which lanes know what of each other.
    partial: Vec<Option<Box<Partial>>>,
}

/// What the lanes of a warp know of each other.
#[derive(Debug)]
struct Partial {
    /// All of them know of the epochs before this one.
    since: u64,
    /// The epoch of each other lane, before which lane knows of its accesses.
    known: [[u64; 32]; 32],
}

fn join(into: &mut [u64], from: &[u64]) {
    for (own, other) in into.iter_mut().zip(from) {
        *own = (*own).max(*other);
    }
}

impl Partial {
    /// Whether the remembered access is ordered before one with this tag, of the same warp.
    fn orders(&self, old: Tag, tag: Tag) -> bool {
        let known = self.known.get(tag.lane() as usize).and_then(|known| known.get(old.lane() as usize));
        // Accesses of several lanes do not tell which.
        old.epoch() < self.since || known.is_none_or(|&known| old.epoch() < known)
    }
}

impl Clocks {
    /// Whether the remembered access is ordered before one with this tag.
    #[inline(always)]
    fn before(&self, old: Tag, tag: Tag) -> bool {
        old == Tag::default() || self.is_before(old, tag)
    }

    #[inline]
    fn is_before(&self, old: Tag, tag: Tag) -> bool {
        if old.is(UNDER_WAY) {
            return false;
        }
        if old.is(ORDERED) && tag.is(ORDERED) {
            return true;
        }
        let (warp, other) = (tag.warp(), old.warp());
        if warp == other {
            old.lane() == tag.lane()
                || old.epoch() < self.warps[warp][warp]
                    && self.partial[warp].as_ref().is_none_or(|partial| partial.orders(old, tag))
        } else {
            old.epoch() <= self.warps[warp][other]
        }
    }

    /// Remembers a read.
    #[inline(always)]
    fn note_read(&self, cell: &mut Cell, tag: Tag) {
        let [first, second] = cell.reads;
        if first == tag {
            return;
        }
        cell.reads = if first == Tag::default() {
            [tag, second]
        } else if first.warp() == tag.warp() {
            // The lanes of one instruction, or of one epoch.
            let several = first.epoch() == tag.epoch() && first.lane() != tag.lane();
            [if several { tag.of_several() } else { tag }, second]
        } else if self.before(first, tag) {
            [tag, second]
        } else {
            let several =
                second.warp() == tag.warp() && second.epoch() == tag.epoch() && second.lane() != tag.lane();
            [first, if several { tag.of_several() } else { tag }]
        };
    }
}

impl Races {
    pub(crate) fn new(bytes: usize, warps: usize) -> Races {
        let mut races = Races {
            shadow: Shadow::new(bytes),
            clocks: Clocks {
                warps: vec![vec![0; warps]; warps],
                partial: std::iter::repeat_with(|| None).take(warps).collect(),
            },
            fenced: vec![Vec::new(); warps],
            seen: vec![Vec::new(); warps],
            published: BTreeMap::new(),
            ended: vec![0; warps],
            mbarriers: Vec::new(),
        };
        races.reset();
        races
    }

    /// As for a block that begins.
    pub(crate) fn reset(&mut self) {
        self.shadow.reset();
        for (warp, clock) in self.clocks.warps.iter_mut().enumerate() {
            clock.fill(0);
            clock[warp] = 1;
        }
        self.clocks.partial.fill_with(|| None);
        self.fenced.iter_mut().chain(&mut self.seen).for_each(Vec::clear);
        self.published.clear();
        self.ended.fill(0);
        self.mbarriers.clear();
    }

    /// The tag of a lane's access.
    #[inline]
    pub(crate) fn tag(&self, warp: usize, pc: usize, ordered: bool) -> Tag {
        Tag::new(self.clocks.warps[warp][warp], pc, warp, ordered)
    }

    /// Whether other lanes may read bytes that two lanes of the same instruction have read, and nothing would be found or
    /// remembered that is not yet: what the warp itself wrote counts by lane.
    pub(crate) fn reads_alike(&mut self, address: usize, bytes: usize, warp: usize) -> bool {
        let mut alike = true;
        self.shadow.touch(address, bytes, |_, cell| {
            alike &= cell.write == Tag::default() || cell.write.warp() != warp;
        });
        alike
    }

    /// A lane reads bytes.
    #[inline]
    pub(crate) fn read(&mut self, address: usize, bytes: usize, tag: Tag, lane: usize) -> Option<Race> {
        let tag = tag.with_lane(lane);
        let clocks = &self.clocks;
        let mut race = None;
        let mut known = Tag::default();
        self.shadow.touch(address, bytes, |at, cell| {
            let write = cell.write;
            if write != known {
                if race.is_none() && !clocks.before(write, tag) {
                    race = Some(Race { address: at, other: write, other_wrote: true });
                }
                known = write;
            }
            clocks.note_read(cell, tag);
        });
        race
    }

    /// A lane writes bytes. `same`: they hold already what is written, so that another lane of the same instruction that
    /// wrote them changed nothing.
    #[inline]
    pub(crate) fn write(
        &mut self,
        address: usize,
        bytes: usize,
        tag: Tag,
        lane: usize,
        same: bool,
    ) -> Option<Race> {
        let tag = tag.with_lane(lane);
        let clocks = &self.clocks;
        let mut race = None;
        let mut known = Tag::default();
        self.shadow.touch(address, bytes, |at, cell| {
            let write = cell.write;
            if write != known {
                let repeated = same && write.pc() == tag.pc() && write.warp() == tag.warp();
                if race.is_none() && !repeated && !clocks.before(write, tag) {
                    race = Some(Race { address: at, other: write, other_wrote: true });
                }
                known = write;
            }
            if cell.reads[0] != Tag::default() {
                for read in cell.reads {
                    if race.is_none() && !clocks.before(read, tag) {
                        race = Some(Race { address: at, other: read, other_wrote: false });
                    }
                }
            }
            *cell = Cell { write: tag, reads: [Tag::default(); 2] };
        });
        race
    }

    /// A `cp.async` begins to write bytes: nobody may touch them until it is waited for.
    pub(crate) fn begin_copy(&mut self, address: usize, bytes: usize, tag: Tag, lane: usize) -> Option<Race> {
        let race = self.write(address, bytes, tag, lane, false);
        let tag = tag.with_lane(lane).under_way();
        self.shadow.touch(address, bytes, |_, cell| cell.write = tag);
        race
    }

    /// A `cp.async` has been waited for by its thread.
    pub(crate) fn end_copy(&mut self, address: usize, bytes: usize, tag: Tag, lane: usize) {
        let tag = tag.with_lane(lane);
        self.shadow.touch(address, bytes, |_, cell| cell.write = tag);
    }

    /// Lanes of a warp have met, of which the `live` ones have not ended.
    pub(crate) fn warp_barrier(&mut self, warp: usize, met: u32, live: u32) {
        let since = self.clocks.warps[warp][warp];
        self.clocks.warps[warp][warp] += 1;
        if live & !met == 0 {
            self.clocks.partial[warp] = None;
            return;
        }
        let partial = self.clocks.partial[warp]
            .get_or_insert_with(|| Box::new(Partial { since, known: [[0; 32]; 32] }));
        let mut all = [0; 32];
        for lane in each(met) {
            join(&mut all, &partial.known[lane]);
        }
        each(met).for_each(|lane| all[lane] = since + 1);
        each(met).for_each(|lane| partial.known[lane] = all);
    }

    /// A warp publishes what it has done.
    fn release(&mut self, warp: usize, into: impl FnOnce(&mut Races) -> &mut Vec<u64>) {
        self.clocks.partial[warp] = None;
        let mut clock = std::mem::take(&mut self.clocks.warps[warp]);
        join(into(self), &clock);
        clock[warp] += 1;
        self.clocks.warps[warp] = clock;
    }

    /// A fence: strong writes after it publish what was done before; what strong reads before it found is known after it.
    /// By itself it orders nothing.
    pub(crate) fn fence(&mut self, warp: usize) {
        join(&mut self.clocks.warps[warp], &self.seen[warp]);
        self.fenced[warp].resize(self.clocks.warps.len(), 0);
        self.release(warp, |races| &mut races.fenced[warp]);
    }

    /// A warp writes a place by a strong access.
    pub(crate) fn publish(&mut self, warp: usize, place: u64) {
        if !self.fenced[warp].is_empty() {
            let published = self.published.entry(place).or_default();
            published.resize(self.clocks.warps.len(), 0);
            join(published, &self.fenced[warp]);
        }
    }

    /// A warp reads a place by a strong access.
    pub(crate) fn observe(&mut self, warp: usize, place: u64) {
        if let Some(published) = self.published.get(&place) {
            self.seen[warp].resize(self.clocks.warps.len(), 0);
            join(&mut self.seen[warp], published);
        }
    }

    /// A warp comes to a barrier, whose clock this is.
    pub(crate) fn arrive(&mut self, warp: usize, barrier: &mut Vec<u64>) {
        barrier.resize(self.clocks.warps.len(), 0);
        join(barrier, &self.clocks.warps[warp]);
        self.clocks.warps[warp][warp] += 1;
        self.clocks.partial[warp] = None;
    }

    /// A barrier lets a warp go. `all`: it was a barrier of all threads that had not ended, so that it orders what the
    /// ended ones did.
    pub(crate) fn depart(&mut self, warp: usize, barrier: &[u64], all: bool) {
        join(&mut self.clocks.warps[warp], barrier);
        if all {
            join(&mut self.clocks.warps[warp], &self.ended);
        }
    }

    /// Threads of a warp end.
    pub(crate) fn end(&mut self, warp: usize) {
        self.release(warp, |races| &mut races.ended);
    }

    /// A warp arrives at an mbarrier.
    pub(crate) fn arrive_at(&mut self, warp: usize, address: u64) {
        let index = self.mbarrier(address);
        self.release(warp, |races| &mut races.mbarriers[index].1);
    }

    /// A warp has seen a phase of an mbarrier complete.
    pub(crate) fn learn_from(&mut self, warp: usize, address: u64) {
        let index = self.mbarrier(address);
        join(&mut self.clocks.warps[warp], &self.mbarriers[index].1);
    }

    fn mbarrier(&mut self, address: u64) -> usize {
        if let Some(index) = self.mbarriers.iter().position(|(known, _)| *known == address) {
            return index;
        }
        self.mbarriers.push((address, vec![0; self.clocks.warps.len()]));
        self.mbarriers.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Access, FaultKind};

    fn read(races: &mut Races, warp: usize, lane: usize) -> bool {
        let tag = races.tag(warp, 1, false);
        races.read(8, 4, tag, lane).is_some()
    }

    fn write(races: &mut Races, warp: usize, lane: usize) -> bool {
        let tag = races.tag(warp, 2, false);
        races.write(8, 4, tag, lane, false).is_some()
    }

    fn barrier(races: &mut Races, warps: &[usize]) {
        let mut clock = Vec::new();
        for &warp in warps {
            races.arrive(warp, &mut clock);
        }
        for &warp in warps {
            races.depart(warp, &clock, true);
        }
    }

    #[test]
    fn a_barrier_orders_the_warps_that_come_to_it() {
        let mut races = Races::new(64, 3);
        assert!(!write(&mut races, 0, 3));
        assert!(!read(&mut races, 0, 3));
        barrier(&mut races, &[0, 1]);
        assert!(!read(&mut races, 1, 5));
        assert!(read(&mut races, 2, 5), "warp 2 was not there");
    }

    #[test]
    fn each_of_write_and_read_can_come_first() {
        for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut races = Races::new(64, 2);
            let mut access =
                |warp, writes| if writes { write(&mut races, warp, 0) } else { read(&mut races, warp, 0) };
            assert!(!access(0, first));
            assert_eq!(access(1, second), first || second);
        }
    }

    #[test]
    fn all_readers_must_be_done_before_a_write() {
        let mut races = Races::new(64, 3);
        assert!(!read(&mut races, 0, 0));
        assert!(!read(&mut races, 1, 0));
        barrier(&mut races, &[0, 2]);
        assert!(write(&mut races, 2, 0), "warp 1 may still read");
    }

    #[test]
    fn lanes_of_a_warp_are_ordered_by_a_barrier_of_the_warp() {
        let mut races = Races::new(64, 1);
        assert!(!write(&mut races, 0, 3));
        assert!(read(&mut races, 0, 4));
        races.warp_barrier(0, !0, !0);
        assert!(!write(&mut races, 0, 3));
        races.warp_barrier(0, !0, !0);
        assert!(!read(&mut races, 0, 4));
        assert!(!read(&mut races, 0, 5));
        assert!(write(&mut races, 0, 5), "lane 4 reads it too");
    }

    #[test]
    fn atomic_accesses_race_with_plain_ones_only() {
        let mut races = Races::new(64, 2);
        for warp in [0, 1] {
            let tag = races.tag(warp, 7, true);
            assert_eq!(races.write(8, 4, tag, 0, false), None);
        }
        let tag = races.tag(0, 1, false);
        let race = races.read(8, 4, tag, 0).unwrap();
        let FaultKind::Race { other, .. } = race.fault(Access::Read, |pc| pc as u32 * 10) else {
            unreachable!()
        };
        assert_eq!((other.access, other.warp, other.line), (Access::Atomic, 1, 70));
    }

    #[test]
    fn fences_publish() {
        for (written, read_at, fences) in [(5, 5, 3), (5, 6, 3), (5, 5, 1), (5, 5, 2)] {
            let mut races = Races::new(64, 2);
            assert!(!write(&mut races, 0, 0));
            (0..fences & 1).for_each(|_| races.fence(0));
            races.publish(0, written);
            races.observe(1, read_at);
            (0..fences >> 1).for_each(|_| races.fence(1));
            assert_eq!(read(&mut races, 1, 0), written != read_at || fences != 3);
        }
        let mut races = Races::new(64, 2);
        assert!(!write(&mut races, 0, 0));
        races.fence(0);
        races.fence(1);
        assert!(read(&mut races, 1, 0), "a fence by itself orders nothing");
    }

    #[test]
    fn lanes_that_meet_without_the_others_are_ordered_by_themselves() {
        let mut races = Races::new(64, 1);
        assert!(!write(&mut races, 0, 3));
        races.warp_barrier(0, 0xff, !0);
        assert!(!read(&mut races, 0, 4));
        assert!(read(&mut races, 0, 9));
        // Lane 9 learns of lane 3 from lane 4.
        races.warp_barrier(0, 1 << 4 | 1 << 9, !0);
        let mut races = Races::new(64, 1);
        assert!(!write(&mut races, 0, 3));
        races.warp_barrier(0, 0xff, !0);
        races.warp_barrier(0, 1 << 4 | 1 << 9, !0);
        assert!(!read(&mut races, 0, 9));
        assert!(read(&mut races, 0, 10));
        races.warp_barrier(0, !0, !0);
        assert!(!read(&mut races, 0, 10));
    }

    #[test]
    fn a_copy_under_way_is_nobodys() {
        let mut races = Races::new(64, 2);
        let tag = races.tag(0, 3, false);
        assert_eq!(races.begin_copy(8, 4, tag, 0), None);
        assert!(read(&mut races, 0, 0));
        races.end_copy(8, 4, tag, 0);
        assert!(!read(&mut races, 0, 0));
        assert!(read(&mut races, 1, 0));
    }

    #[test]
    fn one_value_from_several_lanes_of_one_store_is_no_race() {
        let mut races = Races::new(64, 1);
        let tag = races.tag(0, 3, false);
        assert_eq!(races.write(8, 4, tag, 0, false), None);
        assert_eq!(races.write(8, 4, tag, 1, true), None);
        assert!(races.write(8, 4, tag, 2, false).is_some());
    }

    #[test]
    fn what_the_warp_itself_wrote_counts_by_lane() {
        let mut races = Races::new(64, 2);
        assert!(races.reads_alike(8, 4, 0));
        assert!(!write(&mut races, 0, 3));
        assert!(!races.reads_alike(8, 4, 0));
        assert!(!races.reads_alike(4, 8, 0));
        assert!(races.reads_alike(8, 4, 1));
    }
}
