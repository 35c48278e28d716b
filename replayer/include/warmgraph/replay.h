// warmgraph's replay alone, for C11: a process that only replays what another one recorded. libwarmgraph_replay has no
// capture, no tuner, no compiler and no CUPTI. docs/replay.md is for users.
//
//   cache = a folder, a model, a rank        device = "cuda:0"
//   wgr_load(cache, device, "decode", NULL) -> function; wgr_regions says what it wants
//   wgr_launch(function, stream, tensors, numbers) -> enqueued, or refused with the reason. Nothing else runs instead.
//
// A replay is refused wherever the whole library would refuse it: another device, driver, format or environment, damage, a
// missing signature, another shape, weaker alignment, another overlap, a number outside its range.
//
// Errors: a function returns wgr_ok or the code that names what to do; wgr_last_error() then has the text: what, expected
// against actual, the cure. Nothing is thrown. On failure an `out` is set to NULL or zero. A null handle, name or array (with
// a count above 0) is wgr_invalid_argument, except where a parameter says that it may be NULL.
//
// Ownership: who creates a handle destroys it, once; destroying NULL does nothing. Handles keep alive what they need of
// others, so the order does not matter. What the accelerator still works on must not be destroyed: synchronise first. Texts
// and structs that a handle gives are valid as long as the handle.
//
// Threads: all handles may be used from several threads at once. Launches of one function happen one after the other, also on
// the device: they share its scratch memory.
#pragma once

#include <stdint.h>

#include "warmgraph/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

// --- values ---------------------------------------------------------------------------------------------------------

