//! Counting in the server's own memory: right for one server, and the limit times
//! the number of servers for a fleet.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::decision::Decision;
use crate::limiters::WINDOW;

pub struct Memory {
    limit: u64,
    users: Mutex<HashMap<String, Window>>,
}

struct Window {
    opened: Instant,
    admitted: u64,
}

impl Memory {
    pub fn new(limit: u64) -> Self {
        Memory { limit, users: Mutex::default() }
    }

    pub fn decide(&self, user: &str) -> Decision {
        let now = Instant::now();
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let window = users.entry(user.to_owned()).or_insert(Window { opened: now, admitted: 0 });
        if now.duration_since(window.opened) >= WINDOW {
            *window = Window { opened: now, admitted: 0 };
        }
        let left = WINDOW.saturating_sub(now.duration_since(window.opened));
        let allowed = window.admitted < self.limit;
        if allowed {
            window.admitted += 1;
        }
        Decision {
            allowed,
            limit: self.limit,
            remaining: self.limit - window.admitted,
            retry_after: Some(if allowed { Duration::ZERO } else { left }),
            turn_after: None,
            reset_after: left,
        }
    }
}
