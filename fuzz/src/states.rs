//! Any bytes as what is stored. If they are believed, everything that commands do to them is done, in the way that
//! commands do it: nothing panics, every answer keeps to its bounds, and what is left can be read again.

mod answer;
mod call;
mod changed;
mod facts;
mod holders;
mod joint;
mod leases;
mod log;
mod numbers;

use arbitrary::Arbitrary;
use rl_limiter::layout::{State, Stored};
use rl_limiter::{Concurrency, Fact, FixedWindow, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket};

pub use self::call::Call;
use self::facts::Facts;

/// The longest string that is made of the bytes that were given.
const LONGEST: usize = 1 << 19;

/// What a run gets. `calls` take the first bytes, what is stored the last ones.
#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    /// What is done, one after the other, each to what the one before has left.
    pub calls: [Call; 3],
    /// If not 0, the stored bytes are brought to the next length from about so many blocks of a log on, by being
    /// repeated: so that long logs need no long inputs.
    pub blocks: u16,
    /// What is stored.
    pub stored: &'a [u8],
}

impl Input<'_> {
    fn bytes(&self) -> Vec<u8> {
        // No block of a log is longer, with its sums, than this.
        let least = usize::from(self.blocks) * 450;
        let length = (least..least + 450).find(|&length| length <= LONGEST && Stored::has_length(length));
        match length {
            Some(length) if self.blocks > 0 && !self.stored.is_empty() => {
                let again = self.stored.iter().rev().take(1_000).rev().cycle();
                self.stored.iter().chain(again).copied().take(length).collect()
            }
            _ => self.stored.to_vec(),
        }
    }
}

/// Does to the bytes what the calls say.
pub fn check(input: &Input<'_>) {
    let bytes = input.bytes();
    if !is_believed(&bytes) {
        return;
    }
    joint::check(&bytes, &input.calls);
    input.calls.iter().try_fold(bytes, |bytes, call| after(&bytes, call));
}

/// Whether a command would believe the bytes.
fn is_believed(bytes: &[u8]) -> bool {
    let stored = Stored::read(bytes);
    let Ok(stored) = stored else { return false };
    assert!(Stored::has_length(bytes.len()), "a {} of a length that commands refuse unread", stored.kind());
    let facts = Facts::of(&stored, bytes);
    let is_plausible = match stored {
        Stored::State(State::FixedWindow(_)) | Stored::SlidingLog(_) => facts.within_limits(1),
        Stored::State(State::TokenBucket(_) | State::LeakyBucket(_)) | Stored::Leases(_) => facts.within_limits(2),
        Stored::State(State::SlidingWindow(_)) => facts.within(1 << 60),
        // Nothing of a row is checked.
        Stored::Concurrency(_) => facts.within(u64::MAX),
    };
    assert!(is_plausible, "a {} with more in use than can be", stored.kind());
    if let Some(last) = stored.last() {
        assert_eq!(last, facts.last, "a {} of two times", stored.kind());
    }
    if let Stored::State(state) = stored {
        assert_eq!(state.length(), bytes.len());
        assert_eq!(State::decode(bytes), Ok(state));
        assert_eq!(&*state.encode(), bytes, "two strings for one state");
    }
    true
}

/// What is stored after the call; `None` if there is nothing any more. One arm a kind.
fn after(bytes: &[u8], call: &Call) -> Option<Vec<u8>> {
    let stored = Stored::read(bytes).unwrap_or_else(|why| panic!("what a call has left can't be read: {why:?}"));
    let facts = Facts::of(&stored, bytes);
    let now = call.now(&facts);
    let (limit, window, rate) = (call.limit(&facts), call.window(&facts), call.rate(&facts));
    stored.describe(now, &mut |name, fact| match fact {
        Fact::Units(units) => assert!(units <= 1 << 60, "{units} {name}"),
        Fact::Moment(_) | Fact::Window(_) | Fact::Rate(_) => {}
    });
    if stored.is_unused(now) {
        log::begun(SlidingLog::new(limit, window), bytes, now, call);
        holders::begun(Concurrency::new(limit, window), bytes, now, call);
        leases::begun(TokenBucket::new(limit, rate), bytes, now, call);
    }
    match stored {
        Stored::State(state) => {
            numbers::look(&state, &facts, now, call);
            let decided = match state {
                State::FixedWindow(state) => numbers::decided(FixedWindow::new(limit, window), state, now, call),
                State::SlidingWindow(state) => numbers::decided(SlidingWindow::new(limit, window), state, now, call),
                State::LeakyBucket(state) => numbers::decided(LeakyBucket::new(limit, rate), state, now, call),
                State::TokenBucket(state) => numbers::decided(TokenBucket::new(limit, rate), state, now, call),
            };
            let debited = match state {
                State::TokenBucket(state) => numbers::debited(TokenBucket::new(limit, rate), state, now, call),
                _ => None,
            };
            let refunded = numbers::refunded(state, now, call);
            numbers::left(bytes, call.one_of([decided, refunded, debited]), now)
        }
        Stored::SlidingLog(log) => {
            let decided = log::decided(SlidingLog::new(limit, window), log, now, call);
            let refunded = log::refunded(log, now, call);
            log::left(bytes, call.one_of([decided, refunded, log.seen_from(now)]).as_ref())
        }
        Stored::Concurrency(holders) => {
            holders::look(holders, now, call);
            let decided = holders::decided(bytes, &facts, now, call);
            let released = holders::released(bytes, &facts, now, call);
            holders::left(bytes, call.one_of([decided, released, holders.seen_from(now)]).as_ref())
        }
        Stored::Leases(leases) => {
            leases::look(leases, now, call);
            let bucket = TokenBucket::new(limit, rate);
            let leased = leases::leased(bucket, bytes, &facts, now, call);
            let decided = leases::decided(bucket, bytes, now, call);
            let debited = leases::debited(bucket, bytes, now, call);
            let refunded = leases::refunded(bytes, now, call);
            leases::left(bytes, call.one_of([leased, decided, debited, refunded]).as_ref(), now)
        }
    }
}
