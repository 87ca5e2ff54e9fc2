//! The snippets of `docs/clients.md`, run as they stand there: against one server, and against a cluster.
//!
//! Each client is started by a few lines of its own language (`run.py`, `run.mjs`), which find the snippets cut out of the
//! page. Those tests need client libraries, so `scripts/clients` runs them; redis-rs is here anyway.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, unused_imports, reason = "shared with tests that need other parts")]
#[path = "../support/mod.rs"]
mod support;

mod caller;
mod lossy;
mod page;
mod process;
mod redis_rs;
mod same_text;
mod what_must_hold;

use caller::Client;

/// Every client must pass every test.
macro_rules! clients {
    ($($(#[$ignored:meta])* $name:ident = $client:expr;)*) => {$(
        mod $name {
            use super::*;
            const CLIENT: Client = $client;

            #[test]
            $(#[$ignored])*
            fn a_single_server_answers() {
                what_must_hold::a_single_server_answers(&CLIENT);
            }

            #[test]
            $(#[$ignored])*
            fn no_call_in_a_cluster_goes_to_a_wrong_node() {
                what_must_hold::no_call_in_a_cluster_goes_to_a_wrong_node(&CLIENT);
            }

            #[test]
            $(#[$ignored])*
            fn servers_that_are_gone_hold_nobody_up() {
                what_must_hold::servers_that_are_gone_hold_nobody_up(&CLIENT);
            }

            #[test]
            $(#[$ignored])*
            fn a_server_that_hangs_holds_nobody_up() {
                what_must_hold::a_server_that_hangs_holds_nobody_up(&CLIENT);
            }

            #[test]
            $(#[$ignored])*
            fn an_answer_that_is_lost_was_charged_once() {
                what_must_hold::an_answer_that_is_lost_was_charged_once(&CLIENT);
            }

            #[test]
            $(#[$ignored])*
            fn an_answer_that_is_lost_in_a_cluster_was_charged_once() {
                what_must_hold::an_answer_that_is_lost_in_a_cluster_was_charged_once(&CLIENT);
            }

            #[test]
            $(#[$ignored])*
            fn what_could_not_be_sent_is_not_sent_later() {
                what_must_hold::what_could_not_be_sent_is_not_sent_later(&CLIENT);
            }
        }
    )*};
}

clients! {
    redis_rs_snippets = Client { start: redis_rs::start, protocol: 2 };
    #[ignore = "needs redis-py: run by scripts/clients"]
    redis_py_snippets = Client { start: |topology, url| process::python("redis-py", topology, url), protocol: 3 };
    #[ignore = "needs node-redis: run by scripts/clients"]
    node_redis_snippets = Client { start: |topology, url| process::node("node-redis", topology, url), protocol: 3 };
    #[ignore = "needs ioredis: run by scripts/clients"]
    ioredis_snippets = Client { start: |topology, url| process::node("ioredis", topology, url), protocol: 3 };
}

/// Why the page makes such an effort with ioredis in a cluster. If this fails, it need not any more.
#[test]
#[ignore = "needs ioredis: run by scripts/clients"]
fn ioredis_call_goes_to_wrong_nodes() {
    let cluster = support::Cluster::of(3);
    let mut ioredis = process::node_with("ioredis", "plain-call.mjs", &cluster.addresses()[0]);
    what_must_hold::warm_up(&mut *ioredis);
    let at_first = cluster.redirections();
    what_must_hold::answers_in_a_cluster(&mut *ioredis, &cluster);
    let redirections = cluster.redirections() - at_first;
    println!("ioredis' call: {redirections} of {} calls went to a wrong node", what_must_hold::CALLS_IN_A_CLUSTER);
    assert!(redirections > 0);
}
