//! The functions of the server that the module uses, looked up once, when it is loaded.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use redis_module::raw::{
    self, RedisModuleCallReply, RedisModuleCmdFunc, RedisModuleCommand, RedisModuleCommandInfo,
    RedisModuleConfigApplyFunc, RedisModuleConfigGetBoolFunc, RedisModuleConfigGetNumericFunc,
    RedisModuleConfigSetBoolFunc, RedisModuleConfigSetNumericFunc, RedisModuleCtx, RedisModuleEvent,
    RedisModuleEventCallback, RedisModuleInfoCtx, RedisModuleInfoFunc, RedisModuleKey, RedisModuleServerInfoData,
    RedisModuleString,
};

/// Defines [`Api`] and how it is filled in. A `required` function is on every server since Redis 7.0; an `optional` one is
/// not, and whoever calls it says what happens without.
macro_rules! api {
    (
        required { $($name:ident = $raw:ident: $type:ty,)* }
        optional { $($maybe:ident = $maybe_raw:ident: $maybe_type:ty,)* }
    ) => {
        /// The functions of the server that the module uses.
        pub struct Api {
            $(pub $name: $type,)*
            $(pub $maybe: Option<$maybe_type>,)*
        }

        impl Api {
            /// Looks all functions up. The error is the name of one that is required and missing.
            fn look_up() -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the server writes these pointers once, before it hands control to the module.
                    $($name: unsafe { raw::$raw }.ok_or(stringify!($raw))?,)*
                    // SAFETY: as above.
                    $($maybe: unsafe { raw::$maybe_raw },)*
                })
            }
        }
    };
}

api! {
    required {
        create_command = RedisModule_CreateCommand: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char, RedisModuleCmdFunc, *const c_char, c_int, c_int, c_int) -> c_int,
        get_command = RedisModule_GetCommand: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char) -> *mut RedisModuleCommand,
        set_command_info = RedisModule_SetCommandInfo: unsafe extern "C" fn(*mut RedisModuleCommand, *const RedisModuleCommandInfo) -> c_int,
        register_numeric_config = RedisModule_RegisterNumericConfig: RegisterNumericConfig,
        register_bool_config = RedisModule_RegisterBoolConfig: RegisterBoolConfig,
        load_configs = RedisModule_LoadConfigs: unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int,
        set_module_options = RedisModule_SetModuleOptions: unsafe extern "C" fn(*mut RedisModuleCtx, c_int),
        log = RedisModule_Log: Log,
        call = RedisModule_Call: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char, *const c_char, ...) -> *mut RedisModuleCallReply,
        call_reply_type = RedisModule_CallReplyType: unsafe extern "C" fn(*mut RedisModuleCallReply) -> c_int,
        call_reply_array_element = RedisModule_CallReplyArrayElement: unsafe extern "C" fn(*mut RedisModuleCallReply, usize) -> *mut RedisModuleCallReply,
        free_call_reply = RedisModule_FreeCallReply: unsafe extern "C" fn(*mut RedisModuleCallReply),
        get_context_flags = RedisModule_GetContextFlags: unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int,
        create_string_from_long_long = RedisModule_CreateStringFromLongLong: unsafe extern "C" fn(*mut RedisModuleCtx, c_longlong) -> *mut RedisModuleString,
        free_string = RedisModule_FreeString: unsafe extern "C" fn(*mut RedisModuleCtx, *mut RedisModuleString),
        string_ptr_len = RedisModule_StringPtrLen: unsafe extern "C" fn(*const RedisModuleString, *mut usize) -> *const c_char,
        wrong_arity = RedisModule_WrongArity: unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int,
        reply_with_error = RedisModule_ReplyWithError: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char) -> c_int,
        reply_with_null = RedisModule_ReplyWithNull: unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int,
        reply_with_array = RedisModule_ReplyWithArray: unsafe extern "C" fn(*mut RedisModuleCtx, std::ffi::c_long) -> c_int,
        reply_with_map = RedisModule_ReplyWithMap: unsafe extern "C" fn(*mut RedisModuleCtx, std::ffi::c_long) -> c_int,
        reply_with_string_buffer = RedisModule_ReplyWithStringBuffer: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char, usize) -> c_int,
        reply_with_long_long = RedisModule_ReplyWithLongLong: unsafe extern "C" fn(*mut RedisModuleCtx, c_longlong) -> c_int,
        open_key = RedisModule_OpenKey: unsafe extern "C" fn(*mut RedisModuleCtx, *mut RedisModuleString, c_int) -> *mut RedisModuleKey,
        close_key = RedisModule_CloseKey: unsafe extern "C" fn(*mut RedisModuleKey),
        key_type = RedisModule_KeyType: unsafe extern "C" fn(*mut RedisModuleKey) -> c_int,
        value_length = RedisModule_ValueLength: unsafe extern "C" fn(*mut RedisModuleKey) -> usize,
        string_dma = RedisModule_StringDMA: unsafe extern "C" fn(*mut RedisModuleKey, *mut usize, c_int) -> *mut c_char,
        string_truncate = RedisModule_StringTruncate: unsafe extern "C" fn(*mut RedisModuleKey, usize) -> c_int,
        delete_key = RedisModule_DeleteKey: unsafe extern "C" fn(*mut RedisModuleKey) -> c_int,
        get_abs_expire = RedisModule_GetAbsExpire: unsafe extern "C" fn(*mut RedisModuleKey) -> c_longlong,
        set_abs_expire = RedisModule_SetAbsExpire: unsafe extern "C" fn(*mut RedisModuleKey, c_longlong) -> c_int,
        signal_modified_key = RedisModule_SignalModifiedKey: unsafe extern "C" fn(*mut RedisModuleCtx, *mut RedisModuleString) -> c_int,
        register_info_func = RedisModule_RegisterInfoFunc: unsafe extern "C" fn(*mut RedisModuleCtx, RedisModuleInfoFunc) -> c_int,
        info_add_section = RedisModule_InfoAddSection: unsafe extern "C" fn(*mut RedisModuleInfoCtx, *const c_char) -> c_int,
        info_add_number = RedisModule_InfoAddFieldULongLong: unsafe extern "C" fn(*mut RedisModuleInfoCtx, *const c_char, c_ulonglong) -> c_int,
        notify_keyspace_event = RedisModule_NotifyKeyspaceEvent: unsafe extern "C" fn(*mut RedisModuleCtx, c_int, *const c_char, *mut RedisModuleString) -> c_int,
        subscribe_to_server_event = RedisModule_SubscribeToServerEvent: unsafe extern "C" fn(*mut RedisModuleCtx, RedisModuleEvent, RedisModuleEventCallback) -> c_int,
        get_server_info = RedisModule_GetServerInfo: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char) -> *mut RedisModuleServerInfoData,
        server_info_get_unsigned = RedisModule_ServerInfoGetFieldUnsigned: unsafe extern "C" fn(*mut RedisModuleServerInfoData, *const c_char, *mut c_int) -> c_ulonglong,
        free_server_info = RedisModule_FreeServerInfo: unsafe extern "C" fn(*mut RedisModuleCtx, *mut RedisModuleServerInfoData),
        replicate = RedisModule_Replicate: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char, *const c_char, ...) -> c_int,
    }
    optional {
        cached_microseconds = RedisModule_CachedMicroseconds: unsafe extern "C" fn() -> c_longlong,
        set_command_acl_categories = RedisModule_SetCommandACLCategories: unsafe extern "C" fn(*mut RedisModuleCommand, *const c_char) -> c_int,
        add_acl_category = RedisModule_AddACLCategory: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char) -> c_int,
    }
}

