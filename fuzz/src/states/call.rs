//! A call with arbitrary parameters.

use arbitrary::Arbitrary;
use rl_limiter::layout::Stored;
use rl_limiter::quantity::MAX_EXACT;
use rl_limiter::{Age, Cost, Fact, Limit, Micros, Rate, Window};

const LONGEST: u64 = 36_500 * 86_400_000_000;
const MOST_TERM: u64 = (1 << 63) - 1;

/// What is done once, with numbers that are brought into their ranges.
#[derive(Arbitrary, Clone, Debug)]
pub struct Call {
    /// Which of the things that can be done is what stays done.
    pub what: u8,
    /// Bits: the limit, the window or rate are the remembered ones. From the third on: when the call comes.
    pub how: u8,
    /// Microseconds, since the epoch or some moment of the state.
    pub time: Number,
    /// Units to take or give back.
    pub units: Number,
    /// The limit or capacity.
    pub limit: Number,
    /// The window, or the time of a rate.
    pub window: Number,
    /// The units of a rate.
    pub rate: Number,
    /// How long ago it was taken.
    pub age: Number,
    /// The most entries of a log.
    pub entries: u16,
}

/// A number of any size, small ones as often as large ones.
#[derive(Arbitrary, Clone, Debug)]
pub struct Number {
    /// Leading bits that are cut off.
    pub cut: u8,
    /// The number before that.
    pub bits: u64,
}

impl Number {
    /// From 0 to `most`.
    fn up_to(&self, most: u64) -> u64 {
        let number = self.bits >> (self.cut % 64);
        if number <= most { number } else { number % (most + 1) }
    }
}

/// What a state tells about itself.
pub struct Facts {
    limit: Option<Limit>,
    window: Option<Window>,
    rate: Option<Rate>,
    /// The largest count.
    used: u64,
    /// The time of the last call that took something.
    pub last: Micros,
    /// When it will be unused, as far as it can be told from the rest.
    unused_at: Micros,
}

impl Facts {
    /// Of what is stored.
    pub fn of(stored: &Stored<'_>) -> Self {
        let unused_at = match stored {
            Stored::State(state) => state.unused_at(),
            Stored::SlidingLog(log) => log.unused_at(),
        };
        let mut facts = Self { limit: None, window: None, rate: None, used: 0, last: unused_at, unused_at };
        stored.describe(&mut |name, fact| match (name, fact) {
            ("limit" | "capacity", Fact::Units(units)) => facts.limit = Limit::new(units),
            (_, Fact::Units(units)) => facts.used = facts.used.max(units),
            (_, Fact::Window(window)) => facts.window = Some(window),
            (_, Fact::Rate(rate)) => facts.rate = Some(rate),
            (_, Fact::Moment(moment)) => facts.last = moment,
        });
        facts
    }
}

impl Facts {
    /// Whether there is a limit, and no more in use than this many limits.
    pub fn within_limits(&self, limits: u64) -> bool {
        self.limit.is_some_and(|limit| (1..=limits * limit.get()).contains(&self.used.max(1)))
    }

    /// Whether there is a limit, and no count above this.
    pub fn within(&self, most: u64) -> bool {
        self.limit > Some(Limit::ZERO) && self.used <= most
    }
}

impl Call {
    /// When it comes: at any time, or before or after a moment that is a seam of the state.
    pub fn now(&self, facts: &Facts) -> Micros {
        let most = Micros::MAX.get();
        let time = self.time.up_to(most);
        let near = if self.how & 8 == 0 { facts.last.get() } else { facts.unused_at.get() };
        let micros = match self.how >> 4 & 3 {
            0 => time,
            1 => near.saturating_sub(time),
            _ => near.saturating_add(time).min(most),
        };
        Micros::saturating(micros.cast_signed())
    }

    /// What it takes or gives back.
    pub fn cost(&self) -> Cost {
        Cost::new(self.units.up_to(MAX_EXACT)).unwrap_or(Cost::ONE)
    }

    /// Its limit or capacity.
    pub fn limit(&self, facts: &Facts) -> Limit {
        let own = Limit::new(self.limit.up_to(MAX_EXACT)).unwrap_or(Limit::ZERO);
        facts.limit.filter(|_| self.how & 1 == 0).unwrap_or(own)
    }

    /// Its window.
    pub fn window(&self, facts: &Facts) -> Window {
        let own = Window::from_micros(1_000 + self.window.up_to(LONGEST - 1_000));
        facts.window.filter(|_| self.how & 2 == 0).or(own).unwrap_or_else(|| unreachable!("within its range"))
    }

    /// Its rate.
    pub fn rate(&self, facts: &Facts) -> Rate {
        let own = Rate::new(1 + self.rate.up_to(MOST_TERM - 1), 1 + self.window.up_to(MOST_TERM - 1));
        facts.rate.filter(|_| self.how & 2 == 0).or(own).unwrap_or_else(|| unreachable!("within its range"))
    }

    /// How long ago it was taken, if that is told.
    pub fn age(&self) -> Option<Age> {
        Age::from_micros(self.age.up_to(LONGEST)).filter(|_| self.how & 4 == 0)
    }

    /// One of the things that could be done.
    pub fn one_of<T, const N: usize>(&self, mut things: [Option<T>; N]) -> Option<T> {
        things.get_mut(usize::from(self.what) % N)?.take()
    }
}
