//! One server of the fleet: a process of its own that answers HTTP, behind a limit.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderName;
use axum::middleware::map_response_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use crate::Fallible;
use crate::leash::{self, Leashed};
use crate::limiters::Counting;
use crate::work::Work;

/// Hidden sub-command that makes the demo one of its API servers.
pub const SUBCOMMAND: &str = "api-server";

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

/// The server itself. It says on which port it listens, and serves until the demo lets go of it.
pub async fn run(args: &[OsString]) -> Fallible<()> {
    let Assignment { name, counting, limit, redis } = Assignment::from_args(args)?;
    let app = Router::new().route("/hello", get(hello)).with_state(Arc::new(Work::default()));
    let app = counting.layer(app, limit, redis).await?;
    let app = app.layer(map_response_with_state(name, sign));

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    tokio::select! {
        served = axum::serve(listener, app) => Ok(served?),
        () = leash::released() => Ok(()),
    }
}

async fn hello(State(work): State<Arc<Work>>) -> &'static str {
    work.serve().await;
    "hello\n"
}

/// Every answer says whose it is.
async fn sign(State(name): State<String>, answer: Response) -> Response {
    ([(X_SERVED_BY, name)], answer).into_response()
}