type RegisterNumericConfig = unsafe extern "C" fn(
    *mut RedisModuleCtx,
    *const c_char,
    c_longlong,
    c_uint,
    c_longlong,
    c_longlong,
    RedisModuleConfigGetNumericFunc,
    RedisModuleConfigSetNumericFunc,
    RedisModuleConfigApplyFunc,
    *mut c_void,
) -> c_int;

type RegisterBoolConfig = unsafe extern "C" fn(
    *mut RedisModuleCtx,
    *const c_char,
    c_int,
    c_uint,
    RedisModuleConfigGetBoolFunc,
    RedisModuleConfigSetBoolFunc,
    RedisModuleConfigApplyFunc,
    *mut c_void,
) -> c_int;

/// Writes a line to the server's log.
pub type Log = unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char, *const c_char, ...);

impl Api {
    /// The commands by which results are replicated.
    pub const REPLICATING: [&CStr; 4] = [c"SET", c"SETRANGE", c"PEXPIREAT", c"DEL"];

    /// Whether the server has a command of this name: its configuration may have renamed it.
    pub fn has_command(&self, ctx: *mut RedisModuleCtx, name: &CStr) -> bool {
        // SAFETY: the context is that of the call in which we are; the texts end with a NUL and the format names two of them. A
        // reply is freed once, and its element, which is part of it, not looked at later.
        unsafe {
            let reply = (self.call)(ctx, c"COMMAND".as_ptr(), c"cc".as_ptr(), c"INFO".as_ptr(), name.as_ptr());
            if reply.is_null() {
                return false;
            }
            let element = (self.call_reply_array_element)(reply, 0);
            let found = !element.is_null() && (self.call_reply_type)(element) as isize == raw::REDISMODULE_REPLY_ARRAY;
            (self.free_call_reply)(reply);
            found
        }
    }

    /// Whether the server refuses to take more memory: by its own verdict on a command that may need some, here one that
    /// writes nothing at the end of nothing.
    pub fn refuses_memory(&self, ctx: *mut RedisModuleCtx, key: *mut RedisModuleString) -> bool {
        // SAFETY: the context and the key are those of the call in which we are. The format: `M` asks for the verdict, `E` for
        // errors as replies; then the key and two texts that end with a NUL. A reply is freed once.
        unsafe {
            let format = c"MEscc".as_ptr();
            let reply = (self.call)(ctx, c"SETRANGE".as_ptr(), format, key, c"0".as_ptr(), c"".as_ptr());
            if reply.is_null() {
                return true;
            }
            let refused = (self.call_reply_type)(reply) as isize == raw::REDISMODULE_REPLY_ERROR;
            (self.free_call_reply)(reply);
            refused
        }
    }
}

static API: OnceLock<Api> = OnceLock::new();

/// The functions of the server, once [`look_up`] has found them.
pub fn get() -> Option<&'static Api> {
    API.get()
}

/// Looks the functions of the server up. The error is the name of one that is required and missing.
pub fn look_up() -> Result<&'static Api, &'static str> {
    let found = Api::look_up()?;
    Ok(API.get_or_init(|| found))
}

/// The server's version as `(major, minor, patch)`: of Redis, or of Valkey, whose first is 7.2.
pub fn server_version() -> (c_int, c_int, c_int) {
    // SAFETY: the pointer is written once, before the server hands control to the module; the function takes nothing.
    let version = unsafe { raw::RedisModule_GetServerVersion.map_or(0, |get| get()) };
    (version >> 16, version >> 8 & 0xFF, version & 0xFF)
}

/// Set among [`Api::get_context_flags`] while the server is over its limit, even if it can make room by evicting.
pub const OUT_OF_MEMORY: c_uint = raw::REDISMODULE_CTX_FLAGS_OOM;
