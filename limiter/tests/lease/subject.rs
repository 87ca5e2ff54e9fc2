//! A key: its bytes, the commands that work on them, and a copy that is told only what changed.

use rl_limiter::layout::Stored;
use rl_limiter::lease::{Answer, Ask, Plan, State};
use rl_limiter::{Age, Cost, Decision, Limiter, Micros, Plan as _, TokenBucket, layout, token_bucket};

/// The bytes under a key, if it is there.
#[derive(Clone, Default)]
pub struct Subject {
    bytes: Option<Vec<u8>>,
    replica: Option<Vec<u8>>,
}

/// Whether no rule is switched off, as `scripts/lease-rules` does.
const ALL_RULES: bool = !cfg!(any(
    lease_without_capacity_rule,
    lease_without_latest_expiry,
    lease_without_sequence,
    lease_without_piecewise_refill
));

/// What a call does to the bytes.
#[allow(clippy::large_enum_variant, reason = "one at a time")]
enum Change {
    Bucket(token_bucket::State),
    Leases(Plan),
}

impl Subject {
    /// `RL.LEASE`
    pub fn lease(&mut self, limiter: TokenBucket, now: Micros, ask: &Ask<'_>) -> Answer {
        let leased = limiter.lease(self.state(), now, ask);
        self.store(now, leased.next.map(Change::Leases));
        leased.answer
    }

    /// `RL.TOKENBUCKET`
    pub fn take(&mut self, limiter: TokenBucket, now: Micros, cost: Cost) -> Decision {
        let (decision, change) = match self.used(now) {
            Some(Stored::Leases(state)) => {
                let outcome = state.decide(limiter, now, cost);
                (outcome.decision, outcome.next.map(Change::Leases))
            }
            other => {
                let outcome = limiter.decide(plain(other), now, cost);
                (outcome.decision, outcome.next.map(Change::Bucket))
            }
        };
        self.store(now, change);
        decision
    }

    /// `RL.DEBIT`
    pub fn debit(&mut self, limiter: TokenBucket, now: Micros, amount: Cost) -> (Decision, u64) {
        let (decision, rest, change) = match self.used(now) {
            Some(Stored::Leases(state)) => {
                let debit = state.debit(limiter, now, amount);
                (debit.decision, debit.rest, debit.next.map(Change::Leases))
            }
            other => {
                let debit = limiter.debit(plain(other), now, amount);
                (debit.decision, debit.rest, debit.next.map(Change::Bucket))
            }
        };
        self.store(now, change);
        (decision, rest)
    }

    /// `RL.REFUND`; `None` if nothing is in use.
    pub fn refund(&mut self, now: Micros, amount: Cost, age: Age) -> Option<Decision> {
        let (decision, change) = match self.used(now)? {
            Stored::Leases(state) => {
                let (decision, next) = state.refund(now, amount, Some(age));
                (decision, next.map(Change::Leases))
            }
            Stored::State(layout::State::TokenBucket(state)) => {
                let next = rl_limiter::Refundable::refund(&state, now, amount, Some(age));
                (layout::State::from(next.unwrap_or(state)).peek(now, Cost::ONE), next.map(Change::Bucket))
            }
            other => panic!("a {}", other.kind()),
        };
        self.store(now, change);
        Some(decision)
    }

    /// `RL.PEEK`; `None` if nothing is in use.
    pub fn peek(&self, now: Micros, cost: Cost) -> Option<Decision> {
        Some(self.used(now)?.peek(now, cost))
    }

    /// The first moment at which nothing is in use, if nothing happens until then; `None` if nothing is under the key.
    pub fn unused_at(&self) -> Option<Micros> {
        match self.stored()? {
            Stored::Leases(state) => Some(state.unused_at()),
            Stored::State(state) => Some(state.unused_at()),
            other => panic!("a {}", other.kind()),
        }
    }

    /// The tokens in live rows.
    pub fn outstanding(&self, now: Micros) -> u64 {
        self.state().map_or(0, |state| state.leases(now).map(|lease| lease.row.held).sum())
    }

    /// When each row expires.
    pub fn expiries(&self) -> Vec<Micros> {
        let Some(state) = self.state() else { return Vec::new() };
        state.leases(state.bucket().last()).map(|lease| lease.row.expires).collect()
    }

    /// The parts that were spent at the last call, and each row's expiry and tokens.
    pub fn spent_and_rows(&self) -> (u128, Vec<(u64, u64)>) {
        let state = self.state().unwrap();
        let rows = state.leases(state.bucket().last());
        (state.bucket().spent(), rows.map(|lease| (lease.row.expires.get(), lease.row.held)).collect())
    }

    /// `DEL`
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn stored(&self) -> Option<Stored<'_>> {
        self.bytes.as_deref().map(|bytes| Stored::read(bytes).unwrap_or_else(|why| panic!("{why:?}: {bytes:?}")))
    }

    /// What is in use.
    fn used(&self, now: Micros) -> Option<Stored<'_>> {
        self.stored().filter(|stored| !stored.is_unused(now))
    }

    fn state(&self) -> Option<State<'_>> {
        match self.stored()? {
            Stored::Leases(state) => Some(state),
            other => plain(Some(other)).map(State::from),
        }
    }

    /// As the module does it: in place and by what was touched, else as a whole.
    fn store(&mut self, now: Micros, change: Option<Change>) {
        let mut told = None;
        match change {
            None => {}
            Some(Change::Bucket(state)) => {
                let state = layout::State::from(state);
                self.bytes = (!state.is_unused(now)).then(|| state.encode().to_vec());
                self.replica = self.bytes.clone();
            }
            Some(Change::Leases(plan)) if plan.leaves_nothing() => self.forget(),
            Some(Change::Leases(plan)) if plan.fits() => {
                let (bytes, replica) = (self.bytes.as_mut().unwrap(), self.replica.as_mut().unwrap());
                let touched = plan.carry_out(bytes);
                for range in touched.ranges() {
                    replica[range.clone()].copy_from_slice(&bytes[range.clone()]);
                }
                told = Some((plan.unused_at(bytes), plan.unused_within()));
            }
            Some(Change::Leases(plan)) => {
                let made = plan.make(self.bytes.as_deref().unwrap_or_default());
                assert_eq!(made.len(), plan.length());
                assert!(Stored::has_length(made.len()));
                told = Some((plan.unused_at(&made), plan.unused_within()));
                (self.bytes, self.replica) = (Some(made.clone()), Some(made));
            }
        }
        assert!(self.bytes == self.replica, "what was touched is not all that changed");
        // Without a rule they may differ, and the promise is what is to be seen broken.
        if let Some((at, within)) = told.filter(|_| ALL_RULES) {
            assert_eq!(self.unused_at(), Some(at), "the plan and the state differ about when it is unused");
            assert!(
                within.is_none_or(|(earliest, latest)| earliest <= at && at <= latest),
                "{at:?} is not in {within:?}"
            );
        }
    }
}

fn plain(stored: Option<Stored<'_>>) -> Option<token_bucket::State> {
    match stored? {
        Stored::State(layout::State::TokenBucket(state)) => Some(state),
        other => panic!("a {}", other.kind()),
    }
}
