//! Whom a limit counts.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use ipnet::{IpNet, Ipv6Net};

use super::{forwarded, peer};

/// Whom a limit counts: makes a request's subject, which is a part of the key in Redis.
///
/// | made by | subject |
/// | --- | --- |
/// | [`header("x-api-key")`](KeyBy::header) | `header:x-api-key:` and the value |
/// | [`peer_address()`](KeyBy::peer_address), [`forwarded_for(…)`](KeyBy::forwarded_for) | `ip:203.0.113.9`, `ip:2001:db8:1:2::/64` |
/// | [`with(…)`](KeyBy::with) | `with:` and what the function returned |
/// | [`constant("all")`](KeyBy::constant) | `all` |
///
/// So no value that a caller makes up shares the count of an address, or of another header. [`Limiter::check`] and
/// [`Limiter::refund`] take the same subjects.
///
/// A request that lacks the identity is refused with 400, unless [`optional`](KeyBy::optional) says otherwise: it is
/// never counted as the empty subject, which strangers would share.
///
/// ```
/// use redis_rl_client::http::{IpNet, KeyBy};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let proxies: IpNet = "10.0.0.0/8".parse()?;
/// let by_key_or_address = KeyBy::header("x-api-key").or(KeyBy::forwarded_for([proxies]));
/// # Ok(())
/// # }
/// ```
///
/// [`Limiter::check`]: crate::Limiter::check
/// [`Limiter::refund`]: crate::Limiter::refund
#[derive(Clone)]
pub struct KeyBy {
    sources: Vec<Source>,
    optional: bool,
}

#[derive(Clone)]
enum Source {
    /// `None` if no header can have that name.
    Header(Option<HeaderName>),
    Address {
        /// The proxies whose word is taken; `None` if only the peer counts.
        proxies: Option<Arc<[IpNet]>>,
        ipv6_prefix: u8,
    },
    With(Arc<Identify>),
    Constant(Arc<[u8]>),
}

type Identify = dyn Fn(&Parts) -> Option<Vec<u8>> + Send + Sync;

/// What a request says about whom it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Identity {
    Subject(Vec<u8>),
    Missing,
    /// It says several things, of which the server behind may believe another than a limit would.
    Contradictory,
}

impl KeyBy {
    /// By the value of a request header. A header that is empty counts as missing. A request in which it stands several
    /// times is refused with 400 in any case: the server behind might go by another of the values than the limit.
    ///
    /// Upper and lower case are the same in `name`. If it can't be a header's name, because it is empty or has spaces
    /// in it, no request has the header.
    ///
    /// The value is a part of the key in Redis, where operators see it. Hash secrets first, by [`KeyBy::with`]. And
    /// count by a header only what the server refuses when it is made up: who makes up a new value for each request has
    /// a new limit each time.
    pub fn header(name: impl AsRef<str>) -> Self {
        Self::from(Source::Header(HeaderName::from_bytes(name.as_ref().as_bytes()).ok()))
    }

    /// By the address of the other end of the connection, which is that of a proxy if there is one: see
    /// [`KeyBy::forwarded_for`] for that.
    ///
    /// An IPv6 subscriber has a network of addresses, so they count by network: see [`KeyBy::ipv6_prefix`]. IPv4
    /// addresses in the form of IPv6 (`::ffff:203.0.113.9`) count as IPv4.
    ///
    /// The server has to say the address: in axum serve by `into_make_service_with_connect_info::<SocketAddr>()`, with
    /// this crate's feature `axum`; tonic's server says it, with feature `tonic`; others insert a
    /// [`PeerAddress`](super::PeerAddress) extension. Where it is unknown, the identity is missing.
    pub fn peer_address() -> Self {
        Self::from(Source::Address { proxies: None, ipv6_prefix: 64 })
    }

    /// By the address of the client behind trusted proxies, as `X-Forwarded-For` tells it.
    ///
    /// Believed is only what a trusted proxy wrote: the header counts if the peer is one, and is read from the right,
    /// where the nearest proxy wrote, up to the first address that is no trusted proxy. That is the client. What stands
    /// left of it anybody may have made up. An entry that is no address ends the list there, and the last proxy counts
    /// as the client.
    ///
    /// The proxies must append to the header, or replace it, and callers must not reach the server from addresses in
    /// `trusted` otherwise. For the peer's address, IPv6 and IPv4 see [`KeyBy::peer_address`].
    pub fn forwarded_for(trusted: impl IntoIterator<Item = IpNet>) -> Self {
        Self::from(Source::Address { proxies: Some(trusted.into_iter().collect()), ipv6_prefix: 64 })
    }

