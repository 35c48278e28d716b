// The C11 interface of libwarmgraph_replay, for a process that only replays entries that another process recorded. This
// library has no capture, no tuner, no compiler and no CUPTI. Users read docs/replay.md.
//
//   cache = a folder, a model, a rank        device = "cuda:0"
//   wgr_load(cache, device, "decode", NULL) -> function; wgr_regions lists the memory that it needs
//   wgr_launch(function, stream, tensors, numbers) -> enqueued, or refused with the reason; a refused call runs nothing
//
// This library refuses a replay in every case in which the whole library would refuse it: another device, driver,
// format or environment, damage, a missing signature, another shape, a weaker alignment, another overlap, or a number
// outside its range.
//
// Errors: a function returns wgr_ok, or a code that names the action to take. wgr_last_error() then returns the text:
// the problem, the expected and the actual value, and the cure. No function throws. On failure an `out` is set to NULL
// or zero. A handle, a name, or an array with a count above 0 must not be NULL (wgr_invalid_argument), except where a
// parameter's comment allows it.
//
// Ownership: the caller destroys each handle that it created, once. Destroying NULL does nothing. A handle keeps the
// other handles' objects alive that it needs, so handles may be destroyed in any order. Do not destroy an object that
// the accelerator still uses: synchronise first. Texts and structs that a function returns from a handle are valid as
// long as the handle.
//
// Threads: several threads may use all handles at once. Launches of one function run one after the other, also on the
// device, because they share the function's scratch memory.
#pragma once

#include <stdint.h>

#include "warmgraph/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

// --- values ---------------------------------------------------------------------------------------------------------

/// wgr_ok or the code of a failure. The numbers are the same as in wg_status (warmgraph.h).
typedef int32_t wgr_status;
enum wgr_status_values {
    wgr_ok = 0,
    wgr_invalid_argument = 1,   ///< fix the call: a name, count, number, memory or handle is wrong
    wgr_not_recordable = 2,     ///< the call is not possible in a stream that captures
    wgr_corrupt = 5,            ///< stored bytes are damaged or hostile
    wgr_stale = 6,              ///< recorded for another device, driver, environment or call (shape, kind of memory)
    wgr_not_found = 7,          ///< the folder, device, entry or image does not exist
    wgr_io_failed = 8,          ///< the cache folder failed
    wgr_no_space = 9,           ///< the disk is full
    wgr_permission_denied = 10, ///< the cache folder belongs to another user, or other users may write it
    wgr_driver_failed = 11,     ///< the accelerator's driver refused a call; the message has the driver's text
    wgr_out_of_memory = 12,     ///< device or host memory ran out
    wgr_unsupported = 13,       ///< this library or device cannot do this; the whole library perhaps can
    wgr_internal = 15,          ///< a defect of warmgraph: please report it
    wgr_partly_launched = 16,   ///< the driver failed during a launch; states may be partly updated
    wgr_untrusted = 17          ///< the entry has no accepted signature
};

/// Element types.
typedef int32_t wgr_dtype;
enum wgr_dtype_values {
    wgr_u8 = 0,
    wgr_i8 = 1,
    wgr_u16 = 2,
    wgr_i16 = 3,
    wgr_u32 = 4,
    wgr_i32 = 5,
    wgr_u64 = 6,
    wgr_i64 = 7,
    wgr_f16 = 8,
    wgr_bf16 = 9,
    wgr_f32 = 10,
    wgr_f64 = 11,
    wgr_boolean = 12
};

/// A range of device memory that the struct does not own. On CUDA `base` is 0 and `offset` is the device pointer. On
/// OpenCL both come from wgr_memory_create; for a part of that memory, add to `offset` and subtract from `size`. If all
/// members are zero, there is no memory.
typedef struct wgr_memory {
    uint64_t base;
    uint64_t offset; ///< bytes
    uint64_t size;   ///< bytes
} wgr_memory;

typedef struct wgr_device wgr_device;
typedef struct wgr_cache wgr_cache;
typedef struct wgr_entries wgr_entries;
typedef struct wgr_function wgr_function;

// --- library --------------------------------------------------------------------------------------------------------

/// Returns the version, such as "0.1.0". The text is static.
WARMGRAPH_API const char* wgr_version(void);
/// Returns the names of this library's backends, such as "cuda, opencl". The text is static.
WARMGRAPH_API const char* wgr_backends(void);
/// Returns the error text of the last call that failed in this thread. Never NULL; "" if no call has failed yet. A call
/// that succeeds does not change the text. The text is valid until the next call that fails in this thread.
WARMGRAPH_API const char* wgr_last_error(void);

// --- devices and memory ---------------------------------------------------------------------------------------------

