//! Whom a request is counted for.

use std::net::SocketAddr;

use http::Request;
use redis_rl_client::http::{IpNet, KeyBy, PeerAddress, RateLimitLayer};
use redis_rl_client::{HOUR, Limiter, Policy};

use crate::support::{Body, ask, get, get_with, limiter, used};

fn policy() -> Policy {
    Policy::fixed_window("api", 10, HOUR).unwrap()
}

/// The limiter after one request.
async fn after(key_by: &KeyBy, request: Request<Body>) -> (u16, Limiter) {
    let limiter = limiter();
    let layer = RateLimitLayer::new(limiter.clone()).limit(policy(), key_by.clone());
    (ask(&layer, request).await.status, limiter)
}

#[track_caller]
fn from(peer: &str, mut request: Request<Body>) -> Request<Body> {
    let address = SocketAddr::new(peer.parse().unwrap(), 50_000);
    request.extensions_mut().insert(PeerAddress(address));
    request
}

async fn assert_counts(key_by: &KeyBy, request: Request<Body>, subject: &str) {
    let described = format!("{request:?}");
    let (status, limiter) = after(key_by, request).await;
    assert_eq!(status, 200, "{described}");
    assert_eq!(used(&limiter, &policy(), subject).await, 1, "not {subject}: {described}");
}

async fn assert_refused(key_by: &KeyBy, request: Request<Body>) {
    let described = format!("{request:?}");
    assert_eq!(after(key_by, request).await.0, 400, "{described}");
}

#[tokio::test(start_paused = true)]
async fn subjects_are_as_documented() {
    let key = [("x-api-key", "k:1")];
    assert_counts(&KeyBy::header("x-api-key"), get_with(&key), "header:x-api-key:k:1").await;
    assert_counts(&KeyBy::header("X-Api-Key"), get_with(&key), "header:x-api-key:k:1").await;
    assert_counts(&KeyBy::peer_address(), from("203.0.113.9", get()), "ip:203.0.113.9").await;
    assert_counts(&KeyBy::constant("all"), get(), "all").await;
    let tenant = KeyBy::with(|head| head.uri.path().strip_prefix("/tenant/").map(str::to_owned));
    let mut request = get();
    *request.uri_mut() = "/tenant/7".parse().unwrap();
    assert_counts(&tenant, request, "with:7").await;
}

