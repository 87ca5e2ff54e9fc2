//! How much is left, byte for byte.

use std::convert::Infallible;
use std::time::Duration;

use http::Response;
use redis_rl_client::http::{Dialect, EXPOSED_HEADERS, KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Limiter, MINUTE, Outage, Policy, Rate, SECOND};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::{Body, ask, get, limiter, read, unreachable};

fn layer(limiter: &Limiter, policies: &[&Policy], dialects: &[Dialect]) -> RateLimitLayer {
    let layer = RateLimitLayer::new(limiter.clone()).headers(dialects.iter().copied());
    policies.iter().fold(layer, |layer, policy| layer.limit((*policy).clone(), KeyBy::constant("all")))
}

#[tokio::test(start_paused = true)]
async fn each_dialect_of_one_answer() {
    for (dialects, expected) in [
        (&[][..], &[][..]),
        (&[Dialect::XRateLimit], &["x-ratelimit-limit: 10", "x-ratelimit-remaining: 9", "x-ratelimit-reset: 59"]),
        (
            &[Dialect::XRateLimitEpoch],
            &["x-ratelimit-limit: 10", "x-ratelimit-remaining: 9", "x-ratelimit-reset: 1814400060"],
        ),
        (&[Dialect::RateLimit], &[r#"ratelimit-policy: "api";q=10;w=60"#, r#"ratelimit: "api";r=9;t=59"#]),
        (&[Dialect::RateLimitDraft06], &["ratelimit-limit: 10", "ratelimit-remaining: 9", "ratelimit-reset: 59"]),
        (
            &[Dialect::XRateLimit, Dialect::XRateLimitEpoch, Dialect::RateLimit],
            &[
                r#"ratelimit-policy: "api";q=10;w=60"#,
                r#"ratelimit: "api";r=9;t=59"#,
                "x-ratelimit-limit: 10",
                "x-ratelimit-remaining: 9",
                "x-ratelimit-reset: 59",
            ],
        ),
    ] {
        let (limiter, policy) = (limiter(), Policy::fixed_window("api", 10, MINUTE).unwrap());
        tokio::time::advance(Duration::from_millis(1_500)).await;
        assert_eq!(ask(&layer(&limiter, &[&policy], dialects), get()).await.headers, expected, "{dialects:?}");
    }
}

/// The field of the draft that says where a caller stands, after `calls` calls.
async fn standing(policy: &Policy, calls: u64) -> String {
    let limiter = limiter();
    for _ in 1..calls {
        let _ = limiter.check(policy, "all").await;
    }
    let layer = layer(&limiter, &[policy], &[Dialect::RateLimit]).max_delay(HOUR);
    let answer = ask(&layer, get()).await;
    format!("{} {}", answer.header("ratelimit-policy").unwrap(), answer.header("ratelimit").unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_draft_tells_when_there_is_more() {
    let bucket = Policy::token_bucket("b", 10, Rate::per(1, 3 * SECOND)).unwrap();
    let seconds = Policy::token_bucket("b", 7, Rate::per(2, 3 * SECOND)).unwrap();
    let queue = Policy::leaky_bucket("q", 3, Rate::per(1, 5 * SECOND)).unwrap();
    let window = Policy::fixed_window("w", 2, MINUTE).unwrap();
    let sliding = Policy::sliding_window("s", 2, MINUTE).unwrap();
    let log = Policy::sliding_log("l", 2, MINUTE).unwrap();
    let none = Policy::token_bucket("n", 0, Rate::per_second(1)).unwrap();
    let large = Policy::fixed_window("m", (1 << 53) - 1, 36_500 * 24 * HOUR).unwrap();
    for (policy, calls, expected) in [
        (&bucket, 1, r#""b";q=10;w=30 "b";r=9;t=3"#),
        (&bucket, 9, r#""b";q=10;w=30 "b";r=1;t=27"#),
        // Not the 30 s until it is full: the next unit is there in 3 s, whether the last was just taken or denied.
        (&bucket, 10, r#""b";q=10;w=30 "b";r=0;t=3"#),
        (&bucket, 11, r#""b";q=10;w=30 "b";r=0;t=3"#),
        // 1.5 s, rounded up.
        (&seconds, 7, r#""b";q=7;w=11 "b";r=0;t=2"#),
        (&seconds, 8, r#""b";q=7;w=11 "b";r=0;t=2"#),
        (&queue, 1, r#""q";q=3;w=15 "q";r=2;t=5"#),
        (&queue, 3, r#""q";q=3;w=15 "q";r=0;t=5"#),
        (&window, 1, r#""w";q=2;w=60 "w";r=1;t=60"#),
        (&window, 2, r#""w";q=2;w=60 "w";r=0;t=60"#),
        (&window, 3, r#""w";q=2;w=60 "w";r=0;t=60"#),
        // Nobody told when the next unit is there, and nothing is made up.
        (&sliding, 2, r#""s";q=2;w=60 "s";r=0"#),
        (&log, 2, r#""l";q=2;w=60 "l";r=0"#),
        (&log, 3, r#""l";q=2;w=60 "l";r=0;t=60"#),
        // Never, and a window of 0 would not be valid.
        (&none, 1, r#""n";q=0 "n";r=0"#),
        // Integers of structured fields have 15 digits.
        (&large, 1, r#""m";q=999999999999999;w=3153600000 "m";r=999999999999999;t=1339200000"#),
    ] {
        assert_eq!(standing(policy, calls).await, expected, "call {calls}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_limits_one_value_tells_the_scarcest() {
    let limiter = limiter();
    let large = Policy::fixed_window("large", 1_000, HOUR).unwrap();
    let small = Policy::fixed_window("small", 4, MINUTE).unwrap();
    let twin = Policy::fixed_window("twin", 8, 2 * MINUTE).unwrap();
    let dialects = [Dialect::XRateLimit, Dialect::RateLimit];
    for (calls_before, expected) in [
        // 996/1000 is more than 3/4, which is as much as 6/8: the first of equals.
        ([(&large, 3), (&small, 0), (&twin, 1)], "4 3 60"),
        ([(&large, 0), (&small, 0), (&twin, 2)], "8 3 120"),
        ([(&large, 900), (&small, 0), (&twin, 0)], "1000 94 3600"),
    ] {
        for (policy, calls) in calls_before {
            let _ = limiter.check_n(policy, "all", calls).await;
        }
        let answer = ask(&layer(&limiter, &[&large, &small, &twin], &dialects), get()).await;
        let told = ["limit", "remaining", "reset"].map(|name| answer.header(&format!("x-ratelimit-{name}")).unwrap());
        assert_eq!(told.join(" "), expected);
        assert_eq!(
            answer.header("ratelimit-policy").unwrap(),
            r#""large";q=1000;w=3600, "small";q=4;w=60, "twin";q=8;w=120"#
        );
    }
    let answer = ask(&layer(&limiter, &[&large, &small, &twin], &dialects), get()).await;
    let told = r#""large";r=93;t=3600, "small";r=0;t=60, "twin";r=1;t=120"#;
    assert_eq!(answer.header("ratelimit").unwrap(), told);
}

#[tokio::test(start_paused = true)]
async fn of_several_that_deny_one_value_tells_the_longest_wait() {
    let limiter = limiter();
    let minute = Policy::fixed_window("minute", 1, MINUTE).unwrap();
    let hour = Policy::fixed_window("hour", 2, HOUR).unwrap();
    // Less is left of it than of the hour, but it denies nothing.
    let free = Policy::fixed_window("free", 1, 2 * HOUR).unwrap();
    let _ = limiter.check(&minute, "all").await;
    let _ = limiter.check_n(&hour, "all", 2).await;
    let answer = ask(&layer(&limiter, &[&minute, &hour, &free], &[Dialect::RateLimitDraft06]), get()).await;
    assert_eq!(answer.header("retry-after"), Some("3600"));
    assert_eq!(answer.header("ratelimit-limit"), Some("2"));
    assert_eq!(answer.header("ratelimit-reset"), Some("3600"));

    let twin = Policy::fixed_window("twin", 3, HOUR).unwrap();
    let _ = limiter.check_n(&twin, "all", 3).await;
    let answer = ask(&layer(&limiter, &[&hour, &twin], &[Dialect::RateLimitDraft06]), get()).await;
    assert_eq!(answer.header("ratelimit-limit"), Some("2"), "the first of equals");
}

/// A key of another algorithm is a fault, which is refused as unavailable.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_nobody_could_decide_tells_no_numbers_of_its_own() {
    let limiter = limiter();
    let _ = limiter.check(&Policy::fixed_window("clash", 10, HOUR).unwrap(), "all").await;
    let clash = Policy::sliding_log("clash", 10, HOUR).unwrap();
    let fine = Policy::fixed_window("fine", 10, HOUR).unwrap();
    let answer = ask(&layer(&limiter, &[&clash, &fine], &[Dialect::XRateLimit, Dialect::RateLimit]), get()).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("x-ratelimit-remaining"), None, "a limit that allows is not why");
    assert_eq!(answer.header("ratelimit-policy"), Some(r#""fine";q=10;w=3600"#));
    assert_eq!(answer.header("ratelimit"), Some(r#""fine";r=9;t=3600"#));
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_nothing_has_no_share() {
    let limiter = limiter();
    let nothing = Policy::fixed_window("nothing", 0, HOUR).unwrap();
    let full = Policy::fixed_window("full", 1, MINUTE).unwrap();
    let _ = limiter.check(&full, "all").await;
    let answer = ask(&layer(&limiter, &[&full, &nothing], &[Dialect::XRateLimit]), get()).await;
    assert_eq!(answer.header("x-ratelimit-limit"), Some("0"));
}

#[tokio::test(start_paused = true)]
async fn shadows_appear_in_no_dialect() {
    let limiter = limiter();
    let shadow = Policy::fixed_window("shadow", 1, HOUR).unwrap().shadow();
    let real = Policy::fixed_window("real", 10, HOUR).unwrap();
    let layer = layer(&limiter, &[&shadow, &real], &[Dialect::XRateLimit, Dialect::RateLimit]);
    for remaining in [9, 8] {
        let answer = ask(&layer, get()).await;
        assert_eq!(answer.header("x-ratelimit-remaining").unwrap(), remaining.to_string());
        assert_eq!(answer.header("ratelimit-policy"), Some(r#""real";q=10;w=3600"#));
        assert_eq!(answer.header("ratelimit").unwrap(), format!(r#""real";r={remaining};t=3600"#));
    }
}

#[tokio::test(start_paused = true)]
async fn limits_that_are_not_told_appear_in_no_dialect_but_say_when_to_come_back() {
    let limiter = limiter();
    let site = Policy::fixed_window("site", 2, MINUTE).unwrap();
    let api = Policy::fixed_window("api", 10, HOUR).unwrap();
    let all = [Dialect::XRateLimit, Dialect::RateLimit, Dialect::RateLimitDraft06];
    let untold = RateLimitLayer::new(limiter.clone()).headers(all).limit_untold(site.clone(), KeyBy::constant("all"));
    let both = untold.clone().limit(api.clone(), KeyBy::constant("all"));

    let served = ask(&both, get()).await;
    assert!(served.is_served());
    assert_eq!(served.header("x-ratelimit-limit"), Some("10"), "though less is left of the site's");
    assert_eq!(served.header("ratelimit-policy"), Some(r#""api";q=10;w=3600"#));
    assert_eq!(served.header("ratelimit"), Some(r#""api";r=9;t=3600"#));
    assert_eq!(ask(&untold, get()).await.headers, [""; 0]);

    let refused = ask(&both, get()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")));
    assert_eq!(refused.header("x-ratelimit-limit"), None, "a limit that allows is not why");
    assert_eq!(refused.header("ratelimit-limit"), None);
    assert_eq!(refused.header("ratelimit-policy"), Some(r#""api";q=10;w=3600"#));
    assert!(refused.body.contains(r#""violated-policies":["site"]"#), "{}", refused.body);

    let _ = limiter.check_n(&api, "all", 9).await;
    let refused = ask(&both, get()).await;
    assert_eq!(refused.header("retry-after"), Some("3600"));
    assert_eq!(refused.header("x-ratelimit-limit"), Some("10"), "this one denies, too");
    assert!(!refused.headers.concat().contains("site"), "{refused:?}");
}

#[tokio::test]
async fn what_was_decided_without_redis_has_no_numbers_in_any_dialect() {
    let all = [Dialect::XRateLimit, Dialect::RateLimit, Dialect::RateLimitDraft06];
    let policy = Policy::fixed_window("api", 10, MINUTE).unwrap();
    for outage in [Outage::Open, Outage::LocalShare] {
        let answer = ask(&layer(&unreachable(outage), &[&policy], &all), get()).await;
        assert!(answer.is_served());
        assert_eq!(answer.headers, [""; 0], "{outage:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_service_says_of_limits_is_kept() {
    let policy = Policy::fixed_window("api", 10, MINUTE).unwrap();
    let layer = layer(&limiter(), &[&policy], &[Dialect::XRateLimit, Dialect::RateLimit]);
    let serve = service_fn(|_: http::Request<Body>| async {
        Response::builder()
            .header("x-ratelimit-remaining", "7")
            .body(Body::default())
            .map_err(|_| -> Infallible { unreachable!() })
    });
    let answer = read(layer.layer(serve).oneshot(get()).await.unwrap()).await;
    let expected = [r#"ratelimit-policy: "api";q=10;w=60"#, r#"ratelimit: "api";r=9;t=60"#, "x-ratelimit-remaining: 7"];
    assert_eq!(answer.headers, expected, "no numbers of two limits mixed");
}

#[tokio::test(start_paused = true)]
async fn the_list_for_cors_has_all_of_them() {
    let policy = Policy::fixed_window("api", 1, MINUTE).unwrap();
    let all = [Dialect::XRateLimit, Dialect::RateLimit, Dialect::RateLimitDraft06];
    let layer = layer(&limiter(), &[&policy], &all);
    ask(&layer, get()).await;
    let answer = ask(&layer, get()).await;
    let mut told: Vec<_> = answer.headers.iter().filter_map(|line| line.split_once(": ")).map(|line| line.0).collect();
    told.retain(|name| !["cache-control", "content-type"].contains(name));
    let mut listed: Vec<_> = EXPOSED_HEADERS.iter().map(|name| name.as_str()).collect();
    listed.sort();
    told.sort();
    assert_eq!(told, listed);
}
