//! What a case does to servers besides calling them.

use redis::Connection;
use redis_rl::command::TABLE;
use redis_rl::server::Access;
use serde_json::{Value, json};

use super::book::case::{Call, Words};
use super::book::expectation::Reply;
use super::play::Play;
use super::slots;
use super::wire::{self, send_words};
use crate::support::{Options, Server, ask, digest, info, replica_of, wait_for_replicas, wait_until};

/// Steps in words, as the casebook has them.
const COPY_BY_DUMP: &str = "DUMP k3 / RESTORE k4 with the same TTL";
const RESTORE_NONSENSE: &str =
    "RESTORE a value of this type with encoding version + 1; with a truncated body; with random bytes";
const ASK_FOR_KEYS: &str = "COMMAND GETKEYS for every rate limit command";
const ASK_FOR_FLAGS: &str = "COMMAND INFO: flags";

/// Words in the place of others that no server would understand.
const SPELLED_OUT: [(&str, &str); 2] = [
    (
        "three times redis.call(<command>, KEYS[1], ...)",
        "local seen = {} \
         for i = 1, 3 do seen[i] = redis.call('RL.TOKENBUCKET', KEYS[1], '2', '1/60000ms')[1] end \
         return seen",
    ),
    (
        "the same with redis.pcall and a bad argument",
        "return redis.pcall('RL.TOKENBUCKET', KEYS[1], '2', 'a lot')['err']",
    ),
];

/// Whether servers are all that it takes.
pub fn can(env: &Words) -> bool {
    const OF_A_CLIENT: [&str; 2] = ["client", "headers_of"];
    let pseudo = env.get("pseudo").and_then(Value::as_str);
    pseudo.is_none_or(|words| [COPY_BY_DUMP, RESTORE_NONSENSE, ASK_FOR_KEYS, ASK_FOR_FLAGS].contains(&words))
        && OF_A_CLIENT.iter().all(|word| !env.contains_key(*word))
}

/// Does what the step says. What the servers reply to it.
pub fn change(play: &mut Play<'_>, env: &Words) -> Vec<Reply> {
    let text = |word: &str| env.get(word).and_then(Value::as_str);
    if let Some(words) = env.get("redis").and_then(Value::as_array) {
        let reply = redis(play, words, text("field"));
        if let (Some(name), Reply::Plain(value)) = (text("save"), &reply) {
            play.saved.insert(name.to_owned(), value.clone());
        }
        return vec![reply];
    }
    if let Some(how) = text("restart") {
        restart(play, how, env.get("downtime_ms").and_then(Value::as_i64).unwrap_or(0));
    } else if let Some(how) = text("replica") {
        attach_replica(play, how);
    } else if text("failover").is_some() {
        fail_over(play);
    } else if text("compare").is_some() {
        return vec![compare(play)];
    } else if let (Some(_), Some(what)) = (text("as_user"), text("do")) {
        return vec![do_as_user(play, what)];
    } else if let Some(words) = text("pseudo") {
        return in_words(play, words);
    } else {
        return slots::change(play, env);
    }
    Vec::new()
}

/// Sends words as they are written, but for those that stand for others.
fn redis(play: &mut Play<'_>, words: &[Value], field: Option<&str>) -> Reply {
    let mut meant: Vec<String> = Vec::new();
    for word in words.iter().filter_map(Value::as_str) {
        match (word, SPELLED_OUT.iter().find(|(short, _)| *short == word)) {
            ("{key}", _) => meant.push(Call::KEY.to_owned()),
            ("+<each rate limit command>", _) => {
                meant.extend(TABLE.iter().map(|command| format!("+{}", command.name.to_string_lossy())));
            }
            (_, Some((_, long))) => meant.push((*long).to_owned()),
            _ => meant.push(word.to_owned()),
        }
    }
    let meant: Vec<&str> = meant.iter().map(String::as_str).collect();
    if let Some(field) = field {
        let number = info(&mut play.redis, meant[1], field).and_then(|text| text.parse::<i64>().ok());
        return Reply::Plain(json!(number));
    }
    let reply = send_words(&mut play.redis, &meant);
    if let ["ACL", "SETUSER", name, _, password, ..] = meant[..] {
        // A case that makes a user goes on as that user: what the user may not do, the case must not need.
        ask::<()>(&mut play.redis, &format!("AUTH {name} {}", password.trim_start_matches('>')));
    }
    reply
}

fn restart(play: &mut Play<'_>, how: &str, downtime_ms: i64) {
    if how.contains("BGREWRITEAOF") {
        ask::<()>(&mut play.redis, "BGREWRITEAOF");
        wait_until("the file is rewritten", || {
            ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
                .iter()
                .all(|field| info(&mut play.redis, "persistence", field).as_deref() == Some("0"))
        });
    }
    play.server.shut_down();
    play.set_clock(play.now + downtime_ms * 1_000);
    play.server.start_again(|options| options);
    play.redis = play.server.connect();
}

