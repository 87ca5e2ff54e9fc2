//! Where a request says whom it comes from.

use std::fmt;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use ipnet::{IpNet, Ipv6Net};
use sha2::{Digest as _, Sha256};

use super::fault::Fault;
use super::{forwarded, peer};

/// Where a request says whom it comes from.
#[derive(Clone)]
pub(super) struct Source {
    pub place: Place,
    /// Whether the hash of what is found there takes its place.
    pub is_hashed: bool,
}

#[derive(Clone)]
pub(super) enum Place {
    Header(HeaderName),
    /// A header of a name that no header can have.
    NoHeader(Arc<str>),
    Address {
        /// The proxies whose word is taken; `None` if only the peer counts.
        proxies: Option<Arc<[IpNet]>>,
        ipv6_prefix: u8,
    },
    With(Arc<Identify>),
    Constant(Arc<[u8]>),
}

pub(super) type Identify = dyn Fn(&Parts) -> Option<Vec<u8>> + Send + Sync;

/// What a request says about whom it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Identity {
    Subject(Vec<u8>),
    Missing,
    /// It says several things, of which the server behind may believe another than a limit would.
    Contradictory,
    /// Nobody could say it: the limit is set up in a wrong way.
    Impossible,
}

impl Source {
    pub fn identity(&self, head: &Parts) -> Identity {
        match self.place.identity(head) {
            Identity::Subject(subject) if self.is_hashed => Identity::Subject(hashed(&subject)),
            identity => identity,
        }
    }
}

impl Place {
    fn identity(&self, head: &Parts) -> Identity {
        match self {
            Self::Header(name) => by_header(name, &head.headers),
            Self::NoHeader(name) => {
                static INVALID: Fault = Fault::new();
                INVALID.shows(format_args!("no header can have the name {name:?}, so all requests are refused"));
                Identity::Impossible
            }
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

/// What a request has to have.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Header(name) => write!(f, "the header {name}"),
            Place::NoHeader(name) => write!(f, "the header {name:?}, which can't be"),
            Place::Address { .. } => f.write_str("the client's address"),
            Place::With(_) => f.write_str("an identity"),
            Place::Constant(_) => f.write_str("nothing"),
        }
    }
}

fn by_header(name: &HeaderName, headers: &HeaderMap) -> Identity {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Identity::Missing,
        (Some(value), None) => match without_padding(value.as_bytes()) {
            [] => Identity::Missing,
            value => namespaced(&format!("header:{name}:"), value),
        },
        (Some(_), Some(_)) => Identity::Contradictory,
    }
}

/// Spaces and tabs around a value are no part of it. In HTTP/1 they are gone by now, in HTTP/2 a caller may send them.
fn without_padding(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
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

fn hashed(subject: &[u8]) -> Vec<u8> {
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(subject) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into_bytes()
}
