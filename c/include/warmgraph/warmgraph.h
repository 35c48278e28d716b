// warmgraph's C interface: the facade of warmgraph/warmgraph.hpp for C11 and for foreign function interfaces (ctypes).
//
// Calling it needs no macro: fixed-width types, plain structs and opaque handles only. Structs that may grow begin with
// `size`, which the caller sets to the sizeof it was compiled with: members that it does not have take their defaults.
// A larger struct than this library knows is taken when its further bytes are zero (unsupported otherwise).
//
// Errors: a function returns wg_ok or the code that names what to do; wg_last_error() then has the text. Nothing is
// thrown. On failure an `out` handle is set to NULL. A null handle, name or array (with a count above 0) is
// invalid_argument, except where a parameter says that it may be NULL. Getters that return a value give NULL or 0 for a
// null handle. A miss, a damaged cache, a full disk or a refused recording is no failure: the function runs as it is,
// and its report says why.
//
// Ownership: who creates a handle destroys it, once; destroying NULL does nothing. Handles keep alive what they need
// of others, so the order does not matter (a function may outlive its cache handle and its device handle). What the
// accelerator still works on must not be destroyed: synchronise first.
//
// Threads: devices, programs, caches and functions may be used from several threads at once. A stream, an event and a
// recorder belong to one thread at a time.
#pragma once

#include <stdint.h>

#include "warmgraph/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

// --- values ---------------------------------------------------------------------------------------------------------

/// wg_ok or a failure's code.
typedef int32_t wg_status;
enum wg_status_values {
    wg_ok = 0,
    wg_invalid_argument = 1,     ///< fix the call: a name, shape, binding, option or handle is wrong
    wg_not_recordable = 2,       ///< the function did something that a graph cannot hold; it runs as it is
    wg_compile_failed = 3,       ///< fix the kernel source; the compiler's log is in the text
    wg_miss_forbidden = 4,       ///< policy require_hit: record first; no_compile: compile ahead
    wg_corrupt = 5,              ///< stored bytes are damaged or hostile
    wg_stale = 6,                ///< stored for other facts (version, device, key)
    wg_not_found = 7,            ///< the named thing does not exist
    wg_io_failed = 8,            ///< the cache folder failed
    wg_no_space = 9,             ///< the disk is full
    wg_permission_denied = 10,   ///< the cache folder belongs to someone else or is not writable
    wg_driver_failed = 11,       ///< the accelerator's driver refused a call; its text is in the message
    wg_out_of_memory = 12,       ///< device or host memory ran out
    wg_unsupported = 13,         ///< this backend, device or version of the library cannot do it
    wg_verification_failed = 14, ///< the restored graph did not reproduce the function
    wg_internal = 15,            ///< a defect of warmgraph: please report it
    wg_partly_launched = 16,     ///< the driver failed in the middle of a launch: state may be half updated
    wg_untrusted = 17            ///< an entry has no signature that is accepted
};

/// Element types.
typedef int32_t wg_dtype;
enum wg_dtype_values {
    wg_u8 = 0,
    wg_i8 = 1,
    wg_u16 = 2,
    wg_i16 = 3,
    wg_u32 = 4,
    wg_i32 = 5,
    wg_u64 = 6,
    wg_i64 = 7,
    wg_f16 = 8,
    wg_bf16 = 9,
    wg_f32 = 10,
    wg_f64 = 11,
    wg_boolean = 12
};

/// What a call did.
typedef int32_t wg_outcome;
enum wg_outcome_values {
    wg_outcome_recorded = 0, ///< missed, recorded, verified and (unless the disk failed) published
    wg_outcome_replayed = 1, ///< hit
    wg_outcome_eager = 2,    ///< ran as it is: policy, or no entry for these inputs
    wg_outcome_refused = 3   ///< ran as it is, because it cannot be recorded or replayed; the report's reason says why
};

typedef int32_t wg_policy;
enum wg_policy_values {
    wg_policy_default = 0,     ///< cache: $WARMGRAPH_POLICY, else read_write; function: the cache's
    wg_policy_read_write = 1,  ///< replay a hit, record a miss
    wg_policy_read_only = 2,   ///< replay a hit, run a miss as it is
    wg_policy_refresh = 3,     ///< record anew and replace
    wg_policy_off = 4,         ///< never look, never record
    wg_policy_require_hit = 5, ///< fail with miss_forbidden where anything would be recorded
    wg_policy_no_compile = 6 ///< as read_write, and fail with miss_forbidden where a program would have to be compiled
};

/// The kinds of artifacts in a cache (docs/kinds.md).
typedef int32_t wg_artifact_kind;
enum wg_artifact_kind_values {
    wg_kind_entries = 1,   ///< recorded graphs with their guards
    wg_kind_images = 2,    ///< device code: a part of the entries that name it
    wg_kind_constants = 3, ///< contents of a graph's constants: a part of the entries that name them
    wg_kind_compiled = 4,  ///< compiled programs
    wg_kind_tuned = 5,     ///< tuned configurations, of a kernel or of a module
    wg_kind_profiles = 6,  ///< shape profiles
    wg_kind_torch = 7      ///< bytes that PyTorch compiled, which can run code
};

typedef int32_t wg_access;
enum wg_access_values { wg_access_read_write = 0, wg_access_read_only = 1 };

/// A place in device memory: `base` names an allocation, `offset` counts bytes from its start (add to it to point
/// inside). Zero is null. On CUDA the base is always 256, and base + offset is the device pointer.
typedef struct wg_address {
    uint64_t base;
    uint64_t offset;
} wg_address;

/// A range of device memory, not owned.
typedef struct wg_memory {
    wg_address address;
    uint64_t size; ///< bytes
} wg_memory;

typedef struct wg_key_value {
    const char* key;
    const char* value;
} wg_key_value;

typedef struct wg_device wg_device;
typedef struct wg_buffer wg_buffer;
typedef struct wg_program wg_program;
typedef struct wg_stream wg_stream;
typedef struct wg_event wg_event;
typedef struct wg_watch wg_watch;
typedef struct wg_cache wg_cache;
typedef struct wg_function wg_function;
typedef struct wg_pair wg_pair;
typedef struct wg_report wg_report;
typedef struct wg_recorder wg_recorder;
typedef struct wg_preload wg_preload;
typedef struct wg_artifacts wg_artifacts;

// --- library --------------------------------------------------------------------------------------------------------

/// "0.1.0". Static.
WARMGRAPH_API const char* wg_version(void);

/// The backends that this build of the library has: "opencl, cuda". Static.
WARMGRAPH_API const char* wg_backends(void);

/// The text of the last call that failed in this thread: what was expected, what was found and the cure. Never NULL,
/// "" when none failed yet; a call that succeeds leaves it. Valid until the next failing call in this thread.
WARMGRAPH_API const char* wg_last_error(void);

/// "not_recordable"; "ok"; "unknown" for no such code. Static.
WARMGRAPH_API const char* wg_status_name(wg_status status);

/// "replayed"; "unknown" for no such outcome. Static.
WARMGRAPH_API const char* wg_outcome_name(wg_outcome outcome);

typedef int32_t wg_log_level;
enum wg_log_level_values { wg_log_trace = 0, wg_log_debug = 1, wg_log_info = 2, wg_log_warning = 3, wg_log_error = 4 };

/// Log lines go to `receive(level, line, user)` instead of standard error; to standard error again when it is NULL.
/// Lines have no prefix and no line end, and come in the thread that logs them, several at once. With a receiver and
/// without WARMGRAPH_LOG the level is info. When this returns, no thread is in the receiver before. What is logged in
/// a receiver is dropped; this function in one is invalid_argument.
WARMGRAPH_API wg_status wg_receive_log(void (*receive)(wg_log_level level, const char* line, void* user), void* user);

