//! Nodes, a server, and a network that loses, delays, repeats and reorders what they tell each other.
//!
//! Both ends are the real state machines. Everything else is as bad as it may be: nodes crash and spend at the last moment,
//! their clocks run by almost 1 % too fast or too slow, callers go past them to the server, and time jumps to where it hurts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rl_limiter::lease::{Ask, Holding, Seq, Ttl};
use rl_limiter::{Age, Capacity, Cost, Micros, Name, Rate, TokenBucket};

use super::budget::Budget;
use super::sequence::Random;
use super::subject::Subject;

/// The microsecond at which a world begins.
const BEGIN: u64 = 1_796_040_000_000_000;
const MILLISECOND: u64 = 1_000;
/// How far clocks of nodes may be off, in millionths: a little less than the hundredth that nodes leave of their ttl.
const CLOCK_ERROR: u64 = 9_000;

/// One process that holds slices.
struct Process {
    name: Vec<u8>,
    holding: Holding,
    /// How its clock runs, in millionths of the right speed.
    speed: u64,
    ttl: u64,
}

impl Process {
    fn clock(&self, now: u64) -> Duration {
        Duration::from_micros(
            (now - BEGIN) / 1_000 * self.speed / 1_000 + (now - BEGIN) % 1_000 * self.speed / 1_000_000,
        )
    }
}

/// Something on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Call { name: Vec<u8>, seq: u64, have: u64, want: u64, ttl: u64, min: u64 },
    Reply { name: Vec<u8>, seq: u64, holding: u64, ttl: u64 },
    Take { cost: u64 },
}

/// What may happen to the server, besides what happens in every world.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    Steady,
    /// Its clock goes back, again and again.
    GoesBack,
    /// Its clock leaps ahead, once.
    LeapsAhead,
    /// It forgets everything, once.
    Forgets,
    /// From half-time on every caller says that the capacity is 0.
    Killed,
}

pub struct World {
    random: Random,
    bucket: TokenBucket,
    fate: Fate,
    now: u64,
    /// What the server's clock shows beyond the true time.
    ahead: u64,
    /// What it was set back by in all.
    back: u64,
    subject: Subject,
    processes: Vec<Process>,
    born: u64,
    wire: BinaryHeap<Reverse<(u64, u64, Message)>>,
    sent: u64,
    budget: Budget,
    fated: Option<Fated>,
    pub events: u64,
}

/// What the fate of a world was, once it has come.
#[derive(Clone, Copy)]
struct Fated {
    at: u64,
    /// The tokens that were in rows.
    outstanding: u64,
    /// What had been admitted, until which time, when a capacity of 0 was last allowed not to bite.
    admitted_until: Option<u64>,
}

impl World {
    pub fn new(seed: u64, fate: Fate) -> Self {
        let mut random = Random(seed);
        let capacity = random.pick(&[1, 2, 5, 10, 10, 20, 50, 200, 1_000]);
        let (units, micros) = random.pick(&[
            (1, 100_000),
            (1, 30_000),
            (1, 1_000_000),
            (7, 300_000),
            (1, 10_000),
            (999_983, 99_999_989_000),
            (3, 1_000),
            (1, 1_000_000_007),
        ]);
        let bucket = TokenBucket::new(Capacity::new(capacity).unwrap(), Rate::new(units, micros).unwrap());
        let mut world = Self {
            random,
            bucket,
            fate,
            now: BEGIN,
            ahead: 0,
            back: 0,
            subject: Subject::default(),
            processes: Vec::new(),
            born: 0,
            wire: BinaryHeap::new(),
            sent: 0,
            budget: Budget::new(bucket, BEGIN),
            fated: None,
            events: 0,
        };
        for _ in 0..world.random.pick(&[1, 2, 3, 5, 8]) {
            let process = world.spawn();
            world.processes.push(process);
        }
        world
    }

    /// Lets so many things happen.
    pub fn run(mut self, events: u64) -> Self {
        for event in 0..events {
            self.events += 1;
            let target = self.next_time();
            self.deliver_until(target);
            match self.random.below(16) {
                0..=5 => self.spend(),
                6..=10 => self.ask(),
                11..=13 => self.ask_directly(),
                14 if self.random.one_in(8) => self.crash(),
                14 if self.random.one_in(8) => self.restart_server(),
                15 if self.random.one_in(4) => self.settle_late(),
                _ => {}
            }
            if event >= events / 2 {
                self.meet_fate();
            }
        }
        self
    }

    /// The excess of the worst interval, in tokens.
    pub fn excess(&self) -> u64 {
        self.budget.excess()
    }

    pub fn capacity(&self) -> u64 {
        self.bucket.capacity().get()
    }

    /// The tokens that were in rows when the world's fate came; `None` if it has not.
    pub fn outstanding_then(&self) -> Option<u64> {
        self.fated.map(|fated| fated.outstanding)
    }

    /// When the fate came, and when something was admitted last.
    pub fn fated_and_last_admitted(&self) -> Option<(u64, Option<u64>)> {
        self.fated.map(|fated| (fated.at, fated.admitted_until))
    }

