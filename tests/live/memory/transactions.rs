//! Full memory, inside `MULTI` and scripts: there the server itself refuses, before the module is asked.

use redis::{Connection, Value};

use super::{OOM, fill_up, filled};
use crate::support::{ask, decide, error, send, send_words, version};

fn eval(redis: &mut Connection, script: &str) -> redis::RedisResult<Value> {
    send_words(redis, &[b"EVAL", script.as_bytes(), b"1", b"f"])
}

fn refused_for_memory(answer: &redis::RedisResult<Value>) -> bool {
    answer.as_ref().is_err_and(|error| error.code() == Some("OOM"))
}

#[test]
fn a_transaction_is_refused_where_it_may_need_memory() {
    let server = filled("noeviction");
    let mut redis = server.connect();
    fill_up(&mut redis);
    let refuses_all = version(&mut redis) < (7, 2);
    for line in ["RL.PEEK f", "RL.FIXED f 100 36500d"] {
        ask::<()>(&mut redis, "MULTI");
        let queued = send::<Value>(&mut redis, line);
        let done = send::<Vec<Vec<i64>>>(&mut redis, "EXEC");
        assert_eq!(refused_for_memory(&queued), refuses_all, "{line}: {queued:?}");
        if refuses_all {
            assert_eq!(done.unwrap_err().code(), Some("EXECABORT"), "{line}");
        } else {
            assert_eq!(done.unwrap()[0][0], 1, "{line}");
        }
    }
    // A command that may need memory spoils the whole transaction, on all servers.
    let before = decide(&mut redis, "RL.PEEK f")[2];
    ask::<()>(&mut redis, "MULTI");
    let _ = send::<Value>(&mut redis, "RL.FIXED f 100 36500d");
    assert!(error(&mut redis, "SET x y").starts_with("OOM"));
    assert_eq!(send::<Value>(&mut redis, "EXEC").unwrap_err().code(), Some("EXECABORT"));
    assert_eq!(decide(&mut redis, "RL.PEEK f")[2], before, "nothing of it was done");
}

#[test]
fn a_script_decides_unless_it_declares_itself_without_allow_oom() {
    let server = filled("noeviction");
    let mut redis = server.connect();
    fill_up(&mut redis);
    let call = "return redis.call('RL.FIXED', KEYS[1], '100', '36500d')";
    let declared = |flags: &str| format!("#!lua{flags}\n{call}");
    assert!(eval(&mut redis, call).is_ok(), "an undeclared script decides");
    assert!(eval(&mut redis, &declared(" flags=allow-oom")).is_ok());
    assert!(refused_for_memory(&eval(&mut redis, &declared(""))), "a declared one needs allow-oom");

    // What the module refuses, the script is told.
    let create = "return redis.call('RL.FIXED', 'new', '100', '36500d')";
    for script in [create.to_owned(), format!("#!lua flags=allow-oom\n{create}")] {
        let answer = eval(&mut redis, &script);
        assert!(refused_for_memory(&answer), "{answer:?}");
    }
    assert_eq!(error(&mut redis, "RL.FIXED new 100 36500d"), OOM);
    assert_eq!(ask::<i64>(&mut redis, "EXISTS new"), 0);
}