/// Lines below `least` are not made any more, and what they would say is not found out: for a host program whose own log
/// drops them. It takes none of them more than without it. Until it is called again, or wg_receive_log is.
WARMGRAPH_API wg_status wg_limit_log(wg_log_level least);

// --- devices and memory ---------------------------------------------------------------------------------------------

/// Opens an accelerator: "opencl:0", "opencl", "opencl:<part of a name>", the same with "cuda". not_found lists the
/// devices there are; unsupported for "cuda" in a build without that backend.
/// Opening one device twice gives two handles that share the default stream.
WARMGRAPH_API wg_status wg_device_open(const char* id, wg_device** out);
/// Its default stream's handle ends with it.
WARMGRAPH_API wg_status wg_device_close(wg_device* device);
/// Blocks until the default stream's work is done. not_recordable inside a function that is being captured.
WARMGRAPH_API wg_status wg_device_synchronize(wg_device* device);
/// "opencl:0". Valid as long as the handle.
WARMGRAPH_API const char* wg_device_id(const wg_device* device);
/// The marketing name. Valid as long as the handle.
WARMGRAPH_API const char* wg_device_name(const wg_device* device);
/// The default stream; it belongs to the device handle.
WARMGRAPH_API wg_stream* wg_device_stream(wg_device* device);

/// Starts to keep the device code that the process loads, so that graphs with the kernels of other libraries can be
/// recorded or adopted. Call it before those libraries load theirs; recording calls it too, which may be too late.
/// Idempotent. not_recordable with the cure where it cannot (a profiler is attached to the process).
WARMGRAPH_API wg_status wg_prepare_recording(wg_device* device);
/// The same for all of CUDA's devices, before one is open: it loads the driver and makes no context.
WARMGRAPH_API wg_status wg_prepare_recording_early(void);
/// Begins, on a thread of its own, what the first restore of this process would wait for (Device::warm_up). For a
/// process that will replay.
WARMGRAPH_API wg_status wg_device_warm_up(wg_device* device);
/// Declares that this process loaded the driver's `module` (CUmodule) from `image` (a cubin of `bytes` bytes, copied),
/// and keeps it loaded for as long as the device is open. Recording then knows its code, whenever it was loaded.
/// Replays run this module where an entry needs the same code and its variables hold what they held when it was
/// recorded: what the host writes into them later reaches the replays as it reaches the function. Where they hold
/// something else, the entry is refused, and the function runs as it is. What is loaded already is loaded again by its
/// next call. wg_invalid_argument where the image is not the module's. CUDA only.
WARMGRAPH_API wg_status wg_register_module(wg_device* device, void* module, const void* image, uint64_t bytes);

/// Names a host function that recorded graphs may call: an entry stores the name, and a process that replays it
/// registers its own function under that name first. `function(data)` runs on a thread of the driver's, where no driver
/// call is allowed; both must stay valid as long as such graphs may run. invalid_argument: an empty or unprintable
/// name, a null function, a name that another function has.
WARMGRAPH_API wg_status wg_register_host_function(const char* name, void (*function)(void*), void* data);

/// `bytes` of device memory, contents undefined. invalid_argument for 0 bytes, out_of_memory; not_recordable inside a
/// function that is being captured (wg_recorder_alloc gives scratch memory).
WARMGRAPH_API wg_status wg_buffer_create(wg_device* device, uint64_t bytes, wg_buffer** out);
/// The same of page-locked host memory, which the device addresses too. unsupported on OpenCL.
WARMGRAPH_API wg_status wg_buffer_create_host(wg_device* device, uint64_t bytes, wg_buffer** out);
WARMGRAPH_API wg_status wg_buffer_destroy(wg_buffer* buffer);
/// Blocking copies of exactly `bytes` bytes, to or from byte `offset` of the buffer; they do not wait for work in
/// streams. invalid_argument when they do not fit; not_recordable inside a function that is being captured.
WARMGRAPH_API wg_status wg_buffer_upload(wg_buffer* buffer, const void* from, uint64_t bytes, uint64_t offset);
WARMGRAPH_API wg_status wg_buffer_download(const wg_buffer* buffer, void* to, uint64_t bytes, uint64_t offset);
/// The whole buffer as a range, valid until it is destroyed.
WARMGRAPH_API wg_memory wg_buffer_memory(const wg_buffer* buffer);
/// Its device pointer; 0 on OpenCL, which has none.
WARMGRAPH_API uint64_t wg_buffer_pointer(const wg_buffer* buffer);
/// Memory that others allocated (CUDA), by device pointer: for wg_arg, wg_state_decl, wg_bind and kernel arguments.
/// Null for a null pointer. The device that is given it checks it.
WARMGRAPH_API wg_memory wg_memory_from_pointer(uint64_t pointer, uint64_t size);

// --- programs and streams -------------------------------------------------------------------------------------------

/// Kernel source with its build options; the texts are copied. It is compiled when a kernel is first launched from it,
/// so a process in which everything is replayed never compiles. `options` may be NULL (none).
WARMGRAPH_API wg_status wg_program_create(wg_device* device, const char* name, const char* source, const char* options,
                                          wg_program** out);
WARMGRAPH_API wg_status wg_program_destroy(wg_program* program);

/// A new in-order stream.
WARMGRAPH_API wg_status wg_stream_create(wg_device* device, wg_stream** out);
/// A stream that somebody else made (CUstream; NULL is CUDA's legacy default stream): calls are enqueued behind his work.
/// It stays his and must outlive the handle, which wg_stream_destroy frees. unsupported on OpenCL.
WARMGRAPH_API wg_status wg_stream_view(wg_device* device, void* native, wg_stream** out);
/// invalid_argument for a stream that belongs to a device or to a recorder.
WARMGRAPH_API wg_status wg_stream_destroy(wg_stream* stream);
/// 1: somebody captures what is enqueued in it; else 0, also for NULL.
WARMGRAPH_API int wg_stream_is_capturing(const wg_stream* stream);
/// Watches what this thread enqueues from now on, by any library, until wg_watch_destroy, which this thread calls. For programs
/// that capture: begin it once the capture has begun, and end it before its end. What lies in a stream that does not capture
/// has run at once, and is missing in the graph. `stream` is where the work belongs, and in streams that wait for it.
/// not_recordable with the cure where the backend could watch and cannot yet (wg_device_prepare_recording); OpenCL sees
/// nothing.
WARMGRAPH_API wg_status wg_stream_watch(wg_stream* stream, wg_watch** out);
/// The first work that lies elsewhere, "cuLaunchKernel in the legacy default stream"; empty: none so far. Written like
/// wg_cache_summary.
WARMGRAPH_API wg_status wg_watch_stray(const wg_watch* watch, char* text, uint64_t capacity, uint64_t* length);
WARMGRAPH_API wg_status wg_watch_destroy(wg_watch* watch);
/// Blocks until its work is done. not_recordable inside a function that is being captured.
WARMGRAPH_API wg_status wg_stream_synchronize(wg_stream* stream);
/// The driver's handle (CUstream), for libraries that enqueue by themselves; NULL on OpenCL. (CUDA's default stream is
/// NULL too; warmgraph never uses it.)
WARMGRAPH_API void* wg_stream_native(const wg_stream* stream);
/// An event after all work of the stream so far.
WARMGRAPH_API wg_status wg_stream_record(wg_stream* stream, wg_event** out);
/// Later work of the stream comes after the event. The event may be destroyed at once.
WARMGRAPH_API wg_status wg_stream_wait(wg_stream* stream, const wg_event* event);
WARMGRAPH_API wg_status wg_event_destroy(wg_event* event);

