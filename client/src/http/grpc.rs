//! Refusals in gRPC.

use http::Response;
use http::request::Parts;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::refusal::{Reason, Refusal, Refuse};

/// Refuses by `RESOURCE_EXHAUSTED` where HTTP has 429, `UNAVAILABLE` for 503 and `INVALID_ARGUMENT` for 400.
///
/// The first two tell the wait, in a `RetryInfo` detail, if a wait helps.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcStatus;

impl<B: Default> Refuse<B> for GrpcStatus {
    fn refuse(&self, refusal: &Refusal, _request: &Parts) -> Response<B> {
        let policies = refusal.policies.join(", ");
        let (code, message) = match &refusal.reason {
            Reason::Denied => (Code::ResourceExhausted, format!("rate limit exceeded: {policies}")),
            Reason::Unavailable => (Code::Unavailable, format!("rate limit can't be decided: {policies}")),
            Reason::MissingIdentity(identity) => {
                (Code::InvalidArgument, format!("needed once, to count the request by: {identity}"))
            }
        };
        let status = match refusal.retry_after {
            Some(wait) => Status::with_error_details(code, message, ErrorDetails::with_retry_info(Some(wait))),
            None => Status::new(code, message),
        };
        status.into_http()
    }
}
