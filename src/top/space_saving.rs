//! Space-Saving: the most frequent names of a stream, in memory for `size` names.
//!
//! A name that is there is counted. One that is not takes the place of the rarest, and its count, which is then the
//! most by which the new one's may be too high. So, of `n` names counted:
//!
//! - no count is too low, and none is too high by more than its bound, which is at most `n / size`;
//! - every name that came more than `n / size` times is there.
//!
//! Source: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
//! Streams", ICDT 2005. The rarest is found by a binary heap, so a name takes O(log size).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A name, of which the first bytes are kept.
#[derive(Clone)]
pub struct Name {
    kept: [u8; Self::KEPT],
    length: usize,
}

impl Name {
    /// So many bytes of a name are kept.
    pub const KEPT: usize = 128;

    fn new(name: &[u8]) -> Self {
        let mut kept = [0; Self::KEPT];
        let length = name.len().min(Self::KEPT);
        kept[..length].copy_from_slice(&name[..length]);
        Self { kept, length: name.len() }
    }

    /// The name, cut to [`Name::KEPT`] bytes.
    pub fn kept(&self) -> &[u8] {
        &self.kept[..self.length.min(Self::KEPT)]
    }

    /// How long it is uncut, in bytes.
    pub const fn length(&self) -> usize {
        self.length
    }
}

/// A name that is there.
#[derive(Clone)]
pub struct Entry {
    /// The hash of the whole name, by which it is known.
    pub hash: u64,
    /// The name.
    pub name: Name,
    /// How often it came, at most.
    pub count: u64,
    /// The most by which that may be too high.
    pub too_high: u64,
}

/// The most frequent names of a stream.
pub struct SpaceSaving {
    size: usize,
    /// A binary heap: no entry has a lower count than its parent, so the first is the rarest.
    heap: Vec<Entry>,
    /// Where an entry is in the heap. Kept less than half full, so that it never grows.
    places: HashMap<u64, usize, BuildHasherDefault<AsItIs>>,
}

impl SpaceSaving {
    /// For `size` names, at least one; its memory is all taken now.
    pub fn new(size: usize) -> Self {
        let size = size.max(1);
        let places = HashMap::with_capacity_and_hasher(2 * size, BuildHasherDefault::default());
        Self { size, heap: Vec::with_capacity(size), places }
    }

    /// Counts the name with this hash.
    pub fn count(&mut self, hash: u64, name: &[u8]) {
        let place = match self.places.get(&hash) {
            Some(&place) => place,
            None if self.heap.len() < self.size => {
                // As 0 is less than any count, its place is the first.
                self.heap.push(Entry { hash, name: Name::new(name), count: 0, too_high: 0 });
                self.rise(self.heap.len() - 1)
            }
            None => {
                let rarest = &mut self.heap[0];
                self.places.remove(&rarest.hash);
                *rarest = Entry { hash, name: Name::new(name), count: rarest.count, too_high: rarest.count };
                0
            }
        };
        self.heap[place].count += 1;
        self.sink(place);
    }

    /// All names that are there, in no order.
    pub fn entries(&self) -> &[Entry] {
        &self.heap
    }

    /// The count of a name that is there, and the most by which it may be too high.
    pub fn of(&self, hash: u64) -> Option<(u64, u64)> {
        let entry = &self.heap[*self.places.get(&hash)?];
        Some((entry.count, entry.too_high))
    }

    /// The most often that a name can have come which is not there.
    pub fn rarest(&self) -> u64 {
        if self.heap.len() < self.size { 0 } else { self.heap[0].count }
    }

    /// Forgets all names and keeps the memory.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.places.clear();
    }

    /// Brings a new entry of count 0 to the first place, and returns that.
    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            self.heap.swap(place, parent);
            self.places.insert(self.heap[place].hash, place);
            place = parent;
        }
        place
    }

    /// Brings an entry below all with lower counts.
    fn sink(&mut self, mut place: usize) {
        loop {
            let children = [2 * place + 1, 2 * place + 2];
            let lower = children.into_iter().filter(|&child| child < self.heap.len());
            let Some(child) = lower.min_by_key(|&child| self.heap[child].count) else { break };
            if self.heap[place].count <= self.heap[child].count {
                break;
            }
            self.heap.swap(place, child);
            self.places.insert(self.heap[place].hash, place);
            place = child;
        }
        self.places.insert(self.heap[place].hash, place);
    }
}

/// A hasher for what is a hash already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