    fn spawn(&mut self) -> Process {
        self.born += 1;
        let speed = 1_000_000 - CLOCK_ERROR + self.random.below(2 * CLOCK_ERROR + 1);
        let ttl = self.random.pick(&[10, 10, 20, 50, 100, 300, 1_000, 5_000]) * MILLISECOND;
        Process { name: format!("node-{}", self.born).into_bytes(), holding: Holding::new(), speed, ttl }
    }

    fn server_clock(&self) -> u64 {
        self.now + self.ahead - self.back
    }

    /// Where time goes to next: mostly a little ahead, often to a moment at which something is due or was due just before.
    fn next_time(&mut self) -> u64 {
        let quiet = self.random.pick(&[1, 10, 100, 1_000, 1_000, 10_000]);
        let a_little = self.random.below(quiet * MILLISECOND);
        let target = match self.random.below(10) {
            0..=3 => self.now,
            4 => self.now + self.random.below(MILLISECOND),
            5 => self.now + a_little / 10,
            6 => self.wire.peek().map_or(self.now, |Reverse((at, _, _))| *at),
            7 => self.a_deadline().unwrap_or(self.now),
            8 if self.random.one_in(8) => self.unused().unwrap_or(self.now),
            8 => self.an_expiry().unwrap_or(self.now),
            _ if self.random.one_in(4) => self.now + a_little,
            _ => self.now,
        };
        target.max(self.now)
    }

    /// The last microsecond, or about that, in which some process may spend.
    fn a_deadline(&mut self) -> Option<u64> {
        let index = self.some_process()?;
        let process = &self.processes[index];
        let left = process.holding.deadline().checked_sub(process.clock(self.now))?;
        let micros = u64::try_from(left.as_micros()).unwrap() * 1_000_000 / process.speed;
        Some(self.now + micros.saturating_sub(2))
    }

    /// About the time at which some row expires.
    fn an_expiry(&mut self) -> Option<u64> {
        let expiries = self.subject.expiries();
        let index = usize::try_from(self.random.below(expiries.len() as u64)).unwrap();
        let at = expiries.get(index)?.get() + self.back - self.ahead;
        Some(at - 1 + self.random.below(3))
    }

    /// When nothing is in use, if nothing happens until then, and that is soon.
    fn unused(&self) -> Option<u64> {
        let at = self.subject.unused_at()?.get() + self.back - self.ahead;
        (at < self.now + 60_000 * MILLISECOND).then_some(at)
    }

    fn some_process(&mut self) -> Option<usize> {
        usize::try_from(self.random.below(self.processes.len() as u64)).ok()
    }

    fn admit(&mut self, tokens: u64) {
        if tokens > 0 {
            // A clock that went back lives through time twice, and nobody has to know.
            self.budget.admit(self.now + self.ahead, tokens);
            if let Some(fated) = &mut self.fated {
                fated.admitted_until = Some(self.now);
            }
        }
    }

    fn send(&mut self, message: Message) {
        let copies = if self.random.one_in(8) { 2 } else { u64::from(!self.random.one_in(12)) };
        for _ in 0..copies {
            let slow = self.random.pick(&[0, 1, 1, 1, 5, 20, 200]);
            let at = self.now + self.random.below(slow * MILLISECOND + 2);
            self.sent += 1;
            self.wire.push(Reverse((at, self.sent, message.clone())));
        }
    }