typedef int32_t wg_kernel_arg_kind;
enum wg_kernel_arg_kind_values {
    wg_kernel_arg_memory = 0, ///< `address`
    wg_kernel_arg_value = 1,  ///< `bytes` bytes at `value`, copied by the call
    wg_kernel_arg_local = 2   ///< `bytes` bytes of work-group (shared) memory
};

/// One kernel argument. Members that its kind does not name are ignored.
typedef struct wg_kernel_arg {
    wg_kernel_arg_kind kind;
    wg_address address;
    const void* value;
    uint64_t bytes;
} wg_kernel_arg;

/// Compiles the program when it was not yet (compile_failed carries the log), then enqueues one kernel in `grid` groups
/// of `block` work-items. Arguments in the kernel's order. invalid_argument for a wrong number or kind of them.
WARMGRAPH_API wg_status wg_launch(wg_stream* stream, const wg_program* program, const char* kernel,
                                  const uint32_t grid[3], const uint32_t block[3], const wg_kernel_arg* args,
                                  uint64_t count);
/// Launch geometry beyond grid and block. Zero is the default of every member but `size`, `grid` and `block`. On OpenCL
/// the others are unsupported.
typedef struct wg_launch_options {
    uint64_t size;         ///< sizeof(wg_launch_options)
    uint32_t grid[3];      ///< groups
    uint32_t block[3];     ///< work-items of a group
    uint32_t cluster[3];   ///< groups of a cluster; all 0: no clusters
    uint32_t shared_bytes; ///< dynamic shared memory
    int32_t cooperative;   ///< nonzero: all groups may synchronise with each other
    int32_t dependent;     ///< nonzero: programmatic dependent launch
} wg_launch_options;

/// wg_launch with these options.
WARMGRAPH_API wg_status wg_launch_with(wg_stream* stream, const wg_program* program, const char* kernel,
                                       const wg_launch_options* options, const wg_kernel_arg* args, uint64_t count);
/// Enqueues a copy of `bytes` bytes.
WARMGRAPH_API wg_status wg_copy(wg_stream* stream, wg_address to, wg_address from, uint64_t bytes);
/// Enqueues a fill of `bytes` bytes with a pattern of 1, 2, 4, 8 or 16 bytes, which is copied; `bytes` is a multiple of
/// it.
WARMGRAPH_API wg_status wg_fill(wg_stream* stream, wg_address to, const void* pattern, uint64_t pattern_bytes,
                                uint64_t bytes);

// --- the cache ------------------------------------------------------------------------------------------------------

/// How many bytes a kind may take of the folder.
typedef struct wg_kind_bytes {
    wg_artifact_kind kind;
    uint64_t bytes;
} wg_kind_bytes;

/// How objects of one kind are compressed (zstd) as they are written.
typedef struct wg_kind_compression {
    wg_artifact_kind kind;
    int32_t level;  ///< 1 to 19; 0: stored as they are
    uint64_t above; ///< bytes; objects of at most this size are stored as they are
} wg_kind_compression;

/// What wg_cache_options_init sets is in brackets. Texts and arrays are copied.
typedef struct wg_cache_options {
    uint64_t size;              ///< sizeof(wg_cache_options)
    const char* model;          ///< folder name: letters, digits, '.', '_', '-' [NULL: must be set]
    const wg_key_value* config; ///< the model's configuration: part of its identity; no key twice [NULL]
    uint64_t config_count;      ///< [0]
    const char* cache_dir; ///< NULL or "": $WARMGRAPH_CACHE_DIR, else .warmgraph_cache; made absolute at once [NULL]
    int32_t dynamic;       ///< nonzero: shapes are "dynamic" in the folder's name instead of "static" [0]
    int32_t world_size;    ///< ranks: -1 takes the launcher's environment [-1]
    int32_t global_rank;   ///< [-1]
    int32_t tp_rank;       ///< [-1]
    int32_t pp_rank;       ///< [-1]
    wg_policy policy;      ///< [wg_policy_default]
    int32_t accept_newer_driver; ///< nonzero: driver and runtime may be newer than recorded with [0]
    int32_t share_with_group;    ///< nonzero: group-readable and -writable files; else only this user may write [0]
    uint32_t max_variants;       ///< of one function, on disk and in memory; 0: 64 [0]
    uint32_t record_wait_ms;     ///< how long an adoption waits for another process that adopts the same; 0: 60000 [0]
    int32_t
        verify_on_load; ///< nonzero: the call that would use a restored graph first runs the function, and the graph on
                        ///< copies; a wrong one is removed and counted as a cache fault. Not of loaded ones [0]
    int32_t record_on_demand; ///< nonzero: misses are recorded when wg_record_pending is called [0]
    uint32_t probing_ms;      ///< for probing a function's scalars while it is recorded; 0: 200 [0]
    /// Signatures of entries. A key is a line "id:kind:hex" (docs/trust.md); a file has one on each line, and nobody
    /// else may write it. Keys are never logged. NULL and "": the environment's.
    const char* sign_with;          ///< what this process publishes is signed with it; else $WARMGRAPH_SIGN_KEY [NULL]
    const char* sign_with_file;     ///< else $WARMGRAPH_SIGN_KEY_FILE [NULL]
    const char* const* accept_keys; ///< beside sign_with; else $WARMGRAPH_ACCEPT_KEYS [NULL]
    uint64_t accept_key_count;      ///< [0]
    const char* accept_file;        ///< else $WARMGRAPH_ACCEPT_KEYS_FILE [NULL]
    int32_t require_signed; ///< nonzero, or $WARMGRAPH_REQUIRE_SIGNED=1: only entries with an accepted signature [0]
    const uint32_t* trusted_owners; ///< user ids whose files are read besides this user's and root's; besides those in
                                    ///< $WARMGRAPH_TRUSTED_OWNERS [NULL]
    uint64_t trusted_owner_count;   ///< [0]
    uint64_t max_bytes; ///< that the folder may hold; 0: $WARMGRAPH_CACHE_BYTES, else 8 GiB or a tenth of the disk [0]
    uint64_t max_files; ///< the same in files; 0: $WARMGRAPH_CACHE_FILES, else 100000 [0]
    const char* const*
        bundles;           ///< files (.wgb) that are read where they lie, below the folder and in this order [NULL]
    uint64_t bundle_count; ///< [0]
    int32_t
        profile; ///< is counted with which sizes functions are called? 1: yes, -1: no; 0: $WARMGRAPH_PROFILE ("on" or
                 ///< "off"), else yes [0]
    int32_t
        pauses_recording; ///< may wg_pause_recording be called by itself, after 256 replays in a row, the last miss being
                          ///< a minute ago? nonzero: yes [1]
    /// The kinds that this cache uses, of entries, compiled, tuned and profiles. The cache neither looks up, reads, writes nor
    /// counts another kind. NULL: $WARMGRAPH_KINDS ("entries,compiled", or all but some: "-tuned"), else all [NULL]
    const wg_artifact_kind* kinds;
    uint64_t kind_count; ///< 0 with an array that is not NULL: no kind [0]
    /// Bytes that some kinds may take of max_bytes: entries (with images and constants), compiled, tuned, profiles or torch. A
    /// kind that is not named: as $WARMGRAPH_CACHE_BYTES says ("8G,compiled=1G"), else as much as there is [NULL]
    const wg_kind_bytes* max_bytes_by_kind;
    uint64_t max_bytes_by_kind_count; ///< [0]
    /// How the cache compresses what it writes: entries (their payloads), images or constants. A kind that is not named: as
    /// $WARMGRAPH_COMPRESSION says ("payloads=9@64K,images=3"), else entries with level 3 and the others as they are [NULL]
    const wg_kind_compression* compression;
    uint64_t compression_count; ///< [0]
} wg_cache_options;

