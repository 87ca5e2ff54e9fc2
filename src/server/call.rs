//! One call of a command: its arguments, the time, and the reply.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_long};
use std::fmt::Arguments;
use std::num::NonZeroUsize;
use std::time::{SystemTime, UNIX_EPOCH};

use redis_module::raw::{self, RedisModuleCtx, RedisModuleString};

use super::api::Api;
use super::key::{Key, Mode};
use super::stats;

/// Why a call is answered with an error.
#[derive(Debug)]
pub enum Error {
    /// Too few or too many arguments.
    WrongArity,
    /// The text of the error, whose first word is its code in upper case.
    Text(Cow<'static, CStr>),
}

impl Error {
    /// An error with a fixed text.
    pub const fn fixed(text: &'static CStr) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::WrongArity => b"ERR wrong number of arguments",
            Self::Text(text) => text.to_bytes(),
        }
    }

    /// An error whose text is put together.
    pub fn formatted(text: Arguments<'_>) -> Self {
        Self::Text(Cow::Owned(CString::new(text.to_string()).unwrap_or_default()))
    }

    /// The same error, which also says where it is.
    pub fn at(self, place: Arguments<'_>) -> Self {
        match self {
            Self::WrongArity => self,
            Self::Text(text) => Self::formatted(format_args!("{} ({place})", text.to_string_lossy())),
        }
    }
}

/// A value in a map that is replied.
#[derive(Debug)]
pub enum Field {
    /// An integer.
    Integer(i64),
    /// A string.
    Text(String),
    /// A list of pairs of integers.
    Pairs(Vec<[i64; 2]>),
    /// A list of rows, each a name and integers.
    Rows(Vec<(Vec<u8>, Vec<i64>)>),
}

/// One call of a command.
pub struct Call<'a> {
    api: &'static Api,
    ctx: *mut RedisModuleCtx,
    /// The name of the command, then its arguments. They live, unchanged, as long as the call.
    arguments: &'a [*mut RedisModuleString],
}

impl<'a> Call<'a> {
    /// # Safety
    ///
    /// `ctx` and `arguments` must be those of a command that the server is calling, and `'a` must not outlive that
    /// call.
    pub(super) unsafe fn new(
        api: &'static Api,
        ctx: *mut RedisModuleCtx,
        arguments: &'a [*mut RedisModuleString],
    ) -> Self {
        Self { api, ctx, arguments }
    }

    /// How many arguments there are, the name of the command among them.
    pub fn argument_count(&self) -> usize {
        self.arguments.len()
    }