/// Opens an accelerator: "cuda:0", "cuda", "opencl:<part of a name>". A background thread begins work for which the
/// first load would otherwise wait. wgr_not_found: the message lists the available devices. wgr_unsupported: this
/// library does not have the backend.
WARMGRAPH_API wgr_status wgr_device_open(const char* id, wgr_device** out);
WARMGRAPH_API wgr_status wgr_device_close(wgr_device* device);
/// Blocks until the work of a stream is done; `stream` as in wgr_launch. wgr_not_recordable: the stream captures.
WARMGRAPH_API wgr_status wgr_device_synchronize(wgr_device* device, void* stream);

/// Allocates `size` bytes of device memory with undefined contents. On OpenCL all memory must come from this function.
/// Errors: wgr_invalid_argument for 0 bytes, wgr_out_of_memory.
WARMGRAPH_API wgr_status wgr_memory_create(wgr_device* device, uint64_t size, wgr_memory* out);
/// Frees memory that wgr_memory_create returned for this device; `memory` must be the whole range. Does nothing if all
/// members of `memory` are zero.
WARMGRAPH_API wgr_status wgr_memory_destroy(wgr_device* device, wgr_memory memory);
/// Copy exactly `bytes` bytes to or from the start of `memory`, and block until that is done. They do not wait for work
/// in streams. wgr_invalid_argument: `memory` is smaller than `bytes`.
WARMGRAPH_API wgr_status wgr_upload(wgr_device* device, wgr_memory memory, const void* from, uint64_t bytes);
WARMGRAPH_API wgr_status wgr_download(wgr_device* device, wgr_memory memory, void* to, uint64_t bytes);

// --- the cache ------------------------------------------------------------------------------------------------------

typedef struct wgr_key_value {
    const char* key;
    const char* value;
} wgr_key_value;

/// Options of a cache, with the meaning of those in wg_cache_options (warmgraph.h). Begin with WGR_CACHE_OPTIONS, which
/// sets each member to the value in brackets. Texts are copied.
typedef struct wgr_cache_options {
    uint64_t size;               ///< sizeof(wgr_cache_options)
    const char* model;           ///< the model's name at the recording; must be set [NULL]
    const wgr_key_value* config; ///< the model's configuration, which is part of its identity; keys must differ [NULL]
    uint64_t config_count;       ///< [0]
    const char* cache_dir;       ///< NULL or "": $WARMGRAPH_CACHE_DIR, or .warmgraph_cache if it is not set [NULL]
    int32_t dynamic;             ///< nonzero: the model was recorded with shapes "dynamic" [0]
    int32_t world_size;          ///< ranks: -1 takes the launcher's environment [-1]
    int32_t global_rank;         ///< [-1]
    int32_t tp_rank;             ///< [-1]
    int32_t pp_rank;             ///< [-1]
    int32_t accept_newer_driver; ///< nonzero: driver and runtime may be newer than at the recording [0]
    /// Nonzero: nothing is written to the folder. 0: damaged files are moved to quarantine, and a load that killed its
    /// process twice in a row is refused later; a folder that cannot be written is still read [0]
    int32_t read_only;
    /// Accepted keys for signatures (docs/trust.md), as lines "id:kind:hex", and a file with such lines. Without both,
    /// the keys come from the environment. Keys are never logged.
    const char* const* accept_keys;
    uint64_t accept_key_count;      ///< [0]
    const char* accept_file;        ///< [NULL]
    int32_t require_signed;         ///< nonzero, or $WARMGRAPH_REQUIRE_SIGNED=1: unsigned entries are wgr_untrusted [0]
    const uint32_t* trusted_owners; ///< ids of users whose files are also read, besides this user and root [NULL]
    uint64_t trusted_owner_count;   ///< [0]
    uint64_t max_constant_bytes;    ///< limit for one function's constants; above it: wgr_unsupported; 0: 64 MiB [0]
} wgr_cache_options;

/// The initial values: `wgr_cache_options options = WGR_CACHE_OPTIONS;`
#define WGR_CACHE_OPTIONS {sizeof(wgr_cache_options), 0, 0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// Opens a folder that exists. Errors: wgr_invalid_argument (a bad name, rank or key), wgr_not_found,
/// wgr_permission_denied, wgr_io_failed; wgr_unsupported if $WARMGRAPH_POLICY or $WARMGRAPH_KINDS switches off the use
/// of entries.
WARMGRAPH_API wgr_status wgr_cache_open(const wgr_cache_options* options, wgr_cache** out);
/// Closes the cache. Functions that were loaded from it stay usable.
WARMGRAPH_API wgr_status wgr_cache_close(wgr_cache* cache);

/// A stored entry: the recording of a function under one set of guards.
typedef struct wgr_entry {
    const char* digest;   ///< digest of the guards, 64 hex digits; it is the name of the entry's file
    const char* recorded; ///< time of the recording, ISO 8601; "" if it cannot be read
    const char* code;     ///< the code that was recorded: "code.version 3; program.scale 9f0c..."
    const char* misfit;   ///< why the entry cannot be loaded here; "": it fits
} wgr_entry;

