//! `OOM` of the server itself, which refuses some calls that the module would decide: `memory.rs` has those.

use redis::{Connection, Value};

use crate::support::{Server, ask, decide, error, error_of_words, send_words, version};

fn filled_up(server: &Server) -> Connection {
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED f 9 36500d 2");
    ask::<()>(&mut redis, "CONFIG SET maxmemory 1");
    assert_eq!(decide(&mut redis, "RL.FIXED f 9 36500d")[2], 6, "a limiter that exists goes on");
    redis
}

#[test]
fn transactions_are_refused_by_redis_7_0_only() {
    let server = Server::new();
    let mut redis = filled_up(&server);
    let is_7_0 = version(&mut redis) < (7, 2);
    for line in ["RL.FIXED f 9 36500d", "RL.PEEK f"] {
        ask::<()>(&mut redis, "MULTI");
        if is_7_0 {
            assert!(error(&mut redis, line).starts_with("OOM "), "{line}");
            assert!(error(&mut redis, "EXEC").starts_with("EXECABORT "), "{line}");
        } else {
            ask::<()>(&mut redis, line);
            assert_eq!(ask::<Vec<Vec<i64>>>(&mut redis, "EXEC")[0][0], 1, "{line}");
        }
    }
    let left = if is_7_0 { 6 } else { 5 };
    assert_eq!(decide(&mut redis, "RL.PEEK f")[2], left);
}

#[test]
fn scripts_say_whether_they_may_run_without_memory() {
    let server = Server::new();
    let mut redis = filled_up(&server);
    let call = "return redis.call('RL.FIXED', KEYS[1], '9', '36500d')";
    let eval = |redis: &mut Connection, script: &str| {
        send_words::<Value>(redis, &[b"EVAL", script.as_bytes(), b"1", b"f"]).map(|_| ())
    };
    let declared = format!("#!lua\n{call}");
    let refused = error_of_words(&mut redis, &[b"EVAL", declared.as_bytes(), b"1", b"f"]);
    assert!(refused.starts_with("OOM "), "{refused}");
    assert_eq!(decide(&mut redis, "RL.PEEK f")[2], 6, "nothing was decided");
    eval(&mut redis, &format!("#!lua flags=allow-oom\n{call}")).unwrap();
    eval(&mut redis, call).unwrap();
    assert_eq!(decide(&mut redis, "RL.PEEK f")[2], 4);
}
