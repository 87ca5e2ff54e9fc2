//! The user: sends requests over HTTP, many at a time, and writes down what comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, Request, StatusCode};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::Fallible;
use crate::answer::{Budget, PROBLEM_JSON, X_RATELIMIT_TURN, number, text};
use crate::api_server::X_SERVED_BY;
use crate::caller::X_API_KEY;
use crate::http_client::{HttpClient, http_client};

const USER: &str = "alice";
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Far more than any body of the demo.
const LONGEST_BODY: usize = 64 * 1024;

/// What the user sends.
#[derive(Clone, Copy)]
pub struct Load {
    pub requests: u64,
    /// So many are in flight at most.
    pub concurrency: u64,
    /// The time from one request to the next; zero sends them as fast as answers come.
    pub every: Duration,
}

/// All that came back.
pub struct Traffic {
    pub replies: Vec<Reply>,
    pub took: Duration,
}

/// An answer that a rate-limited API may give. Anything else ends the demo.
pub struct Reply {
    pub server: String,
    /// None if the server did not say what is left.
    pub budget: Option<Budget>,
    /// When its turn comes; 0 is at once.
    pub turn: u64,
    pub outcome: Outcome,
    pub took: Duration,
}

pub enum Outcome {
    Admitted,
    /// 429: the limit is used up.
    TooMany {
        retry_after: u64,
    },
    /// 503: nobody can tell whether it is.
    Unavailable {
        retry_after: u64,
    },
}

impl Traffic {
    pub fn slowest(&self) -> Duration {
        self.replies.iter().map(|reply| reply.took).max().unwrap_or_default()
    }

    /// Both, as one.
    pub fn and(self, other: Traffic) -> Traffic {
        let replies = self.replies.into_iter().chain(other.replies).collect();
        Traffic { replies, took: self.took + other.took }
    }
}

/// Sends requests to `address` until they run out.
pub async fn send(address: SocketAddr, load: Load) -> Fallible<Traffic> {
    let client = http_client();
    let taken = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..load.concurrency {
        let (client, taken) = (client.clone(), Arc::clone(&taken));
        senders.spawn(async move {
            let mut replies = Vec::new();
            loop {
                let number = taken.fetch_add(1, Ordering::Relaxed);
                if number >= load.requests {
                    return Fallible::Ok(replies);
                }
                sleep_until(began + load.every * number as u32).await;
                replies.push(ask(&client, address, USER).await?);
            }
        });
    }
    let mut replies = Vec::new();
    while let Some(sender) = senders.join_next().await {
        replies.extend(sender??);
    }
    Ok(Traffic { replies, took: began.elapsed() })
}

/// Sends one request as some user.
pub async fn ask(client: &HttpClient, address: SocketAddr, user: &str) -> Fallible<Reply> {
    let request = Request::get(format!("http://{address}/hello")).header(X_API_KEY, user).body(Body::empty())?;
    let answer = async {
        let response = client.request(request).await?;
        let (head, body) = response.into_parts();
        Fallible::Ok((head, axum::body::to_bytes(Body::new(body), LONGEST_BODY).await?))
    };
    let asked = Instant::now();
    let (head, body) = timeout(ANSWERED_WITHIN, answer).await.map_err(|_| "a request was not answered")??;
    let took = asked.elapsed();
    let headers = &head.headers;
    let outcome = match head.status {
        StatusCode::OK => Outcome::Admitted,
        StatusCode::TOO_MANY_REQUESTS => Outcome::TooMany { retry_after: wait(headers)? },
        StatusCode::SERVICE_UNAVAILABLE => Outcome::Unavailable { retry_after: wait(headers)? },
        status => {
            return Err(format!("a request was answered {status}: {}", String::from_utf8_lossy(&body).trim()).into());
        }
    };
    let turn = headers.get(X_RATELIMIT_TURN).map(|_| number(headers, &X_RATELIMIT_TURN)).transpose()?;
    Ok(Reply {
        server: text(headers, &X_SERVED_BY)?.to_owned(),
        budget: Budget::read(headers)?,
        turn: turn.unwrap_or(0),
        outcome,
        took,
    })
}

/// What a refusal must say.
fn wait(headers: &HeaderMap) -> Fallible<u64> {
    if text(headers, &CONTENT_TYPE)? != PROBLEM_JSON {
        return Err(format!("a refusal is not {PROBLEM_JSON}").into());
    }
    number(headers, &RETRY_AFTER)
}

impl Reply {
    pub fn is_admitted(&self) -> bool {
        matches!(self.outcome, Outcome::Admitted)
    }

    /// How long a refused caller is to wait.
    pub fn retry_after(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Admitted => None,
            Outcome::TooMany { retry_after } | Outcome::Unavailable { retry_after } => Some(retry_after),
        }
    }
}
