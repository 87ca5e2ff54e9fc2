//! An axum server: 100 requests a minute for each API key, or for each address without one, and 1000 a second in all.
//!
//! `cargo run --example axum --features axum -- 127.0.0.1:3000`, with Redis at `REDIS_URL`.

use std::env;
use std::net::SocketAddr;

use axum::{Router, routing::get};
use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{Limiter, MINUTE, Policy, Rate};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Faults of set-up are logged as errors. Standard output tells where it listens, and nothing else.
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let redis = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());

    let limiter = Limiter::builder(redis).nodes(1).connect_lazy()?;
    let per_caller = Policy::token_bucket("api", 100, Rate::per(100, MINUTE))?;
    let site = Policy::token_bucket("site", 1_000, Rate::per_second(1_000))?;
    // Keys are counted as they come. A server that knows its keys puts a layer in front that refuses made-up ones; one
    // behind a load balancer counts by `KeyBy::forwarded_for` instead of the peer.
    let limits = RateLimitLayer::new(limiter)
        .limit(per_caller, KeyBy::header("x-api-key").hashed().or(KeyBy::peer_address()))
        .limit_untold(site, KeyBy::constant("all"));

    let app = Router::new().route("/", get(|| async { "hello\n" })).layer(limits);
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
