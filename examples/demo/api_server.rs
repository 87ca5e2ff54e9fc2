//! One server of the fleet: a process of its own that answers HTTP, and asks its limiter first.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use crate::Fallible;
use crate::decision::Decision;
use crate::leash::{self, Leashed};
use crate::limiters::{Counting, Limiter};
use crate::work::Work;

/// Hidden sub-command that makes the demo one of its API servers.
pub const SUBCOMMAND: &str = "api-server";

/// Who calls.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Which server answers.
pub const X_SERVED_BY: HeaderName = HeaderName::from_static("x-served-by");

/// What a server is told on its command line.
pub struct Assignment {
    pub name: String,
    pub counting: Counting,
    pub limit: u64,
    pub redis: SocketAddr,
}

impl Assignment {
    fn to_args(&self) -> [OsString; 4] {
        let counting = self.counting.name().to_owned();
        [self.name.clone(), counting, self.limit.to_string(), self.redis.to_string()].map(OsString::from)
    }

    fn from_args(args: &[OsString]) -> Fallible<Self> {
        let args: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
        let [name, counting, limit, redis] = args[..] else {
            return Err(format!("usage: {SUBCOMMAND} NAME COUNTING LIMIT REDIS").into());
        };
        Ok(Assignment {
            name: name.to_owned(),
            counting: Counting::named(counting).ok_or_else(|| format!("no way to count is called {counting}"))?,
            limit: limit.parse()?,
            redis: redis.parse()?,
        })
    }
}

/// A running server, as the demo sees it.
pub struct ApiServer {
    address: SocketAddr,
    _process: Leashed,
}

impl ApiServer {
    pub async fn start(assignment: &Assignment) -> Fallible<Self> {
        let mut process = Leashed::spawn(SUBCOMMAND, assignment.to_args())?;
        let address = process.first_line().await?.parse()?;
        Ok(ApiServer { address, _process: process })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

struct Server {
    name: String,
    limiter: Limiter,
    work: Work,
}

/// The server itself. It says on which port it listens, and serves until the demo lets go of it.
pub async fn run(args: &[OsString]) -> Fallible<()> {
    let assignment = Assignment::from_args(args)?;
    let limiter = Limiter::new(assignment.counting, assignment.limit, assignment.redis).await?;
    let server = Arc::new(Server { name: assignment.name, limiter, work: Work::default() });

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let app = Router::new().route("/hello", get(hello)).with_state(server);
    tokio::select! {
        served = axum::serve(listener, app) => Ok(served?),
        () = leash::released() => Ok(()),
    }
}

async fn hello(State(server): State<Arc<Server>>, headers: HeaderMap) -> Response {
    let answer = match caller(&headers) {
        Some(user) => match server.greet(user).await {
            Ok(decision) => decision.into_response(),
            Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
        },
        None => (StatusCode::UNAUTHORIZED, "x-api-key must be 1 to 64 letters, digits, - or _\n").into_response(),
    };
    ([(X_SERVED_BY, server.name.clone())], answer).into_response()
}

impl Server {
    async fn greet(&self, user: &str) -> Fallible<Decision> {
        let decision = self.limiter.decide(user).await?;
        if decision.allowed {
            self.work.serve().await;
            self.limiter.served(user).await?;
        }
        Ok(decision)
    }
}

/// Part of a Redis key, so it is held to a plain alphabet: braces would choose the key's slot in a cluster.
fn caller(headers: &HeaderMap) -> Option<&str> {
    let user = headers.get(X_API_KEY)?.to_str().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    ((1..=64).contains(&user.len()) && user.bytes().all(plain)).then_some(user)
}
