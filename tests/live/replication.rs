//! What replicas are told.

use redis::Connection;

use crate::support::{
    Options, Server, ask, decide, digest, error, module, offset, replica_of, send_words, wait_for_replicas,
};

fn mixed_calls(redis: &mut Connection) {
    for key in 0..10 {
        for cost in [1, 2, 0, 40, 3] {
            decide(redis, &format!("RL.FIXED f{key} 40 36500d {cost}"));
            decide(redis, &format!("RL.SLIDING s{key} 40 36500d {cost}"));
            decide(redis, &format!("RL.SLIDINGLOG log{key} 4000 36500d {cost}"));
            ask::<redis::Value>(redis, &format!("RL.REFUND log{key} 1"));
            decide(redis, &format!("RL.SLIDINGLOG short{key} 40 1ms {cost}"));
            ask::<redis::Value>(redis, &format!("RL.REFUND log{key} 1 AGE 0"));
            decide(redis, &format!("RL.LEAKY l{key} 40 1/d {cost}"));
            ask::<redis::Value>(redis, &format!("RL.DEBIT d{key} 40 1/d {cost}"));
            ask::<redis::Value>(redis, &format!("RL.REFUND d{key} 2"));
            ask::<redis::Value>(redis, &format!("RL.REFUND f{key} 1"));
            ask::<redis::Value>(redis, &format!("RL.REFUND s{key} 1"));
            decide(redis, &format!("RL.TOKENBUCKET gone{key} 40 1/d {cost}"));
            ask::<redis::Value>(redis, &format!("RL.REFUND gone{key} 40"));
            decide(redis, &format!("RL.TOKENBUCKET b{key} 40 1/d {cost}"));
            decide(redis, &format!("RL.TOKENBUCKET b{key} {} 1/d {cost}", 30 + key));
            decide(redis, &format!("RL.TOKENBUCKET w{key} 9007199254740991 {}/d {cost}", 1 + key % 2));
            ask::<()>(redis, &format!("PERSIST f{key}"));
        }
    }
}

#[test]
fn replicas_with_and_without_the_module_hold_equal_bytes() {
    let primary = Server::new();
    let mut redis = primary.connect();
    mixed_calls(&mut redis);
    let with = replica_of(&primary, Options::new());
    let without = replica_of(&primary, Options::new().module(None));
    mixed_calls(&mut redis);
    ask::<()>(&mut redis, "MULTI");
    ask::<()>(&mut redis, "RL.FIXED transaction 5 36500d");
    ask::<()>(&mut redis, "RL.TOKENBUCKET transaction2 5 1/d");
    ask::<()>(&mut redis, "EXEC");
    let script: [&[u8]; 4] = [b"EVAL", b"return redis.call('RL.FIXED', KEYS[1], '5', '36500d')", b"1", b"script"];
    send_words::<()>(&mut redis, &script).unwrap();
    wait_for_replicas(&mut redis, 2);

    let expected = digest(&mut redis);
    assert_eq!(digest(&mut with.connect()), expected);
    assert_eq!(digest(&mut without.connect()), expected);
    for key in ["b1", "w1", "transaction", "script"] {
        let expiry = format!("PEXPIRETIME {key}");
        let at: i64 = ask(&mut redis, &expiry);
        assert!(at > 0, "{key}");
        assert_eq!(ask::<i64>(&mut without.connect(), &expiry), at, "{key}");
    }
}

#[test]
fn a_long_script_is_replicated_to_its_end() {
    let primary = Server::new();
    let mut redis = primary.connect();
    let replica = replica_of(&primary, Options::new().module(None));
    wait_for_replicas(&mut redis, 1);
    // All effects of a script wait for its end, and with them what they share.
    let text = "for _ = 1, 40000 do redis.call('RL.FIXED', KEYS[1], '100000', '36500d') end";
    send_words::<()>(&mut redis, &[b"EVAL", text.as_bytes(), b"1", b"f"]).unwrap();
    assert_eq!(decide(&mut redis, "RL.FIXED f 100000 36500d")[2], 59_999);
    wait_for_replicas(&mut redis, 1);
    assert_eq!(digest(&mut replica.connect()), digest(&mut redis));
}

