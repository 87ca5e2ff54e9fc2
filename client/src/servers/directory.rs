//! Several servers, of which one is to be asked about a key: a cluster, or the primary that sentinels know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, Value};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::Command;
use super::failure::{Failure, Redirect};
use super::flight::{Flight, NoResult};
use super::link::Link;
use super::slots::{SLOTS, slot_of};
use super::teachers::{Range, Teachers, absolute, split};
use crate::builder::Settings;
use crate::error::{Error, ErrorKind};
use crate::observe::Observer;

/// So often one call may be sent on. Each server that sends on has not run it.
const MOST_HOPS: usize = 5;
/// The least time between two looks at who serves what.
const LEARN_PAUSE: Duration = Duration::from_millis(100);
/// How long one server may take to say who serves what, before another is asked.
const LEARN_TIMEOUT: Duration = Duration::from_millis(250);
/// How long all of them may take.
const LEARN_LONGEST: Duration = Duration::from_secs(5);
/// A look that has done nothing for so long, though no question takes that long, is in a runtime that does not run.
const LEARN_STUCK: Duration = LEARN_TIMEOUT.saturating_add(Duration::from_secs(1));
/// While there are calls, questions that fail follow each other faster.
const FAILURE_LASTS: Duration = Duration::from_secs(1);
/// So often sentinels are looked at while all is well: a primary that they replaced may not know that yet, and goes on answering.
/// In a cluster a node that lost its slots says so.
const SENTINELS_EVERY: Duration = Duration::from_secs(1);

/// Knows which server serves which slot, learns it anew when that seems to have changed, and follows redirections.
#[derive(Clone)]
pub(crate) struct Directory(Arc<Inner>);

struct Inner {
    teachers: Teachers,
    /// How a server is connected to, but for its address.
    template: ConnectionInfo,
    settings: Settings,
    observer: Observer,
    learning: Flight<Result<(), Failure>>,
    learned: Mutex<Learned>,
    map: RwLock<Map>,
}

/// What came of the last look.
#[derive(Default)]
struct Learned {
    failure: Option<Failure>,
    at: Option<Instant>,
    /// Who answered. Asked first while all is well: sentinels that disagree would otherwise make calls go to and fro.
    from: Option<String>,
}

/// Who serves what.
struct Map {
    /// As it was told, unless a redirection said otherwise since.
    ranges: Vec<Range>,
    links: HashMap<String, Link>,
    /// By slot.
    serving: Vec<Option<Link>>,
}

impl Directory {
    pub fn new(teachers: Teachers, template: ConnectionInfo, settings: &Settings, observer: &Observer) -> Self {
        let map = Map { ranges: Vec::new(), links: HashMap::new(), serving: vec![None; usize::from(SLOTS)] };
        Self(Arc::new(Inner {
            teachers,
            template,
            settings: settings.clone(),
            observer: observer.clone(),
            learning: Flight::new(|_| LEARN_PAUSE, LEARN_STUCK),
            learned: Mutex::default(),
            map: RwLock::new(map),
        }))
    }

    /// Asks the server that serves the key.
    pub async fn ask(&self, command: &Command<'_>, until: Instant) -> Result<Value, Failure> {
        let slot = slot_of(command.key);
        let mut link = match self.serving(slot) {
            Some(link) => link,
            None => self.first_look(slot, until).await?,
        };
        if self.0.may_be_outdated() {
            self.look();
        }
        let (mut asking, mut looked_again) = (false, false);
        for _ in 0..MOST_HOPS {
            let result = match asking {
                true => link.call_asking(&command.command, until).await,
                false => link.call(&command.command, until).await,
            };
            let failure = match result {
                Err(failure) => failure,
                answered => return answered,
            };
            match failure {
                Failure::Redirected(Redirect::Moved { slot, address }, _) => {
                    self.look_anew();
                    link = self.0.link_to(&absolute(&address, link.name()))?;
                    self.0.write().serve(slot, &link);
                    asking = false;
                }
                Failure::Redirected(Redirect::Ask { address }, _) => {
                    link = self.0.link_to(&absolute(&address, link.name()))?;
                    asking = true;
                }
                Failure::Redirected(Redirect::ReadOnly, _) if !looked_again => {
                    looked_again = true;
                    asking = false;
                    self.0.learned().from = None;
                    link = self.looked_up(slot, until).await?;
                }
                // The right server has spoken.
                Failure::Refused(error) => return Err(Failure::Refused(error)),
                failure => {
                    self.look_anew();
                    return Err(failure);
                }
            }
        }
        let text = format!("slot {slot} was not found within {MOST_HOPS} redirections");
        Err(Failure::Unanswered(Error::new(ErrorKind::Unavailable, text)))
    }

