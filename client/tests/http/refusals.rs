//! What a caller is told who may not go on.

use std::time::Duration;

use http::request::Parts;
use http::{Response, StatusCode};
use redis_rl_client::http::{KeyBy, RateLimitLayer, Reason, Refusal, Refuse};
use redis_rl_client::{HOUR, Limiter, Outage, Policy, SECOND};

use crate::support::{Answer, ask, get, limiter, unreachable};

const EXCEEDED: &str = r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"violated-policies":["#;

fn layer(limiter: &Limiter, policy: Policy) -> RateLimitLayer {
    RateLimitLayer::new(limiter.clone()).limit(policy, KeyBy::constant("all"))
}

#[tokio::test(start_paused = true)]
async fn too_many_requests() {
    let layer = layer(&limiter(), Policy::fixed_window("api", 1, HOUR).unwrap());
    assert!(ask(&layer, get()).await.is_served());
    let expected = Answer {
        status: 429,
        headers: [
            "cache-control: no-store",
            "content-type: application/problem+json",
            "retry-after: 3600",
            "x-ratelimit-limit: 1",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 3600",
        ]
        .map(str::to_owned)
        .into(),
        body: format!(r#"{EXCEEDED}"api"]}}"#),
    };
    assert_eq!(ask(&layer, get()).await, expected);
}

#[tokio::test(start_paused = true)]
async fn waits_are_whole_seconds_rounded_up_and_at_least_one() {
    for (left_millis, seconds) in
        [(1, "1"), (999, "1"), (1_000, "1"), (1_001, "2"), (1_999, "2"), (2_000, "2"), (58_000, "58")]
    {
        let layer = layer(&limiter(), Policy::fixed_window("api", 1, 60 * SECOND).unwrap());
        tokio::time::advance(Duration::from_millis(60_000 - left_millis)).await;
        assert_eq!(ask(&layer, get()).await.header("x-ratelimit-reset"), Some(seconds), "{left_millis} ms");
        let denied = ask(&layer, get()).await;
        assert_eq!(denied.header("retry-after"), Some(seconds), "{left_millis} ms");
        assert_eq!(denied.header("x-ratelimit-reset"), Some(seconds), "{left_millis} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn never_has_no_retry_after_also_beside_a_limit_that_has() {
    let never = Policy::fixed_window("never", 0, HOUR).unwrap();
    let limiter = limiter();
    let answer = ask(&layer(&limiter, never.clone()), get()).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, None));
    assert_eq!(answer.header("x-ratelimit-limit"), Some("0"));

    let other = Policy::fixed_window("other", 1, HOUR).unwrap();
    let _ = limiter.check(&other, "all").await;
    let answer = ask(&layer(&limiter, other).limit(never, KeyBy::constant("all")), get()).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, None));
    assert_eq!(answer.header("x-ratelimit-limit"), Some("0"), "never is the longest wait");
    assert_eq!(answer.body, format!(r#"{EXCEEDED}"other","never"]}}"#));
}

#[tokio::test]
async fn closed_is_unavailable_rather_than_too_many() {
    let layer = layer(&unreachable(Outage::Closed), Policy::fixed_window("api", 1, HOUR).unwrap());
    let expected = Answer {
        status: 503,
        headers: ["cache-control: no-store", "content-type: application/problem+json", "retry-after: 1"]
            .map(str::to_owned)
            .into(),
        body: r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Request cannot be satisfied due to temporary server capacity constraints","status":503,"violated-policies":["api"]}"#.to_owned(),
    };
    assert_eq!(ask(&layer, get()).await, expected);
}

#[tokio::test]
async fn too_many_outweighs_unavailable() {
    let limiter = unreachable(Outage::Closed);
    let shared = Policy::fixed_window("shared", 1, HOUR).unwrap().on_outage(Outage::LocalShare);
    assert!(ask(&layer(&limiter, shared.clone()), get()).await.is_served());
    let closed = Policy::fixed_window("closed", 1, HOUR).unwrap();
    let answer = ask(&layer(&limiter, closed).limit(shared, KeyBy::constant("all")), get()).await;
    assert_eq!((answer.status, answer.body), (429, format!(r#"{EXCEEDED}"shared"]}}"#)));
}

#[tokio::test]
async fn a_local_share_denies_with_a_wait_but_no_numbers() {
    let layer = layer(&unreachable(Outage::LocalShare), Policy::token_bucket("api", 1, minutely()).unwrap());
    let allowed = ask(&layer, get()).await;
    assert!(allowed.is_served());
    assert_eq!(allowed.headers, [""; 0]);
    let denied = ask(&layer, get()).await;
    let expected = ["cache-control: no-store", "content-type: application/problem+json", "retry-after: 60"];
    assert_eq!((denied.status, denied.headers), (429, expected.map(str::to_owned).to_vec()));
}

fn minutely() -> redis_rl_client::Rate {
    redis_rl_client::Rate::per(1, redis_rl_client::MINUTE)
}

#[tokio::test(start_paused = true)]
async fn a_missing_identity_is_a_bad_request_that_costs_nothing() {
    let (limiter, site) = (limiter(), Policy::fixed_window("site", 10, HOUR).unwrap());
    let key = Policy::fixed_window("api", 10, HOUR).unwrap();
    let layer = layer(&limiter, site.clone()).limit(key, KeyBy::header("X-API-Key").or(KeyBy::peer_address()));
    let expected = Answer {
        status: 400,
        headers: ["cache-control: no-store", "content-type: application/problem+json"].map(str::to_owned).into(),
        body: r#"{"type":"about:blank","title":"Bad Request","status":400,"detail":"needed once, to count the request by: the header x-api-key or the client's address"}"#.to_owned(),
    };
    assert_eq!(ask(&layer, get()).await, expected);
    assert_eq!(crate::support::used(&limiter, &site, "all").await, 0);
}

#[derive(Clone)]
struct Teapot;

impl<B: From<bytes::Bytes>> Refuse<B> for Teapot {
    fn refuse(&self, refusal: &Refusal, request: &Parts) -> Response<B> {
        assert_eq!(refusal.reason, Reason::Denied);
        assert_eq!(refusal.retry_after_seconds(), Some(3_600));
        let mut response = Response::new(B::from(format!("{} {}", request.uri, refusal.policies.concat()).into()));
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_can_be_of_ones_own_making() {
    let layer = layer(&limiter(), Policy::fixed_window("api", 1, HOUR).unwrap()).refuse_with(Teapot);
    assert!(ask(&layer, get()).await.is_served());
    let answer = ask(&layer, get()).await;
    assert_eq!((answer.status, answer.body.as_str()), (418, "/ api"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("0"));
}
