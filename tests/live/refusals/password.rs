//! `NOAUTH`: nobody has logged in.

use super::Witness;
use crate::support::{Server, ask};

#[test]
fn a_caller_who_has_not_logged_in() {
    let server = Server::new();
    let witness = Witness::of(&server);
    ask::<()>(&mut server.connect(), "CONFIG SET requirepass hidden");
    let mut redis = server.connect();
    witness.assert_no_decisions(&mut redis, "NOAUTH");
    witness.assert_no_looks(&mut redis, "NOAUTH");
    ask::<()>(&mut redis, "AUTH hidden");
    witness.assert_goes_on(&mut redis);
}