/// Fills in the defaults. `size` is the caller's sizeof(wg_cache_options); invalid_argument when it is too small.
WARMGRAPH_API wg_status wg_cache_options_init(wg_cache_options* options, uint64_t size);

/// The folder that wg_cache_options.cache_dir means now, absolute. Valid until the thread's next call of this.
WARMGRAPH_API const char* wg_cache_folder(const char* cache_dir);

/// The cache of one model in one process. Wrong options (a bad name, a bad rank) are invalid_argument; a folder that
/// cannot be used is no failure: caching is then off, and wg_cache_disabled_reason and one warning in the log say why.
WARMGRAPH_API wg_status wg_cache_open(const wg_cache_options* options, wg_cache** out);
/// Functions of the cache stay usable.
WARMGRAPH_API wg_status wg_cache_close(wg_cache* cache);
/// The cache's folder, absolute. Valid as long as the handle.
WARMGRAPH_API const char* wg_cache_directory(const wg_cache* cache);
/// Why caching is off; "" when it works. Valid as long as the handle.
WARMGRAPH_API const char* wg_cache_disabled_reason(const wg_cache* cache);
/// "warmgraph: 2 hits, 0 misses, 1 image, 3.9 ms to load, 1.96 s saved". As snprintf: at most `capacity` bytes with
/// the ending 0 are written; `length` (may be NULL) gets the whole text's length without it. `text` may be NULL when
/// `capacity` is 0.
WARMGRAPH_API wg_status wg_cache_summary(const wg_cache* cache, char* text, uint64_t capacity, uint64_t* length);
/// Entries of this model's function as text (as `warmgraph show`), written like wg_cache_summary. Counts as a use of
/// each; what is damaged is moved to quarantine.
WARMGRAPH_API wg_status wg_cache_readable(const wg_cache* cache, const char* function, char* text, uint64_t capacity,
                                          uint64_t* length);
/// Why calls of a function run as they are, as their caller decided it.
typedef struct wg_refusal {
    uint64_t size;    ///< sizeof(wg_refusal)
    const char* word; ///< they are counted by it: letters, digits, '.', '_' and '-'; anything else counts as "other"
    const char* text; ///< what, expected against actual, the cure
    uint64_t calls;   ///< since the last time; 0: the library counted them itself
} wg_refusal;
/// Counts calls that ran as they are because their caller did not have them recorded or replayed, and keeps the reason
/// beside the function's misses: `warmgraph explain`, `ls` and `stats` show it. Takes a few milliseconds at most, so call it
/// for the first call of a kind and then now and then. What cannot be written is no failure. invalid_argument for a name that
/// no function can have, or no text. Thread-safe.
WARMGRAPH_API wg_status wg_cache_note_refusal(wg_cache* cache, const wg_device* device, const char* function,
                                              const wg_refusal* refusal);
/// Records what calls left to be recorded, as far as their work is done. `recorded` may be NULL.
WARMGRAPH_API wg_status wg_record_pending(wg_cache* cache, uint64_t* recorded);
/// Removes this rank's entries of one function, or of all when `function` is NULL. `removed` may be NULL.
WARMGRAPH_API wg_status wg_cache_clear(wg_cache* cache, const char* function, uint64_t* removed);
/// The same of one kind: "entries" (as wg_cache_clear), or of the whole folder "compiled", "tuned", "profiles" or "torch",
/// which no model owns; "all": each of them. `removed`: files, not counting the images of entries.
WARMGRAPH_API wg_status wg_cache_clear_kind(wg_cache* cache, const char* kind, uint64_t* removed);

/// What this process made or hit through these caches, each once, as the bytes of a bundle (docs/bundles.md): entries with
/// what they need, compiled programs, tuned configurations and shape profiles. not_found: there is nothing.
WARMGRAPH_API wg_status wg_save_cache_artifacts(const wg_cache* const* caches, uint64_t count, wg_artifacts** out);
typedef struct wg_artifact_options {
    uint64_t size; ///< set it to sizeof(wg_artifact_options) before the call
    /// Not 0: what PyTorch compiled as well (wg_cache_put_torch_artifacts), as far as this process put or got it. It goes only
    /// into a signed bundle: invalid_argument where no cache has a key to sign with.
    int32_t torch;
} wg_artifact_options;
/// wg_save_cache_artifacts with more than entries. `options` may be NULL.
WARMGRAPH_API wg_status wg_save_cache_artifacts_with(const wg_cache* const* caches, uint64_t count,
                                                     const wg_artifact_options* options, wg_artifacts** out);
/// Puts such bytes into the folder: what fits this device, its driver and the environment. The rest is skipped and named;
/// nothing in the folder is replaced. `out` has what was done and no bytes; it may be NULL. corrupt, stale, untrusted: the
/// bytes are no bundle that is used.
WARMGRAPH_API wg_status wg_load_cache_artifacts(wg_cache* cache, const wg_device* device, const void* bytes,
                                                uint64_t size, wg_artifacts** out);
/// Valid as long as the handle; `size` gets their number. NULL, and 0, of what wg_load_cache_artifacts gave.
WARMGRAPH_API const void* wg_artifacts_bytes(const wg_artifacts* artifacts, uint64_t* size);
/// JSON of the artifacts that were saved or loaded, valid as long as the handle: `kinds` (list of `kind` ("entries", "images", "constants",
/// "compiled", "tuned", "profiles", "torch"), `count`, `bytes`, `seconds`: what first calls took without the cache, compiling, or
/// tuning, `names`), `there` and `skipped` (lists of `name`, `why`).
WARMGRAPH_API const char* wg_artifacts_info(const wg_artifacts* artifacts);
WARMGRAPH_API wg_status wg_artifacts_destroy(wg_artifacts* artifacts);
/// Keeps what PyTorch compiled in this process (the bytes of torch.compiler.save_cache_artifacts) under `facts`, for another
/// one. They hold pickles, which run code where they are used: they are stored signed or not at all. Replaces what is there.
/// untrusted: the cache has no key to sign with; invalid_argument: facts or bytes that cannot be stored; unsupported: over
/// 1 GiB; io_failed: caching is off.
WARMGRAPH_API wg_status wg_cache_put_torch_artifacts(wg_cache* cache, const wg_key_value* facts, uint64_t fact_count,
                                                     const void* bytes, uint64_t size);
/// `out` gets what an accepted key signed under these facts, in the folder or a bundle: wg_artifacts_bytes has it.
/// not_found: there is nothing; untrusted: another key signed it, or the cache accepts none; corrupt, stale.
WARMGRAPH_API wg_status wg_cache_get_torch_artifacts(const wg_cache* cache, const wg_key_value* facts,
                                                     uint64_t fact_count, wg_artifacts** out);
/// What of a bundle's file fits this device, from header and index (tuned configurations are read), as JSON:
/// `environment_key` (what all entries share, as digits; "" where they share none) and `environment_here` (of this device),
/// `environment` (what all share), `verdict` ("fits", "fits_after", "does_not") and `detail` of it, `entries` (and other
/// objects: list of `name`, `verdict`, `field`, `detail`). Written like wg_cache_summary.
WARMGRAPH_API wg_status wg_cache_check_bundle(const wg_cache* cache, const wg_device* device, const char* file,
                                              char* text, uint64_t capacity, uint64_t* length);

typedef struct wg_statistics {
    uint64_t size;             ///< set it to sizeof(wg_statistics) before the call
    uint64_t cache_faults;     ///< failures of the disk and damaged files: they cost time only
    uint64_t untrusted;        ///< entries that were refused for their signature, each once
    uint64_t images_loaded;    ///< images of its entries that are loaded, whichever cache of the process loaded them
    uint64_t captures_written; ///< files that wg_capture_write wrote
    uint64_t captures_paired;  ///< captures of other processes that proved an entry
    uint64_t captures_ignored; ///< captures that are damaged, of another version, or proved nothing
} wg_statistics;

