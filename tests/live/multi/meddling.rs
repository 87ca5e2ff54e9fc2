//! Other modules that change keys of a call while it opens them.

use super::call;
use crate::support::{Options, SECOND, ask, decide, library};

/// The server must not be ended, nor what others hold be changed.
#[test]
fn a_module_that_deletes_a_key_when_another_one_expires_does_no_harm() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let meddler = library("meddler", include_str!("meddler.c"));
    ask::<()>(&mut redis, &format!("MODULE LOAD {}", meddler.display()));
    ask::<()>(&mut redis, "DEBUG SET-ACTIVE-EXPIRE 0");
    decide(&mut redis, "RL.FIXED open 9 36500d 3");
    ask::<()>(&mut redis, "SET old value PX 500");
    server.clock().advance(SECOND);
    let told = call(&mut redis, "open FIXED 9 36500d 1 old FIXED 9 36500d 1");
    assert_eq!((told.limits[0][2], told.limits[1][2]), (8, 8), "it was deleted, so it is unused");
    for copy in ["kept", "copy", "another"] {
        assert_eq!(decide(&mut redis, &format!("RL.PEEK {copy}"))[2], 6, "{copy}");
    }
}