#[test]
fn denied_calls_and_looks_replicate_nothing() {
    let primary = Server::new();
    let mut redis = primary.connect();
    decide(&mut redis, "RL.FIXED f 5 36500d 5");
    decide(&mut redis, "RL.TOKENBUCKET b 5 1/36500d 5");
    let replica = replica_of(&primary, Options::new().module(None));
    wait_for_replicas(&mut redis, 1);
    // So that nothing but our calls moves the offset.
    ask::<()>(&mut redis, "CONFIG SET repl-ping-replica-period 3600");
    let before = (offset(&mut redis), digest(&mut redis));
    for _ in 0..250 {
        assert_eq!(decide(&mut redis, "RL.FIXED f 5 36500d")[0], 0);
        assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 5 1/36500d")[0], 0);
        assert_eq!(decide(&mut redis, "RL.TOKENBUCKET new 5 1 6")[0], 0);
        assert_eq!(decide(&mut redis, "RL.PEEK b")[0], 0);
        ask::<redis::Value>(&mut redis, "RL.INSPECT b");
        ask::<redis::Value>(&mut redis, "RL.REFUND b 0");
        ask::<redis::Value>(&mut redis, "RL.REFUND b 1 AGE 36500d");
    }
    assert_eq!((offset(&mut redis), digest(&mut redis)), before);
    drop(replica);
}

#[test]
fn what_is_sent_is_plain_and_short() {
    let primary = Server::new();
    let mut redis = primary.connect();
    let replica = replica_of(&primary, Options::new().module(None));
    ask::<()>(&mut redis, "CONFIG SET repl-ping-replica-period 3600");
    wait_for_replicas(&mut redis, 1);
    let mut watcher = replica.connect();
    ask::<()>(&mut watcher, "CONFIG RESETSTAT");

    for _ in 0..10 {
        decide(&mut redis, "RL.TOKENBUCKET b 1000000 1000 100");
    }
    ask::<()>(&mut redis, "PERSIST b");
    decide(&mut redis, "RL.TOKENBUCKET b 1000000 1000 100");
    wait_for_replicas(&mut redis, 1);

    let calls = |watcher: &mut Connection, command: &str| {
        let line = crate::support::info(watcher, "commandstats", &format!("cmdstat_{command}")).unwrap_or_default();
        line.split([',', '=']).nth(1).and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    let counted = ["set", "setrange", "persist"].map(|command| calls(&mut watcher, command));
    assert_eq!(counted[0] + counted[1], 11, "one command for each admitted call");
    // A call moves the moment at which the bucket is unused by a tenth of a second; the expiry has a second of slack.
    assert!(counted[0] <= 4, "{counted:?}: while the expiry stays, only what changed is sent");
    assert!(
        counted[0] >= 2 && counted[2] == 1,
        "{counted:?}: the first call, and the one after PERSIST, set the expiry"
    );
    let before = offset(&mut redis);
    decide(&mut redis, "RL.TOKENBUCKET b 1000000 1000 1");
    let sent = offset(&mut redis) - before;
    assert!(sent < 70, "a call sends {sent} bytes");
}

#[test]
fn a_replica_answers_peek_and_refuses_decisions() {
    let primary = Server::new();
    let mut redis = primary.connect();
    decide(&mut redis, "RL.FIXED f 5 36500d 2");
    let replica = replica_of(&primary, Options::new());
    wait_for_replicas(&mut redis, 1);
    let mut reader = replica.connect();
    assert_eq!(decide(&mut reader, "RL.PEEK f")[..3], [1, 5, 3]);
    assert!(error(&mut reader, "RL.FIXED f 5 36500d").starts_with("READONLY"));
}

#[test]
fn a_promoted_replica_goes_on_where_the_primary_ended() {
    let mut primary = Server::new();
    let mut redis = primary.connect();
    decide(&mut redis, "RL.FIXED f 5 36500d 4");
    let mut replica = replica_of(&primary, Options::new().module(None));
    wait_for_replicas(&mut redis, 1);
    primary.kill();

    let mut promoted = replica.connect();
    ask::<()>(&mut promoted, "REPLICAOF NO ONE");
    assert!(error(&mut promoted, "RL.FIXED f 5 36500d").starts_with("ERR unknown command"), "it has no module yet");
    let path = module("redis_rl");
    ask::<()>(&mut promoted, &format!("MODULE LOAD {}", path.display()));
    assert_eq!(decide(&mut promoted, "RL.FIXED f 5 36500d")[..3], [1, 5, 0]);
    assert_eq!(decide(&mut promoted, "RL.FIXED f 5 36500d")[0], 0);
    replica.kill();
}

#[test]
fn a_replica_may_load_what_the_primary_sends_into_memory_beside_its_own() {
    let primary = Server::new();
    decide(&mut primary.connect(), "RL.FIXED k 9 36500d");
    let replica = replica_of(&primary, Options::new().set("repl-diskless-load", "swapdb"));
    wait_for_replicas(&mut primary.connect(), 1);
    assert_eq!(decide(&mut replica.connect(), "RL.PEEK k")[2], 8);
    let log = replica.log();
    assert!(log.contains("Loading DB in memory") && !log.contains("Skipping diskless-load"), "{log}");
}