/// A replica that lags is one that receives at a later time what was sent to it: its clock is ahead.
fn attach_replica(play: &mut Play<'_>, how: &str) {
    let lag_ms =
        how.split_once("lag ").and_then(|(_, lag)| lag.strip_suffix(" ms")).map_or(0, |lag| lag.parse().expect("ms"));
    play.lag = lag_ms * 1_000;
    let mut replica = replica_of(play.server, Options::new().with_clock());
    replica.clock().set(play.now + play.lag);
    // So that nothing but what the case does moves the offset.
    ask::<()>(&mut play.redis, "CONFIG SET repl-ping-replica-period 3600");
    if how.contains("active expire off") {
        for server in [&*play.server, &replica] {
            ask::<()>(&mut server.connect(), "DEBUG SET-ACTIVE-EXPIRE 0");
        }
    }
    play.replica = Some(replica);
}

fn fail_over(play: &mut Play<'_>) {
    play.lag = 0;
    play.is_promoted = true;
    let replica = play.replica.as_mut().expect("a replica");
    replica.clock().set(play.now);
    play.redis = replica.connect();
    ask::<()>(&mut play.redis, "REPLICAOF NO ONE");
}

fn compare(play: &mut Play<'_>) -> Reply {
    wait_for_replicas(&mut play.redis, 1);
    let of = |server: &Server| {
        let mut redis = server.connect();
        let [exists, expires] =
            ["EXISTS", "PEXPIRETIME"].map(|what| ask::<i64>(&mut redis, &format!("{what} {}", Call::KEY)));
        (exists, expires, digest(&mut redis))
    };
    let replica = play.replica.as_ref().expect("a replica");
    Reply::Plain(json!(of(play.server) == of(replica)))
}

/// The connection is that of the user.
fn do_as_user(play: &mut Play<'_>, what: &str) -> Reply {
    match what.strip_prefix("call on key ") {
        None => send_words(&mut play.redis, &what.split(' ').collect::<Vec<_>>()),
        Some(key) => {
            let call = play.case.steps.iter().find_map(|step| step.call.as_ref()).expect("a call");
            let mut request = call.request(play.meter);
            request.key = key.as_bytes().to_vec();
            wire::send(&mut play.redis, &request, 1).remove(0)
        }
    }
}

fn in_words(play: &mut Play<'_>, words: &str) -> Vec<Reply> {
    let redis = &mut play.redis;
    match words {
        COPY_BY_DUMP => {
            let dumped: Vec<u8> = ask(redis, "DUMP k3");
            let left: i64 = ask(redis, "PTTL k3");
            vec![wire::reply(redis::cmd("RESTORE").arg("k4").arg(left).arg(dumped).query(redis))]
        }
        RESTORE_NONSENSE => restore_nonsense(redis),
        ASK_FOR_KEYS => TABLE
            .iter()
            .filter(|command| command.access != Access::NoKey)
            .map(|command| {
                let others = " 1".repeat(command.arity.unsigned_abs() as usize - 2);
                let line = format!("COMMAND GETKEYS {} {{key}}{others}", command.name.to_string_lossy());
                send_words(redis, &line.split(' ').collect::<Vec<_>>())
            })
            .collect(),
        _ => TABLE
            .iter()
            .filter(|command| command.flags.to_string_lossy().contains("write"))
            .map(|command| match send_words(redis, &["COMMAND", "INFO", &command.name.to_string_lossy()]) {
                Reply::Plain(told) => Reply::Plain(told[0][2].clone()),
                other => other,
            })
            .collect(),
    }
}

/// Restores what is no state, or none of this version, and calls.
fn restore_nonsense(redis: &mut Connection) -> Vec<Reply> {
    ask::<()>(redis, "RL.TOKENBUCKET planted 10 1/d 5");
    let state: Vec<u8> = ask(redis, "GET planted");
    let newer = [&state[..2], &[state[2] + 1], &state[3..]].concat();
    let cut = state[..state.len() - 1].to_vec();
    let random: Vec<u8> = (0..44_u32).map(|byte| (byte * byte * 7 + 13).to_le_bytes()[0]).collect();
    let mut replies = Vec::new();
    for bytes in [newer, cut, random] {
        redis::cmd("SET").arg("planted").arg(bytes).exec(redis).expect("a planted string");
        let dumped: Vec<u8> = ask(redis, "DUMP planted");
        redis::cmd("RESTORE").arg(Call::KEY).arg(0).arg(dumped).arg("REPLACE").exec(redis).expect("a restored string");
        replies.push(send_words(redis, &["RL.TOKENBUCKET", Call::KEY, "10", "1/d"]));
        replies.push(send_words(redis, &["RL.PEEK", Call::KEY]));
    }
    replies
}
