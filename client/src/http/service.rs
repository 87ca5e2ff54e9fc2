//! The service that the layer makes.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::refusal::Refuse;
use super::rules::Rules;

/// A service behind limits, made by a [`RateLimitLayer`](super::RateLimitLayer).
///
/// It is ready when the inner service is, and calls the very one that was. That one is held while the limits are asked
/// and while a leaky bucket's delay is waited out, so these count as time in service for what is inside, such as a
/// limit of concurrency.
///
/// Whose caller goes away while a request is checked or delayed has used what it took. The checks are ended in a task
/// of their own all the same: what was taken for a request that is to be refused is given back, and a denial remembered.
#[derive(Clone, Debug)]
pub struct RateLimit<S, R> {
    inner: S,
    rules: Arc<Rules>,
    refuse: R,
}

impl<S, R> RateLimit<S, R> {
    pub(super) fn new(inner: S, rules: Arc<Rules>, refuse: R) -> Self {
        Self { inner, rules, refuse }
    }
}

/// The response to come. Boxed, because what asks Redis has no name.
pub type ResponseFuture<B, E> = Pin<Box<dyn Future<Output = Result<Response<B>, E>> + Send>>;

impl<S, R, Q, B> Service<Request<Q>> for RateLimit<S, R>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    Q: Send + 'static,
    R: Refuse<B> + Clone + Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = ResponseFuture<B, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        // The clone was never told to be ready, so it takes the place of the one that was.
        let clone = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, clone);
        let rules = Arc::clone(&self.rules);
        let refuse = self.refuse.clone();
        let (head, body) = request.into_parts();
        let applied = rules.apply(&head);
        Box::pin(async move {
            let applied = match applied {
                Ok(applied) => applied,
                Err(missing) => return Ok(refuse.refuse(&missing, &head)),
            };
            let verdict = rules.judge(applied).await;
            let mut response = match verdict.refusal() {
                Some(refusal) => refuse.refuse(&refusal, &head),
                None => {
                    let delay = verdict.delay();
                    if !delay.is_zero() {
                        tokio::time::sleep(delay).await;
                    }
                    ready.call(Request::from_parts(head, body)).await?
                }
            };
            rules.tell(&verdict, response.headers_mut());
            Ok(response)
        })
    }
}
