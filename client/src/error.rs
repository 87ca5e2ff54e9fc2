//! Why Redis did not decide.

use std::fmt;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection, or it broke.
    Unreachable,
    /// The deadline passed. The call may have run, or may yet.
    Deadline,
    /// Not asked: the last calls failed, and none has succeeded since.
    BreakerOpen,
    /// The server answered that it can't decide now: `LOADING`, `MISCONF`, `NOREPLICAS`, `OOM`, `CLUSTERDOWN`, `MASTERDOWN`,
    /// `TRYAGAIN`, `BUSY`; `READONLY`, after one attempt to find the primary.
    Unavailable,
    /// The key holds something else: `WRONGTYPE`.
    WrongType,
    /// `NOAUTH`, `WRONGPASS` or `NOPERM`: the user may not do this.
    NotPermitted,
    /// The server does not know the command: the module is not loaded.
    NoModule,
    /// The server answered with another error, or with a reply that is none of the command's.
    Rejected,
    /// Asked for what the algorithm can't do, or with a number out of range. Redis was not asked.
    Invalid,
}

impl ErrorKind {
    /// Whether this is an outage, which passes; the others are faults of configuration, which stay until somebody mends them.
    pub const fn is_outage(self) -> bool {
        matches!(self, Self::Unreachable | Self::Deadline | Self::BreakerOpen | Self::Unavailable)
    }

    /// For metrics and logs.
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Deadline => "deadline",
            Self::BreakerOpen => "breaker_open",
            Self::Unavailable => "unavailable",
            Self::WrongType => "wrong_type",
            Self::NotPermitted => "not_permitted",
            Self::NoModule => "no_module",
            Self::Rejected => "rejected",
            Self::Invalid => "invalid",
        }
    }
}

/// Why Redis did not decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// What went wrong.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// See [`ErrorKind::is_outage`].
    pub const fn is_outage(&self) -> bool {
        self.kind.is_outage()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