/// Fills `out->size` bytes; what a newer caller's struct has more is zero.
WARMGRAPH_API wg_status wg_cache_statistics(const wg_cache* cache, wg_statistics* out);

/// Counters of one kind. Times are in milliseconds.
typedef struct wg_kind_statistics {
    uint64_t size; ///< set it to sizeof(wg_kind_statistics) before the call
    /// A stored artifact was used. Entries: first calls that were replayed. Compiled: programs that were loaded. Tuned:
    /// kernels whose stored configuration was used. Profiles: functions whose stored profile was read.
    uint64_t hits;
    uint64_t misses; ///< no stored artifact could be used
    uint64_t made;   ///< entries recorded, programs compiled, kernels tuned; profiles: 0
    /// Entries: calls that could not be recorded, or whose caller refused it (wg_cache_note_refusal). Compiled: programs
    /// that the policy no_compile forbids to compile. Others: 0.
    uint64_t refused;
    double making_ms; ///< spent on recording after the calls' own results, on compiling, on tuning; profiles: 0
    double load_ms;   ///< spent on using hits; profiles: 0
    /// Entries: time of the first calls without the cache. Compiled, tuned: time of the compilations and searches that hits
    /// stand for. Less load_ms, and less what another kind counts (docs/kinds.md). Profiles: 0.
    double saved_ms;
} wg_kind_statistics;

/// The counters of one kind: entries, compiled, tuned or profiles; all 0 for another. Fills `out->size` bytes; what a newer
/// caller's struct has more is zero. invalid_argument for a number that is no kind.
WARMGRAPH_API wg_status wg_cache_kind_statistics(const wg_cache* cache, wg_artifact_kind kind, wg_kind_statistics* out);
/// Why artifacts of the kind could not be used, at most 64 lines such as "decode: no entry", written like
/// wg_cache_summary. invalid_argument for a number that is no kind.
WARMGRAPH_API wg_status wg_cache_miss_reasons(const wg_cache* cache, wg_artifact_kind kind, char* text,
                                              uint64_t capacity, uint64_t* length);

// --- functions ------------------------------------------------------------------------------------------------------

typedef struct wg_tensor_decl {
    const char* name;
    wg_dtype dtype;
    uint32_t rank;        ///< number of dimensions
    const int64_t* sizes; ///< elements; NULL when rank is 0
} wg_tensor_decl;

/// Memory of the caller's that lives across calls: a KV cache (read_write) or weights (read_only).
typedef struct wg_state_decl {
    const char* name;
    wg_memory memory; ///< may be moved later with wg_bind
    wg_access access;
} wg_state_decl;

typedef struct wg_constant_decl {
    const char* name;
    wg_memory memory; ///< zero: none here
} wg_constant_decl;

/// Type, sizes and strides of an input, output or state, by name, in place of what its declaration says: the strides of
/// one that is not contiguous (channels last), the type of a state (bytes without one: it must be the same to the bit).
typedef struct wg_layout {
    const char* name;
    wg_dtype dtype;
    uint32_t rank;          ///< number of dimensions
    const int64_t* sizes;   ///< elements; NULL of a state: as many in one dimension as its memory holds
    const int64_t* strides; ///< elements; NULL: contiguous
} wg_layout;

typedef struct wg_scalar_decl {
    const char* name;
    wg_dtype dtype;    ///< i32, u32, i64, u64, f32 or f64
    int32_t has_range; ///< nonzero: `low` and `high` are the values it may take, inclusive. Zero for a handle (u64)
    double low;        ///< recording runs the function at a second value of the range to prove where the scalar goes
    double high;
} wg_scalar_decl;

/// An event of the driver's (CUevent), which outlives the function.
typedef struct wg_named_event {
    const char* name;
    void* event;
} wg_named_event;

/// An external semaphore of the driver's (CUexternalSemaphore), which outlives the function.
typedef struct wg_named_semaphore {
    const char* name;
    void* semaphore;
} wg_named_semaphore;

/// A dimension of an input or output that is padded, and what with.
typedef struct wg_padded_dimension {
    const char* argument;
    uint64_t dimension; ///< 0: the outermost
    double value;       ///< the argument's type must be able to hold it
} wg_padded_dimension;

typedef int32_t wg_bucket_rule;
enum wg_bucket_rule_values {
    wg_buckets_fixed = 0, ///< sizes as they come: each is a variant
    wg_buckets_given = 1, ///< padded to the smallest of `sizes` that holds them
    wg_buckets_learnt = 2 ///< likewise, to buckets that were learnt from the shape profile: none yet in the first start
};

/// Dimensions that have one size in each call, and what they are padded to (docs/profile.md). A call whose size no bucket
/// holds is not recorded: the function runs as it is.
typedef struct wg_buckets {
    const wg_padded_dimension* dimensions; ///< at most two of one argument
    uint64_t dimension_count;
    wg_bucket_rule rule;
    uint32_t most;        ///< learnt: at most so many, up to 256; 0: 8
    const int64_t* sizes; ///< given: ascending, multiples of multiple_of
    uint64_t size_count;
    int64_t multiple_of; ///< what the function needs: every size is padded to one, also in no bucket; 0: 1
} wg_buckets;

/// What a function takes; names and arrays are copied. Zero is the default of every member but `size` and `name`.
typedef struct wg_function_spec {
    uint64_t size;    ///< sizeof(wg_function_spec)
    const char* name; ///< a folder name, unique within the cache
    const wg_tensor_decl* inputs;
    uint64_t input_count;
    const wg_tensor_decl* outputs;
    uint64_t output_count;
    const wg_state_decl* states;
    uint64_t state_count;
    const wg_scalar_decl* scalars; ///< patched at every call
    uint64_t scalar_count;
    const wg_scalar_decl* values; ///< host values that the function specialises on: guards, one variant each
    uint64_t value_count;
    const wg_program* const* code; ///< their source and options become guards
    uint64_t code_count;
    const wg_key_value* config; ///< further guards of this function; no key twice
    uint64_t config_count;
    const char* const* environment; ///< names of environment variables that become guards
    uint64_t environment_count;
    /// Needed by wg_cache_load and wg_cache_adopt. Code identity given by you; NULL or "": the build id of the
    /// callback's binary. A callback made at run time (ctypes) is in no binary: give its version.
    const char* version;
    wg_policy policy;
    const wg_named_event* events; ///< that the graph shares with work outside it; it gets its own for other names
    uint64_t event_count;
    /// That the graph signals or waits for. Trials leave them out; a later call records the function, when the first
    /// one's work is done.
    const wg_named_semaphore* semaphores;
    uint64_t semaphore_count;
    /// Module variables whose contents you vouch for: nobody writes them while the function is in use; "*": all.
    const char* const* frozen_variables;
    uint64_t frozen_variable_count;
    /// Inputs, outputs and states that hold no addresses, whatever some of their words look like.
    const char* const* no_addresses;
    uint64_t no_address_count;
    /// Nonzero: refuse words in kernels' parameters that nobody initialised (in a recording those that nobody wrote, in
    /// an adopted graph those that differ between the captures and follow nothing). Else they are stored as zeros, and
    /// refused where the results depend on them.
    int32_t strict;
    const wg_layout* layouts; ///< for inputs, outputs and states that are more than their declaration can say
    uint64_t layout_count;
    /// Memory that the function only reads, whose contents the entry carries: a process that restores it needs none.
    /// Null memory where entries are only loaded. Where there is memory, it must hold what the entry has.
    const wg_constant_decl* constants;
    uint64_t constant_count;
    uint64_t max_constant_bytes; ///< of all constants together; 0: 64 MiB
    /// Nonzero: allocations of libraries that the work only reads (cuFFT's tables), and what an adopted graph reads of
    /// scratch before it writes it, are kept as constants, where they hold no addresses.
    int32_t undeclared_constants;
    const char* metadata; ///< text that entries carry, for wg_cache_find; no guard. NULL: none
    /// For wg_cache_load in a process that has none of the code: what wg_cache_entries gives as `recorded_code`. It
    /// replaces `version` and `code`.
    const wg_key_value* recorded_code;
    uint64_t recorded_code_count;
    const wg_buckets* buckets; ///< sizes that calls are padded to
    uint64_t bucket_count;
} wg_function_spec;

