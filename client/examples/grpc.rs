//! A tonic server: 100 calls a minute for each client address.
//!
//! `cargo run --example grpc --features tonic -- 127.0.0.1:50051`, with Redis at `REDIS_URL`.

use std::env;

use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{Limiter, MINUTE, Policy, Rate};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:50051".to_owned());
    let redis = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());

    let limiter = Limiter::builder(redis).nodes(1).connect_lazy()?;
    let per_address = Policy::token_bucket("grpc", 100, Rate::per(100, MINUTE))?;
    let limits = RateLimitLayer::grpc(limiter).limit(per_address, KeyBy::peer_address());

    let (_, health) = tonic_health::server::health_reporter();
    let incoming = TcpIncoming::bind(address.parse()?)?;
    println!("listening on {}", incoming.local_addr()?);
    Server::builder().layer(limits).add_service(health).serve_with_incoming(incoming).await?;
    Ok(())
}