    /// Waits until it is known who serves what, and tries again as long as there is time.
    pub async fn reach(&self, until: Instant) -> Result<(), Failure> {
        loop {
            match self.look_and_wait(until).await {
                Err(Failure::Unanswered(_) | Failure::Unfit(_)) if Instant::now() + LEARN_PAUSE < until => {
                    sleep(LEARN_PAUSE).await;
                }
                looked => return looked,
            }
        }
    }

    fn serving(&self, slot: u16) -> Option<Link> {
        self.0.read().serving.get(usize::from(slot)).cloned().flatten()
    }

    /// Who serves a slot of which nothing is known. Where the last look failed a moment ago the next one is not waited for: while nobody
    /// answers, it would keep every call until its deadline.
    async fn first_look(&self, slot: u16, until: Instant) -> Result<Link, Failure> {
        match self.0.last_failure() {
            None => self.looked_up(slot, until).await,
            Some(failure) => {
                self.look();
                // Who asks again and again without a pause would otherwise let nobody else run, the look included.
                yield_now().await;
                Err(failure)
            }
        }
    }

    /// Who serves a slot, by a fresh look.
    async fn looked_up(&self, slot: u16, until: Instant) -> Result<Link, Failure> {
        self.look_and_wait(until).await?;
        self.serving(slot).ok_or_else(|| {
            let text = format!("no server serves slot {slot}");
            Failure::Unfit(Error::new(ErrorKind::Unavailable, text))
        })
    }

    async fn look_and_wait(&self, until: Instant) -> Result<(), Failure> {
        let learned = self.0.learning.wait(until, || learn(Arc::downgrade(&self.0))).await;
        learned.unwrap_or_else(|none| match none {
            NoResult::Late => Err(Failure::deadline("before it was known which server to ask")),
            NoResult::Ended => Err(Failure::ended("find out which server to ask")),
        })
    }

    /// Looks who serves what, without waiting for it.
    fn look(&self) {
        drop(self.0.learning.start(|| learn(Arc::downgrade(&self.0))));
    }

    /// The same when something went wrong: who told the last time may be the one that is wrong.
    fn look_anew(&self) {
        self.0.learned().from = None;
        self.look();
    }
}

impl Inner {
    fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the last look failed, if that was a moment ago.
    fn last_failure(&self) -> Option<Failure> {
        let learned = self.learned();
        let is_recent = learned.at.is_some_and(|at| at.elapsed() < FAILURE_LASTS);
        learned.failure.clone().filter(|_| is_recent)
    }

    /// A server did not say who serves what. While no look succeeds, one that takes long because many are silent says as much about now.
    fn still_fails(&self) {
        let mut learned = self.learned();
        if learned.failure.is_some() {
            learned.at = Some(Instant::now());
        }
    }

    /// Whether it is time to look again, though nothing went wrong.
    fn may_be_outdated(&self) -> bool {
        matches!(self.teachers, Teachers::Sentinels(..))
            && self.learned().at.is_none_or(|at| at.elapsed() >= SENTINELS_EVERY)
    }

    /// The link to a server, made if there is none.
    fn link_to(&self, address: &str) -> Result<Link, Failure> {
        if let Some(link) = self.read().links.get(address) {
            return Ok(link.clone());
        }
        let link = self.new_link(address)?;
        Ok(self.write().links.entry(address.to_owned()).or_insert(link).clone())
    }

