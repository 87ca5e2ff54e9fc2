//! A reverse proxy that hands each request to the next server, whichever connection it came on.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CONNECTION, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::uri::{Authority, PathAndQuery, Scheme, Uri};
use axum::http::{HeaderMap, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Fallible;
use crate::http_client::{HttpClient, http_client};

/// Headers that speak of one connection, and are not for the one behind it.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Stops when it is dropped.
pub struct Balancer {
    address: SocketAddr,
    _task: JoinSet<()>,
}

struct Rotation {
    servers: Vec<Authority>,
    requests: AtomicUsize,
    client: HttpClient,
}

impl Balancer {
    pub async fn start(servers: impl IntoIterator<Item = SocketAddr>) -> Fallible<Self> {
        let servers: Result<Vec<Authority>, _> =
            servers.into_iter().map(|address| address.to_string().parse()).collect();
        let rotation = Rotation { servers: servers?, requests: AtomicUsize::new(0), client: http_client() };

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let app = Router::new().fallback(forward).with_state(Arc::new(rotation));
        let mut task = JoinSet::new();
        task.spawn(async move {
            if let Err(problem) = axum::serve(listener, app).await {
                eprintln!("demo: the balancer stopped: {problem}");
            }
        });
        Ok(Balancer { address, _task: task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Rotation {
    fn next(&self) -> Option<&Authority> {
        let turn = self.requests.fetch_add(1, Ordering::Relaxed);
        self.servers.get(turn.checked_rem(self.servers.len())?)
    }

    async fn pass_on(&self, mut request: Request) -> Fallible<Response> {
        let server = self.next().ok_or("there is no server")?;
        let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        *request.uri_mut() =
            Uri::builder().scheme(Scheme::HTTP).authority(server.clone()).path_and_query(path).build()?;
        *request.version_mut() = Version::HTTP_11;
        remove_hop_by_hop(request.headers_mut());

        let mut response = self.client.request(request).await?;
        remove_hop_by_hop(response.headers_mut());
        Ok(response.map(Body::new))
    }
}

async fn forward(State(rotation): State<Arc<Rotation>>, request: Request) -> Response {
    let answer = rotation.pass_on(request).await;
    answer.unwrap_or_else(|problem| (StatusCode::BAD_GATEWAY, format!("{problem}\n")).into_response())
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}
