//! Whether anybody can hear what a call changed: replicas, an append-only file, or whoever counts changes for a snapshot.
//!
//! To hand an effect to the server costs a call a quarter of its instructions, most of them before the server looks whether
//! anybody listens. Where nobody does, it throws the effect away and has only counted one more change. So a primary that knows
//! that nobody listens and nobody counts hands over one effect a second, and keeps the others to itself.
//!
//! # Why no reader ever lacks an effect
//!
//! In the words of Redis' sources; Valkey's differ in names. All of it runs under the server's lock: nothing happens between two
//! steps that is not said here.
//!
//! 1. Effects are held back only after a look at the server, between two commands, that found a primary outside of cluster mode
//!    without a replica in any state, a backlog, an append-only file, a child, or save points. As long as that is so the server
//!    itself throws effects away (`alsoPropagate`). So what is left to show is that the quiet ends before anything could keep them.
//! 2. Whatever keeps effects begins at a fork. An append-only file takes them from the fork of its first rewrite on, and has what was
//!    before in that child's snapshot, also where a running child or a transaction puts that fork off (`startAppendOnly`,
//!    `feedAppendOnlyFile`). A replica without a common past gets the snapshot of a child and the stream from the offset at its fork on
//!    (`startBgsaveForReplication`): from a file, over sockets or by a connection of its own, whether it waited for
//!    `repl-diskless-sync-delay` or another child, or joined a snapshot that was made for another replica.
//! 3. `redisFork` tells of the fork in the parent before it returns. From there on every effect is handed over, also those of the rest of
//!    a transaction that forked in its middle; earlier ones are in the memory that was forked.
//! 4. From the arrival of a replica to that fork there is a backlog from which effects are missing. Nobody can be given that
//!    part. To resume takes a replication ID and an offset behind which a backlog goes on (`masterTryPartialResynchronization`); the
//!    server takes a new ID and gives up its second one whenever it makes a backlog for a replica (`syncCommand`) and whenever it lets one go
//!    (`replicationCron`), and tells the ID to replicas together with the offset at the fork. So there is no past in which effects were held back
//!    that a replica can resume from; nor can this server, when it becomes a replica, by the ID that it has without a backlog.
//!    A client that takes the ID from `INFO`, and no snapshot, has no past at all; it hears all from when it is taken for a replica.
//! 5. `SAVE`, `SHUTDOWN` and `DEBUG RELOAD` read the memory, which is always complete, and write no replication ID where there is no
//!    backlog (`rdbPopulateSaveInfo`).
//!
//! # What the count of changes is still good for
//!
//! `rdb_changes_since_last_save` is above 0 whenever something has changed since the last save: whatever sets it back (a save, the end of
//! a child, loading) also ends the quiet, and the first effect behind each look is handed over. It is lower than without all this,
//! and nothing of the server reads it as long as there are no save points. To set some is a change of the configuration, and from there on
//! every change counts.
//!
//! # On which servers
//!
//! On those whose sources this was held against, and on which `tests/live/quiet` shows it: `PROVEN`. A later one may have readers that need no
//! fork, as Valkey plans (valkey-io/valkey#2878). There, and where the server refuses one of the subscriptions, every effect is handed over.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use redis_module::raw::{self, RedisModuleCtx, RedisModuleEvent, RedisModuleEventCallback};

use super::api::{self, Api};

/// Somebody may listen or count: every effect is handed over.
const HEARD: u8 = 0;
/// Nobody does, and the next effect is handed over all the same, to be counted.
const COUNTED: u8 = 1;
/// Nobody does.
const QUIET: u8 = 2;

/// Read and written under the server's lock only.
static STATE: AtomicU8 = AtomicU8::new(HEARD);
/// How many rounds of the server's housekeeping there were since the last look.
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// Rounds from one look to the next: a second, as long as `hz` is 10.
const ROUNDS_A_LOOK: u32 = 10;

/// The versions of Redis and Valkey, without the last number, for which this was proven.
const PROVEN: [(c_int, c_int); 5] = [(7, 0), (8, 0), (8, 1), (8, 2), (9, 1)];

/// What ends the quiet, at once. The proof rests on the first. The second changes who counts, the next two set the count back. The last two
/// end it for who comes without a snapshot, and before a role begins that has other readers.
const ENDS_QUIET: [u64; 6] = [
    raw::REDISMODULE_EVENT_FORK_CHILD,
    raw::REDISMODULE_EVENT_CONFIG,
    raw::REDISMODULE_EVENT_PERSISTENCE,
    raw::REDISMODULE_EVENT_LOADING,
    raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
    raw::REDISMODULE_EVENT_REPLICA_CHANGE,
];

