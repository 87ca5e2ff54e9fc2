//! What is kept by key in this process: concurrent, and bounded.

use std::cmp::Ordering;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use rl_limiter::Micros;

/// So many keys share a lock.
const SHARDS: usize = 64;

/// Something that can be forgotten from some moment on.
pub(crate) trait Passing {
    /// The first moment at which it makes no difference whether it is there.
    fn over_at(&self) -> Micros;
}

/// Values by key. What is over counts as missing; it is collected when room is needed. When all room is taken by what is not
/// over, the values that would be over first make way.
pub(crate) struct Table<V> {
    shards: Box<[Mutex<Shard<V>>]>,
    hasher: RandomState,
    most_in_a_shard: usize,
}

/// Keys and values by the hash of the key, which is computed once for shard and place.
type Shard<V> = HashTable<(Box<str>, V)>;

impl<V: Passing> Table<V> {
    /// For about `most` keys, rounded up to a multiple of 64.
    pub fn new(most: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(HashTable::new())).collect();
        Self { shards, hasher: RandomState::new(), most_in_a_shard: most.div_ceil(SHARDS).max(1) }
    }

    /// Lets `look` see, and change in place, the value of a key; where it returns a value too, that takes its place. Nobody else
    /// sees the key meanwhile.
    pub fn with<R>(&self, key: &str, now: Micros, look: impl FnOnce(Option<&mut V>) -> (R, Option<V>)) -> R {
        let hash = self.hash_of(key);
        self.look_at(&mut self.lock(shard_of(hash)), hash, key, now, look)
    }

    fn look_at<R>(
        &self,
        shard: &mut Shard<V>,
        hash: u64,
        key: &str,
        now: Micros,
        look: impl FnOnce(Option<&mut V>) -> (R, Option<V>),
    ) -> R {
        let present = shard.find_mut(hash, |(kept, _)| **kept == *key).map(|(_, value)| value);
        let is_new = present.is_none();
        let (result, next) = look(present.filter(|value| now < value.over_at()));
        let Some(next) = next else { return result };
        if is_new {
            if shard.len() >= self.most_in_a_shard {
                make_room(shard, now);
            }
            shard.insert_unique(hash, (key.into(), next), |(kept, _)| self.hash_of(kept));
        } else if let Some((_, value)) = shard.find_mut(hash, |(kept, _)| **kept == *key) {
            *value = next;
        }
        result
    }

    /// Several keys, of which nobody else sees any until they are dropped.
    pub fn several<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Several<'_, V> {
        // Whoever locks several does so in the same order, so none waits for another in a circle.
        let shards: BTreeSet<usize> = keys.into_iter().map(|key| shard_of(self.hash_of(key))).collect();
        Several { table: self, shards: shards.into_iter().map(|index| (index, self.lock(index))).collect() }
    }

    /// Forgets a key.
    pub fn forget(&self, key: &str) {
        let hash = self.hash_of(key);
        if let Ok(entry) = self.lock(shard_of(hash)).find_entry(hash, |(kept, _)| **kept == *key) {
            entry.remove();
        }
    }

    /// Forgets all keys, and hands their values out.
    pub fn drain(&mut self) -> impl Iterator<Item = V> {
        let shards = self.shards.iter_mut().map(|shard| shard.get_mut().unwrap_or_else(PoisonError::into_inner));
        shards.flat_map(|shard| shard.drain().map(|(_, value)| value))
    }

    fn hash_of(&self, key: &str) -> u64 {
        self.hasher.hash_one(key)
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Shard<V>> {
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keys of a table that are held.
pub(crate) struct Several<'a, V> {
    table: &'a Table<V>,
    shards: BTreeMap<usize, MutexGuard<'a, Shard<V>>>,
}

impl<V: Passing> Several<'_, V> {
    /// As [`Table::with`], of a key that is held; `None` for another one.
    pub fn with<R>(
        &mut self,
        key: &str,
        now: Micros,
        look: impl FnOnce(Option<&mut V>) -> (R, Option<V>),
    ) -> Option<R> {
        let hash = self.table.hash_of(key);
        let shard = self.shards.get_mut(&shard_of(hash))?;
        Some(self.table.look_at(shard, hash, key, now, look))
    }
}

