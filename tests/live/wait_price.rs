//! What it costs to have each call confirmed by a replica.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Client, Pipeline};
use tokio::task::JoinSet;

use crate::support::{Options, Proxy, Server, replica_by};

/// Callers of one process, who share its connection as those of an async client do.
const CALLERS: usize = 64;
const A_WHILE: Duration = Duration::from_secs(2);

/// How many calls a second all callers get answered, and confirmed by a replica if they ask for that.
async fn calls_a_second(connections: &[MultiplexedConnection], with_wait: bool) -> f64 {
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let mut redis = connections[caller % connections.len()].clone();
        callers.spawn(async move {
            let mut calls = 0;
            while began.elapsed() < A_WHILE {
                let mut pipe = Pipeline::new();
                let key = format!("key:{caller}");
                pipe.cmd("RL.TOKENBUCKET").arg(key).arg(1_000_000_000).arg(1).ignore();
                if with_wait {
                    pipe.cmd("WAIT").arg(1).arg(1_000).ignore();
                }
                pipe.query_async::<()>(&mut redis).await.unwrap();
                calls += 1;
            }
            calls
        });
    }
    let calls: i32 = callers.join_all().await.into_iter().sum();
    f64::from(calls) / began.elapsed().as_secs_f64()
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "measures for some seconds, and judges nothing"]
async fn what_wait_costs_on_a_connection_that_many_share() {
    for delay in [Duration::ZERO, Duration::from_millis(1)] {
        println!("A replica that is {delay:?} away:");
        measure(delay).await;
    }
}

async fn measure(delay: Duration) {
    let primary = Server::new();
    let proxy = Proxy::slowly_to(primary.port(), delay);
    let port = if delay.is_zero() { primary.port() } else { proxy.port() };
    let _replica = replica_by(&primary, port, Options::new());
    let client = Client::open(format!("redis://127.0.0.1:{}", primary.port())).unwrap();
    let shared = [client.get_multiplexed_async_connection().await.unwrap()];
    let mut own = vec![];
    for _ in 0..CALLERS {
        own.push(client.get_multiplexed_async_connection().await.unwrap());
    }
    for (whose, connections) in [("one connection for all", shared.as_slice()), ("a connection each", &own)] {
        let without = calls_a_second(connections, false).await;
        let with = calls_a_second(connections, true).await;
        println!(
            "{CALLERS} callers, {whose}: {without:.0} calls a second, {with:.0} with WAIT: {:.1} times fewer",
            without / with
        );
        assert!(with > 0.0 && without > 0.0);
    }
}
