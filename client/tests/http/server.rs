//! A real axum server over a real socket.

use std::net::SocketAddr;

use axum::{Router, routing::get};
use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Limiter, Policy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::used;

async fn serve(layer: RateLimitLayer) -> SocketAddr {
    let app = Router::new().route("/", get(|| async { "hello" })).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    address
}

/// The response as it comes over the wire, without its date, and with the waits of the first minute of an hour as a
/// whole hour: this clock is a real one.
async fn request(server: SocketAddr, method: &str, lines: &str) -> String {
    let mut stream = TcpStream::connect(server).await.unwrap();
    let request = format!("{method} / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{lines}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let lines = response.split("\r\n").filter(|line| !line.starts_with("date: "));
    let lines = lines.map(|line| match line.split_once(": ") {
        Some((name, value)) if value.parse().is_ok_and(|seconds| (3_540..=3_600).contains(&seconds)) => {
            format!("{name}: 3600")
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn callers_get_what_they_may_and_are_told() {
    let (limiter, policy) = (Limiter::in_memory(), Policy::sliding_log("api", 2, HOUR).unwrap());
    let server = serve(RateLimitLayer::new(limiter.clone()).limit(policy.clone(), KeyBy::header("x-api-key"))).await;

    let served = request(server, "GET", "x-api-key: k\r\n").await;
    assert!(served.starts_with("HTTP/1.1 200 OK\n"), "{served}");
    assert!(served.contains("\nx-ratelimit-limit: 2\nx-ratelimit-remaining: 1\nx-ratelimit-reset: 3600\n"), "{served}");
    assert!(served.ends_with("\n\nhello"), "{served}");
    request(server, "GET", "x-api-key: k\r\n").await;

    let denied = request(server, "GET", "x-api-key: k\r\n").await;
    let body = r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"violated-policies":["api"]}"#;
    let head = "HTTP/1.1 429 Too Many Requests\n\
        content-type: application/problem+json\ncache-control: no-store\nretry-after: 3600\n\
        x-ratelimit-limit: 2\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 3600\n";
    let length = format!("content-length: {}\n", body.len());
    assert_eq!(denied, format!("{head}{length}connection: close\n\n{body}"));
    let without_body = request(server, "HEAD", "x-api-key: k\r\n").await;
    assert!(without_body.starts_with(head) && without_body.ends_with("\n\n"), "{without_body}");

    assert!(request(server, "GET", "x-api-key: another\r\n").await.starts_with("HTTP/1.1 200"));
    assert!(request(server, "GET", "").await.starts_with("HTTP/1.1 400 Bad Request\n"));
    assert_eq!(used(&limiter, &policy, "header:x-api-key:k").await, 2);
}

#[tokio::test]
async fn the_peers_address_comes_from_the_socket() {
    let (limiter, policy) = (Limiter::in_memory(), Policy::sliding_log("api", 10, HOUR).unwrap());
    let server = serve(RateLimitLayer::new(limiter.clone()).limit(policy.clone(), KeyBy::peer_address())).await;
    assert!(request(server, "GET", "x-forwarded-for: 203.0.113.9\r\n").await.starts_with("HTTP/1.1 200"));
    assert_eq!(used(&limiter, &policy, "ip:127.0.0.1").await, 1);
}

#[tokio::test]
async fn the_clients_address_comes_from_a_trusted_proxy_only() {
    for (trusted, subject) in [("127.0.0.0/8", "ip:203.0.113.9"), ("10.0.0.0/8", "ip:127.0.0.1")] {
        let (limiter, policy) = (Limiter::in_memory(), Policy::sliding_log("api", 10, HOUR).unwrap());
        let key_by = KeyBy::forwarded_for([trusted.parse().unwrap()]);
        let server = serve(RateLimitLayer::new(limiter.clone()).limit(policy.clone(), key_by)).await;
        let lines = "x-forwarded-for: 198.51.100.1\r\nx-forwarded-for: 203.0.113.9\r\n";
        assert!(request(server, "GET", lines).await.starts_with("HTTP/1.1 200"));
        assert_eq!(used(&limiter, &policy, subject).await, 1, "{trusted} is trusted");
    }
}

#[tokio::test]
async fn a_hundred_at_once_get_no_more_than_the_limit() {
    let policy = Policy::sliding_log("api", 40, HOUR).unwrap();
    let server = serve(RateLimitLayer::new(Limiter::in_memory()).limit(policy, KeyBy::peer_address())).await;
    let requests: Vec<_> = (0..100).map(|_| tokio::spawn(request(server, "GET", ""))).collect();
    let mut statuses = [0, 0];
    for request in requests {
        let response = request.await.unwrap();
        statuses[0] += u32::from(response.starts_with("HTTP/1.1 200"));
        statuses[1] += u32::from(response.starts_with("HTTP/1.1 429"));
    }
    assert_eq!(statuses, [40, 60]);
}
