//! Whom a limit counts.

use std::fmt;
use std::sync::Arc;

use http::HeaderName;
use http::request::Parts;
use ipnet::IpNet;

use super::forwarded;
use super::source::{Identity, Place, Source};

/// Whom a limit counts: makes a request's subject, which is a part of the key in Redis.
///
/// | made by | subject |
/// | --- | --- |
/// | [`header("x-api-key")`](KeyBy::header) | `header:x-api-key:` and the value |
/// | [`peer_address()`](KeyBy::peer_address), [`forwarded_for(…)`](KeyBy::forwarded_for) | `ip:203.0.113.9`, `ip:2001:db8:1:2::/64` |
/// | [`with(…)`](KeyBy::with) | `with:` and what the function returned |
/// | [`constant("all")`](KeyBy::constant) | `all` |
/// | any of them, [`hashed()`](KeyBy::hashed) | `sha256:` and the hash of that in 64 hexadecimal digits |
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
/// let proxies: IpNet = "10.0.7.16/28".parse()?; // the load balancers alone
/// let by_key_or_address = KeyBy::header("x-api-key").hashed().or(KeyBy::forwarded_for([proxies]));
/// # Ok(())
/// # }
/// ```
///
/// [`Limiter::check`]: crate::Limiter::check
/// [`Limiter::refund`]: crate::Limiter::refund
#[derive(Clone)]
#[must_use]
pub struct KeyBy {
    sources: Vec<Source>,
    optional: bool,
}

impl KeyBy {
    /// By the value of a request header, without spaces and tabs around it. A header that is empty counts as missing. A
    /// request in which it stands several times is refused with 400 in any case: the server behind might go by another
    /// of the values than the limit.
    ///
    /// Upper and lower case are the same in `name`. If it can't be a header's name, because it is empty or has spaces
    /// in it, all requests are refused with 503, also if this is [`optional`](KeyBy::optional) or one of several, and
    /// an error is logged once a minute.
    ///
    /// The value is a part of the key in Redis, where operators see it: [hash](KeyBy::hashed) secrets. And count by a
    /// header only what the server refuses when it is made up: who makes up a new value for each request has a new
    /// limit each time.
    ///
    /// Some headers have several values that mean the same, and a limit for each. `Authorization` is one: neither the
    /// case of its scheme nor the number of spaces behind that matters, so count by what is behind them, or by the
    /// user, with [`KeyBy::with`]. `Host` is there in HTTP/1 only; in HTTP/2 the authority takes its place:
    ///
    /// ```
    /// use http::header::HOST;
    /// use http::uri::Authority;
    /// use redis_rl_client::http::KeyBy;
    ///
    /// let by_host = KeyBy::with(|head| {
    ///     let host = || Authority::try_from(head.headers.get(HOST)?.as_bytes()).ok();
    ///     Some(head.uri.authority().cloned().or_else(host)?.host().to_lowercase())
    /// });
    /// ```
    pub fn header(name: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        let place =
            HeaderName::from_bytes(name.as_bytes()).map_or_else(|_| Place::NoHeader(name.into()), Place::Header);
        Self::from(place)
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
        Self::from(Place::Address { proxies: None, ipv6_prefix: 64 })
    }

    /// By the address of the client behind trusted proxies, as `X-Forwarded-For` tells it.
    ///
    /// Believed is only what a trusted proxy wrote: the header counts if the peer is one, and is read from the right,
    /// where the nearest proxy wrote, up to the first address that is no trusted proxy. That is the client. What stands
    /// left of it anybody may have made up. An entry that is no address ends the list there, and the last proxy counts
    /// as the client.
    ///
    /// No caller may have an address in `trusted`, or it chooses the address that it counts as: give the addresses of
    /// the proxies alone, not of the network that they are in. The proxies must append to the header, or replace it.
    /// For the peer's address, IPv6 and IPv4 see [`KeyBy::peer_address`].
    pub fn forwarded_for(trusted: impl IntoIterator<Item = IpNet>) -> Self {
        let proxies = trusted.into_iter().map(forwarded::canonical).collect();
        Self::from(Place::Address { proxies: Some(proxies), ipv6_prefix: 64 })
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
        Self::from(Place::With(Arc::new(move |head| identify(head).map(Into::into))))
    }

    /// All requests together.
    pub fn constant(subject: impl Into<Vec<u8>>) -> Self {
        Self::from(Place::Constant(subject.into().into()))
    }

    /// By this, or by `other` where it is missing.
    pub fn or(mut self, other: Self) -> Self {
        self.sources.extend(other.sources);
        Self { sources: self.sources, optional: other.optional }
    }

    /// The limit does not apply to requests that lack the identity. Said last, behind all [`KeyBy::or`].
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// By the SHA-256 of the subject in its place, so that a secret such as an API key is in no key of Redis. Said
    /// behind what it is for.
    ///
    /// Whoever sees a hash can still find out by trying what is easy to guess: an address, or a short key.
    pub fn hashed(mut self) -> Self {
        for source in &mut self.sources {
            source.is_hashed = true;
        }
        self
    }

    /// How many bits of an IPv6 address count; at most 128, by default 64, which is what a subscriber has at least.
    /// Said behind the addresses that it is for.
    pub fn ipv6_prefix(mut self, bits: u8) -> Self {
        for source in &mut self.sources {
            if let Place::Address { ipv6_prefix, .. } = &mut source.place {
                *ipv6_prefix = bits.min(128);
            }
        }
        self
    }

    pub(super) fn is_optional(&self) -> bool {
        self.optional
    }

    pub(super) fn identity(&self, head: &Parts) -> Identity {
        // Shows with each request, not only with one that lacks what comes before it.
        if let Some(fault) = self.sources.iter().find(|source| matches!(source.place, Place::NoHeader(_))) {
            return fault.identity(head);
        }
        let mut found = self.sources.iter().map(|source| source.identity(head));
        found.find(|identity| *identity != Identity::Missing).unwrap_or(Identity::Missing)
    }

    fn from(place: Place) -> Self {
        Self { sources: vec![Source { place, is_hashed: false }], optional: false }
    }
}

/// What a request has to have: `the header x-api-key or the client's address`.
impl fmt::Display for KeyBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, source) in self.sources.iter().enumerate() {
            if index > 0 {
                f.write_str(" or ")?;
            }
            source.fmt(f)?;
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