/// Enqueues the function's work through the recorder. It is called more than once while recording, with other addresses
/// and scalar values, in the thread of wg_call, and must enqueue the same work each time. Nonzero is failure. A wg_
/// function that fails in it (a null or unknown name, a refused launch) fails the run with its code and text, also when
/// the callback returns 0: its work would be missing. It must not throw or jump out. The recorder and its streams end
/// with the call.
typedef int (*wg_callback)(wg_recorder* recorder, void* user);

/// Wraps a callback. `user` is handed to it as it is (may be NULL) and must live as long as the function.
WARMGRAPH_API wg_status wg_wrap(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                wg_callback callback, void* user, wg_function** out);
/// A function without a callback: it can only be replayed. Its calls that miss are miss_forbidden, with the reason;
/// those whose entry cannot be used have the code of what stood in the way. `spec->version` must be the one that the
/// function was wrapped or adopted with (invalid_argument when it is empty).
WARMGRAPH_API wg_status wg_cache_load(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                      wg_function** out);
/// For a process that knows a function's inputs and not what it gives: the metadata of the entry under these facts whose
/// inputs and states look as declared (outputs are not looked at), the most recently used of several. Written like
/// wg_cache_summary. Reads headers alone and judges no addresses, so a call may still miss. not_found: none, or the
/// policy is off or refresh.
WARMGRAPH_API wg_status wg_cache_find(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                      char* text, uint64_t capacity, uint64_t* length);
/// For a process that knows nothing of a function but its name: its entries on disk as a JSON list, most recently used
/// first, each with what wg_cache_load is to be told. Members: `digest` (64 hex digits: the name of its file),
/// `recorded` (ISO 8601), `misfit` (what this device or driver has otherwise, "" for nothing), `inputs`, `outputs` and
/// `states` (lists of `name`, `dtype` ("f32"), `sizes`, `strides` (elements); of states also `bytes` and `read_only`),
/// `scalars` (lists of `name`, `dtype`, `range` (null: none)), `values` (the same with `bits`, which calls must give),
/// `config` and `recorded_code` (texts by name), `environment` (names), `metadata`. What only the recording process can
/// tell (code, versions of its libraries, its settings) is the entry's own word, and not judged. Written like
/// wg_cache_summary. Reads headers alone; what cannot be read is left out with a line in the log.
WARMGRAPH_API wg_status wg_cache_entries(const wg_cache* cache, const wg_device* device, const char* function,
                                         char* text, uint64_t capacity, uint64_t* length);

/// Ends to keep device code, for the whole process, until the next miss (or wg_prepare_recording) begins it anew. What
/// keeps it (CUPTI on CUDA) costs each launch of a graph 0.25 to 0.4 us a node, also of others' graphs. Code that is loaded
/// meanwhile cannot be recorded by this process, but for CUDA's and PyTorch's own libraries' that was known before; a
/// recording that is refused for it has the next process keep code to its end. `caches`: those whose functions are asked.
/// unsupported: not paused, and wg_last_error says why (a function that was not called yet, code that keeps state, a
/// profiler, a recording).
WARMGRAPH_API wg_status wg_pause_recording(const wg_cache* const* caches, uint64_t count);
/// May be called within the function's own callback, as wg_pair_destroy and wg_stream_destroy may: the call gives its
/// result, the callback is not called again, and nothing of the call is recorded.
WARMGRAPH_API wg_status wg_function_destroy(wg_function* function);
/// Moves a state to other memory of the same size.
WARMGRAPH_API wg_status wg_bind(wg_function* function, const char* state, wg_memory memory);

typedef int32_t wg_arg_kind;
enum wg_arg_kind_values {
    wg_arg_memory = 0, ///< `memory` for an input or output as declared, or for a state
    wg_arg_tensor = 1, ///< `memory`, `dtype`, `rank`, `sizes` and `strides`, where they differ from the declaration
    wg_arg_number = 2  ///< `dtype` and `bits`, for a scalar or value
};

/// One named argument of a call. Members that its kind does not name are ignored.
typedef struct wg_arg {
    const char* name;
    wg_arg_kind kind;
    wg_dtype dtype; ///< numbers: i32, u32, i64, u64, f32 or f64
    wg_memory memory;
    const int64_t* sizes;   ///< `rank` of them, in elements; NULL when rank is 0
    const int64_t* strides; ///< `rank` of them, in elements; NULL when contiguous
    uint64_t rank;
    uint64_t bits; ///< the number's bytes, zero-extended
} wg_arg;

/// Enqueues the function in `stream` and returns without waiting for it; wg_device_stream gives the default one. The
/// first call loads or records. `outcome` may be NULL. invalid_argument: an unknown, missing or repeated name, a buffer
/// too small, a number that the declared type cannot hold, a callback that returned nonzero. What failed in the
/// callback comes back with its own code.
WARMGRAPH_API wg_status wg_call(wg_function* function, wg_stream* stream, const wg_arg* args, uint64_t count,
                                wg_outcome* outcome);
/// wg_call where the caller has just asked wg_stream_is_capturing, which said no. The driver takes 0.1 us to say it, and
/// is not asked again. In a stream that captures after all, the driver's error ends the capture (driver_failed).
WARMGRAPH_API wg_status wg_call_uncaptured(wg_function* function, wg_stream* stream, const wg_arg* args, uint64_t count,
                                           wg_outcome* outcome);

/// A call that wg_record_profile is about to make.
typedef struct wg_profiled_call wg_profiled_call;
/// Sizes of an input or output, as the shape profile asks for them, in elements; valid within the callback. invalid_argument
/// for an unknown name.
WARMGRAPH_API wg_status wg_profiled_call_sizes(const wg_profiled_call* call, const char* name, const int64_t** sizes,
                                               uint64_t* rank);
/// Its arguments, as wg_call takes them: of these sizes. Copied; memory stays until the next call is asked for, or
/// wg_record_profile returns.
WARMGRAPH_API wg_status wg_profiled_call_args(wg_profiled_call* call, const wg_arg* args, uint64_t count);
/// Gives the call its arguments (wg_profiled_call_args). Nonzero is failure.
typedef int (*wg_make_arguments)(wg_profiled_call* call, void* user);

/// Records before demand what the shape profile says of the function (of all processes), the most frequent shapes first,
/// at most `most` (0: max_variants). Buckets are learnt where they are to be, and are in use from then on. The function is
/// called, so states that it writes change. `recorded`, `replayed` (may be NULL): shapes that were recorded, that were there.
/// `text`: why others are neither, a line each, or why nothing was tried; written like wg_cache_summary. invalid_argument: a
/// function of another cache or without a callback, arguments of other sizes than asked for.
WARMGRAPH_API wg_status wg_record_profile(wg_cache* cache, wg_function* function, wg_make_arguments make, void* user,
                                          uint64_t most, uint64_t* recorded, uint64_t* replayed, char* text,
                                          uint64_t capacity, uint64_t* length);
/// The shapes that this process called it with, the most frequent first, as a JSON list: `calls`, `sizes` (lists by
/// argument), `ran` (of those that were padded: what the function saw), `values`. Written like wg_cache_summary.
WARMGRAPH_API wg_status wg_function_shapes(const wg_function* function, char* text, uint64_t capacity,
                                           uint64_t* length);

