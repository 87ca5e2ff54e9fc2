//! What is under one key, and the commands that work on it.

use rl_limiter::lease::{Answer, Ask, Change, LeasedBucket, Node, Own, Row, Rows};
use rl_limiter::{Age, Cost, Decision, LimiterState, Micros, TokenBucket, token_bucket};

/// Rows in a list.
#[derive(Clone, Default)]
pub struct Table(Vec<(Vec<u8>, Row)>);

impl Rows for Table {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn row(&self, index: usize) -> Row {
        self.0[index].1
    }

    fn find(&self, node: Node<'_>) -> Option<usize> {
        self.0.iter().position(|(name, _)| name == node.name())
    }
}

/// A key.
#[derive(Clone, Default)]
pub struct Subject(Option<LeasedBucket<Table>>);

impl Subject {
    /// `RL.LEASE`
    pub fn lease(&mut self, limiter: TokenBucket, now: Micros, ask: &Ask<'_>) -> Answer {
        let leased = limiter.lease(self.0.as_ref(), now, ask);
        self.store(now, Some(ask.node), leased.change);
        leased.answer
    }

    /// `RL.TOKENBUCKET`
    pub fn take(&mut self, limiter: TokenBucket, now: Micros, cost: Cost) -> Decision {
        let (decision, change) = self.present(limiter, now).decide(limiter, now, cost);
        self.store(now, None, change);
        decision
    }

    /// `RL.DEBIT`
    pub fn debit(&mut self, limiter: TokenBucket, now: Micros, amount: Cost) -> (Decision, u64) {
        let debit = self.present(limiter, now).debit(limiter, now, amount);
        self.store(now, None, debit.change);
        (debit.decision, debit.rest)
    }

    /// `RL.REFUND`; `None` if nothing is in use.
    pub fn refund(&mut self, now: Micros, amount: Cost, age: Age) -> Option<Decision> {
        let (decision, change) = self.used(now)?.refund(now, amount, Some(age));
        self.store(now, None, change);
        Some(decision)
    }

    /// `RL.PEEK`; `None` if nothing is in use.
    pub fn peek(&self, now: Micros, cost: Cost) -> Option<Decision> {
        Some(self.used(now)?.peek(now, cost))
    }

    /// The first moment at which nothing is in use, if nothing happens until then; `None` if nothing is under the key.
    pub fn unused_at(&self) -> Option<Micros> {
        self.0.as_ref().map(LeasedBucket::unused_at)
    }

    /// The tokens in live rows.
    pub fn outstanding(&self, now: Micros) -> u64 {
        let Some(leased) = &self.0 else { return 0 };
        // If the clock went back rows end no later than their ttl from now.
        let live = |row: &&Row| row.expires.get().min(now.get() + u64::from(row.ttl)) > now.get();
        leased.rows().0.iter().map(|(_, row)| row).filter(live).map(|row| row.held.get()).sum()
    }

    /// When each row expires.
    pub fn expiries(&self) -> impl Iterator<Item = Micros> {
        self.0.iter().flat_map(|leased| leased.rows().0.iter().map(|(_, row)| row.expires))
    }

    /// `DEL`
    pub fn forget(&mut self) {
        self.0 = None;
    }

    fn used(&self, now: Micros) -> Option<&LeasedBucket<Table>> {
        self.0.as_ref().filter(|leased| !leased.is_unused(now))
    }

    /// What is in use, or an unused bucket.
    fn present(&self, limiter: TokenBucket, now: Micros) -> LeasedBucket<Table> {
        let fresh =
            || token_bucket::State::new(limiter, now, 0).map(|bucket| LeasedBucket::new(bucket, Table::default()));
        let any = TokenBucket::new(Cost::ONE, limiter.rate());
        let never = || LeasedBucket::new(token_bucket::State::new(any, now, 0).unwrap(), Table::default());
        self.used(now).cloned().or_else(fresh).unwrap_or_else(never)
    }

    fn store(&mut self, now: Micros, caller: Option<Node<'_>>, change: Option<Change>) {
        let Some(change) = change else { return };
        assert_eq!(change.bucket.last(), now);
        // What is unused is as good as missing, so a call may have decided without a look at its rows.
        let used = self.0.take().filter(|leased| !leased.is_unused(now));
        let old = used.map(|leased| leased.rows().0.clone()).unwrap_or_default();
        let mut rows = Vec::new();
        for (index, (name, row)) in old.into_iter().enumerate() {
            let stored = match change.own {
                Own::Replaced(at, row) if at == index => Some(row),
                Own::Removed(at) if at == index => None,
                _ => change.kept(row),
            };
            assert!(change.sweeps || stored == Some(row) || change.own != Own::Untouched);
            rows.extend(stored.map(|row| (name, row)));
        }
        if let Own::Added(row) = change.own {
            rows.push((caller.unwrap().name().to_vec(), row));
        }
        let bucket = token_bucket::State::new(change.bucket.limiter(), now, change.bucket.spent()).unwrap();
        self.0 = Some(LeasedBucket::new(bucket, Table(rows))).filter(|leased| !leased.is_unused(now));
    }
}
