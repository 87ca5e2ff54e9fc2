//! What a state tells about itself.

use rl_limiter::layout::Stored;
use rl_limiter::{Fact, Limit, Micros, Rate, Window};

/// Where the rows of holders begin, and those of leases.
const HOLDERS: usize = 12;
const NODES: usize = 52;

/// What a state tells about itself.
pub struct Facts {
    /// The limit or capacity that is remembered.
    pub limit: Option<Limit>,
    /// The remembered window; of holders the ttl of the first row.
    pub window: Option<Window>,
    /// The remembered rate.
    pub rate: Option<Rate>,
    /// The largest count.
    used: u64,
    /// The time of the last call that took something; of holders when the first row was taken.
    pub last: Micros,
    /// Whether the name of each row is one that a call can have: else nobody's call is of that row.
    pub has_real_names: bool,
    /// When it will be unused, as far as it can be told from the rest; of rows when the first one expires.
    pub unused_at: Micros,
}

impl Facts {
    /// Of what is stored in these bytes.
    pub fn of(stored: &Stored<'_>, bytes: &[u8]) -> Self {
        let (unused_at, has_real_names) = match stored {
            Stored::State(state) => (state.unused_at(), true),
            Stored::SlidingLog(log) => (log.unused_at(), true),
            Stored::Concurrency(_) => (first_number(bytes, HOLDERS, 2), has_real_names(bytes, HOLDERS, 3)),
            Stored::Leases(_) => (first_number(bytes, NODES, 1), has_real_names(bytes, NODES, 4)),
        };
        let mut facts =
            Self { limit: None, window: None, rate: None, used: 0, last: unused_at, has_real_names, unused_at };
        let mut note = |name, fact| match (name, fact) {
            ("limit" | "capacity", Fact::Units(units)) => facts.limit = Limit::new(units),
            (_, Fact::Units(units)) => facts.used = facts.used.max(units),
            (_, Fact::Window(window)) => facts.window = Some(window),
            (_, Fact::Rate(rate)) => facts.rate = Some(rate),
            (_, Fact::Moment(moment)) => facts.last = moment,
        };
        match stored {
            // What is in its rows may be any number.
            Stored::Leases(leases) => rl_limiter::LimiterState::describe(leases.bucket(), &mut note),
            _ => stored.describe(Micros::MAX, &mut note),
        }
        if let Stored::Concurrency(_) = stored {
            let ttl = first_number(bytes, HOLDERS, 1);
            facts.window = Window::from_micros(ttl.get());
            facts.last = Micros::saturating(unused_at.get().saturating_sub(ttl.get()).cast_signed());
        }
        facts
    }

    /// Whether there is a limit, and no more in use than this many limits.
    pub fn within_limits(&self, limits: u64) -> bool {
        self.limit.is_some_and(|limit| (1..=limits * limit.get()).contains(&self.used.max(1)))
    }

    /// Whether there is a limit, and no count above this.
    pub fn within(&self, most: u64) -> bool {
        self.limit > Some(Limit::ZERO) && self.used <= most
    }
}

/// A number of the first of the rows that begin at `at`; it is a moment or a length of time.
fn first_number(bytes: &[u8], at: usize, index: usize) -> Micros {
    let number = bytes.get(at + 4 + slot(bytes, at) + index * 8..).and_then(|number| number.first_chunk());
    let number = number.map_or(0, |number| u64::from_le_bytes(*number));
    Micros::new(number).unwrap_or(Micros::MAX)
}

/// Whether the names of all rows, of so many numbers each, are as long as their rows say, and filled up with zeros.
fn has_real_names(bytes: &[u8], at: usize, numbers: usize) -> bool {
    let slot = slot(bytes, at);
    let mut rows = bytes.get(at + 4..).unwrap_or_default().chunks_exact(slot + numbers * 8);
    rows.all(|row| {
        let length = usize::from(row[slot + 7]);
        length <= slot && row[length..slot].iter().all(|&byte| byte == 0)
    })
}

/// The bytes of a name in the rows that begin at `at`.
fn slot(bytes: &[u8], at: usize) -> usize {
    bytes.get(at + 2).map_or(0, |&words| usize::from(words) * 8)
}