    fn new_link(&self, address: &str) -> Result<Link, Failure> {
        let odd = || {
            let text = format!("{address:?} is no address of a server");
            Failure::Unfit(Error::new(ErrorKind::Unavailable, text))
        };
        let (host, port) = split(address).ok_or_else(odd)?;
        let address_of_server = match self.template.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        let info = self.template.clone().set_addr(address_of_server);
        Link::new(info, address.to_owned(), &self.settings, &self.observer).map_err(|_| odd())
    }

    /// Takes what was learned for what is so. A part of the cluster whose server can't be reached by what was told of it is left out.
    fn install(&self, ranges: Vec<Range>) -> Result<(), Failure> {
        if self.read().ranges == ranges {
            return Ok(());
        }
        let mut links = HashMap::new();
        let mut serving = vec![None; usize::from(SLOTS)];
        let mut left_out = None;
        for Range { first, last, address } in &ranges {
            match self.link_to(address) {
                Err(failure) => left_out = Some(failure),
                Ok(link) => {
                    links.insert(address.clone(), link.clone());
                    let slots = usize::from(*first)..=usize::from(*last);
                    serving.get_mut(slots).unwrap_or_default().fill(Some(link));
                }
            }
        }
        if let Some(failure) = left_out.filter(|_| links.is_empty()) {
            return Err(failure);
        }
        let former = std::mem::replace(&mut *self.write(), Map { ranges, links, serving });
        // Connections that are not needed any more are closed outside the lock.
        drop(former);
        Ok(())
    }

    /// Those who may know: who told the last time, then those that answer, otherwise in random order.
    fn teachers(&self) -> Vec<Link> {
        let mut teachers = match &self.teachers {
            Teachers::Nodes(seeds) => {
                let known = self.read().links.values().cloned().collect::<Vec<_>>();
                let unknown = seeds.iter().filter(|seed| known.iter().all(|link| link.name() != seed.name())).cloned();
                unknown.chain(known.iter().cloned()).collect()
            }
            Teachers::Sentinels(sentinels, _) => sentinels.clone(),
        };
        fastrand::shuffle(&mut teachers);
        let last = self.learned().from.clone();
        teachers.sort_by_key(|link| (last.as_deref() != Some(link.name()), link.is_silent()));
        teachers
    }
}

impl Map {
    fn serve(&mut self, slot: u16, link: &Link) {
        if let Some(serving) = self.serving.get_mut(usize::from(slot)) {
            *serving = Some(link.clone());
            self.ranges.clear();
        }
    }
}

/// Looks who serves what, and keeps what came of it.
async fn learn(directory: Weak<Inner>) -> Result<(), Failure> {
    let result = ask_around(&directory).await;
    if let Some(directory) = directory.upgrade() {
        let mut learned = directory.learned();
        learned.at = Some(Instant::now());
        learned.failure = result.as_ref().err().cloned();
        if let Ok(teacher) = &result {
            learned.from = Some(teacher.clone());
        }
    }
    result.map(drop)
}

/// Asks who serves what, and takes the first answer, whose giver is returned. Holds on to the directory only between the questions.
async fn ask_around(directory: &Weak<Inner>) -> Result<String, Failure> {
    let gone = || Failure::Unanswered(Error::new(ErrorKind::Unreachable, "the limiter is gone"));
    let (teachers, question) = {
        let directory = directory.upgrade().ok_or_else(gone)?;
        (directory.teachers(), directory.teachers.question())
    };
    let until = Instant::now() + LEARN_LONGEST;
    let mut reason = Failure::Unanswered(Error::new(ErrorKind::Unreachable, "there is no server to ask"));
    for teacher in teachers {
        let answer = teacher.call_anyway(&question, until.min(Instant::now() + LEARN_TIMEOUT)).await;
        let directory = directory.upgrade().ok_or_else(gone)?;
        let ranges = answer.and_then(|answer| directory.teachers.read(&answer, &teacher));
        match ranges.and_then(|ranges| directory.install(ranges)) {
            Ok(()) => return Ok(teacher.name().to_owned()),
            Err(failure) => {
                directory.still_fails();
                // Who refuses says more than who is silent, whoever was asked last: a wrong password is no outage.
                if !matches!(reason, Failure::Refused(_)) {
                    reason = failure;
                }
            }
        }
        if Instant::now() >= until {
            break;
        }
    }
    Err(reason)
}
