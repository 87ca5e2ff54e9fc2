//! Who is behind the proxies.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of the client: each proxy appended whom it was called by, so the list is believed from the right, as far
/// as trusted proxies wrote it. What can't be read ends it.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(&address));
    let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
    let mut entries = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
    let mut client = peer;
    while is_trusted(client) {
        let Some(earlier) = entries.next().and_then(address) else { break };
        client = earlier;
    }
    client
}

/// In IPv4's form where it is a network of IPv4, as addresses are compared.
pub(super) fn canonical(net: IpNet) -> IpNet {
    let IpNet::V6(mapped) = net else { return net };
    let bits = mapped.prefix_len().checked_sub(96);
    let address = mapped.addr().to_ipv4_mapped();
    bits.zip(address).and_then(|(bits, address)| IpNet::new(address.into(), bits).ok()).unwrap_or(net)
}

/// `1.2.3.4`, `1.2.3.4:567`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:567`.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry.trim_ascii()).ok()?;
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let address = text.parse().ok().or_else(bracketed).or_else(with_port)?;
    Some(address.to_canonical())
}