    /// By what a function finds in the head of a request: a user that another layer has identified, a tenant in the
    /// path. `None`, and nothing at all, count as missing.
    ///
    /// ```
    /// use redis_rl_client::http::KeyBy;
    ///
    /// #[derive(Clone)]
    /// struct User(String);
    ///
    /// let by_user = KeyBy::with(|head| head.extensions.get::<User>().map(|user| user.0.clone()));
    /// ```
    pub fn with<K: Into<Vec<u8>>>(identify: impl Fn(&Parts) -> Option<K> + Send + Sync + 'static) -> Self {
        Self::from(Source::With(Arc::new(move |head| identify(head).map(Into::into))))
    }

    /// All requests together.
    pub fn constant(subject: impl Into<Vec<u8>>) -> Self {
        Self::from(Source::Constant(subject.into().into()))
    }

    /// By this, or by `other` where it is missing.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.sources.extend(other.sources);
        Self { sources: self.sources, optional: other.optional }
    }

    /// The limit does not apply to requests that lack the identity. Said last, behind all [`KeyBy::or`].
    #[must_use]
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// How many bits of an IPv6 address count; at most 128, by default 64, which is what a subscriber has at least.
    /// Said behind the addresses that it is for.
    #[must_use]
    pub fn ipv6_prefix(mut self, bits: u8) -> Self {
        for source in &mut self.sources {
            if let Source::Address { ipv6_prefix, .. } = source {
                *ipv6_prefix = bits.min(128);
            }
        }
        self
    }

    pub(super) fn is_optional(&self) -> bool {
        self.optional
    }

    pub(super) fn identity(&self, head: &Parts) -> Identity {
        let found = self.sources.iter().map(|source| source.identity(head));
        found.into_iter().find(|identity| *identity != Identity::Missing).unwrap_or(Identity::Missing)
    }

    fn from(source: Source) -> Self {
        Self { sources: vec![source], optional: false }
    }
}

/// What a request has to have: `the header x-api-key or the client's address`.
impl fmt::Display for KeyBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, source) in self.sources.iter().enumerate() {
            if index > 0 {
                f.write_str(" or ")?;
            }
            match source {
                Source::Header(Some(name)) => write!(f, "the header {name}")?,
                Source::Header(None) => f.write_str("a header whose name is invalid")?,
                Source::Address { .. } => f.write_str("the client's address")?,
                Source::With(_) => f.write_str("an identity")?,
                Source::Constant(_) => f.write_str("nothing")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for KeyBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needs = self.to_string();
        f.debug_struct("KeyBy").field("needs", &needs).field("optional", &self.optional).finish()
    }
}

impl Source {
    fn identity(&self, head: &Parts) -> Identity {
        match self {
            Self::Header(name) => name.as_ref().map_or(Identity::Missing, |name| by_header(name, &head.headers)),
            Self::Address { proxies, ipv6_prefix } => {
                let Some(peer) = peer::address(&head.extensions) else { return Identity::Missing };
                let proxies = proxies.as_deref().unwrap_or_default();
                by_address(forwarded::client(peer, &head.headers, proxies), *ipv6_prefix)
            }
            Self::With(identify) => match identify(head) {
                Some(subject) if !subject.is_empty() => namespaced("with:", &subject),
                _ => Identity::Missing,
            },
            Self::Constant(subject) => Identity::Subject(subject.to_vec()),
        }
    }
}

fn by_header(name: &HeaderName, headers: &HeaderMap) -> Identity {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Identity::Missing,
        (Some(value), None) if value.is_empty() => Identity::Missing,
        (Some(value), None) => namespaced(&format!("header:{name}:"), value.as_bytes()),
        (Some(_), Some(_)) => Identity::Contradictory,
    }
}

fn by_address(address: IpAddr, ipv6_prefix: u8) -> Identity {
    let text = match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => network(address, ipv6_prefix),
    };
    namespaced("ip:", text.as_bytes())
}

fn network(address: Ipv6Addr, prefix: u8) -> String {
    Ipv6Net::new(address, prefix).map_or_else(|_| address.to_string(), |net| net.trunc().to_string())
}

fn namespaced(namespace: &str, value: &[u8]) -> Identity {
    Identity::Subject([namespace.as_bytes(), value].concat())
}