#[tokio::test(start_paused = true)]
async fn a_header_that_is_missing_or_empty() {
    assert_refused(&KeyBy::header("x-api-key"), get()).await;
    for empty in ["", " ", " \t  "] {
        assert_refused(&KeyBy::header("x-api-key"), get_with(&[("x-api-key", empty)])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn spaces_around_a_value_make_no_other_caller() {
    let (limiter, policy) = (limiter(), Policy::fixed_window("api", 1, HOUR).unwrap());
    let layer = RateLimitLayer::new(limiter.clone()).limit(policy.clone(), KeyBy::header("x-api-key"));
    let mut served = 0;
    for value in ["k 1", " k 1", "   k 1", "\tk 1", "k 1 ", "k 1\t \t", " \tk 1\t "] {
        served += u32::from(ask(&layer, get_with(&[("x-api-key", value)])).await.is_served());
    }
    assert_eq!(served, 1);
    assert_eq!(used(&limiter, &policy, "header:x-api-key:k 1").await, 1);
    assert!(ask(&layer, get_with(&[("x-api-key", "k  1")])).await.is_served(), "spaces within are a part of it");
}

#[tokio::test(start_paused = true)]
async fn a_header_that_can_not_be_has_all_requests_refused() {
    for name in ["", "not a name", "x-api-key\n", "x-api-key:"] {
        let invalid = || KeyBy::header(name);
        let valid = || KeyBy::header("x-api-key");
        for key_by in
            [invalid(), invalid().optional(), invalid().or(KeyBy::peer_address()), valid().or(invalid()).optional()]
        {
            for request in [get(), from("203.0.113.9", get()), get_with(&[("x-api-key", "k")])] {
                let (status, limiter) = after(&key_by, request).await;
                assert_eq!(status, 503, "{key_by:?}");
                assert_eq!(used(&limiter, &policy(), "header:x-api-key:k").await, 0);
            }
        }
    }
    let shadow = RateLimitLayer::new(limiter()).limit(policy().shadow(), KeyBy::header(""));
    assert!(ask(&shadow, get()).await.is_served(), "a shadow refuses nothing");
}

#[tokio::test(start_paused = true)]
async fn hashed_subjects_are_hashes_of_subjects() {
    let key = [("x-api-key", "k:1")];
    // printf header:x-api-key:k:1 | sha256sum
    let hash = "sha256:5218aa235812d359042cccb2275007bd466e8911bbe2d9b316fa714b6c732a49";
    assert_counts(&KeyBy::header("x-api-key").hashed(), get_with(&key), hash).await;
    let key_or_address = || KeyBy::header("x-api-key").hashed().or(KeyBy::peer_address());
    assert_counts(&key_or_address(), get_with(&key), hash).await;
    assert_counts(&key_or_address(), from("203.0.113.9", get()), "ip:203.0.113.9").await;
    // printf ip:203.0.113.9 | sha256sum
    let hash = "sha256:c22db0284eb367261a5817173dc93d13d025906eea0d5268877045392e124049";
    assert_counts(&key_or_address().hashed(), from("203.0.113.9", get()), hash).await;
    assert_counts(&KeyBy::header("x-api-key"), get_with(&[("x-api-key", hash)]), &format!("header:x-api-key:{hash}"))
        .await;
    assert_refused(&KeyBy::header("x-api-key").hashed(), get()).await;
}

#[tokio::test(start_paused = true)]
async fn a_header_that_stands_twice_is_never_waved_through() {
    let twice = || from("203.0.113.9", get_with(&[("x-api-key", "made up"), ("x-api-key", "mine")]));
    assert_refused(&KeyBy::header("x-api-key"), twice()).await;
    assert_refused(&KeyBy::header("x-api-key").optional(), twice()).await;
    assert_refused(&KeyBy::header("x-api-key").or(KeyBy::peer_address()), twice()).await;
}

#[tokio::test(start_paused = true)]
async fn alternatives_are_tried_in_order_and_the_last_says_whether_one_is_needed() {
    let key_or_user = || KeyBy::header("x-api-key").or(KeyBy::header("x-user"));
    let both = get_with(&[("x-user", "u"), ("x-api-key", "k")]);
    assert_counts(&key_or_user(), both, "header:x-api-key:k").await;
    assert_counts(&key_or_user(), get_with(&[("x-user", "u")]), "header:x-user:u").await;
    assert_refused(&key_or_user(), get()).await;
    assert_eq!(after(&key_or_user().optional(), get()).await.0, 200);
    let needed = KeyBy::header("x-api-key").optional().or(KeyBy::header("x-user"));
    assert_refused(&needed, get()).await;
}

#[tokio::test(start_paused = true)]
async fn no_made_up_value_shares_the_count_of_another_kind() {
    let key_by = KeyBy::header("x-api-key").or(KeyBy::header("ip")).or(KeyBy::peer_address());
    for forged in [
        &[("x-api-key", "ip:203.0.113.9")][..],
        &[("x-api-key", "203.0.113.9")],
        &[("ip", "203.0.113.9")],
        &[("ip", "x-api-key:k")],
    ] {
        let (status, limiter) = after(&key_by, from("198.51.100.1", get_with(forged))).await;
        assert_eq!(status, 200);
        for victim in ["ip:203.0.113.9", "header:x-api-key:k", "all"] {
            assert_eq!(used(&limiter, &policy(), victim).await, 0, "{forged:?} counts for {victim}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ipv6_counts_by_network_and_ipv4_by_address() {
    let by_64 = KeyBy::peer_address();
    for (peer, subject) in [
        ("203.0.113.9", "ip:203.0.113.9"),
        ("::ffff:203.0.113.9", "ip:203.0.113.9"),
        ("2001:db8:1:2::1", "ip:2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "ip:2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "ip:2001:db8:1:3::/64"),
        ("::1", "ip:::/64"),
    ] {
        assert_counts(&by_64, from(peer, get()), subject).await;
    }
    for (bits, subject) in [
        (48, "ip:2001:db8:1::/48"),
        (56, "ip:2001:db8:1:ff00::/56"),
        (128, "ip:2001:db8:1:ffff::1/128"),
        (255, "ip:2001:db8:1:ffff::1/128"),
        (0, "ip:::/0"),
    ] {
        let key_by = KeyBy::header("x-api-key").or(KeyBy::peer_address()).ipv6_prefix(bits);
        assert_counts(&key_by, from("2001:db8:1:ffff::1", get()), subject).await;
        assert_counts(&key_by, from("203.0.113.9", get()), "ip:203.0.113.9").await;
    }
}

#[tokio::test(start_paused = true)]
async fn forwarded_addresses_are_believed_as_far_as_trusted_proxies_wrote_them() {
    let trusted = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse::<IpNet>().unwrap());
    let key_by = KeyBy::forwarded_for(trusted);
    let client = "ip:203.0.113.9";
    for (peer, lines, subject) in [
        // Who is no proxy speaks for itself, whatever it says.
        ("198.51.100.1", &["203.0.113.9"][..], "ip:198.51.100.1"),
        ("198.51.100.1", &["10.0.0.1"], "ip:198.51.100.1"),
        ("198.51.100.1", &[], "ip:198.51.100.1"),
        // Behind one proxy, and what the client made up in front of it.
        ("10.0.0.1", &["203.0.113.9"], client),
        ("10.0.0.1", &["1.1.1.1, 203.0.113.9"], client),
        ("10.0.0.1", &["1.1.1.1, 10.0.0.7, 203.0.113.9"], client),
        ("10.0.0.1", &["nonsense, , 203.0.113.9"], client),
        // Several lines are one list.
        ("10.0.0.1", &["1.1.1.1", "203.0.113.9"], client),
        ("10.0.0.1", &["1.1.1.1, 203.0.113.9", "10.0.0.2"], client),
        ("10.0.0.1", &["203.0.113.9", "10.0.0.3,10.0.0.2"], client),
        // Behind several proxies, of both families.
        ("10.0.0.1", &["1.1.1.1, 203.0.113.9, 10.0.0.3, fd00::2"], client),
        ("fd00::1", &["203.0.113.9"], client),
        ("::ffff:10.0.0.1", &["203.0.113.9"], client),
        // Forms.
        ("10.0.0.1", &["203.0.113.9:4711"], client),
        ("10.0.0.1", &["  203.0.113.9\t"], client),
        ("10.0.0.1", &["::ffff:203.0.113.9"], client),
        ("10.0.0.1", &["[::ffff:203.0.113.9]:4711"], client),
        ("10.0.0.1", &["2001:db8:1:2::9"], "ip:2001:db8:1:2::/64"),
        ("10.0.0.1", &["[2001:db8:1:2::9]"], "ip:2001:db8:1:2::/64"),
        ("10.0.0.1", &["[2001:db8:1:2::9]:4711"], "ip:2001:db8:1:2::/64"),
        ("10.0.0.1", &["203.0.113.9, 10.0.0.3:4711, [fd00::2]:1"], client),
        // What can't be read ends the list: the last proxy that could be believed.
        ("10.0.0.1", &[], "ip:10.0.0.1"),
        ("10.0.0.1", &[""], "ip:10.0.0.1"),
        ("10.0.0.1", &["203.0.113.9,"], "ip:10.0.0.1"),
        ("10.0.0.1", &["203.0.113.9, unknown"], "ip:10.0.0.1"),
        ("10.0.0.1", &["203.0.113.9, _hidden, 10.0.0.2"], "ip:10.0.0.2"),
        ("10.0.0.1", &["203.0.113.9, 10.0.0.2:99999"], "ip:10.0.0.1"),
        ("10.0.0.1", &["203.0.113.009"], "ip:10.0.0.1"),
        ("10.0.0.1", &["203.0.113.9 10.0.0.2"], "ip:10.0.0.1"),
        ("10.0.0.1", &["[203.0.113.9]"], "ip:10.0.0.1"),
        ("10.0.0.1", &["[2001:db8::1"], "ip:10.0.0.1"),
        // Proxies all the way.
        ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "ip:10.0.0.3"),
    ] {
        let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
        assert_counts(&key_by, from(peer, get_with(&lines)), subject).await;
    }
}

#[tokio::test(start_paused = true)]
async fn trusted_networks_of_ipv4_are_such_in_either_form() {
    let forwarded = || get_with(&[("x-forwarded-for", "203.0.113.9")]);
    for (trusted, subject) in [
        ("::ffff:10.0.0.0/104", "ip:203.0.113.9"),
        ("::ffff:10.0.0.1/128", "ip:203.0.113.9"),
        ("::ffff:10.0.0.2/128", "ip:10.0.0.1"),
        ("::ffff:11.0.0.0/104", "ip:10.0.0.1"),
        ("2001:db8::/32", "ip:10.0.0.1"),
    ] {
        let key_by = KeyBy::forwarded_for([trusted.parse().unwrap()]);
        assert_counts(&key_by, from("10.0.0.1", forwarded()), subject).await;
        assert_counts(&key_by, from("::ffff:10.0.0.1", forwarded()), subject).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_forwarded_address_needs_a_peer_and_the_peer_alone_needs_no_header() {
    let all: IpNet = "0.0.0.0/0".parse().unwrap();
    let forwarded = || get_with(&[("x-forwarded-for", "203.0.113.9")]);
    assert_refused(&KeyBy::forwarded_for([all]), forwarded()).await;
    assert_counts(&KeyBy::forwarded_for([]), from("10.0.0.1", forwarded()), "ip:10.0.0.1").await;
    assert_counts(&KeyBy::peer_address(), from("10.0.0.1", forwarded()), "ip:10.0.0.1").await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text_are_values_and_no_addresses() {
    let mut request = from("10.0.0.1", get());
    let value = http::HeaderValue::from_bytes(b"\xff\xfe").unwrap();
    request.headers_mut().insert("x-forwarded-for", value.clone());
    request.headers_mut().insert("x-api-key", value);
    let trusted: IpNet = "10.0.0.0/8".parse().unwrap();
    assert_counts(&KeyBy::forwarded_for([trusted]), request.clone(), "ip:10.0.0.1").await;
    let (_, limiter) = after(&KeyBy::header("x-api-key"), request).await;
    let subject = b"header:x-api-key:\xff\xfe";
    assert_eq!(limiter.peek(&policy(), subject).await.unwrap().remaining, Some(9));
}
