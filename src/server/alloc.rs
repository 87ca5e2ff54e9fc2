//! The allocator of the module: the server's, so that its memory accounting and limits see what the module takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;

use redis_module::raw;

/// The server's allocator where the module is loaded, the system's in unit tests and benches, where there is no server.
///
/// The choice is fixed before the first allocation: the server fills in its functions at the very start of loading, and the
/// module has no static constructors that would allocate earlier.
pub struct ServerAllocator;

/// What every server's allocator aligns to. Malloc gives more, but a server may put a length in front.
const SERVER_ALIGNMENT: usize = 8;

// SAFETY: each method hands its arguments on to one allocator, the same for the whole life of the process (above). Stricter alignments
// than the server guarantees go to the system's allocator, and come back to it by the same test on the same layout.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: reading a pointer that is written once, before any other code of the module runs.
        match unsafe { raw::RedisModule_Alloc } {
            // SAFETY: the server's malloc takes any size.
            Some(alloc) if layout.align() <= SERVER_ALIGNMENT => unsafe { alloc(layout.size()).cast() },
            // SAFETY: the caller keeps the contract of `GlobalAlloc`.
            _ => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        match unsafe { raw::RedisModule_Calloc } {
            // SAFETY: the server's calloc takes any size.
            Some(calloc) if layout.align() <= SERVER_ALIGNMENT => unsafe { calloc(1, layout.size()).cast() },
            // SAFETY: the caller keeps the contract of `GlobalAlloc`.
            _ => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        match unsafe { raw::RedisModule_Realloc } {
            // SAFETY: the block came from the server's allocator, by the same test on the same layout.
            Some(realloc) if layout.align() <= SERVER_ALIGNMENT => unsafe {
                realloc(block.cast::<c_void>(), size).cast()
            },
            // SAFETY: the caller keeps the contract of `GlobalAlloc`.
            _ => unsafe { System.realloc(block, layout, size) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        match unsafe { raw::RedisModule_Free } {
            // SAFETY: the block came from the server's allocator, by the same test on the same layout.
            Some(free) if layout.align() <= SERVER_ALIGNMENT => unsafe { free(block.cast::<c_void>()) },
            // SAFETY: the caller keeps the contract of `GlobalAlloc`.
            _ => unsafe { System.dealloc(block, layout) },
        }
    }
}
