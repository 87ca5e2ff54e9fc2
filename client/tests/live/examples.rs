//! The examples, as programs, with a real Redis behind them that goes away and comes back.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::programs::{Program, get};
use crate::support::Server;

/// Starts an example, and learns from it where it listens.
fn start(example: &str, server: &Server) -> (Program, String) {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let mut command = Command::new(deps.with_file_name("examples").join(example));
    command.arg("127.0.0.1:0").env("REDIS_URL", format!("redis://127.0.0.1:{}", server.port()));
    let mut program = Program::start({
        command.stdout(Stdio::piped());
        command
    });
    let mut line = String::new();
    BufReader::new(program.process().stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").expect("where it listens").to_owned();
    (program, address)
}

#[tokio::test]
async fn an_axum_server_limits_its_callers_together() {
    let server = Server::new();
    let (_one, first) = start("axum", &server);
    let (_two, second) = start("axum", &server);

    let (began, mut admitted) = (Instant::now(), 0);
    for request in 0..150 {
        let address = if request % 2 == 0 { &first } else { &second };
        let answer = get(address, &[("x-api-key", "alice")]).await;
        match answer.status {
            // What a busy machine made an outage of is not Redis' decision.
            200 => admitted += u64::from(answer.header("x-ratelimit-remaining").is_some()),
            429 => {
                assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
                assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
                assert_eq!(answer.header("x-ratelimit-remaining"), Some("0"), "{answer:?}");
            }
            _ => panic!("{answer:?}"),
        }
    }
    // 100, and what came back meanwhile.
    let most = 101 + began.elapsed().as_secs() * 100 / 60;
    assert!(admitted <= most && admitted >= 90, "{admitted} of {most}");
    assert_eq!(get(&first, &[("x-api-key", "bob")]).await.status, 200);
    assert_eq!(get(&first, &[]).await.status, 200, "by its address");
}

#[tokio::test]
async fn an_axum_server_goes_on_while_redis_is_away() {
    let mut server = Server::new();
    let (_program, address) = start("axum", &server);
    let answer = get(&address, &[("x-api-key", "alice")]).await;
    assert!(answer.header("x-ratelimit-remaining").is_some(), "{answer:?}");

    server.kill();
    for request in 0..20 {
        let answer = get(&address, &[("x-api-key", "alice")]).await;
        assert_eq!(answer.status, 200, "{request}: {answer:?}");
        assert_eq!(answer.header("x-ratelimit-remaining"), None, "{request}: nobody knows: {answer:?}");
    }
    server.revive();
    let began = Instant::now();
    loop {
        sleep(Duration::from_millis(100)).await;
        let answer = get(&address, &[("x-api-key", "alice")]).await;
        if answer.header("x-ratelimit-remaining").is_some() {
            assert_eq!((answer.status, answer.header("x-ratelimit-limit")), (200, Some("100")), "{answer:?}");
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "Redis does not decide again: {answer:?}");
    }
}

#[tokio::test]
async fn a_grpc_server_limits_its_callers() {
    let server = Server::new();
    let (_program, address) = start("grpc", &server);
    let channel = Endpoint::try_from(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel);
    let mut refused = None;
    for _ in 0..120 {
        if let Err(status) = health.check(HealthCheckRequest::default()).await {
            refused = Some(status);
        }
    }
    let refused = refused.expect("more than 100 calls a minute");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
}
