//! How commands announce themselves to the server.

use std::ffi::{CStr, CString, c_int};
use std::ptr;

use redis_module::raw::{
    self, RedisModuleCmdFunc, RedisModuleCommand, RedisModuleCommandArg, RedisModuleCommandInfo,
    RedisModuleCommandInfoVersion, RedisModuleCommandKeySpec, RedisModuleCtx,
};

use super::api::Api;
use super::call::{Call, Error};
use super::guard;

/// What runs when a command is called.
pub trait Handler {
    /// Handles one call. Replies unless it returns an error, which is then the reply.
    fn run(call: &mut Call<'_>) -> Result<(), Error>;
}

/// The function that the server calls for a command.
#[derive(Clone, Copy)]
pub struct EntryPoint(RedisModuleCmdFunc);

impl EntryPoint {
    /// None yet, for what several commands have in common.
    pub const NONE: Self = Self(None);

    /// The one that leads to `H`.
    pub const fn of<H: Handler>() -> Self {
        Self(Some(guard::enter::<H>))
    }
}

/// What a command does with its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads the value and may change it.
    ReadWrite,
    /// Reads the value.
    Read,
    /// Has no key: it tells about the whole server. So it is not in the category of the commands that work on one.
    NoKey,
}

/// What an argument is, for `COMMAND DOCS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// The name of the key.
    Key,
    /// Decimal digits.
    Integer,
    /// Anything else.
    Text,
    /// Text behind a keyword.
    TextAfter(&'static CStr),
    /// A keyword alone.
    Keyword(&'static CStr),
    /// One of these.
    OneOf(&'static [Argument]),
    /// All of these, once or more.
    Repeated(&'static [Argument]),
}

/// Which arguments are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Argument 1.
    First,
    /// Argument 1, and from there every so many to the last.
    Every(c_int),
}

impl Keys {
    /// The first key, the last one, counted from the end if it is negative, and the step from key to key.
    const fn first_last_step(self) -> (c_int, c_int, c_int) {
        match self {
            Self::First => (1, 1, 1),
            Self::Every(step) => (1, -1, step),
        }
    }
}

/// An argument of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: &'static CStr,
    /// What it is.
    pub kind: ArgumentKind,
    /// Whether it can be left out.
    pub optional: bool,
}

/// A command as the server and its users see it.
pub struct Command {
    /// Its name, in lower case, as all servers list commands.
    pub name: &'static CStr,
    /// How many words a call has, the name among them; negative: at least so many.
    pub arity: c_int,
    /// The flags of `RedisModule_CreateCommand`.
    pub flags: &'static CStr,
    /// Where its keys are, if it has any.
    pub keys: Keys,
    /// What it does with them.
    pub access: Access,
    /// The ACL categories, where the server lets a module choose them.
    pub categories: &'static CStr,
    /// One sentence on what it does.
    pub summary: &'static CStr,
    /// How its time grows.
    pub complexity: &'static CStr,
    /// The version of the module that brought it.
    pub since: &'static CStr,
    /// Its arguments in order.
    pub arguments: &'static [Argument],
    /// What runs.
    pub entry_point: EntryPoint,
}

/// The ACL category of all the commands that have a key, where the server takes new categories.
const CATEGORY: &CStr = c"ratelimit";

const OK: c_int = raw::REDISMODULE_OK as c_int;

/// The sizes by which the server knows the version of the structures that it is passed.
static INFO_VERSION: RedisModuleCommandInfoVersion = RedisModuleCommandInfoVersion {
    version: 1,
    sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
    sizeof_keyspec: size_of::<RedisModuleCommandKeySpec>(),
    sizeof_arg: size_of::<RedisModuleCommandArg>(),
};

/// Registers commands with all that users can ask the server about them.
pub fn register(api: &Api, ctx: *mut RedisModuleCtx, commands: &[Command]) -> Result<(), String> {
    if let Some(add_acl_category) = api.add_acl_category {
        // This fails if the category is there already, from before the module was unloaded; `set_categories` sees
        // whether it is.
        // SAFETY: the server passed this context for loading; the text ends with a NUL.
        unsafe { add_acl_category(ctx, CATEGORY.as_ptr()) };
    }
    commands.iter().try_for_each(|command| {
        register_one(api, ctx, command)
            .map_err(|what| format!("the server refuses {what} of the command {}", command.name.to_string_lossy()))
    })
}

/// The error is what the server refuses.
fn register_one(api: &Api, ctx: *mut RedisModuleCtx, command: &Command) -> Result<(), &'static str> {
    let (name, flags) = (command.name.as_ptr(), command.flags.as_ptr());
    let (first, last, step) = match command.access {
        Access::NoKey => (0, 0, 0),
        _ => command.keys.first_last_step(),
    };
    // SAFETY: the server passed this context for loading; the texts end with a NUL, and the entry point lives as long
    // as the module.
    if unsafe { (api.create_command)(ctx, name, command.entry_point.0, flags, first, last, step) } != OK {
        return Err("the name");
    }
    // SAFETY: as above.
    let created = unsafe { (api.get_command)(ctx, name) };
    if created.is_null() {
        return Err("a look-up");
    }
    set_info(api, created, command)?;
    set_categories(api, created, command)
}

