//! What two servers hold, compared.

use std::collections::BTreeMap;

use redis::Connection;

use crate::support::{ask, digest, offset, wait_until};

/// All data of a server, and when it expires. (The digest tells only whether a key does.)
#[derive(Debug, PartialEq, Eq)]
pub struct Image {
    digest: String,
    expiries: BTreeMap<String, i64>,
}

impl Image {
    pub fn of(redis: &mut Connection) -> Self {
        let keys: Vec<String> = ask(redis, "KEYS *");
        let mut pipe = redis::pipe();
        keys.iter().for_each(|key| {
            pipe.cmd("PEXPIRETIME").arg(key);
        });
        let expiries: Vec<i64> = pipe.query(redis).unwrap();
        Self { digest: digest(redis), expiries: keys.into_iter().zip(expiries).collect() }
    }

    /// What expired while one of the two was being looked at, and is only not collected yet, is in the digest alone.
    pub fn assert_equals(&self, other: &Self, who: &str) {
        for (key, at) in &self.expiries {
            if let Some(theirs) = other.expiries.get(key).filter(|&&theirs| theirs != -2 && *at != -2) {
                assert_eq!(theirs, at, "{who}: when {key} expires");
            }
        }
        assert_eq!(other.digest, self.digest, "{who}: the data");
    }
}

/// Holds all writes back for a moment, lets the replicas catch up, and compares them with their primary.
pub fn assert_equal_under_load(primary: &mut Connection, replicas: &mut [(&'static str, Connection)]) -> Image {
    ask::<()>(primary, "CLIENT PAUSE 60000 WRITE");
    let at = offset(primary);
    for (who, replica) in &mut *replicas {
        wait_until(&format!("{who} has what was written"), || offset(replica) == at);
    }
    let image = Image::of(primary);
    let theirs: Vec<_> = replicas.iter_mut().map(|(who, replica)| (*who, Image::of(replica))).collect();
    // Before anything can fail, or the callers wait on.
    ask::<()>(primary, "CLIENT UNPAUSE");
    for (who, theirs) in theirs {
        image.assert_equals(&theirs, who);
    }
    image
}
