//! `LOADING`: the server reads its data from the disk.

use super::Witness;
use crate::support::{Options, ask, send, wait_until};

#[test]
fn a_server_that_loads_its_data() {
    let slowly = Options::new().set("key-load-delay", "500").set("loading-process-events-interval-bytes", "1024");
    let mut server = slowly.start();
    let mut redis = server.connect();
    ask::<()>(&mut redis, "DEBUG POPULATE 2000 key 100");
    let witness = Witness::of(&server);
    ask::<()>(&mut redis, "SAVE");
    server.kill();
    server.revive_without_waiting();
    wait_until("the server listens", || server.try_connect(2).is_ok());
    let mut redis = server.connect();
    witness.assert_no_decisions(&mut redis, "LOADING");
    witness.assert_no_looks(&mut redis, "LOADING");
    wait_until("the data are loaded", || send::<String>(&mut redis, "PING").is_ok());
    witness.assert_goes_on(&mut redis);
}
