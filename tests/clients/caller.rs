//! A client library, as the tests see it.

/// A client and what is known of it.
pub struct Client {
    pub start: fn(Topology, &str) -> Box<dyn Caller>,
    /// The version of the protocol that it speaks if nobody says otherwise.
    pub protocol: u8,
}

/// Which of its snippets makes the connection.
#[derive(Clone, Copy)]
pub enum Topology {
    Single,
    Cluster,
}

impl Topology {
    /// The snippet's name, as in `single.py`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Cluster => "cluster",
        }
    }
}

/// The arguments of a snippet's `check`.
pub struct Call<'a> {
    pub user: &'a str,
    pub capacity: u64,
    pub rate: &'a str,
    pub cost: u64,
}

/// What a snippet's `check` made of the reply.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Allowed,
    /// With the seconds of `Retry-After`, if there is one.
    Denied(Option<u64>),
    /// It raised an error.
    Failed(String),
}

/// A connected client that calls its `check`.
pub trait Caller {
    fn check(&mut self, call: &Call<'_>) -> Answer;
}
