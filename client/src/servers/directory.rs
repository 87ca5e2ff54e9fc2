//! Several servers, of which one is to be asked about a key: a cluster, or the primary that sentinels know.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::Duration;

use redis::{Cmd, ConnectionAddr, ConnectionInfo, Value};
use tokio::time::Instant;

use super::Command;
use super::failure::{Failure, Redirect};
use super::flight::Flight;
use super::link::Link;
use super::slots::{SLOTS, slot_of};
use crate::builder::Settings;
use crate::error::{Error, ErrorKind};
use crate::observe::Observer;

/// So often one call may be sent on. Each server that sends on has not run it.
const MOST_HOPS: usize = 5;
/// The least time between two looks at who serves what.
const LEARN_PAUSE: Duration = Duration::from_millis(100);
/// So often sentinels are looked at while all is well: a primary that they replaced may not know that yet, and goes on answering.
/// In a cluster a node that lost its slots says so.
const SENTINELS_EVERY: Duration = Duration::from_secs(1);
/// How long one server may take to say who serves what, before another is asked.
const LEARN_TIMEOUT: Duration = Duration::from_millis(250);

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
    map: RwLock<Map>,
}

/// Who knows which servers there are.
pub(crate) enum Teachers {
    /// Any node of the cluster.
    Nodes(Vec<Link>),
    /// The sentinels, of the primary with this name.
    Sentinels(Vec<Link>, String),
}

/// Who serves what.
struct Map {
    learned: Instant,
    links: HashMap<String, Link>,
    /// By slot.
    serving: Vec<Option<Link>>,
}

/// Slots from the first to the last, and who serves them.
struct Range {
    first: u16,
    last: u16,
    address: String,
}

impl Directory {
    pub fn new(teachers: Teachers, template: ConnectionInfo, settings: &Settings, observer: &Observer) -> Self {
        let map = Map { learned: Instant::now(), links: HashMap::new(), serving: vec![None; usize::from(SLOTS)] };
        Self(Arc::new(Inner {
            teachers,
            template,
            settings: settings.clone(),
            observer: observer.clone(),
            learning: Flight::new(|_| LEARN_PAUSE),
            map: RwLock::new(map),
        }))
    }

    /// Asks the server that serves the key.
    pub async fn ask(&self, command: &Command, until: Instant) -> Result<Value, Failure> {
        let slot = slot_of(&command.key);
        let mut link = match self.serving(slot) {
            Some(link) => link,
            None => self.learned(slot, until).await?,
        };
        if self.0.may_be_outdated() {
            self.learn();
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
                    link = self.0.link_to(&absolute(&address, &link))?;
                    self.0.write().serve(slot, &link);
                    asking = false;
                    self.learn();
                }
                Failure::Redirected(Redirect::Ask { address }, _) => {
                    link = self.0.link_to(&absolute(&address, &link))?;
                    asking = true;
                }
                Failure::Redirected(Redirect::ReadOnly, _) if !looked_again => {
                    looked_again = true;
                    asking = false;
                    link = self.learned(slot, until).await?;
                }
                // It was the right server that said this.
                Failure::Refused(error) if error.kind() == ErrorKind::WrongType => return Err(Failure::Refused(error)),
                failure => {
                    self.learn();
                    return Err(failure);
                }
            }
        }
        let text = format!("slot {slot} was not found within {MOST_HOPS} redirections");
        Err(Failure::Unanswered(Error::new(ErrorKind::Unavailable, text)))
    }

    /// Waits until it is known who serves what.
    pub async fn reach(&self, until: Instant) -> Result<(), Failure> {
        let learned = self.0.learning.wait(until, || learn(Arc::downgrade(&self.0))).await;
        learned.unwrap_or_else(|| Err(Failure::deadline("before it was known which server to ask")))
    }

    fn serving(&self, slot: u16) -> Option<Link> {
        self.0.read().serving.get(usize::from(slot)).cloned().flatten()
    }

    /// Who serves a slot, by a fresh look.
    async fn learned(&self, slot: u16, until: Instant) -> Result<Link, Failure> {
        self.reach(until).await?;
        self.serving(slot).ok_or_else(|| {
            let text = format!("no server serves slot {slot}");
            Failure::Unanswered(Error::new(ErrorKind::Unavailable, text))
        })
    }

    /// Looks again who serves what, without waiting for it.
    fn learn(&self) {
        drop(self.0.learning.start(|| learn(Arc::downgrade(&self.0))));
    }
}

impl Inner {
    fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is time to look again, though nothing went wrong.
    fn may_be_outdated(&self) -> bool {
        matches!(self.teachers, Teachers::Sentinels(..)) && self.read().learned.elapsed() >= SENTINELS_EVERY
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
            Failure::Unanswered(Error::new(ErrorKind::Unavailable, text))
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

    /// Takes what was learned for what is so.
    fn install(&self, ranges: &[Range]) -> Result<(), Failure> {
        let mut links = HashMap::new();
        let mut serving = vec![None; usize::from(SLOTS)];
        for Range { first, last, address } in ranges {
            let link = self.link_to(address)?;
            links.insert(address.clone(), link.clone());
            for slot in *first..=*last {
                if let Some(serving) = serving.get_mut(usize::from(slot)) {
                    *serving = Some(link.clone());
                }
            }
        }
        let former = std::mem::replace(&mut *self.write(), Map { learned: Instant::now(), links, serving });
        // Connections that are not needed any more are closed outside the lock.
        drop(former);
        Ok(())
    }

    /// Those who may know, the ones that answer first, otherwise in random order.
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
        teachers.sort_by_key(Link::is_silent);
        teachers
    }

