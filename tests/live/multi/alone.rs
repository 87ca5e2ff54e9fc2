//! Random calls against the commands that ask one limit, on copies of the same keys: each limit must be told what its
//! own command is told, and both must hold the same bytes.

use redis::Connection;

use super::{Reply, call};
use crate::support::{Options, ask, decide};

/// A limit that a call asks.
#[derive(Debug)]
struct Asked {
    key: usize,
    limit: u64,
    pace: String,
    cost: u64,
}

const KINDS: [&str; 5] = ["FIXED", "SLIDING", "SLIDINGLOG", "TOKENBUCKET", "LEAKY"];
const KEYS: usize = 8;

impl Asked {
    fn kind(&self) -> &'static str {
        KINDS[self.key % KINDS.len()]
    }

    fn alone(&self, redis: &mut Connection, prefix: &str, cost: u64) -> [i64; 5] {
        let Self { key, limit, pace, .. } = self;
        decide(redis, &format!("RL.{} {prefix}:{key} {limit} {pace} {cost}", self.kind()))
    }

    fn words(&self) -> String {
        let Self { key, limit, pace, cost } = self;
        format!("multi:{key} {} {limit} {pace} {cost}", self.kind())
    }
}

/// Numbers below a bound, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    fn call(&mut self) -> Vec<Asked> {
        let mut keys: Vec<usize> = (0..KEYS).collect();
        (0..1 + self.below(5))
            .map(|_| {
                let key = keys.swap_remove(self.below(keys.len()));
                let is_window = key % KINDS.len() < 3;
                let pace = if is_window { self.of(&["5s", "1m", "700ms"]) } else { self.of(&["1", "1/3s", "7/m"]) };
                let (limit, cost) = (self.of(&[0, 3, 5, 5, 5, 5, 20]), self.of(&[0, 1, 1, 1, 2, 6]));
                Asked { key, limit, pace: pace.to_owned(), cost }
            })
            .collect()
    }
}

/// What a call must be told, by the commands for one limit.
fn expected(redis: &mut Connection, asked: &[Asked]) -> (bool, Vec<[i64; 5]>) {
    let looked: Vec<_> = asked.iter().map(|limit| limit.alone(redis, "one", 0)).collect();
    let tried: Vec<_> = asked
        .iter()
        .map(|limit| {
            ask::<()>(redis, &format!("DEL try:{}", limit.key));
            ask::<i64>(redis, &format!("COPY one:{0} try:{0}", limit.key));
            limit.alone(redis, "try", limit.cost)
        })
        .collect();
    let allowed = asked.iter().zip(&tried).all(|(limit, told)| limit.cost == 0 || told[0] == 1);
    let told = asked.iter().zip(looked).zip(tried).map(|((limit, looked), tried)| {
        if allowed || limit.cost == 0 || tried[0] == 0 {
            return limit.alone(redis, "one", limit.cost);
        }
        // It would allow, but nothing is taken. What is later than now is set to now, as by any call that is denied.
        assert_eq!(limit.alone(redis, "one", limit.limit + 1)[3], -1);
        [1, tried[1], looked[2], tried[3], looked[4]]
    });
    (allowed, told.collect())
}

fn check(reply: &Reply, asked: &[Asked], (allowed, told): (bool, Vec<[i64; 5]>)) {
    assert_eq!((reply.allowed, &reply.limits), (allowed, &told), "{asked:?}");
    if !allowed {
        let wait = |index: usize| u64::try_from(told[index][3]).unwrap_or(u64::MAX);
        let denies = |index: &usize| asked[*index].cost > 0 && told[*index][0] == 0;
        let longest =
            (0..told.len()).filter(denies).reduce(|best, next| if wait(next) > wait(best) { next } else { best });
        assert_eq!(Some(reply.index), longest, "{asked:?} {told:?}");
        return;
    }
    // What remains is told rounded down, so of those that have fractions the share is known to one unit.
    let [low, high] = [0, 1].map(|rounded| {
        let is_whole = |index: usize| matches!(asked[index].kind(), "FIXED" | "SLIDINGLOG");
        told.iter()
            .enumerate()
            .map(move |(index, told)| (told[2] + if is_whole(index) { 0 } else { rounded }, told[1]))
            .collect::<Vec<_>>()
    });
    let share = |(left, limit): (i64, i64)| if limit == 0 { (0, 1) } else { (left, limit) };
    let (least, of) = share(low[reply.index]);
    for (index, (most, limit)) in high.into_iter().map(share).enumerate() {
        assert!(least * limit <= most * of, "limit {index} has less than {}: {told:?} {asked:?}", reply.index);
    }
}

#[test]
fn each_limit_is_told_what_its_command_is_told_and_holds_the_same_bytes() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let mut random = Random(42);
    let (mut allowed, mut denied) = (0, 0);
    for round in 0..1_000 {
        let step = match random.below(12) {
            0..5 => 0,
            5..9 => i64::try_from(random.below(3_000_000)).unwrap(),
            9..11 => i64::try_from(random.below(70_000_000)).unwrap(),
            _ => -i64::try_from(random.below(20_000_000)).unwrap(),
        };
        server.clock().advance(step);
        let asked = random.call();
        let expected = expected(&mut redis, &asked);
        let reply = call(&mut redis, &asked.iter().map(Asked::words).collect::<Vec<_>>().join(" "));
        check(&reply, &asked, expected);
        for limit in &asked {
            let [one, multi] = ["one", "multi"].map(|prefix| {
                let key = format!("{prefix}:{}", limit.key);
                let bytes: Option<Vec<u8>> = ask(&mut redis, &format!("GET {key}"));
                (bytes, ask::<i64>(&mut redis, &format!("PEXPIRETIME {key}")))
            });
            assert_eq!(one, multi, "round {round}: {asked:?}");
        }
        if reply.allowed { allowed += 1 } else { denied += 1 }
    }
    println!("{allowed} calls were allowed, {denied} denied");
    assert!(allowed > 200 && denied > 200);
}