/// Lists all entries of a function, the last used entry first. Reads only the entries' headers, no payload. An empty
/// list is not a failure.
WARMGRAPH_API wgr_status wgr_entries_list(wgr_cache* cache, wgr_device* device, const char* function,
                                          wgr_entries** out);
/// Returns the number of entries; 0 for NULL.
WARMGRAPH_API uint64_t wgr_entries_count(const wgr_entries* entries);
/// Returns the entry at `index`; NULL if `index` is not less than the count.
WARMGRAPH_API const wgr_entry* wgr_entries_at(const wgr_entries* entries, uint64_t index);
WARMGRAPH_API wgr_status wgr_entries_destroy(wgr_entries* entries);

// --- functions ------------------------------------------------------------------------------------------------------

/// Reads and verifies one entry and loads its code. `digest`: the entry's digest. NULL: the only entry that fits; if
/// several fit, the call fails with wgr_stale, because they may be of different code. Other errors: wgr_not_found (the
/// entry or an image does not exist), wgr_corrupt, wgr_untrusted, wgr_stale; wgr_unsupported for entries that only the
/// whole library replays: half of a pair, and graphs with external events, external semaphores or host functions.
WARMGRAPH_API wgr_status wgr_load(wgr_cache* cache, wgr_device* device, const char* function, const char* digest,
                                  wgr_function** out);
WARMGRAPH_API wgr_status wgr_function_destroy(wgr_function* function);

typedef int32_t wgr_region_kind;
enum wgr_region_kind_values {
    wgr_input = 0,
    wgr_output = 1,
    wgr_state = 2,  ///< the caller's memory, read and written; its contents live across launches
    wgr_weights = 3 ///< the caller's memory, only read
};

/// Memory that the caller gives to each launch.
typedef struct wgr_region {
    const char* name;
    wgr_region_kind kind;
    wgr_dtype dtype;
    uint64_t rank;          ///< number of dimensions, at most 8
    const int64_t* sizes;   ///< `rank` sizes, in elements
    const int64_t* strides; ///< `rank` strides, in elements
    uint64_t bytes;         ///< the least size of the memory
    uint64_t alignment;     ///< the least alignment of the address, in bytes
    int32_t on_host;        ///< nonzero: page-locked host memory
} wgr_region;

/// Returns the regions in the order in which wgr_launch takes their tensors.
WARMGRAPH_API const wgr_region* wgr_regions(const wgr_function* function, uint64_t* count);

/// A host number that the caller gives to each launch.
typedef struct wgr_number_decl {
    const char* name;
    wgr_dtype dtype; ///< i32, u32, i64, u64, f32 or f64
    int32_t fixed;   ///< nonzero: the entry is for one value only, so `low` equals `high`
    uint64_t low;    ///< the least value: the bytes of its type, zero-extended
    uint64_t high;   ///< the greatest value, in the same form
} wgr_number_decl;

/// Returns the numbers in the order in which wgr_launch takes them.
WARMGRAPH_API const wgr_number_decl* wgr_numbers(const wgr_function* function, uint64_t* count);

/// The tensor for one region. It must have the recorded type, sizes and strides. If `sizes` is NULL, the caller
/// promises this, and the members below are ignored.
typedef struct wgr_tensor {
    wgr_memory memory;
    const int64_t* sizes;   ///< `rank` sizes, in elements
    const int64_t* strides; ///< `rank` strides, in elements; NULL: contiguous
    uint64_t rank;
    wgr_dtype dtype;
} wgr_tensor;

/// A number: its type (i32, u32, i64, u64, f32, f64) and the bytes of its value, zero-extended. The number is converted
/// to the declared type: integers must fit, f64 rounds to f32, integers become reals, reals never become integers.
typedef struct wgr_number {
    wgr_dtype dtype;
    uint64_t bits;
} wgr_number;

/// Checks the call, binds the memory that changed, and enqueues the whole function; the first launch also builds the
/// graph. `stream`: on CUDA a CUstream (NULL is CUDA's legacy default stream), which must live until the function is
/// launched in another stream or destroyed; CU_STREAM_PER_THREAD is wgr_unsupported. On OpenCL NULL, which means the
/// device's own queue. Errors: wgr_invalid_argument: a wrong number of tensors or numbers, missing or too small memory,
/// a number outside its range; wgr_stale: the call is not the recorded one (type, shape, alignment, overlap, kind of
/// memory), or an environment variable changed; wgr_not_recordable: the stream captures. After a failure nothing was
/// enqueued, except after wgr_partly_launched.
WARMGRAPH_API wgr_status wgr_launch(wgr_function* function, void* stream, const wgr_tensor* tensors,
                                    uint64_t tensor_count, const wgr_number* numbers, uint64_t number_count);
/// Does all of a first launch with these tensors except launching; blocks. Later launches may have other tensors.
WARMGRAPH_API wgr_status wgr_prepare(wgr_function* function, const wgr_tensor* tensors, uint64_t tensor_count,
                                     const wgr_number* numbers, uint64_t number_count);

#ifdef __cplusplus
}
#endif