    fn question(&self) -> Cmd {
        let mut question = Cmd::new();
        match &self.teachers {
            Teachers::Nodes(_) => question.arg("CLUSTER").arg("SLOTS"),
            Teachers::Sentinels(_, name) => question.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name),
        };
        question
    }

    fn read_answer(&self, answer: &Value, teacher: &Link) -> Option<Vec<Range>> {
        let ranges = match &self.teachers {
            Teachers::Nodes(_) => cluster_slots(answer)?,
            Teachers::Sentinels(..) => vec![Range { first: 0, last: SLOTS - 1, address: address(answer)? }],
        };
        let ranges = ranges.into_iter().map(|range| Range { address: absolute(&range.address, teacher), ..range });
        Some(ranges.collect())
    }
}

impl Map {
    fn serve(&mut self, slot: u16, link: &Link) {
        if let Some(serving) = self.serving.get_mut(usize::from(slot)) {
            *serving = Some(link.clone());
        }
    }
}

/// Asks around who serves what, and takes the first answer. Holds on to the directory only between the questions.
async fn learn(directory: Weak<Inner>) -> Result<(), Failure> {
    let gone = || Failure::Unanswered(Error::new(ErrorKind::Unreachable, "the limiter is gone"));
    let (teachers, question) = {
        let directory = directory.upgrade().ok_or_else(gone)?;
        (directory.teachers(), directory.question())
    };
    let mut last = Failure::Unanswered(Error::new(ErrorKind::Unreachable, "there is no server to ask"));
    for teacher in teachers {
        match teacher.call_anyway(&question, Instant::now() + LEARN_TIMEOUT).await {
            Err(failure) => last = failure,
            Ok(answer) => {
                let directory = directory.upgrade().ok_or_else(gone)?;
                match directory.read_answer(&answer, &teacher) {
                    Some(ranges) => return directory.install(&ranges),
                    None => {
                        let text = format!("{} does not know who serves", teacher.name());
                        last = Failure::Unanswered(Error::new(ErrorKind::Unavailable, text));
                    }
                }
            }
        }
    }
    Err(last)
}

/// The ranges in a reply to `CLUSTER SLOTS`: each has a first and a last slot, the primary, and replicas.
fn cluster_slots(answer: &Value) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else { return None };
    let range = |range: &Value| {
        let Value::Array(range) = range else { return None };
        let [Value::Int(first), Value::Int(last), primary, ..] = &range[..] else { return None };
        let slot = |number: i64| u16::try_from(number).ok().filter(|&slot| slot < SLOTS);
        Some(Range { first: slot(*first)?, last: slot(*last)?, address: address(primary)? })
    };
    let ranges = ranges.iter().map(range).collect::<Option<Vec<_>>>()?;
    (!ranges.is_empty()).then_some(ranges)
}

/// `host:port` of a server that is told as host, port and more. A host that is null or empty is the one that was asked.
fn address(told: &Value) -> Option<String> {
    let Value::Array(parts) = told else { return None };
    let [host, port, ..] = &parts[..] else { return None };
    // The driver would wrap a number that is too big for a port.
    let port = u16::try_from(redis::from_redis_value_ref::<i64>(port).ok()?).ok()?;
    let host: Option<String> = redis::from_redis_value_ref(host).ok()?;
    Some(format!("{}:{port}", host.unwrap_or_default()))
}

/// An address whose host may be left out, because it is that of the server that told it.
fn absolute(address: &str, teller: &Link) -> String {
    match address.strip_prefix(':') {
        Some(port) => format!("{}:{port}", split(teller.name()).map_or_else(String::new, |(host, _)| host)),
        None => address.to_owned(),
    }
}

/// Host and port. IPv6 addresses come without brackets.
fn split(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok()?;
    (!host.is_empty() && host != "?").then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::{Range, address, cluster_slots, split};
    use redis::{Value, parse_redis_value};

    fn value(resp: &str) -> Value {
        parse_redis_value(resp.replace(' ', "\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn slots_are_read_as_the_server_tells_them() {
        let told = "*2 *3 :0 :8191 *3 $9 127.0.0.1 :7000 $2 id *4 :8192 :16383 *3 $-1 :7001 $2 id *3 $1 a :7002 $2 id ";
        let ranges = cluster_slots(&value(told)).unwrap();
        let seen: Vec<_> =
            ranges.iter().map(|Range { first, last, address }| (*first, *last, address.as_str())).collect();
        assert_eq!(seen, [(0, 8191, "127.0.0.1:7000"), (8192, 16383, ":7001")]);
    }

    #[test]
    fn what_is_no_map_is_not_taken_for_one() {
        for told in [
            "*0 ",
            "$-1 ",
            ":1 ",
            "*1 :1 ",
            "*1 *2 :0 :16383 ",
            "*1 *3 :0 :16384 *2 $1 a :1 ",
            "*1 *3 :-1 :5 *2 $1 a :1 ",
            "*1 *3 :0 :5 *2 $1 a :70000 ",
            "*1 *3 :0 :5 $1 a ",
        ] {
            assert!(cluster_slots(&value(told)).is_none(), "{told}");
        }
    }

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        assert_eq!(address(&value("*2 $7 ::1:2:3 $4 6379 ")), Some("::1:2:3:6379".to_owned()), "as sentinels tell it");
        assert_eq!(address(&value("*-1 ")), None, "a name that the sentinel does not know");
        assert_eq!(split("::1:2:3:6379"), Some(("::1:2:3".to_owned(), 6379)));
        assert_eq!(split("redis.example:6379"), Some(("redis.example".to_owned(), 6379)));
        for odd in ["", "redis", ":6379", "?:6379", "redis:", "redis:66000"] {
            assert_eq!(split(odd), None, "{odd}");
        }
    }
}
