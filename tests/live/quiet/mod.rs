//! Effects that are kept from a server because nobody hears them: that no reader ever lacks one, whoever it is and whenever it comes.

mod counts;
mod ends;
mod files;
mod load;
mod replicas;

use redis::Connection;

use crate::support::{Options, Server, info, wait_until};

/// Nobody listens, and nothing is counted. A hundred rounds of housekeeping a second, so ten looks. In memory, as a disk that others keep
/// busy makes every snapshot wait.
fn alone() -> Options {
    Options::new().set("hz", "100").set("dynamic-hz", "no").in_memory()
}

fn is_quiet(redis: &mut Connection) -> bool {
    info(redis, "rl", "rl_effects_propagated").unwrap() == "0"
}

fn wait_for_quiet(redis: &mut Connection) {
    wait_until("effects are kept from the server", || is_quiet(redis));
}

/// Changes that the server has counted since its last save.
fn counted(redis: &mut Connection) -> i64 {
    info(redis, "persistence", "rdb_changes_since_last_save").unwrap().parse().unwrap()
}

/// A server that keeps effects to itself, and a connection to it.
fn quiet() -> (Server, Connection) {
    let server = alone().start();
    let mut redis = server.connect();
    wait_for_quiet(&mut redis);
    (server, redis)
}
