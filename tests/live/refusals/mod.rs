//! What the server answers in the module's place while it can't or may not serve: the code, that nothing was decided, and that all
//! goes on where it was.
//!
//! Elsewhere: `OOM` in `memory.rs`, `NOREPLICAS` in `failover.rs`, `READONLY` and `MASTERDOWN` in `access/replicas.rs`, `NOPERM` in
//! `access`, a replica without the module in `replication.rs`.

mod busy;
mod cluster;
mod disk;
mod loading;
mod memory;
mod password;

use redis::{Connection, Value};

use crate::known::Known;
use crate::support::{Server, ask, decide, digest, error, send};

/// A limiter of which all is known, on a server that is about to refuse.
struct Witness {
    commands: Vec<Known>,
    digest: String,
}

const CALL: &str = "RL.FIXED witness 9 36500d";

impl Witness {
    fn of(server: &Server) -> Self {
        let mut redis = server.connect();
        decide(&mut redis, "RL.FIXED witness 9 36500d 2");
        Self { commands: Known::all(&mut redis), digest: digest(&mut redis) }
    }

    /// Whatever would decide is refused with this code, for a key that is there and for one that is not.
    fn assert_no_decisions(&self, redis: &mut Connection, code: &str) {
        let begin = format!("{code} ");
        for line in [CALL, "RL.FIXED witness 9 36500d 0", "RL.REFUND witness 1"] {
            let refused = error(redis, line);
            assert!(refused.starts_with(&begin), "{line}: {refused}");
        }
        for command in self.commands.iter().filter(|command| command.has_key && !command.reads) {
            let refused = error(redis, &command.call(&["new"]).join(" "));
            assert!(refused.starts_with(&begin), "{}: {refused}", command.name);
        }
    }

    /// Looks are answered.
    fn assert_looks(&self, redis: &mut Connection) {
        assert_eq!(decide(redis, "RL.PEEK witness")[..3], [1, 9, 7]);
        for command in self.commands.iter().filter(|command| command.has_key && command.reads) {
            ask::<Value>(redis, &command.call(&["witness"]).join(" "));
        }
    }

    /// Looks are refused as well.
    fn assert_no_looks(&self, redis: &mut Connection, code: &str) {
        for command in self.commands.iter().filter(|command| command.has_key && command.reads) {
            let refused = error(redis, &command.call(&["witness"]).join(" "));
            assert!(refused.starts_with(code), "{}: {refused}", command.name);
        }
    }

    /// What is refused while a transaction is put together makes an end of it, and nothing of it runs.
    fn assert_no_transactions(&self, redis: &mut Connection, code: &str) {
        ask::<()>(redis, "MULTI");
        ask::<()>(redis, "RL.PEEK witness");
        assert!(error(redis, CALL).starts_with(code));
        let refused = error(redis, "EXEC");
        assert!(refused.starts_with("EXECABORT "), "{refused}");
    }

    /// Nothing was decided meanwhile, and what comes next is.
    fn assert_goes_on(&self, redis: &mut Connection) {
        assert_eq!(digest(redis), self.digest, "what was refused changed nothing");
        assert_eq!(decide(redis, CALL)[..3], [1, 9, 6]);
        for command in self.commands.iter().filter(|command| command.has_key) {
            let line = command.call(&["new"]).join(" ");
            send::<Value>(redis, &line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}