fn set_info(api: &Api, created: *mut RedisModuleCommand, command: &Command) -> Result<(), &'static str> {
    // The server reads both lists up to an element of zeros.
    let mut key_specs = [key_spec(command.keys, command.access).unwrap_or(NO_KEY_SPEC), NO_KEY_SPEC];
    let mut nested = Vec::new();
    let mut arguments = arguments(command.arguments, &mut nested);
    let info = RedisModuleCommandInfo {
        version: &INFO_VERSION,
        summary: command.summary.as_ptr(),
        complexity: command.complexity.as_ptr(),
        since: command.since.as_ptr(),
        history: ptr::null_mut(),
        tips: ptr::null(),
        arity: command.arity,
        key_specs: key_specs.as_mut_ptr(),
        args: arguments.as_mut_ptr(),
    };
    // SAFETY: the command was just created; the server copies all that `info` points to, which lives until then.
    if unsafe { (api.set_command_info)(created, &info) } == OK { Ok(()) } else { Err("the description") }
}

fn set_categories(api: &Api, created: *mut RedisModuleCommand, command: &Command) -> Result<(), &'static str> {
    let Some(set) = api.set_command_acl_categories else {
        return Ok(());
    };
    let with_ours = [command.categories.to_bytes(), b" ", CATEGORY.to_bytes()].concat();
    let with_ours = CString::new(with_ours).unwrap_or_default();
    let with_ours = if command.access == Access::NoKey { command.categories.to_owned() } else { with_ours };
    let done = [with_ours.as_c_str(), command.categories].into_iter().any(|categories| {
        // SAFETY: the command was just created; the text ends with a NUL.
        unsafe { set(created, categories.as_ptr()) == OK }
    });
    if done { Ok(()) } else { Err("the ACL categories") }
}

const NO_KEY_SPEC: RedisModuleCommandKeySpec = RedisModuleCommandKeySpec {
    notes: ptr::null(),
    flags: 0,
    begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INVALID,
    bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
        index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: 0 },
    },
    find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_OMITTED,
    fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
        range: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 { lastkey: 0, keystep: 0, limit: 0 },
    },
};

const NO_ARGUMENT: RedisModuleCommandArg = RedisModuleCommandArg {
    name: ptr::null(),
    type_: raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
    key_spec_index: -1,
    token: ptr::null(),
    summary: ptr::null(),
    since: ptr::null(),
    flags: 0,
    deprecated_since: ptr::null(),
    subargs: ptr::null_mut(),
    display_text: ptr::null(),
};

/// Of a command that has keys.
fn key_spec(keys: Keys, access: Access) -> Option<RedisModuleCommandKeySpec> {
    let (first, last, keystep) = keys.first_last_step();
    // Here the last key is counted from the first, where it is not from the end.
    let lastkey = if last < 0 { last } else { last - first };
    let flags = match access {
        Access::ReadWrite => {
            raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE
        }
        Access::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
        Access::NoKey => return None,
    };
    Some(RedisModuleCommandKeySpec {
        flags: flags.into(),
        begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX,
        bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
            index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: first },
        },
        find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE,
        fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
            range: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 { lastkey, keystep, limit: 0 },
        },
        ..NO_KEY_SPEC
    })
}

/// Arguments as the server reads them, up to an element of zeros. What they point to besides is put into `nested`, and
/// must be kept there.
fn arguments(list: &[Argument], nested: &mut Vec<Vec<RedisModuleCommandArg>>) -> Vec<RedisModuleCommandArg> {
    let mut read: Vec<_> = list.iter().map(|one| argument(one, nested)).collect();
    read.push(NO_ARGUMENT);
    read
}

fn argument(argument: &Argument, nested: &mut Vec<Vec<RedisModuleCommandArg>>) -> RedisModuleCommandArg {
    let (type_, key_spec_index) = match argument.kind {
        ArgumentKind::Key => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY, 0),
        ArgumentKind::Integer => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER, -1),
        ArgumentKind::Text | ArgumentKind::TextAfter(_) => {
            (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING, -1)
        }
        ArgumentKind::Keyword(_) => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN, -1),
        ArgumentKind::OneOf(_) => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF, -1),
        ArgumentKind::Repeated(_) => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK, -1),
    };
    let token = match argument.kind {
        ArgumentKind::TextAfter(keyword) | ArgumentKind::Keyword(keyword) => keyword.as_ptr(),
        _ => ptr::null(),
    };
    let subargs = match argument.kind {
        ArgumentKind::OneOf(list) | ArgumentKind::Repeated(list) => {
            let mut inner = arguments(list, nested);
            let place = inner.as_mut_ptr();
            nested.push(inner);
            place
        }
        _ => ptr::null_mut(),
    };
    let optional = if argument.optional { raw::REDISMODULE_CMD_ARG_OPTIONAL } else { raw::REDISMODULE_CMD_ARG_NONE };
    let flags = match argument.kind {
        ArgumentKind::Repeated(_) => optional | raw::REDISMODULE_CMD_ARG_MULTIPLE,
        _ => optional,
    };
    RedisModuleCommandArg {
        name: argument.name.as_ptr(),
        type_,
        key_spec_index,
        token,
        subargs,
        flags: flags.cast_signed(),
        ..NO_ARGUMENT
    }
}