/// What each of the spec's buckets pads to now, ascending, as a JSON list of lists: an empty one for buckets that are fixed, or that
/// nothing was learnt for. Written like wg_cache_summary.
WARMGRAPH_API wg_status wg_function_buckets(const wg_function* function, char* text, uint64_t capacity,
                                            uint64_t* length);

/// Its last 16 misses in this process, newest first, as they were judged then: a line for each ("<time> recorded: no
/// entry"), and below it an indented one for each fact that the nearest variant has otherwise. Written like
/// wg_cache_summary.
WARMGRAPH_API wg_status wg_function_misses(const wg_function* function, char* text, uint64_t capacity,
                                           uint64_t* length);

/// What the first call of a function (or of the latest variant that was loaded or recorded) did. A copy.
WARMGRAPH_API wg_status wg_function_report(const wg_function* function, wg_report** out);
WARMGRAPH_API wg_status wg_report_destroy(wg_report* report);
/// Texts are valid as long as the report.
WARMGRAPH_API const char* wg_report_function(const wg_report* report);
/// wg_outcome_eager before the first call; -1 for NULL.
WARMGRAPH_API wg_outcome wg_report_outcome(const wg_report* report);
/// Why it missed or was refused; "" for a plain hit.
WARMGRAPH_API const char* wg_report_reason(const wg_report* report);
/// First digits of the entry's guards digest; "" before the first call.
WARMGRAPH_API const char* wg_report_entry(const wg_report* report);
WARMGRAPH_API double wg_report_first_call_ms(const wg_report* report);
/// Phases in order: look up, load, build, compile, ... NULL and 0 at an index that there is not.
WARMGRAPH_API uint64_t wg_report_phase_count(const wg_report* report);
WARMGRAPH_API const char* wg_report_phase_name(const wg_report* report, uint64_t index);
WARMGRAPH_API double wg_report_phase_ms(const wg_report* report, uint64_t index);

// --- pairs ----------------------------------------------------------------------------------------------------------

typedef int32_t wg_pair_half;
enum wg_pair_half_values { wg_pair_forward_half = 0, wg_pair_backward_half = 1 };

/// Forward and backward of a training step, recorded together and used together. What both depend on (code, config,
/// environment, version, policy, metadata) may be said in either spec and counts for both.
typedef struct wg_pair_spec {
    uint64_t size;                    ///< sizeof(wg_pair_spec)
    const wg_function_spec* forward;  ///< its name is the pair's
    const wg_function_spec* backward; ///< its name is not looked at
    const wg_tensor_decl* saved;      ///< what forward saves for backward, in an arena of the pair's own
    uint64_t saved_count;
    const wg_key_value* gradients; ///< a tensor of backward (key) is the gradient of one of forward (value): same shape
    uint64_t gradient_count;
} wg_pair_spec;

/// Wraps both callbacks. Each asks wg_recorder_address for what is saved, by name; no call is given it. `user` is handed
/// to both. invalid_argument: a tensor that is saved twice or declared besides, halves with other shapes, versions,
/// policies or configurations. unsupported: events or semaphores.
WARMGRAPH_API wg_status wg_wrap_pair(wg_cache* cache, const wg_device* device, const wg_pair_spec* spec,
                                     wg_callback forward, wg_callback backward, void* user, wg_pair** out);
WARMGRAPH_API wg_status wg_pair_destroy(wg_pair* pair);
/// As wg_bind, in each half that declares the state.
WARMGRAPH_API wg_status wg_pair_bind(wg_pair* pair, const char* state, wg_memory memory);
/// As wg_call. What an earlier call saved is overwritten. `generation` is what wg_pair_backward is to be told.
WARMGRAPH_API wg_status wg_pair_forward(wg_pair* pair, wg_stream* stream, const wg_arg* args, uint64_t count,
                                        uint64_t* generation, wg_outcome* outcome);
/// As wg_call. stale: a later forward overwrote what that one saved. invalid_argument: `generation` is 0 (no forward
/// was called), or a tensor has another shape than in forward.
WARMGRAPH_API wg_status wg_pair_backward(wg_pair* pair, wg_stream* stream, uint64_t generation, const wg_arg* args,
                                         uint64_t count, wg_outcome* outcome);
/// As wg_function_report, of one half.
WARMGRAPH_API wg_status wg_pair_report(const wg_pair* pair, wg_pair_half half, wg_report** out);
/// As wg_function_misses, of one half. The pair's own misses are forward's, and those of a backward whose forward was a hit.
WARMGRAPH_API wg_status wg_pair_misses(const wg_pair* pair, wg_pair_half half, char* text, uint64_t capacity,
                                       uint64_t* length);

// --- adoption -------------------------------------------------------------------------------------------------------

/// A range of device memory by name.
typedef struct wg_named_memory {
    const char* name;
    uint64_t pointer; ///< device pointer
    uint64_t size;    ///< bytes
} wg_named_memory;

typedef struct wg_named_number {
    const char* name;
    wg_dtype dtype; ///< i32, u32, i64, u64, f32 or f64
    uint64_t bits;  ///< the number's bytes, zero-extended
} wg_named_number;

/// A graph that was captured elsewhere (CUgraph), and where its memory was. It stays the caller's and is left as it is.
typedef struct wg_native_capture {
    uint64_t size; ///< sizeof(wg_native_capture)
    void* graph;
    const wg_named_memory*
        regions; ///< inputs, outputs and states by their name in the spec; a state that is left out is
                 ///< where the spec says
    uint64_t region_count;
    const wg_named_memory*
        scratch; ///< memory pools, workspaces, by names of your choice: a restored graph gets its own
    uint64_t scratch_count;
    const wg_named_event* events; ///< that it records or waits for; none: the spec's
    uint64_t event_count;
    const wg_named_semaphore* semaphores; ///< that it signals or waits for; none: the spec's
    uint64_t semaphore_count;
    /// What the spec's scalars were when it was captured. Only the values of semaphores can follow them, and each
    /// differs between the two captures by a distance of its own.
    const wg_named_number* scalars;
    uint64_t scalar_count;
    /// Ranges of live allocations that nobody owned while it was captured: what a framework's allocator had free in its
    /// caches both before and after (of the graph's own pool: nothing), and what it has allocated since. No address there
    /// is one that the graph follows; without them a stale pointer in padding that nobody initialised is refused.
    const wg_memory* free_blocks;
    uint64_t free_block_count;
} wg_native_capture;

/// For programs that capture: call it in the capturing thread before each library's call. It fills 128 KiB of the
/// thread's stack below the caller with zeros (nothing where there is less to spare). Libraries hand on bytes of
/// parameters that they never wrote, and what earlier calls left there may look like an address: such a graph is
/// refused now and then. Takes 3 us. Thread-safe.
WARMGRAPH_API void wg_clear_stack(void);

/// Forward or backward of a pair whose graphs are adopted one by one, backward first. Who replays them uses both or none.
typedef struct wg_adopted_part {
    uint64_t high; ///< with `low` the recording id: 128 random bits, the same for both
    uint64_t low;
    wg_pair_half half;
} wg_adopted_part;