/// With any of these, or without [`PRIMARY`], somebody may listen or count.
const MAY_BE_HEARD: u32 = raw::REDISMODULE_CTX_FLAGS_CLUSTER
    | raw::REDISMODULE_CTX_FLAGS_AOF
    | raw::REDISMODULE_CTX_FLAGS_RDB
    | raw::REDISMODULE_CTX_FLAGS_ACTIVE_CHILD;
const PRIMARY: u32 = raw::REDISMODULE_CTX_FLAGS_MASTER;

const OK: c_int = raw::REDISMODULE_OK as c_int;

/// Whether an effect may be kept from the server: nobody would hear or count it.
#[inline]
pub fn is_away() -> bool {
    match STATE.load(Ordering::Relaxed) {
        HEARD => false,
        QUIET => true,
        _ => {
            STATE.store(QUIET, Ordering::Relaxed);
            false
        }
    }
}

/// Whether every effect is handed to the server, for those who run it.
pub fn is_there() -> bool {
    STATE.load(Ordering::Relaxed) == HEARD
}

/// Begins to look whether there is an audience. Until the first look there is one, and for ever where the server can't say.
pub fn watch(api: &Api, ctx: *mut RedisModuleCtx) {
    // The library may have stayed in memory from when the module was loaded before, and nothing was told in between.
    STATE.store(HEARD, Ordering::Relaxed);
    let (major, minor, _) = api::server_version();
    if !PROVEN.contains(&(major, minor)) {
        return;
    }
    // The look comes last: without all the others it must not begin.
    if ENDS_QUIET.into_iter().all(|event| subscribe(api, ctx, event, Some(leave))) {
        subscribe(api, ctx, raw::REDISMODULE_EVENT_CRON_LOOP, Some(look));
    }
}

/// Whether the server has taken the function, which it calls until the module is unloaded.
fn subscribe(api: &Api, ctx: *mut RedisModuleCtx, event: u64, callback: RedisModuleEventCallback) -> bool {
    // SAFETY: the server passed this context for loading; the function lives as long as the module.
    unsafe { (api.subscribe_to_server_event)(ctx, RedisModuleEvent { id: event, dataver: 1 }, callback) == OK }
}

/// What the server calls on whatever ends the quiet.
extern "C" fn leave(_ctx: *mut RedisModuleCtx, _event: RedisModuleEvent, _part: u64, _data: *mut c_void) {
    STATE.store(HEARD, Ordering::Relaxed);
}

/// What the server calls in each round of its housekeeping.
extern "C" fn look(ctx: *mut RedisModuleCtx, _event: RedisModuleEvent, _part: u64, _data: *mut c_void) {
    let rounds = ROUNDS.load(Ordering::Relaxed) + 1;
    if rounds < ROUNDS_A_LOOK {
        ROUNDS.store(rounds, Ordering::Relaxed);
        return;
    }
    ROUNDS.store(0, Ordering::Relaxed);
    let is_empty = api::get().is_some_and(|api| is_empty(api, ctx));
    STATE.store(if is_empty { COUNTED } else { HEARD }, Ordering::Relaxed);
}

/// Whether nobody listens or counts, as far as the server can say. Replicas need not be asked for: whoever has one has a backlog, which
/// the server holds to itself (`replicationFeedSlaves` asserts it).
fn is_empty(api: &Api, ctx: *mut RedisModuleCtx) -> bool {
    // SAFETY: the context is that of the callback in which we are.
    let flags = unsafe { (api.get_context_flags)(ctx) }.cast_unsigned();
    if flags & PRIMARY == 0 || flags & MAY_BE_HEARD != 0 {
        return false;
    }
    // SAFETY: as above; the name of the section ends with a NUL.
    let info = unsafe { (api.get_server_info)(ctx, c"replication".as_ptr()) };
    if info.is_null() {
        return false;
    }
    let mut error = OK;
    // SAFETY: the information is there until it is freed below; the name of the field ends with a NUL.
    let backlog = unsafe { (api.server_info_get_unsigned)(info, c"repl_backlog_active".as_ptr(), &mut error) };
    // SAFETY: it is freed once, with the context that it was made with.
    unsafe { (api.free_server_info)(ctx, info) };
    error == OK && backlog == 0
}

#[cfg(test)]
mod tests {
    use super::{COUNTED, HEARD, Ordering, QUIET, STATE, is_away, is_there};

    #[test]
    fn of_each_quiet_second_the_first_effect_is_handed_over() {
        let set = |state| STATE.store(state, Ordering::Relaxed);
        assert!(!is_away() && !is_away() && is_there());
        for _ in 0..2 {
            set(COUNTED);
            assert!(!is_there());
            assert_eq!([is_away(), is_away(), is_away()], [false, true, true]);
            assert!(STATE.load(Ordering::Relaxed) == QUIET && !is_there());
        }
        set(HEARD);
        assert!(!is_away() && !is_away() && is_there());
    }
}