    fn deliver_until(&mut self, target: u64) {
        while self.wire.peek().is_some_and(|Reverse((at, _, _))| *at <= target) {
            if let Some(Reverse((at, _, message))) = self.wire.pop() {
                self.now = self.now.max(at);
                self.deliver(message);
                self.events += 1;
            }
        }
        self.now = target;
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Call { name, seq, have, want, ttl, min } => {
                let ask = Ask {
                    node: Name::new(&name).unwrap(),
                    seq: Seq::new(seq).unwrap(),
                    have: Cost::new(have).unwrap(),
                    want: Cost::new(want).unwrap(),
                    ttl: Ttl::from_micros(ttl).unwrap(),
                    min: Cost::new(min).unwrap(),
                };
                let (limiter, at) = (self.limiter(), Micros::new(self.server_clock()).unwrap());
                let answer = self.subject.lease(limiter, at, &ask);
                self.send(Message::Reply { name, seq, holding: answer.holding, ttl: answer.ttl });
            }
            Message::Reply { name, seq, holding, ttl } => {
                if let Some(process) = self.processes.iter_mut().find(|process| process.name == name) {
                    process.holding.hear(seq, holding, ttl);
                }
            }
            Message::Take { cost } => {
                let (limiter, at) = (self.limiter(), Micros::new(self.server_clock()).unwrap());
                let looked = self.subject.peek(at, Cost::new(cost).unwrap());
                let decision = self.subject.take(limiter, at, Cost::new(cost).unwrap());
                if limiter == self.bucket {
                    assert!(looked.is_none_or(|looked| looked.allowed == decision.allowed));
                }
                if decision.allowed {
                    // Some of it may turn out not to be used at once.
                    let unused = if self.random.one_in(4) { self.random.below(cost + 1) } else { 0 };
                    self.subject.refund(at, Cost::new(unused).unwrap(), Age::ZERO);
                    self.admit(cost - unused);
                }
            }
        }
    }

    fn limiter(&mut self) -> TokenBucket {
        let nothing = match self.fate {
            Fate::Killed => self.fated.is_some(),
            // Somebody flips the kill switch for a moment.
            _ => self.random.one_in(200),
        };
        if nothing { TokenBucket::new(Capacity::ZERO, self.bucket.rate()) } else { self.bucket }
    }

    /// A process admits something: often all that it has.
    fn spend(&mut self) {
        let Some(index) = self.some_process() else { return };
        let (now, all) = (self.now, self.random.one_in(2));
        let process = &mut self.processes[index];
        let clock = process.clock(now);
        let left = process.holding.left(clock);
        let tokens = if all { left } else { self.random.below(left + 1) };
        if tokens > 0 && self.processes[index].holding.spend(clock, tokens) {
            self.admit(tokens);
        }
    }

    /// When all is refilled every process gets what it can, at once.
    fn hand_out(&mut self) {
        let rate = self.bucket.rate();
        let most = self.bucket.capacity().get();
        self.deliver_until(self.now + most * rate.micros() / rate.units());
        self.wire.clear();
        for index in 0..self.processes.len() {
            let (now, ttl) = (self.now, 5_000 * MILLISECOND);
            let process = &mut self.processes[index];
            let said = process.holding.ask(process.clock(now), most);
            let name = process.name.clone();
            self.deliver(Message::Call { name, seq: said.seq, have: said.have, want: said.want, ttl, min: 0 });
        }
        self.deliver_until(self.now + 1_000 * MILLISECOND);
    }

    /// The worst that everybody can do at once.
    fn spend_everything(&mut self) {
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            let clock = process.clock(self.now);
            let left = process.holding.left(clock);
            if process.holding.spend(clock, left) {
                self.admit(left);
            }
        }
        let mut cost = self.bucket.capacity().get();
        while cost > 0 {
            self.deliver(Message::Take { cost });
            cost /= 2;
        }
    }

    fn ask(&mut self) {
        let Some(index) = self.some_process() else { return };
        let most = self.bucket.capacity().get();
        let want = match self.random.below(4) {
            0 => 0,
            1 => self.random.below(4),
            2 => most,
            _ => self.random.below(most + 1),
        };
        let min = if self.random.one_in(3) { self.random.below(most + 1) } else { 0 };
        let varied = self.random.one_in(2);
        let now = self.now;
        let process = &mut self.processes[index];
        let ttl = if varied { 10 * MILLISECOND } else { process.ttl };
        let said = process.holding.ask(process.clock(now), want);
        let name = process.name.clone();
        self.send(Message::Call { name, seq: said.seq, have: said.have, want: said.want, ttl, min });
    }

    fn ask_directly(&mut self) {
        let most = self.bucket.capacity().get();
        let cost = if self.random.one_in(2) { most } else { 1 + self.random.below(most) };
        // First what is there as a whole, then bit by bit.
        for cost in [cost, cost / 2, cost / 4, 1] {
            if cost > 0 {
                self.deliver(Message::Take { cost });
            }
        }
    }

    /// Somebody takes what nobody is admitted for, be it there or not.
    fn settle_late(&mut self) {
        let most = self.bucket.capacity().get();
        let (amount, at) = (self.random.below(most + 1), Micros::new(self.server_clock()).unwrap());
        self.subject.debit(self.bucket, at, Cost::new(amount).unwrap());
    }

    fn crash(&mut self) {
        if let Some(index) = self.some_process() {
            self.processes[index] = self.spawn();
        }
    }

    /// What was under way to the server is lost; what it had stored is not.
    fn restart_server(&mut self) {
        self.wire.clear();
    }

    fn meet_fate(&mut self) {
        let coming = self.fated.is_none() && self.random.one_in(50);
        match self.fate {
            Fate::Steady => {}
            Fate::GoesBack if self.random.one_in(100) => {
                self.back += self.random.pick(&[1, 1_000, 50_000, 10_000_000, 3_600_000_000]);
            }
            Fate::GoesBack => {}
            Fate::LeapsAhead if coming => {
                self.hand_out();
                self.note_fate();
                self.ahead += self.random.pick(&[1_000, 50_000, 1_000_000, 10_000_000_000]);
                self.spend_everything();
            }
            Fate::Forgets if coming => {
                self.hand_out();
                self.note_fate();
                self.subject.forget();
                self.spend_everything();
            }
            Fate::Killed if coming => self.note_fate(),
            _ => {}
        }
    }

    fn note_fate(&mut self) {
        let outstanding = self.subject.outstanding(Micros::new(self.server_clock()).unwrap());
        self.fated = Some(Fated { at: self.now, outstanding, admitted_until: None });
    }
}