/// By bits in the middle: a shard finds places by the lowest and the highest ones.
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}

/// Drops what is over, and then as much of what would be over first that a sixteenth is free: to look at all of a full shard for each new key
/// would make a flood of them expensive.
fn make_room<V: Passing>(shard: &mut Shard<V>, now: Micros) {
    let full = shard.len();
    let room = full / 16 + 1;
    shard.retain(|(_, value)| now < value.over_at());
    let missing = room.saturating_sub(full - shard.len());
    if missing > 0 {
        let mut ends: Vec<Micros> = shard.iter().map(|(_, value)| value.over_at()).collect();
        let (sooner, &mut last, _) = ends.select_nth_unstable(missing - 1);
        // Windows of many keys end at the same moment: of those only as many go as must.
        let mut at_last = 1 + sooner.iter().filter(|end| **end == last).count();
        shard.retain(|(_, value)| match value.over_at().cmp(&last) {
            Ordering::Less => false,
            Ordering::Equal if at_last > 0 => {
                at_last -= 1;
                false
            }
            _ => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{Passing, Table};
    use rl_limiter::Micros;

    thread_local! {
        /// How often a value was looked at by the test of this thread.
        static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    struct Until(u64);

    impl Passing for Until {
        fn over_at(&self) -> Micros {
            LOOKS.set(LOOKS.get() + 1);
            Micros::new(self.0).unwrap_or(Micros::MAX)
        }
    }

    fn at(micros: u64) -> Micros {
        Micros::new(micros).unwrap_or(Micros::MAX)
    }

    fn put(table: &Table<Until>, key: &str, now: u64, until: u64) {
        table.with(key, at(now), |_| ((), Some(Until(until))));
    }

    fn has(table: &Table<Until>, key: &str, now: u64) -> bool {
        table.with(key, at(now), |value| (value.is_some(), None))
    }

    fn kept(table: &Table<Until>) -> usize {
        table.shards.iter().map(|shard| shard.lock().map_or(0, |shard| shard.len())).sum()
    }

    #[test]
    fn what_is_over_counts_as_missing() {
        let table = Table::new(1);
        put(&table, "key", 0, 10);
        assert!(has(&table, "key", 9));
        assert!(!has(&table, "key", 10));
        table.forget("key");
        assert!(!has(&table, "key", 9));
    }

    #[test]
    fn it_holds_no_more_than_it_may_and_drops_what_is_over_first() {
        let table = Table::new(640);
        put(&table, "lasting", 0, 1_000_000);
        for index in 0..100_000 {
            put(&table, &index.to_string(), 0, 10 + index);
        }
        assert!(kept(&table) <= 640, "{} are kept", kept(&table));
        assert!(has(&table, "lasting", 0), "what lasts longest made way");
        for index in 0..64_000 {
            put(&table, &format!("later {index}"), 500_000, 500_001);
        }
        assert!(kept(&table) <= 640, "{} are kept", kept(&table));
        assert!(has(&table, "lasting", 500_000), "what lasts longest made way for what is over");
    }

    #[test]
    fn a_flood_of_fresh_keys_costs_a_full_table_a_few_looks_for_each() {
        let table = Table::new(64_000);
        put(&table, "lasting", 0, 1_000_000);
        for index in 0..80_000 {
            put(&table, &index.to_string(), 0, 10 + index);
        }
        LOOKS.set(0);
        let fresh = 50_000;
        for index in 0..fresh {
            put(&table, &format!("fresh {index}"), 0, 100_000 + index);
        }
        let looks = LOOKS.get() / fresh;
        // About three for each of the thousand keys of a shard, once in as many insertions as a sixteenth of them.
        assert!((1..100).contains(&looks), "{looks} looks for each fresh key");
        assert!(has(&table, "lasting", 0), "what lasts longest made way");
    }

    #[test]
    fn of_what_is_over_at_the_same_moment_no_more_makes_way_than_must() {
        let table = Table::new(6_400);
        for index in 0..20_000 {
            put(&table, &index.to_string(), 0, 1_000);
        }
        assert!((5_900..=6_400).contains(&kept(&table)), "{} are kept", kept(&table));
    }
}
