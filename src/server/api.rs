//! The functions of the server that the module uses, looked up once, when it is loaded.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint};
use std::sync::OnceLock;

use redis_module::raw::{
    self, RedisModuleCmdFunc, RedisModuleCommand, RedisModuleCommandInfo, RedisModuleCtx,
    RedisModuleKey, RedisModuleString,
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
        set_module_options = RedisModule_SetModuleOptions: unsafe extern "C" fn(*mut RedisModuleCtx, c_int),
        log = RedisModule_Log: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char, *const c_char, ...),
        get_context_flags = RedisModule_GetContextFlags: unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int,
        string_ptr_len = RedisModule_StringPtrLen: unsafe extern "C" fn(*const RedisModuleString, *mut usize) -> *const c_char,
        wrong_arity = RedisModule_WrongArity: unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int,
        reply_with_error = RedisModule_ReplyWithError: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char) -> c_int,
        reply_with_null = RedisModule_ReplyWithNull: unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int,
        reply_with_array = RedisModule_ReplyWithArray: unsafe extern "C" fn(*mut RedisModuleCtx, std::ffi::c_long) -> c_int,
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
        replicate = RedisModule_Replicate: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char, *const c_char, ...) -> c_int,
    }
    optional {
        cached_microseconds = RedisModule_CachedMicroseconds: unsafe extern "C" fn() -> c_longlong,
        set_command_acl_categories = RedisModule_SetCommandACLCategories: unsafe extern "C" fn(*mut RedisModuleCommand, *const c_char) -> c_int,
        add_acl_category = RedisModule_AddACLCategory: unsafe extern "C" fn(*mut RedisModuleCtx, *const c_char) -> c_int,
    }
}

impl Api {
    /// Writes a line to the server's log. The context may be null.
    ///
    /// The text goes through `%s`: it may hold what a client sent, and a format must not.
    pub fn log_warning(&self, ctx: *mut RedisModuleCtx, text: &CStr) {
        // SAFETY: the server takes a null context; all three texts end with a NUL.
        unsafe { (self.log)(ctx, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr()) };
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

/// Whether the server is Valkey.
pub fn is_valkey(ctx: *mut RedisModuleCtx) -> bool {
    // SAFETY: the pointers are written once, before the server hands control to the module.
    let functions = unsafe {
        (
            raw::RedisModule_GetServerInfo,
            raw::RedisModule_ServerInfoGetFieldC,
            raw::RedisModule_FreeServerInfo,
        )
    };
    let (Some(get), Some(field), Some(free)) = functions else {
        return false;
    };
    // SAFETY: the server passed this context; the texts end with a NUL; the information is freed once, after its last use.
    unsafe {
        let info = get(ctx, c"server".as_ptr());
        let found = !field(info, c"valkey_version".as_ptr()).is_null();
        free(ctx, info);
        found
    }
}

/// The flags of [`Api::get_context_flags`] that the module looks at.
pub const OUT_OF_MEMORY: c_uint = raw::REDISMODULE_CTX_FLAGS_OOM;
/// Set where the server makes room by evicting keys.
pub const EVICTS: c_uint = raw::REDISMODULE_CTX_FLAGS_EVICT;
