//! The address of the other end of the connection.

use std::net::{IpAddr, SocketAddr};

use http::Extensions;

use super::fault::Fault;

/// The address of the other end of the connection, as a request extension: for servers that have their own way to know
/// it.
///
/// With feature `axum` the layer also finds what `into_make_service_with_connect_info::<SocketAddr>()` leaves, and with
/// feature `tonic` what tonic's server leaves. This comes first.
///
/// ```
/// use std::net::SocketAddr;
/// use redis_rl_client::http::PeerAddress;
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(PeerAddress(SocketAddr::from(([203, 0, 113, 9], 50_000))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// The address, in IPv4's form where it has one.
pub(super) fn address(extensions: &Extensions) -> Option<IpAddr> {
    let address = extensions.get::<PeerAddress>().map(|peer| peer.0);
    #[cfg(feature = "axum")]
    let address = address.or_else(|| {
        let info = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>();
        info.map(|info| info.0)
    });
    #[cfg(feature = "tonic")]
    let address = address.or_else(|| of_tonic(extensions));
    if address.is_none() {
        static UNKNOWN: Fault = Fault::new();
        UNKNOWN.shows(format_args!(
            "the peer's address is unknown, so nobody can be limited by it: serve by \
             `into_make_service_with_connect_info::<SocketAddr>()` (axum), or set the extension `PeerAddress`"
        ));
    }
    address.map(|address| address.ip().to_canonical())
}

/// By tonic's own look-up, which knows of TLS where tonic was built with it.
#[cfg(feature = "tonic")]
fn of_tonic(extensions: &Extensions) -> Option<SocketAddr> {
    tonic::Request::from_parts(tonic::metadata::MetadataMap::new(), extensions.clone(), ()).remote_addr()
}
