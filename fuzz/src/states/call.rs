//! A call with arbitrary parameters.

use arbitrary::Arbitrary;
use rl_limiter::lease::Ttl;
use rl_limiter::quantity::MAX_EXACT;
use rl_limiter::{Age, Cost, Limit, Micros, Name, Rate, Window};

use super::facts::Facts;

const LONGEST: u64 = 36_500 * 86_400_000_000;
const MOST_TERM: u64 = (1 << 63) - 1;

/// What is done once, with numbers that are brought into their ranges.
#[derive(Arbitrary, Clone, Debug)]
pub struct Call {
    /// Which of the things that can be done is what stays done.
    pub what: u8,
    /// Bits: whether the limit, and the window or rate, are the remembered ones; whether it says an age, or may take a
    /// place; from the fourth on when it comes; the highest two: whose call it is.
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
    /// How long ago it was taken, or what a node has.
    pub age: Number,
    /// The most entries of a log, or holders; the number of a node's call, less that of the one before.
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

/// The moment so many microseconds later.
pub fn later(moment: Micros, micros: u64) -> Micros {
    Micros::saturating(moment.get().saturating_add(micros).min(Micros::MAX.get()).cast_signed())
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

    /// Whether it only keeps a place.
    pub fn renews_only(&self) -> bool {
        self.how & 4 != 0
    }

    /// Whose call it is: one of these names, or another one, which is made in `fresh`.
    pub fn name<'n>(&self, names: &[&'n [u8]], fresh: &'n mut [u8; Name::LONGEST]) -> Name<'n> {
        let index = match self.how >> 6 {
            0 => None,
            1 => Some(0),
            2 => names.len().checked_sub(1),
            _ => Some(usize::from(self.entries)),
        };
        let known = index.filter(|_| !names.is_empty()).map(|index| names[index % names.len()]);
        if let Some(name) = known.and_then(Name::new) {
            return name;
        }
        fresh.fill(self.units.cut);
        let length = 1 + usize::from(self.units.cut) % Name::LONGEST;
        Name::new(&fresh[..length]).unwrap_or_else(|| unreachable!("from 1 to 64 bytes"))
    }

    /// What a node says that it has.
    pub fn have(&self) -> Cost {
        Cost::new(self.age.up_to(MAX_EXACT)).unwrap_or(Cost::ONE)
    }

    /// Fewer tokens than these are not worth a call to a node.
    pub fn least(&self) -> Cost {
        Cost::new(self.limit.up_to(MAX_EXACT)).unwrap_or(Cost::ZERO)
    }

    /// How long a node's row is kept.
    pub fn lease_ttl(&self) -> Ttl {
        let micros = Ttl::MIN + self.window.up_to(Ttl::MAX - Ttl::MIN);
        Ttl::from_micros(micros).unwrap_or_else(|| unreachable!("within its range"))
    }

    /// One of the things that could be done.
    pub fn one_of<T, const N: usize>(&self, mut things: [Option<T>; N]) -> Option<T> {
        things.get_mut(usize::from(self.what) % N)?.take()
    }
}
