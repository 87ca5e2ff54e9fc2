//! What the driver's errors mean.

use redis::{ErrorKind as Driver, RedisError, ServerErrorKind};

use crate::error::{Error, ErrorKind};

/// Where a server says that another one is to be asked. It did not run the command.
#[derive(Clone, Debug)]
pub(crate) enum Redirect {
    /// For good.
    Moved { slot: u16, address: String },
    /// This once.
    Ask { address: String },
    /// This one is a replica, and does not say who is not.
    ReadOnly,
}

/// Why a call has no reply.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Another server is to be asked.
    Redirected(Redirect, Error),
    /// Asked or not, nobody answered.
    Unanswered(Error),
    /// The server answered an error.
    Refused(Error),
    /// The server answered that it can't serve now. Another one may serve in its place.
    Unfit(Error),
}

impl Failure {
    /// Of an error that the driver reports, from a server or about the connection to it.
    pub fn of(error: &RedisError) -> Self {
        match error.kind() {
            Driver::Server(_) | Driver::Extension => Self::of_server(error),
            // What answers is no Redis, or one before 6.
            Driver::Parse | Driver::UnexpectedReturnType | Driver::RESP3NotSupported => {
                Self::Refused(Error::new(ErrorKind::Rejected, text(error)))
            }
            _ => Self::Unanswered(Error::new(ErrorKind::Unreachable, text(error))),
        }
    }

    fn of_server(error: &RedisError) -> Self {
        let (code, detail) = (error.code().unwrap_or_default(), error.detail().unwrap_or_default());
        let kind = match code {
            "LOADING" | "MISCONF" | "NOREPLICAS" | "OOM" | "CLUSTERDOWN" | "MASTERDOWN" | "TRYAGAIN" | "READONLY"
            | "BUSY" => ErrorKind::Unavailable,
            "WRONGTYPE" => ErrorKind::WrongType,
            "NOAUTH" | "WRONGPASS" | "NOPERM" => ErrorKind::NotPermitted,
            "ERR" if is_unknown_command_of_ours(detail) => ErrorKind::NoModule,
            // Refused for now, with the code of refusals for good.
            "ERR" if detail.starts_with("max number of clients") => ErrorKind::Unavailable,
            _ => ErrorKind::Rejected,
        };
        let why = Error::new(kind, text(error));
        let target = error.redirect_node().map(|(address, slot)| (address.to_owned(), slot));
        if ["CLUSTERDOWN", "MASTERDOWN", "LOADING"].contains(&code) {
            return Self::Unfit(why);
        }
        match (error.kind(), target) {
            (Driver::Server(ServerErrorKind::Moved), Some((address, slot))) => {
                Self::Redirected(Redirect::Moved { slot, address }, why)
            }
            (Driver::Server(ServerErrorKind::Ask), Some((address, _))) => {
                Self::Redirected(Redirect::Ask { address }, why)
            }
            (Driver::Server(ServerErrorKind::ReadOnly), _) => Self::Redirected(Redirect::ReadOnly, why),
            _ => Self::Refused(why),
        }
    }

    pub fn deadline(waiting_for: &str) -> Self {
        Self::Unanswered(Error::new(ErrorKind::Deadline, format!("the deadline passed {waiting_for}")))
    }

    /// The task that did something for all callers is gone, and it is not known what came of it.
    pub fn ended(its_work: &str) -> Self {
        let text = format!("the task that was to {its_work} ended before it did: it panicked, or its runtime ended");
        Self::Unanswered(Error::new(ErrorKind::Unreachable, text))
    }

    /// What the caller is told.
    pub fn into_error(self) -> Error {
        match self {
            Self::Redirected(_, error) | Self::Unanswered(error) | Self::Refused(error) | Self::Unfit(error) => error,
        }
    }
}

/// Whether the server does not know a command of the module, in the words of Redis or of Valkey.
fn is_unknown_command_of_ours(detail: &str) -> bool {
    detail
        .strip_prefix("unknown command")
        .is_some_and(|rest| rest.trim_start_matches([' ', '\'', '`']).starts_with("RL."))
}

/// What a server said is told in its words, but for those that it repeats of the call: they have the subject among them.
fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => {
            let words = detail.split_once(", with args").map_or(detail, |(words, _)| words);
            format!("{code} {words}")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Redirect};
    use crate::error::ErrorKind;

    /// What becomes of a line that a server answers.
    fn of(line: &str) -> Failure {
        let reply = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        Failure::of(&reply.extract_error().unwrap_err())
    }

    #[test]
    fn servers_errors_are_outages_or_faults_of_configuration() {
        for (line, kind, is_outage) in [
            ("LOADING Redis is loading the dataset in memory", ErrorKind::Unavailable, true),
            ("MISCONF Redis is configured to save RDB snapshots", ErrorKind::Unavailable, true),
            ("NOREPLICAS Not enough good replicas to write.", ErrorKind::Unavailable, true),
            ("OOM command not allowed when used memory > 'maxmemory'.", ErrorKind::Unavailable, true),
            ("CLUSTERDOWN Hash slot not served", ErrorKind::Unavailable, true),
            ("MASTERDOWN Link with MASTER is down", ErrorKind::Unavailable, true),
            ("TRYAGAIN Multiple keys request during rehashing of slot", ErrorKind::Unavailable, true),
            ("BUSY Redis is busy running a script.", ErrorKind::Unavailable, true),
            ("ERR max number of clients reached", ErrorKind::Unavailable, true),
            ("WRONGTYPE the key holds a leaky bucket limiter", ErrorKind::WrongType, false),
            ("NOPERM this user has no permissions", ErrorKind::NotPermitted, false),
            ("NOAUTH Authentication required.", ErrorKind::NotPermitted, false),
            ("WRONGPASS invalid username-password pair", ErrorKind::NotPermitted, false),
            ("ERR unknown command 'RL.FIXED'", ErrorKind::NoModule, false),
            ("ERR window must be a duration", ErrorKind::Rejected, false),
            ("ODD something new", ErrorKind::Rejected, false),
        ] {
            let (Failure::Refused(error) | Failure::Unfit(error)) = of(line) else { panic!("{line}: {:?}", of(line)) };
            assert_eq!((error.kind(), error.is_outage()), (kind, is_outage), "{line}");
            assert_eq!(error.to_string(), line, "the server's own words");
        }
    }

    #[test]
    fn no_subject_is_told() {
        let failure = of("ERR unknown command 'RL.FIXED', with args beginning with: 'rl:{secret}:api' '10' '1h' ");
        assert_eq!(failure.into_error().to_string(), "ERR unknown command 'RL.FIXED'");
    }

    #[test]
    fn redirections_say_where_to() {
        let Failure::Redirected(Redirect::Moved { slot: 3999, address }, _) = of("MOVED 3999 10.0.0.1:6381") else {
            panic!("not moved")
        };
        assert_eq!(address, "10.0.0.1:6381");
        let Failure::Redirected(Redirect::Ask { address }, _) = of("ASK 3999 :6381") else { panic!("not asked") };
        assert_eq!(address, ":6381");
        let read_only = of("READONLY You can't write against a read only replica.");
        assert!(matches!(&read_only, Failure::Redirected(Redirect::ReadOnly, _)));
        assert!(read_only.into_error().is_outage(), "if there is nobody else to ask");
        for malformed in ["MOVED", "MOVED x", "MOVED 3999", "ASK 70000 a:1"] {
            assert!(matches!(of(malformed), Failure::Refused(_)), "{malformed}");
        }
    }
}
