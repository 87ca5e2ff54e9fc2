//! The user: sends requests over HTTP, many at a time, and writes down what comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, Request, StatusCode};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Fallible;
use crate::api_server::{X_API_KEY, X_SERVED_BY};
use crate::decision::{PROBLEM_JSON, X_RATELIMIT_LIMIT, X_RATELIMIT_REMAINING, X_RATELIMIT_RESET, X_RATELIMIT_TURN};
use crate::http_client::{HttpClient, http_client};

const USER: &str = "alice";
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Far more than any body of the demo.
const LONGEST_BODY: usize = 64 * 1024;

/// All that came back.
pub struct Traffic {
    pub replies: Vec<Reply>,
    pub took: Duration,
}

/// An answer that a rate-limited API may give. Anything else ends the demo.
pub struct Reply {
    pub server: String,
    pub limit: u64,
    pub remaining: u64,
    pub reset: u64,
    /// When its turn comes, if there is a queue.
    pub turn: Option<u64>,
    /// None if the request was admitted.
    pub refused: Option<Refusal>,
}

/// What only a 429 says.
pub struct Refusal {
    pub retry_after: u64,
}

/// Sends `requests` requests to `address`, `concurrency` of them in flight until they run out.
pub async fn send(address: SocketAddr, requests: u64, concurrency: u64) -> Fallible<Traffic> {
    let client = http_client();
    let taken = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..concurrency {
        let (client, taken) = (client.clone(), Arc::clone(&taken));
        senders.spawn(async move {
            let mut replies = Vec::new();
            while taken.fetch_add(1, Ordering::Relaxed) < requests {
                replies.push(ask(&client, address).await?);
            }
            Fallible::Ok(replies)
        });
    }
    let mut replies = Vec::new();
    while let Some(sender) = senders.join_next().await {
        replies.extend(sender??);
    }
    Ok(Traffic { replies, took: began.elapsed() })
}

async fn ask(client: &HttpClient, address: SocketAddr) -> Fallible<Reply> {
    let request = Request::get(format!("http://{address}/hello")).header(X_API_KEY, USER).body(Body::empty())?;
    let answer = async {
        let response = client.request(request).await?;
        let (head, body) = response.into_parts();
        Fallible::Ok((head, axum::body::to_bytes(Body::new(body), LONGEST_BODY).await?))
    };
    let (head, body) = timeout(ANSWERED_WITHIN, answer).await.map_err(|_| "a request was not answered")??;
    let refused = match head.status {
        StatusCode::OK => None,
        StatusCode::TOO_MANY_REQUESTS => Some(Refusal::read(&head.headers)?),
        status => {
            return Err(format!("a request was answered {status}: {}", String::from_utf8_lossy(&body).trim()).into());
        }
    };
    Ok(Reply {
        server: text(&head.headers, &X_SERVED_BY)?.to_owned(),
        limit: number(&head.headers, &X_RATELIMIT_LIMIT)?,
        remaining: number(&head.headers, &X_RATELIMIT_REMAINING)?,
        reset: number(&head.headers, &X_RATELIMIT_RESET)?,
        turn: head.headers.get(X_RATELIMIT_TURN).map(|_| number(&head.headers, &X_RATELIMIT_TURN)).transpose()?,
        refused,
    })
}

impl Refusal {
    fn read(headers: &HeaderMap) -> Fallible<Self> {
        if text(headers, &CONTENT_TYPE)? != PROBLEM_JSON {
            return Err(format!("a 429 is not {PROBLEM_JSON}").into());
        }
        Ok(Refusal { retry_after: number(headers, &RETRY_AFTER)? })
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Fallible<&'a str> {
    let value = headers.get(name).ok_or_else(|| format!("an answer has no {name}"))?;
    Ok(value.to_str()?)
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Fallible<u64> {
    let value = text(headers, name)?;
    value.parse().map_err(|_| format!("an answer has {name}: {value}, which is no number").into())
}
