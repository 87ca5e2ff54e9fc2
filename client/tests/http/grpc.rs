//! A real tonic server and client.

use std::time::Duration;

use redis_rl_client::http::{Dialect, GrpcStatus, KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Limiter, MINUTE, Outage, Policy};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_types::StatusExt as _;

use crate::support::{unreachable, used};

async fn serve(layer: RateLimitLayer<GrpcStatus>) -> HealthClient<Channel> {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(layer).add_service(health);
    tokio::spawn(async move { server.serve_with_incoming(incoming).await.unwrap() });
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    HealthClient::new(endpoint.connect().await.unwrap())
}

async fn call(client: &mut HealthClient<Channel>) -> Result<Response<HealthCheckResponse>, Status> {
    client.check(Request::new(HealthCheckRequest { service: String::new() })).await
}

#[tokio::test]
async fn exhausted_with_the_wait() {
    let (limiter, policy) = (Limiter::in_memory(), Policy::sliding_log("grpc", 2, HOUR).unwrap());
    let layer = RateLimitLayer::grpc(limiter.clone()).limit(policy.clone(), KeyBy::peer_address());
    let mut client = serve(layer).await;
    for _ in 0..2 {
        let response = call(&mut client).await.unwrap();
        assert!(response.metadata().get("x-ratelimit-limit").is_none());
    }
    let status = call(&mut client).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "rate limit exceeded: grpc"));
    let wait = status.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!((HOUR - MINUTE..=HOUR).contains(&wait), "{wait:?}");
    assert_eq!(used(&limiter, &policy, "ip:127.0.0.1").await, 2);
}

#[tokio::test]
async fn unavailable_with_the_wait() {
    let policy = Policy::fixed_window("grpc", 2, HOUR).unwrap();
    let layer = RateLimitLayer::grpc(unreachable(Outage::Closed)).limit(policy, KeyBy::constant("all"));
    let status = call(&mut serve(layer).await).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "rate limit can't be decided: grpc"));
    assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn never_has_no_wait() {
    let policy = Policy::fixed_window("grpc", 0, HOUR).unwrap();
    let layer = RateLimitLayer::grpc(Limiter::in_memory()).limit(policy, KeyBy::constant("all"));
    let status = call(&mut serve(layer).await).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().is_none());
}

#[tokio::test]
async fn a_missing_identity_is_an_invalid_argument() {
    let policy = Policy::fixed_window("grpc", 1, HOUR).unwrap();
    let layer = RateLimitLayer::grpc(Limiter::in_memory()).limit(policy, KeyBy::header("x-api-key"));
    let status = call(&mut serve(layer).await).await.unwrap_err();
    let expected = "needed once, to count the request by: the header x-api-key";
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, expected));
}

#[tokio::test]
async fn metadata_tells_how_much_is_left_if_asked_for() {
    let policy = Policy::sliding_log("grpc", 2, HOUR).unwrap();
    let layer = RateLimitLayer::grpc(Limiter::in_memory()).limit(policy, KeyBy::constant("all"));
    let mut client = serve(layer.headers([Dialect::XRateLimit])).await;
    assert_eq!(call(&mut client).await.unwrap().metadata().get("x-ratelimit-remaining").unwrap(), "1");
}
