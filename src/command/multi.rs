//! `RL.MULTI key kind p1 p2 cost [key kind p1 p2 cost …]`

use std::num::NonZeroUsize;

use arrayvec::ArrayVec;
use rl_limiter::{Cost, FixedWindow, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket};

use super::algorithm::{Algorithm, Decides};
use super::args::Args;
use super::counted::Counted;
use super::reply;
use super::settle::{KeyVote, in_limit, settle, vote, vote_by_bucket, vote_by_log};
use super::store::{KEY, Slot};
use crate::server::{Call, Error, Handler, Mode};

/// The most limits that a call may ask.
pub const MOST_LIMITS: usize = 32;

/// The words of each: key, kind, two parameters and cost.
const WORDS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);

/// Several limits at once, all or nothing.
pub struct Multi;

impl Handler for Multi {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let (args, count) = Args::of_each(call, WORDS.get(), MOST_LIMITS)?;
        let mut parts = ArrayVec::<Part, MOST_LIMITS>::new();
        for index in 0..count {
            parts.push(Part::read(&args, KEY + index * WORDS.get()).map_err(in_limit(index))?);
        }

        let mut votes = ArrayVec::<KeyVote, MOST_LIMITS>::new();
        let joint = {
            let mut slots: ArrayVec<_, MOST_LIMITS> = Slot::open_each(call, WORDS, Mode::Change)?.collect();
            for (index, (slot, part)) in slots.iter_mut().zip(&parts).enumerate() {
                votes.push(part.judge(slot).map_err(in_limit(index))?);
            }
            settle(&mut slots, &votes)?
        };
        let decisions = votes.iter().zip(&parts).enumerate().map(|(index, (vote, part))| {
            let decision = vote.decision(joint.allowed);
            // What would have allowed the call that another one denied has decided nothing.
            if joint.allowed || !decision.allowed {
                Counted::decided(call, KEY + index * WORDS.get(), part.limit.algorithm(), part.cost, decision)
            } else {
                Counted::told(decision)
            }
        });
        reply::several(call, joint, decisions);
        Ok(())
    }
}

/// A limit, and what the call takes of it.
struct Part {
    limit: Limit,
    cost: Cost,
}

/// A limiter of any kind.
enum Limit {
    Fixed(FixedWindow),
    Sliding(SlidingWindow),
    Log(SlidingLog),
    TokenBucket(TokenBucket),
    Leaky(LeakyBucket),
}

impl Limit {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Fixed(_) => FixedWindow::BY,
            Self::Sliding(_) => SlidingWindow::BY,
            Self::Log(_) => SlidingLog::BY,
            Self::TokenBucket(_) => TokenBucket::BY,
            Self::Leaky(_) => LeakyBucket::BY,
        }
    }
}

impl Part {
    /// The words of a limit, whose key is at `key`.
    fn read(args: &Args<'_, '_>, key: usize) -> Result<Self, Error> {
        let (kind, most, pace) = (args.word(key + 1)?, key + 2, key + 3);
        let is = |name: &[u8]| kind.eq_ignore_ascii_case(name);
        let limit = if is(b"FIXED") {
            Limit::Fixed(FixedWindow::new(args.limit(most)?, args.window(pace)?))
        } else if is(b"SLIDING") {
            Limit::Sliding(SlidingWindow::new(args.limit(most)?, args.window(pace)?))
        } else if is(b"SLIDINGLOG") {
            Limit::Log(SlidingLog::new(args.limit(most)?, args.window(pace)?))
        } else if is(b"TOKENBUCKET") {
            Limit::TokenBucket(TokenBucket::new(args.capacity(most)?, args.rate(pace)?))
        } else if is(b"LEAKY") {
            Limit::Leaky(LeakyBucket::new(args.capacity(most)?, args.rate(pace)?))
        } else {
            return Err(Error::fixed(c"ERR kind must be FIXED, SLIDING, SLIDINGLOG, TOKENBUCKET or LEAKY"));
        };
        Ok(Self { limit, cost: args.cost(key + 4)? })
    }

    fn judge(&self, slot: &mut Slot<'_>) -> Result<KeyVote, Error> {
        match self.limit {
            Limit::Fixed(limiter) => vote(slot, limiter, self.cost),
            Limit::Sliding(limiter) => vote(slot, limiter, self.cost),
            Limit::Log(limiter) => vote_by_log(slot, limiter, self.cost),
            Limit::TokenBucket(limiter) => vote_by_bucket(slot, limiter, self.cost),
            Limit::Leaky(limiter) => vote(slot, limiter, self.cost),
        }
    }
}