/// wgr_ok or a failure's code. The numbers are wg_status's (warmgraph.h).
typedef int32_t wgr_status;
enum wgr_status_values {
    wgr_ok = 0,
    wgr_invalid_argument = 1, ///< fix the call: a name, count, number, memory or handle is wrong
    wgr_not_recordable = 2,   ///< it cannot be done in a stream that captures
    wgr_corrupt = 5,          ///< stored bytes are damaged or hostile
    wgr_stale = 6,     ///< recorded for other facts (device, driver, environment) or for another call (shape, place)
    wgr_not_found = 7, ///< there is no such folder, device, entry or image
    wgr_io_failed = 8, ///< the cache folder failed
    wgr_no_space = 9,  ///< the disk is full
    wgr_permission_denied = 10, ///< the cache folder belongs to someone else, or others may write it
    wgr_driver_failed = 11,     ///< the accelerator's driver refused a call; its text is in the message
    wgr_out_of_memory = 12,     ///< device or host memory ran out
    wgr_unsupported = 13,       ///< this library or device cannot do it: the whole library may
    wgr_internal = 15,          ///< a defect of warmgraph: please report it
    wgr_partly_launched = 16,   ///< the driver failed in the middle of a launch: state may be half updated
    wgr_untrusted = 17          ///< the entry has no signature that is accepted
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

/// A range of device memory, not owned. On CUDA `base` is 0 and `offset` the device pointer. On OpenCL they are what
/// wgr_memory_create gave; add to `offset` and take from `size` to point inside. All zero is no memory.
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

/// "0.1.0". Static.
WARMGRAPH_API const char* wgr_version(void);
/// The backends that this library has: "cuda, opencl". Static.
WARMGRAPH_API const char* wgr_backends(void);
/// The text of the last call that failed in this thread. Never NULL, "" when none failed yet; a call that succeeds leaves it.
/// Valid until the next failing call in this thread.
WARMGRAPH_API const char* wgr_last_error(void);

// --- devices and memory ---------------------------------------------------------------------------------------------

/// Opens an accelerator: "cuda:0", "cuda", "opencl:<part of a name>", and begins on a thread of its own what the first load
/// would wait for. wgr_not_found lists the devices there are; wgr_unsupported for a backend that this library lacks.
WARMGRAPH_API wgr_status wgr_device_open(const char* id, wgr_device** out);
WARMGRAPH_API wgr_status wgr_device_close(wgr_device* device);
/// Blocks until the work of a stream is done; `stream` as in wgr_launch. wgr_not_recordable while it captures.
WARMGRAPH_API wgr_status wgr_device_synchronize(wgr_device* device, void* stream);

/// Device memory, for those who have none of their own (on OpenCL all memory comes from here): `size` bytes, contents
/// undefined. wgr_invalid_argument for 0 bytes, wgr_out_of_memory.
WARMGRAPH_API wgr_status wgr_memory_create(wgr_device* device, uint64_t size, wgr_memory* out);
/// Memory that wgr_memory_create gave for this device, whole. Zero: nothing happens.
WARMGRAPH_API wgr_status wgr_memory_destroy(wgr_device* device, wgr_memory memory);
/// Blocking copies of exactly `bytes` bytes to or from the start of `memory`. They do not wait for work in streams.
/// wgr_invalid_argument when they do not fit.
WARMGRAPH_API wgr_status wgr_upload(wgr_device* device, wgr_memory memory, const void* from, uint64_t bytes);
WARMGRAPH_API wgr_status wgr_download(wgr_device* device, wgr_memory memory, void* to, uint64_t bytes);

// --- the cache ------------------------------------------------------------------------------------------------------

typedef struct wgr_key_value {
    const char* key;
    const char* value;
} wgr_key_value;

/// As wg_cache_options (warmgraph.h) has them. Begin with WGR_CACHE_OPTIONS, which sets what is in brackets. Texts are copied.
typedef struct wgr_cache_options {
    uint64_t size;               ///< sizeof(wgr_cache_options)
    const char* model;           ///< the name it was recorded under [NULL: must be set]
    const wgr_key_value* config; ///< the model's configuration: part of its identity; no key twice [NULL]
    uint64_t config_count;       ///< [0]
    const char* cache_dir;       ///< NULL or "": $WARMGRAPH_CACHE_DIR, else .warmgraph_cache [NULL]
    int32_t dynamic;             ///< nonzero: it was recorded with shapes "dynamic" [0]
    int32_t world_size;          ///< ranks: -1 takes the launcher's environment [-1]
    int32_t global_rank;         ///< [-1]
    int32_t tp_rank;             ///< [-1]
    int32_t pp_rank;             ///< [-1]
    int32_t accept_newer_driver; ///< nonzero: driver and runtime may be newer than recorded with [0]
    /// Nonzero: nothing is written. Else what is damaged goes to quarantine, and a load that kills its process twice in a row
    /// is refused later; a folder that cannot be written is read all the same [0]
    int32_t read_only;
    /// Signatures (docs/trust.md): key lines "id:kind:hex", and a file of them; else those of the environment. Never logged.
    const char* const* accept_keys;
    uint64_t accept_key_count;      ///< [0]
    const char* accept_file;        ///< [NULL]
    int32_t require_signed;         ///< nonzero, or $WARMGRAPH_REQUIRE_SIGNED=1: others are wgr_untrusted [0]
    const uint32_t* trusted_owners; ///< user ids whose files are read besides this user's and root's [NULL]
    uint64_t trusted_owner_count;   ///< [0]
    uint64_t max_constant_bytes;    ///< of one function's constants; larger ones are wgr_unsupported; 0: 64 MiB [0]
} wgr_cache_options;

/// `wgr_cache_options options = WGR_CACHE_OPTIONS;`
#define WGR_CACHE_OPTIONS {sizeof(wgr_cache_options), 0, 0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// Opens a folder that exists. wgr_invalid_argument (a bad name, rank or key), wgr_not_found, wgr_permission_denied,
/// wgr_io_failed; wgr_unsupported where $WARMGRAPH_POLICY or $WARMGRAPH_KINDS switches the use of entries off.
WARMGRAPH_API wgr_status wgr_cache_open(const wgr_cache_options* options, wgr_cache** out);
/// Functions of the cache stay usable.
WARMGRAPH_API wgr_status wgr_cache_close(wgr_cache* cache);

/// What is stored for a function under one set of guards.
typedef struct wgr_entry {
    const char* digest;   ///< of its guards, 64 hex digits: the name of its file
    const char* recorded; ///< when, ISO 8601; "" where it cannot be read
    const char* code;     ///< which code was recorded: "code.version 3; program.scale 9f0c..."
    const char* misfit;   ///< why it is not loaded here; "": it fits
} wgr_entry;

/// All entries of a function, the last used one first, from their headers alone; no payload is read. None is no failure.
WARMGRAPH_API wgr_status wgr_entries_list(wgr_cache* cache, wgr_device* device, const char* function,
                                          wgr_entries** out);
/// How many; 0 for NULL.
WARMGRAPH_API uint64_t wgr_entries_count(const wgr_entries* entries);
/// NULL from the count on.
WARMGRAPH_API const wgr_entry* wgr_entries_at(const wgr_entries* entries, uint64_t index);
WARMGRAPH_API wgr_status wgr_entries_destroy(wgr_entries* entries);

// --- functions ------------------------------------------------------------------------------------------------------

/// Reads and verifies one entry and loads its code. `digest`: which one; NULL: the only one that fits (wgr_stale where several
/// do, which may be of different code: name one). wgr_not_found (no entry, an image is missing), wgr_corrupt, wgr_untrusted,
/// wgr_stale; wgr_unsupported for what only the whole library replays: one half of a pair, external events and semaphores,
/// host functions.
WARMGRAPH_API wgr_status wgr_load(wgr_cache* cache, wgr_device* device, const char* function, const char* digest,
                                  wgr_function** out);
WARMGRAPH_API wgr_status wgr_function_destroy(wgr_function* function);

typedef int32_t wgr_region_kind;
enum wgr_region_kind_values {
    wgr_input = 0,
    wgr_output = 1,
    wgr_state = 2,  ///< the caller's, read and written, lives across launches
    wgr_weights = 3 ///< the caller's, only read
};

/// Memory that the caller gives to each launch.
typedef struct wgr_region {
    const char* name;
    wgr_region_kind kind;
    wgr_dtype dtype;
    uint64_t rank;          ///< at most 8
    const int64_t* sizes;   ///< `rank` elements
    const int64_t* strides; ///< elements
    uint64_t bytes;         ///< at least so many
    uint64_t alignment;     ///< of its address, bytes
    int32_t on_host;        ///< nonzero: page-locked host memory
} wgr_region;

/// In the order in which wgr_launch takes them.
WARMGRAPH_API const wgr_region* wgr_regions(const wgr_function* function, uint64_t* count);

/// A host number that the caller gives to each launch.
typedef struct wgr_number_decl {
    const char* name;
    wgr_dtype dtype; ///< i32, u32, i64, u64, f32 or f64
    int32_t fixed;   ///< nonzero: the entry is for one value alone, so `low` is `high`
    uint64_t low;    ///< the least value as the bytes of its type, zero-extended
    uint64_t high;   ///< the greatest
} wgr_number_decl;

/// In the order in which wgr_launch takes them.
WARMGRAPH_API const wgr_number_decl* wgr_numbers(const wgr_function* function, uint64_t* count);

/// One region's tensor. It must look as recorded. `sizes` NULL: it does, in type, sizes and strides, and the next are ignored.
typedef struct wgr_tensor {
    wgr_memory memory;
    const int64_t* sizes;   ///< `rank` elements
    const int64_t* strides; ///< the same; NULL: contiguous
    uint64_t rank;
    wgr_dtype dtype;
} wgr_tensor;

/// A number's type (i32, u32, i64, u64, f32, f64) and the bytes of its value, zero-extended. It is converted to the declared
/// type: integers must fit, f64 rounds to f32, integers become reals, reals never become integers.
typedef struct wgr_number {
    wgr_dtype dtype;
    uint64_t bits;
} wgr_number;

/// Judges the call, binds what moved and enqueues the whole function; the first launch also builds the graph. `stream`: a
/// CUstream (NULL is CUDA's legacy default stream), which must last until the function is launched in another one or
/// destroyed; CU_STREAM_PER_THREAD is wgr_unsupported. On OpenCL NULL, the device's own queue. wgr_invalid_argument: a wrong
/// number of tensors or numbers, missing or too small memory, a number outside its range; wgr_stale: not the recorded call
/// (type, shape, alignment, overlap, kind of memory), or a variable of the environment changed; wgr_not_recordable: a stream
/// that captures. Nothing was enqueued after a failure, but for wgr_partly_launched.
WARMGRAPH_API wgr_status wgr_launch(wgr_function* function, void* stream, const wgr_tensor* tensors,
                                    uint64_t tensor_count, const wgr_number* numbers, uint64_t number_count);
/// All of a first launch but the launch, for these tensors; blocks. Later launches may have others.
WARMGRAPH_API wgr_status wgr_prepare(wgr_function* function, const wgr_tensor* tensors, uint64_t tensor_count,
                                     const wgr_number* numbers, uint64_t number_count);

#ifdef __cplusplus
}
#endif
