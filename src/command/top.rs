//! `RL.TOP [n]`

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::args::Args;
use super::{MOST_TOP_KEYS, TOP_KEYS, reply};
use crate::server::{Call, Error, Handler};
use crate::top;

/// How many keys are told of where a call does not say.
const ROWS: u32 = 10;

/// Tells which keys are denied most.
pub struct Top;

impl Handler for Top {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let most = Args::of(call, 2)?.number(1, "n", ROWS, MOST_TOP_KEYS)?;
        let Some(rows) = denied().as_mut().map(|top| top.rows(most as usize, call.now())) else {
            return Err(Error::fixed(c"ERR rl.top-keys is 0, so nobody is counted: set it to how many keys to keep"));
        };
        call.reply_rows(rows.iter().map(|row| {
            let length = u64::try_from(row.length).unwrap_or(u64::MAX);
            (row.name.as_slice(), [row.count, row.too_high, length].map(reply::integer))
        }));
        Ok(())
    }
}

/// Counts a denied call on the key that the argument at `index` names, if somebody wants to know.
pub fn note_denied(call: &Call<'_>, index: usize) {
    if TOP_KEYS.is_on()
        && let (Some(top), Some(key)) = (denied().as_mut(), call.argument(index))
    {
        top.count(key, call.now());
    }
}

/// `rl.top-keys` was set: begins anew, with memory for so many keys, or none.
pub fn resize(keys: i64) {
    *denied() = usize::try_from(keys).ok().filter(|&keys| keys > 0).map(top::Top::new);
}

/// Who was denied. Commands and settings run one at a time, so nobody ever waits here.
fn denied() -> MutexGuard<'static, Option<top::Top>> {
    static DENIED: Mutex<Option<top::Top>> = Mutex::new(None);
    DENIED.lock().unwrap_or_else(PoisonError::into_inner)
}