typedef struct wg_adoption {
    uint64_t size; ///< sizeof(wg_adoption)
    const wg_native_capture* first;
    const wg_native_capture*
        second;                    ///< the same work with all regions and scratch elsewhere: it proves which words are
                                   ///< addresses. NULL: none
    int32_t allow_unproven;        ///< nonzero: words that lie in a region are taken for addresses without that proof
    const wg_named_number* values; ///< what the spec's values were when it was captured
    uint64_t value_count;
    /// Instead of `second`: a folder where another process wrote its capture of the same call (wg_capture_write). Its
    /// memory lay elsewhere, as far as the process's allocator put it elsewhere. Who may write the folder decides what is
    /// taken for proven: one that others may write is not read. NULL: none
    const char* captures;
    /// A function may enqueue something else while it is captured, and then both captures and the entry agree with each
    /// other, and not with the function. Whoever ran it as it is from the same contents holds the graph to that: this is
    /// called after each run of the original (is_last 0), while its results lie in the first capture's memory, and once
    /// more after the last of them (is_last 1), in the thread that adopts and once the graph is known to touch declared
    /// memory alone. Nonzero refuses the graph: not_recordable, with the `text` that it writes (at most `size` bytes, with a
    /// zero behind). With 0, the text of the last call is how they agree ("bitwise"), which `warmgraph show` says. NULL:
    /// nothing proves that the graph does what the function does.
    int32_t (*answer)(void* user, int32_t is_last, char* text, uint64_t size);
    void* answer_user;
    /// Then the cache keeps, evicts and removes the entry together with its other one. NULL: it is used alone.
    const wg_adopted_part* part;
} wg_adoption;

/// The captured graph becomes an entry, under the guards that a call with the capture's memory and the declared shapes
/// has; the function replays it, as one of wg_cache_load with this spec does in the next process. For another variant
/// (a batch size) destroy the function and adopt under the same name again. The device must be idle, and the first
/// capture's memory have valid contents; it is put back as it was. The version is needed; scalars are possible for the
/// values of semaphores alone. not_recordable, verification_failed, unsupported (OpenCL), miss_forbidden (policy
/// require_hit), invalid_argument. A folder that cannot be written is no failure: the report's reason says it. not_found:
/// `adoption->captures` has none of this call that another process wrote and this version can read.
WARMGRAPH_API wg_status wg_cache_adopt(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                       const wg_adoption* adoption, wg_function** out);

/// Writes `adoption->first` into the folder `adoption->captures`, which is made where there is none, for an adoption in
/// another process that has no second capture of its own: the graph, where its memory was, digests of its code. Runs
/// nothing, publishes nothing and reads no contents. At most 4 files of one call are kept, the newest. not_recordable,
/// unsupported, invalid_argument, io_failed, no_space, permission_denied.
WARMGRAPH_API wg_status wg_capture_write(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                         const wg_adoption* adoption);

// --- restoring entries before the calls that need them ---------------------------------------------------------------

typedef struct wg_preload_progress {
    uint64_t size; ///< set it to sizeof(wg_preload_progress) before wg_preload_progress_of
    uint64_t loaded;
    uint64_t failed; ///< damaged, or refused by the driver
    uint64_t total;  ///< what is planned by now
    double elapsed_ms;
} wg_preload_progress;

/// wg_cache_preload returns when the most urgent entry is restored, in its own thread; when all are; at once.
typedef int32_t wg_preload_wait_for;
enum wg_preload_wait_for_values { wg_preload_first = 0, wg_preload_all = 1, wg_preload_none = 2 };

/// Zero is the default of every member but `size`.
typedef struct wg_preload_options {
    uint64_t size; ///< sizeof(wg_preload_options)
    /// Higher is restored first; NULL: the most recently used. `inputs` as recorded. Called in the thread of wg_cache_preload,
    /// or, where that waits for nothing or `first` was restored, in one of the cache.
    int32_t (*urgency)(const char* function, const wg_tensor_decl* inputs, uint64_t count, void* user);
    /// After each entry, in the thread that restored it; `function` is the entry's. Both end with the call.
    void (*progress)(const wg_preload_progress* progress, const char* function, void* user);
    void* user; ///< handed to both; must live until the preload is destroyed
    wg_preload_wait_for wait;
    uint32_t threads; ///< that restore at once, eight at most; 0: eight, or the machine's if it has fewer
    /// The function whose last used entry is restored before anything else is looked at; the rest is planned behind it, and
    /// `urgency` is called there. NULL, or none that has an entry which fits: the most urgent of all [NULL]
    const char* first;
    /// Names of functions, which need not be wrapped yet: of each the last used entry that `device` fits. A name that ends in
    /// '*' stands for all functions of the model that begin so. None: of all functions that exist now, all entries whose facts
    /// hold here. What graphs by name may take of the device: PreloadOptions::functions (preload.hpp) [NULL]
    const char* const* functions;
    uint64_t function_count;
    const wg_device* device; ///< needed where functions are named [NULL]
} wg_preload_options;

/// Restores entries before the calls that need them: the most urgent one before it returns, the rest by threads of the cache,
/// which rest while first calls are under way. A call whose entry was not restored yet restores it itself, at once. An entry
/// that cannot be used is no failure: it counts as failed. `options` may be NULL. `out` may be NULL: it goes on by itself, to
/// wg_cache_close at most, which waits for the entries that are being restored.
WARMGRAPH_API wg_status wg_cache_preload(wg_cache* cache, const wg_preload_options* options, wg_preload** out);
/// Blocks until all are restored and what their first launches need is on the device. Not from the progress callback.
WARMGRAPH_API wg_status wg_preload_wait(wg_preload* preload);
/// Fills `out->size` bytes; what a newer caller's struct has more is zero.
WARMGRAPH_API wg_status wg_preload_progress_of(const wg_preload* preload, wg_preload_progress* out);
/// Stops after the entries that are being restored; what was restored stays. Not from the progress callback.
WARMGRAPH_API wg_status wg_preload_destroy(wg_preload* preload);

// --- inside the callback --------------------------------------------------------------------------------------------

/// The stream of this run; it belongs to the recorder.
WARMGRAPH_API wg_stream* wg_recorder_stream(wg_recorder* recorder);
/// A further stream that starts after all work of wg_recorder_stream so far; it belongs to the recorder. Join it before
/// the callback returns (not_recordable otherwise).
WARMGRAPH_API wg_status wg_recorder_fork(wg_recorder* recorder, wg_stream** out);
/// Later work of wg_recorder_stream comes after the forked stream's. invalid_argument for a stream that is no fork of
/// this recorder.
WARMGRAPH_API wg_status wg_recorder_join(wg_recorder* recorder, wg_stream* forked);
/// Where an input, output or state is in this run. invalid_argument for an unknown name.
WARMGRAPH_API wg_status wg_recorder_address(wg_recorder* recorder, const char* name, wg_address* out);
/// Scratch memory of `bytes` bytes that the entry owns: zeros at first, then what the call before left, and results may
/// not follow that. The same name gives the same memory.
WARMGRAPH_API wg_status wg_recorder_alloc(wg_recorder* recorder, const char* name, uint64_t bytes, wg_address* out);
/// The scalar or value of this run: writes the 4 or 8 bytes of a number of type `dtype`, which must be the declared
/// one.
WARMGRAPH_API wg_status wg_recorder_scalar(wg_recorder* recorder, const char* name, wg_dtype dtype, void* out);
/// Sizes of an input or output in this run, in elements; they belong to the recorder. A state has its bytes as one
/// size.
WARMGRAPH_API wg_status wg_recorder_sizes(wg_recorder* recorder, const char* name, const int64_t** sizes,
                                          uint64_t* rank);
/// Element type of an input or output in this run.
WARMGRAPH_API wg_status wg_recorder_dtype(wg_recorder* recorder, const char* name, wg_dtype* out);
/// Fails this run with a code and reason of the callback's own, for languages whose exceptions must not leave it. It
/// returns `status`; the callback returns nonzero then. While the function is captured, wg_not_recordable makes the
/// reason the refusal's.
WARMGRAPH_API wg_status wg_recorder_fail(wg_recorder* recorder, wg_status status, const char* reason);

#ifdef __cplusplus
} // extern "C"
#endif
