//! Who knows which servers there are, and how they tell it.

use redis::{Cmd, Value};

use super::failure::Failure;
use super::link::Link;
use super::slots::SLOTS;
use crate::error::{Error, ErrorKind};

/// Who knows which servers there are.
pub(crate) enum Teachers {
    /// Any node of the cluster; here those that it was set up with.
    Nodes(Vec<Link>),
    /// The sentinels, of the primary with this name.
    Sentinels(Vec<Link>, String),
}

/// Slots from the first to the last, and who serves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub first: u16,
    pub last: u16,
    pub address: String,
}

impl Teachers {
    pub fn question(&self) -> Cmd {
        let mut question = Cmd::new();
        match self {
            Self::Nodes(_) => question.arg("CLUSTER").arg("SLOTS"),
            Self::Sentinels(_, name) => question.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name),
        };
        question
    }

    /// What a teacher answered.
    pub fn read(&self, answer: &Value, teacher: &Link) -> Result<Vec<Range>, Failure> {
        let ranges = match self {
            Self::Nodes(_) => cluster_slots(answer).ok_or_else(|| {
                let text = format!("{} does not know who serves", teacher.name());
                Failure::Unfit(Error::new(ErrorKind::Unavailable, text))
            })?,
            Self::Sentinels(_, name) => {
                let address = address(answer).ok_or_else(|| {
                    let text = format!("the sentinel {} knows no primary by the name {name}", teacher.name());
                    Failure::Refused(Error::new(ErrorKind::Rejected, text))
                })?;
                vec![Range { first: 0, last: SLOTS - 1, address }]
            }
        };
        let told = |range: Range| Range { address: absolute(&range.address, teacher.name()), ..range };
        Ok(ranges.into_iter().map(told).collect())
    }
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
pub(crate) fn absolute(address: &str, teller: &str) -> String {
    match address.strip_prefix(':') {
        Some(port) => format!("{}:{port}", split(teller).map_or_else(String::new, |(host, _)| host)),
        None => address.to_owned(),
    }
}

/// Host and port. IPv6 addresses come without brackets. `?` stands for a host that is not known.
pub(crate) fn split(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok()?;
    (!host.is_empty() && host != "?").then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::{Range, absolute, address, cluster_slots, split};
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
        assert_eq!(absolute(":6380", "redis.example:6379"), "redis.example:6380");
        assert_eq!(absolute("other:6380", "redis.example:6379"), "other:6380");
        for odd in ["", "redis", ":6379", "?:6379", "redis:", "redis:66000"] {
            assert_eq!(split(odd), None, "{odd}");
        }
    }
}
