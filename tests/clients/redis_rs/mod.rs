//! redis-rs: the snippets are modules here, and `same_text` holds them against the page.

mod check;
mod cluster;
mod single;

use redis::aio::ConnectionLike;
use tokio::runtime::Runtime;

use crate::caller::{Answer, Call, Caller, Topology};
use check::Checked;

pub fn start(topology: Topology, url: &str) -> Box<dyn Caller> {
    let runtime = Runtime::new().unwrap();
    match topology {
        Topology::Single => {
            let redis = runtime.block_on(single::connect(url)).unwrap();
            Box::new(Connected { runtime, redis })
        }
        Topology::Cluster => {
            let redis = runtime.block_on(cluster::connect(url)).unwrap();
            Box::new(Connected { runtime, redis })
        }
    }
}

struct Connected<C> {
    runtime: Runtime,
    redis: C,
}

impl<C: ConnectionLike> Caller for Connected<C> {
    fn check(&mut self, call: &Call<'_>) -> Answer {
        let Call { user, capacity, rate, cost } = *call;
        match self.runtime.block_on(check::check(&mut self.redis, user, capacity, rate, cost)) {
            Ok(Checked::Allowed) => Answer::Allowed,
            Ok(Checked::Denied { retry_after }) => Answer::Denied(retry_after),
            Err(error) => Answer::Failed(error.to_string()),
        }
    }
}
