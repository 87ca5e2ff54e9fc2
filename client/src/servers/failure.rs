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
            "NOAUTH" | "WRONGPASS" | "NOPERM" => ErrorKind::Denied,
            "ERR" if is_unknown_command_of_ours(detail) => ErrorKind::NoModule,
            // Refused for now, with the code of refusals for good.
            "ERR" if detail.starts_with("max number of clients") => ErrorKind::Unavailable,
            _ => ErrorKind::Rejected,
        };
        let why = Error::new(kind, text(error));
        let target = error.redirect_node().map(|(address, slot)| (address.to_owned(), slot));
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

    /// What the caller is told.
    pub fn into_error(self) -> Error {
        match self {
            Self::Redirected(_, error) | Self::Unanswered(error) | Self::Refused(error) => error,
        }
    }
}

/// Whether the server does not know a command of the module, in the words of Redis or of Valkey.
fn is_unknown_command_of_ours(detail: &str) -> bool {
    detail
        .strip_prefix("unknown command")
        .is_some_and(|rest| rest.trim_start_matches([' ', '\'', '`']).starts_with("RL."))
}

/// What a server said is told in its words.
fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}
