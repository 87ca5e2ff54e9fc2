//! What is kept by key in this process: concurrent, and bounded.

use std::cmp::Ordering;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

type Shard<V> = HashMap<Box<str>, V>;

impl<V: Passing> Table<V> {
    /// For about `most` keys, rounded up to a multiple of 64.
    pub fn new(most: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, hasher: RandomState::new(), most_in_a_shard: most.div_ceil(SHARDS).max(1) }
    }

    /// Lets `look` see, and change in place, the value of a key; where it returns a value too, that takes its place. Nobody else
    /// sees the key meanwhile.
    pub fn with<R>(&self, key: &str, now: Micros, look: impl FnOnce(Option<&mut V>) -> (R, Option<V>)) -> R {
        look_at(&mut self.lock(self.shard_of(key)), self.most_in_a_shard, key, now, look)
    }

    /// Several keys, of which nobody else sees any until they are dropped.
    pub fn several<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Several<'_, V> {
        // Whoever locks several does so in the same order, so none waits for another in a circle.
        let shards: BTreeSet<usize> = keys.into_iter().map(|key| self.shard_of(key)).collect();
        Several { table: self, shards: shards.into_iter().map(|index| (index, self.lock(index))).collect() }
    }

    /// Forgets a key.
    pub fn forget(&self, key: &str) {
        self.lock(self.shard_of(key)).remove(key);
    }

    /// Forgets all keys, and hands their values out.
    pub fn drain(&mut self) -> impl Iterator<Item = V> {
        let shards = self.shards.iter_mut().map(|shard| shard.get_mut().unwrap_or_else(PoisonError::into_inner));
        shards.flat_map(|shard| shard.drain().map(|(_, value)| value))
    }

    fn shard_of(&self, key: &str) -> usize {
        self.hasher.hash_one(key) as usize % SHARDS
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
        let shard = self.shards.get_mut(&self.table.shard_of(key))?;
        Some(look_at(shard, self.table.most_in_a_shard, key, now, look))
    }
}

fn look_at<V: Passing, R>(
    shard: &mut Shard<V>,
    most: usize,
    key: &str,
    now: Micros,
    look: impl FnOnce(Option<&mut V>) -> (R, Option<V>),
) -> R {
    let present = shard.get_mut(key);
    let is_new = present.is_none();
    let (result, next) = look(present.filter(|value| now < value.over_at()));
    if let Some(next) = next {
        if is_new && shard.len() >= most {
            make_room(shard, now);
        }
        shard.insert(key.into(), next);
    }
    result
}

/// Drops what is over, and then as much of what would be over first that a sixteenth is free: to look at all of a full shard for each new key
/// would make a flood of them expensive.
fn make_room<V: Passing>(shard: &mut Shard<V>, now: Micros) {
    let full = shard.len();
    let room = full / 16 + 1;
    shard.retain(|_, value| now < value.over_at());
    let missing = room.saturating_sub(full - shard.len());
    if missing > 0 {
        let mut ends: Vec<Micros> = shard.values().map(Passing::over_at).collect();
        let (sooner, &mut last, _) = ends.select_nth_unstable(missing - 1);
        // Windows of many keys end at the same moment: of those only as many go as must.
        let mut at_last = 1 + sooner.iter().filter(|end| **end == last).count();
        shard.retain(|_, value| match value.over_at().cmp(&last) {
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