    /// The bytes of the argument at `index`, where 0 is the name of the command. They are read in place.
    pub fn argument(&self, index: usize) -> Option<&'a [u8]> {
        let argument = *self.arguments.get(index)?;
        // SAFETY: the argument lives as long as the call (`new`).
        Some(unsafe { bytes(self.api, argument) })
    }

    /// Opens the key that the argument at `index` names. One at a time: two handles of one key could change it under
    /// each other.
    pub fn open(&mut self, index: usize, mode: Mode) -> Result<Key<'_>, Error> {
        let name = *self.arguments.get(index).ok_or(Error::WrongArity)?;
        // SAFETY: the context and the name live as long as the call, which the key can't outlive.
        Ok(unsafe { Key::open(self.api, self.ctx, name, mode) })
    }

    /// Opens the keys that every `step`-th argument from `first` on names, each when it is asked for. Several are open
    /// at once, so an error if two are the same key.
    pub fn open_each(
        &mut self,
        first: usize,
        step: NonZeroUsize,
        mode: Mode,
    ) -> Result<impl Iterator<Item = Key<'_>>, Error> {
        let (api, ctx) = (self.api, self.ctx);
        let names = || self.arguments.iter().skip(first).step_by(step.get()).copied();
        for (index, name) in names().enumerate() {
            // SAFETY: the names are arguments of the call, in which we are.
            let is_same = |other| unsafe { bytes(api, other) == bytes(api, name) };
            if names().take(index).any(is_same) {
                return Err(Error::fixed(c"ERR the same key is named twice"));
            }
        }
        // SAFETY: the context and the names live as long as the call, which the keys can't outlive, and no two handles
        // are of one key.
        let open = move |name| unsafe { Key::open(api, ctx, name, mode) };
        // What has expired goes while no other key is open: other modules are told of it at once, and one that then
        // deletes or replaces another of these keys would leave its handle with memory that is freed.
        names().skip(1).map(open).for_each(drop);
        Ok(names().map(open))
    }

    /// The time of the call in microseconds since the Unix epoch, by the server's clock.
    ///
    /// From Redis 7.2 on it is the server's cached time, the same for all commands of a `MULTI` block or a script.
    /// Before, it is the system's clock, so a command must ask once and keep the answer.
    pub fn now(&self) -> i64 {
        match self.api.cached_microseconds {
            // SAFETY: it takes nothing, and may be called whenever a command is.
            Some(cached_microseconds) => unsafe { cached_microseconds() },
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
        }
    }

    /// Replies with an integer.
    pub fn reply_integer(&self, integer: i64) {
        // SAFETY: the context lives as long as the call.
        unsafe { (self.api.reply_with_long_long)(self.ctx, integer) };
    }

    /// Replies with an array of integers.
    #[inline]
    pub fn reply_integers(&self, integers: &[i64]) {
        self.begin_array(integers.len());
        integers.iter().for_each(|&integer| self.reply_integer(integer));
    }

    /// Replies with one array of some integers and then more.
    pub fn reply_joined_integers(&self, first: &[i64], more: &[i64]) {
        self.begin_array(first.len() + more.len());
        first.iter().chain(more).for_each(|&integer| self.reply_integer(integer));
    }

    /// Replies with names and values: a map in RESP3, a flat array in RESP2.
    pub fn reply_map(&self, fields: &[(&str, Field)]) {
        let length = c_long::try_from(fields.len()).unwrap_or(0);
        // SAFETY: the context lives as long as the call.
        unsafe { (self.api.reply_with_map)(self.ctx, length) };
        for (name, value) in fields {
            self.reply_text(name);
            match value {
                Field::Integer(integer) => self.reply_integer(*integer),
                Field::Text(text) => self.reply_text(text),
                Field::Pairs(pairs) => self.reply_pairs(pairs),
                Field::Rows(rows) => self.reply_rows(rows.iter().map(|(name, integers)| (name.as_slice(), integers))),
            }
        }
    }

    fn reply_pairs(&self, pairs: &[[i64; 2]]) {
        self.begin_array(pairs.len());
        pairs.iter().for_each(|pair| self.reply_integers(pair));
    }

    fn begin_array(&self, length: usize) {
        // SAFETY: the context lives as long as the call.
        unsafe { (self.api.reply_with_array)(self.ctx, c_long::try_from(length).unwrap_or(0)) };
    }

    fn reply_text(&self, text: &str) {
        self.reply_bytes(text.as_bytes());
    }

    fn reply_bytes(&self, bytes: &[u8]) {
        // SAFETY: the context lives as long as the call; the server copies so many bytes.
        unsafe { (self.api.reply_with_string_buffer)(self.ctx, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Replies with an array of rows, each a string of bytes and integers.
    pub fn reply_rows<'r>(&self, rows: impl ExactSizeIterator<Item = (&'r [u8], impl AsRef<[i64]>)>) {
        self.begin_array(rows.len());
        for (bytes, integers) in rows {
            let integers = integers.as_ref();
            self.begin_array(1 + integers.len());
            self.reply_bytes(bytes);
            integers.iter().for_each(|&integer| self.reply_integer(integer));
        }
    }

    /// Replies with a null: there is no such key.
    pub fn reply_null(&self) {
        // SAFETY: the context lives as long as the call.
        unsafe { (self.api.reply_with_null)(self.ctx) };
    }

    /// Tells clients that listen for events of keys about one of the class module, of the key that the argument at
    /// `index` names. Whether anybody gets it is the server's setting `notify-keyspace-events`.
    pub fn notify(&self, event: &CStr, index: usize) {
        if let Some(&name) = self.arguments.get(index) {
            let class = raw::REDISMODULE_NOTIFY_MODULE;
            // SAFETY: the context and the name live as long as the call; the event ends with a NUL.
            unsafe { (self.api.notify_keyspace_event)(self.ctx, class, event.as_ptr(), name) };
        }
    }

    /// Replies with an error, and counts it.
    pub(super) fn reply_error(&self, error: &Error) {
        stats::count_error(error.bytes());
        match error {
            // SAFETY: the context lives as long as the call.
            Error::WrongArity => unsafe { (self.api.wrong_arity)(self.ctx) },
            // SAFETY: as above, and the text ends with a NUL.
            Error::Text(text) => unsafe { (self.api.reply_with_error)(self.ctx, text.as_ptr()) },
        };
    }
}

/// The bytes of an argument, read in place.
///
/// # Safety
///
/// The argument must live, unchanged, for `'a`.
unsafe fn bytes<'a>(api: &Api, argument: *mut RedisModuleString) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller vouches for the argument, and `length` is written before it is read.
    let bytes = unsafe { (api.string_ptr_len)(argument, &mut length) };
    // SAFETY: the server owns so many bytes there for as long as the argument lives, and does not change them.
    unsafe { std::slice::from_raw_parts(bytes.cast(), length) }
}
