// warmgraph's C interface: the same as warmgraph/warmgraph.hpp, for C11 and for foreign function interfaces (ctypes).
//
// It has fixed-width types, plain structs and opaque handles only, so a caller needs no macro. A struct that may grow
// begins with `size`, which the caller sets to the sizeof that it was compiled with. Members beyond that size take
// their defaults. The library accepts a larger struct than it knows if the further bytes are zero (unsupported
// otherwise).
//
// Errors: a function returns wg_ok, or a code that says what to do; wg_last_error() then has the text. Nothing is
// thrown. On failure an `out` handle is set to NULL. A null handle, name or array (with a count above 0) is
// invalid_argument, except where a parameter may be NULL. A getter that returns a value returns NULL or 0 for a null
// handle. A miss, a damaged cache, a full disk or a refused recording is not a failure: the function runs as it is
// (without a graph), and its report says why.
//
// Ownership: the caller destroys each handle that it creates, once. Destroying NULL does nothing. A handle keeps the
// parts of other handles that it needs alive, so the order of destruction does not matter (a function may outlive its
// cache handle and its device handle). Synchronise before you destroy something that the accelerator still uses.
//
// Texts: a function with `text`, `capacity` and `length` writes as snprintf does: at most `capacity` bytes, including
// the ending 0. `length` (may be NULL) gets the length of the whole text without the 0. `text` may be NULL if
// `capacity` is 0.
//
// Threads: several threads may use a device, program, cache, function or pair at once. One thread at a time may use a
// stream, an event, a buffer or a recorder.
#pragma once

#include <stdint.h>

#include "warmgraph/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

// --- values ---------------------------------------------------------------------------------------------------------

/// The result of a call: wg_ok, or the code of a failure.
typedef int32_t wg_status;
enum wg_status_values {
    wg_ok = 0,
    wg_invalid_argument = 1,     ///< a name, shape, binding, option or handle is wrong: fix the call
    wg_not_recordable = 2,       ///< the function did something that a graph cannot hold; it runs as it is
    wg_compile_failed = 3,       ///< the kernel source does not compile: fix it; the text has the compiler's log
    wg_miss_forbidden = 4,       ///< the policy forbids recording (record first) or compiling (compile ahead)
    wg_corrupt = 5,              ///< stored bytes are damaged or hostile
    wg_stale = 6,                ///< stored bytes were made for another version, device or key
    wg_not_found = 7,            ///< the named thing does not exist
    wg_io_failed = 8,            ///< the cache folder failed
    wg_no_space = 9,             ///< the disk is full
    wg_permission_denied = 10,   ///< the cache folder belongs to another user or cannot be written
    wg_driver_failed = 11,       ///< the accelerator's driver refused a call; the text has the driver's message
    wg_out_of_memory = 12,       ///< device or host memory ran out
    wg_unsupported = 13,         ///< this backend, device or version of the library cannot do what the call asks
    wg_verification_failed = 14, ///< the restored graph did not reproduce the function
    wg_internal = 15,            ///< a defect of warmgraph: please report it
    wg_partly_launched = 16,     ///< the driver failed in the middle of a launch: state may be half updated
    wg_untrusted = 17            ///< an entry has no accepted signature
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

/// The outcome of a call.
typedef int32_t wg_outcome;
enum wg_outcome_values {
    wg_outcome_recorded = 0, ///< a miss: the function ran, was recorded and (unless the disk failed) published
    wg_outcome_replayed = 1, ///< a hit: the stored graph ran
    wg_outcome_eager = 2,  ///< the function ran as it is: because of the policy, or because no entry fits these inputs
    wg_outcome_refused = 3 ///< the function ran as it is, because it cannot be recorded or replayed; see the report
};

typedef int32_t wg_policy;
enum wg_policy_values {
    wg_policy_default = 0,     ///< for a cache: $WARMGRAPH_POLICY, else read_write; for a function: the cache's policy
    wg_policy_read_write = 1,  ///< replays a hit and records a miss
    wg_policy_read_only = 2,   ///< replays a hit and runs a miss as it is
    wg_policy_refresh = 3,     ///< records again and replaces the entry
    wg_policy_off = 4,         ///< looks for no entry and records nothing
    wg_policy_require_hit = 5, ///< fails with miss_forbidden where something would be recorded
    wg_policy_no_compile = 6   ///< as read_write, but fails with miss_forbidden where a program would be compiled
};

/// The kinds of artifacts in a cache (docs/kinds.md).
typedef int32_t wg_artifact_kind;
enum wg_artifact_kind_values {
    wg_kind_entries = 1,   ///< recorded graphs with their guards
    wg_kind_images = 2,    ///< device code; it belongs to the entries that name it
    wg_kind_constants = 3, ///< contents of a graph's constants; they belong to the entries that name them
    wg_kind_compiled = 4,  ///< compiled programs
    wg_kind_tuned = 5,     ///< tuned configurations, of a kernel or of a module
    wg_kind_profiles = 6,  ///< shape profiles
    wg_kind_torch = 7      ///< PyTorch's compiled code as bytes; loading them can run any code
};

typedef int32_t wg_access;
enum wg_access_values { wg_access_read_write = 0, wg_access_read_only = 1 };

/// An address in device memory: `base` names an allocation, and `offset` counts bytes from its start. Add to `offset`
/// to point inside the allocation. Zero is null. On CUDA the base is always 256, and base + offset is the device
/// pointer.
typedef struct wg_address {
    uint64_t base;
    uint64_t offset;
} wg_address;

/// A range of device memory, which the struct does not own.
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

/// Returns the library's version: "0.1.0". The text is static.
WARMGRAPH_API const char* wg_version(void);

/// Returns the backends of this build: "opencl, cuda". The text is static.
WARMGRAPH_API const char* wg_backends(void);

/// Returns the text of the last call that failed in this thread: what was expected, what was found, and the cure. Never
/// NULL; "" if no call failed yet. A call that succeeds does not change it. Valid until the next call that fails in
/// this thread.
WARMGRAPH_API const char* wg_last_error(void);

/// Returns a code's name: "not_recordable", "ok"; "unknown" for another number. The text is static.
WARMGRAPH_API const char* wg_status_name(wg_status status);

/// Returns an outcome's name: "replayed"; "unknown" for another number. The text is static.
WARMGRAPH_API const char* wg_outcome_name(wg_outcome outcome);

typedef int32_t wg_log_level;
enum wg_log_level_values { wg_log_trace = 0, wg_log_debug = 1, wg_log_info = 2, wg_log_warning = 3, wg_log_error = 4 };

/// Sends log lines to `receive(level, line, user)` instead of standard error; NULL sends them to standard error again.
/// A line has no prefix and no line end. The receiver is called in the thread that logs, by several threads at once. If
/// there is a receiver and WARMGRAPH_LOG is not set, the level is info. When this function returns, no thread is still
/// inside the earlier receiver. Lines that are logged inside a receiver are dropped. invalid_argument: a call inside a
/// receiver.
WARMGRAPH_API wg_status wg_receive_log(void (*receive)(wg_log_level level, const char* line, void* user), void* user);

/// Stops the making of log lines below `least`, and the collecting of facts for them, for a host program whose own log
/// drops these lines. Lines that WARMGRAPH_LOG or the level drops stay dropped. The limit holds until the next call of
/// wg_limit_log or wg_receive_log.
WARMGRAPH_API wg_status wg_limit_log(wg_log_level least);

// --- devices and memory ---------------------------------------------------------------------------------------------

/// Opens an accelerator: "opencl:0", "opencl" (the first one), "opencl:<part of a name>", and the same with "cuda". Two
/// handles of one device share its default stream. not_found: no such device; the text lists the devices. unsupported:
/// "cuda" in a build without that backend.
WARMGRAPH_API wg_status wg_device_open(const char* id, wg_device** out);
/// Closes the handle. The handle of the device's default stream is invalid from then on.
WARMGRAPH_API wg_status wg_device_close(wg_device* device);
/// Blocks until the default stream's work is done. not_recordable: inside a function that is being captured.
WARMGRAPH_API wg_status wg_device_synchronize(wg_device* device);
/// Returns the device's id: "opencl:0". Valid as long as the handle.
WARMGRAPH_API const char* wg_device_id(const wg_device* device);
/// Returns the device's marketing name. Valid as long as the handle.
WARMGRAPH_API const char* wg_device_name(const wg_device* device);
/// Returns the default stream, which belongs to the device handle.
WARMGRAPH_API wg_stream* wg_device_stream(wg_device* device);

/// Starts to keep the device code that the process loads, so that graphs with kernels of other libraries can be
/// recorded or adopted. Call it before those libraries load their code. Recording calls it too, which may be too late.
/// Calling it again changes nothing. not_recordable: the code cannot be kept (a profiler is attached to the process);
/// the text has the cure.
WARMGRAPH_API wg_status wg_prepare_recording(wg_device* device);
/// Does the same as wg_prepare_recording for all CUDA devices, before a device is open. It loads the driver and makes
/// no context.
WARMGRAPH_API wg_status wg_prepare_recording_early(void);
/// Prepares the first restore of this process, on a thread of its own (Device::warm_up in device.hpp). A process that
/// will replay calls it once the device is open.
WARMGRAPH_API wg_status wg_device_warm_up(wg_device* device);
/// Declares that this process loaded the driver's `module` (CUmodule) from `image` (a cubin of `bytes` bytes, copied)
/// and keeps it loaded while the device is open. Recording then knows the module's code, whenever the module was
/// loaded. If an entry needs the same code, its replays run this module. So a replay reads the module's variables at
/// each launch, as the function does. When the entry is restored, the variables must hold the values of the recording;
/// otherwise the entry is refused, and the function runs as it is. A function that is restored already is restored
/// again at its next call. invalid_argument: the module was not loaded from this image. unsupported on OpenCL.
WARMGRAPH_API wg_status wg_register_module(wg_device* device, void* module, const void* image, uint64_t bytes);

/// Gives a name to a host function that recorded graphs may call. An entry stores the name; a process that replays the
/// entry registers its own function under that name first. `function(data)` runs on a thread of the driver, where no
/// driver call is allowed. `function` and `data` must stay valid as long as such graphs may run. invalid_argument: an
/// empty or unprintable name, a null function, or a name that another function has.
WARMGRAPH_API wg_status wg_register_host_function(const char* name, void (*function)(void*), void* data);

/// Allocates `bytes` bytes of device memory; the contents are undefined. invalid_argument: 0 bytes. out_of_memory: the
/// device has too little memory. not_recordable: inside a function that is being captured (wg_recorder_alloc gives
/// scratch memory).
WARMGRAPH_API wg_status wg_buffer_create(wg_device* device, uint64_t bytes, wg_buffer** out);
/// Allocates page-locked host memory, which the device can address too. unsupported on OpenCL.
WARMGRAPH_API wg_status wg_buffer_create_host(wg_device* device, uint64_t bytes, wg_buffer** out);
WARMGRAPH_API wg_status wg_buffer_destroy(wg_buffer* buffer);
/// Copy exactly `bytes` bytes to or from byte `offset` of the buffer, and block until that is done. Neither call waits
/// for work in streams. invalid_argument: the bytes do not fit. not_recordable: inside a function that is being
/// captured.
WARMGRAPH_API wg_status wg_buffer_upload(wg_buffer* buffer, const void* from, uint64_t bytes, uint64_t offset);
WARMGRAPH_API wg_status wg_buffer_download(const wg_buffer* buffer, void* to, uint64_t bytes, uint64_t offset);
/// Returns the whole buffer as a range, valid until the buffer is destroyed.
WARMGRAPH_API wg_memory wg_buffer_memory(const wg_buffer* buffer);
/// Returns the buffer's device pointer; 0 on OpenCL, which has no device pointers.
WARMGRAPH_API uint64_t wg_buffer_pointer(const wg_buffer* buffer);
/// Returns memory that another library allocated (CUDA), as a range for wg_arg, wg_state_decl, wg_bind and kernel
/// arguments. A null pointer gives a null range. The device checks the range when it is used.
WARMGRAPH_API wg_memory wg_memory_from_pointer(uint64_t pointer, uint64_t size);

// --- programs and streams -------------------------------------------------------------------------------------------

/// Makes a program from kernel source and build options, which are copied. It is compiled at the first launch of one of
/// its kernels, so a process that replays everything never compiles. `options` may be NULL: no options.
WARMGRAPH_API wg_status wg_program_create(wg_device* device, const char* name, const char* source, const char* options,
                                          wg_program** out);
WARMGRAPH_API wg_status wg_program_destroy(wg_program* program);

/// Makes a new in-order stream.
WARMGRAPH_API wg_status wg_stream_create(wg_device* device, wg_stream** out);
/// Makes a handle for a stream of another library (CUstream; NULL is CUDA's legacy default stream). Calls are enqueued
/// behind that library's work. The library keeps the stream, which must outlive the handle; wg_stream_destroy frees the
/// handle. unsupported on OpenCL.
WARMGRAPH_API wg_status wg_stream_view(wg_device* device, void* native, wg_stream** out);
/// Destroys a stream. invalid_argument: the stream belongs to a device or to a recorder.
WARMGRAPH_API wg_status wg_stream_destroy(wg_stream* stream);
/// Returns 1 if the stream is being captured: enqueued work goes into a graph and does not run. Returns 0 otherwise,
/// also for NULL.
WARMGRAPH_API int wg_stream_is_capturing(const wg_stream* stream);
/// Watches the work that this thread enqueues, by any library, until this thread calls wg_watch_destroy. A program that
/// captures begins the watch once the capture has begun, and ends it before the capture ends. Work in a stream that
/// does not capture runs at once and is missing in the graph; the watch finds it. All work should go into `stream`, or
/// into streams that wait for it. not_recordable: the backend can watch only after wg_prepare_recording. On OpenCL the
/// watch sees nothing.
WARMGRAPH_API wg_status wg_stream_watch(wg_stream* stream, wg_watch** out);
/// Writes a description of the first work that was enqueued in a wrong stream ("cuLaunchKernel in the legacy default
/// stream"); "" if there is no such work so far.
WARMGRAPH_API wg_status wg_watch_stray(const wg_watch* watch, char* text, uint64_t capacity, uint64_t* length);
WARMGRAPH_API wg_status wg_watch_destroy(wg_watch* watch);
/// Blocks until the stream's work is done. not_recordable: inside a function that is being captured.
WARMGRAPH_API wg_status wg_stream_synchronize(wg_stream* stream);
/// Returns the driver's handle (CUstream), for libraries that enqueue by themselves; NULL on OpenCL. (CUDA's default
/// stream is NULL too; warmgraph never uses it.)
WARMGRAPH_API void* wg_stream_native(const wg_stream* stream);
/// Makes an event that comes after all work of the stream so far.
WARMGRAPH_API wg_status wg_stream_record(wg_stream* stream, wg_event** out);
/// Orders later work of the stream after the event. The event may be destroyed at once.
WARMGRAPH_API wg_status wg_stream_wait(wg_stream* stream, const wg_event* event);
WARMGRAPH_API wg_status wg_event_destroy(wg_event* event);

typedef int32_t wg_kernel_arg_kind;
enum wg_kernel_arg_kind_values {
    wg_kernel_arg_memory = 0, ///< device memory at `address`
    wg_kernel_arg_value = 1,  ///< `bytes` bytes at `value`, which the call copies
    wg_kernel_arg_local = 2   ///< `bytes` bytes of work-group (shared) memory
};

/// A kernel argument. Members that its kind does not name are ignored.
typedef struct wg_kernel_arg {
    wg_kernel_arg_kind kind;
    wg_address address;
    const void* value;
    uint64_t bytes;
} wg_kernel_arg;

/// Compiles the program if it was not compiled yet (compile_failed: the text has the compiler's log), then enqueues one
/// kernel in `grid` groups of `block` work-items. The arguments are in the kernel's order. invalid_argument: their
/// number or kinds are wrong.
WARMGRAPH_API wg_status wg_launch(wg_stream* stream, const wg_program* program, const char* kernel,
                                  const uint32_t grid[3], const uint32_t block[3], const wg_kernel_arg* args,
                                  uint64_t count);
/// The geometry of a launch. `size`, `grid` and `block` must be set. The default of the other members is zero; other
/// values are unsupported on OpenCL.
typedef struct wg_launch_options {
    uint64_t size;         ///< sizeof(wg_launch_options)
    uint32_t grid[3];      ///< groups
    uint32_t block[3];     ///< work-items of a group
    uint32_t cluster[3];   ///< groups in a cluster; all 0: no clusters
    uint32_t shared_bytes; ///< dynamic shared memory
    int32_t cooperative;   ///< nonzero: all groups may synchronise with each other
    int32_t dependent;     ///< nonzero: programmatic dependent launch
} wg_launch_options;

/// Does the same as wg_launch, with these options.
WARMGRAPH_API wg_status wg_launch_with(wg_stream* stream, const wg_program* program, const char* kernel,
                                       const wg_launch_options* options, const wg_kernel_arg* args, uint64_t count);
/// Enqueues a copy of `bytes` bytes.
WARMGRAPH_API wg_status wg_copy(wg_stream* stream, wg_address to, wg_address from, uint64_t bytes);
/// Enqueues a fill of `bytes` bytes with a pattern of 1, 2, 4, 8 or 16 bytes, which is copied; `bytes` must be a
/// multiple of the pattern's size.
WARMGRAPH_API wg_status wg_fill(wg_stream* stream, wg_address to, const void* pattern, uint64_t pattern_bytes,
                                uint64_t bytes);

// --- the cache ------------------------------------------------------------------------------------------------------

/// The limit for the files of one kind in the folder, in bytes.
typedef struct wg_kind_bytes {
    wg_artifact_kind kind;
    uint64_t bytes;
} wg_kind_bytes;

/// How objects of one kind are compressed (zstd) when they are written.
typedef struct wg_kind_compression {
    wg_artifact_kind kind;
    int32_t level;  ///< zstd's level, 1 to 19; 0: not compressed
    uint64_t above; ///< bytes; objects up to this size are not compressed
} wg_kind_compression;

/// Reads an object of a tier: writes at most `capacity` bytes from `offset` on, fewer only where the object ends, and
/// gives the size of the whole object to `size`. wg_not_found: there is no such object. `bytes` may be NULL if `capacity`
/// is 0.
typedef wg_status (*wg_tier_get)(void* user, const char* name, uint64_t offset, void* bytes, uint64_t capacity,
                                 uint64_t* size);
/// Keeps exactly these bytes under the name, or leaves what was there. `create_only` nonzero: an object that is there
/// stays, and that is wg_ok; a store that cannot tell replaces it.
typedef wg_status (*wg_tier_put)(void* user, const char* name, const void* bytes, uint64_t size, int32_t create_only);
/// Removes an object. It is wg_ok if the object is missing.
typedef wg_status (*wg_tier_remove)(void* user, const char* name);
/// Takes one name of a list; the text is copied.
typedef void (*wg_tier_take)(void* to, const char* name);
/// Calls take(to, name) for each name that begins with `prefix`, in any order.
typedef wg_status (*wg_tier_list)(void* user, const char* prefix, wg_tier_take take, void* to);
/// Called once, when no callback of the tier will be called any more.
typedef void (*wg_tier_release)(void* user);

/// A store of the caller's own that caches share. What it gives is verified: its size before memory is taken, its
/// digests, its key and its signature. Names are lines of [A-Za-z0-9._/-], of at most 1 KiB. The cache calls it from
/// several threads at once, among them threads of its own. A call must end soon by itself, because a look-up waits for
/// it. Any status but wg_ok and wg_not_found is a failure of the store: it is counted, the store is not asked for 30
/// seconds, and no call of the program sees it.
typedef struct wg_tier {
    const char* label; ///< its name in statistics and messages: letters, digits, '.', '_', '-'
    void* user;        ///< passed to the callbacks
    wg_tier_get get;
    wg_tier_put put;
    wg_tier_remove remove;
    wg_tier_list list;
    wg_tier_release release; ///< may be NULL; not called if wg_cache_open refuses the options
    int32_t read_only;       ///< nonzero: nothing is sent to it
    int32_t allow_unsigned;  ///< nonzero: objects without an accepted signature are used, too
} wg_tier;

/// Options of a cache. The default that wg_cache_options_init sets is in brackets. Texts and arrays are copied.
typedef struct wg_cache_options {
    uint64_t size;              ///< sizeof(wg_cache_options)
    const char* model;          ///< folder name: letters, digits, '.', '_', '-' [NULL: must be set]
    const wg_key_value* config; ///< the model's configuration, which is part of its identity; no key twice [NULL]
    uint64_t config_count;      ///< [0]
    const char* cache_dir; ///< NULL or "": $WARMGRAPH_CACHE_DIR, else .warmgraph_cache; made absolute at once [NULL]
    int32_t dynamic;       ///< nonzero: shapes are "dynamic" in the folder's name instead of "static" [0]
    int32_t world_size;    ///< number of ranks; -1: taken from the launcher's environment [-1]
    int32_t global_rank;   ///< [-1]
    int32_t tp_rank;       ///< [-1]
    int32_t pp_rank;       ///< [-1]
    wg_policy policy;      ///< [wg_policy_default]
    int32_t accept_newer_driver; ///< nonzero: driver and runtime may be newer than at the recording [0]
    int32_t share_with_group;    ///< nonzero: the group may read and write the files; else only this user may write [0]
    uint32_t max_variants;       ///< variants of one function, on disk and in memory; 0: 64 [0]
    /// How long an adoption waits for another process that adopts the same graph; 0: 60000 [0]
    uint32_t record_wait_ms;
    /// Nonzero: the first call that would use a restored graph runs the function instead, runs the graph on copies of
    /// the memory, and compares the results. A wrong entry is removed and counts as a cache fault. Functions of
    /// wg_cache_load have no code to compare with [0]
    int32_t verify_on_load;
    int32_t record_on_demand; ///< nonzero: a call that misses is recorded later, by wg_record_pending [0]
    uint32_t probing_ms;      ///< time for probing all scalars of a function while it is recorded; 0: 200 [0]
    /// Keys for signatures of entries. A key is a line "id:kind:hex" (docs/trust.md). A file has one key on each line,
    /// and must not be writable by others. Keys are never logged. NULL and "": the key comes from the environment.
    const char* sign_with;      ///< the key that signs the artifacts of this process; else $WARMGRAPH_SIGN_KEY [NULL]
    const char* sign_with_file; ///< a file with that key; else $WARMGRAPH_SIGN_KEY_FILE [NULL]
    const char* const* accept_keys; ///< keys that are accepted besides sign_with; else $WARMGRAPH_ACCEPT_KEYS [NULL]
    uint64_t accept_key_count;      ///< [0]
    const char* accept_file;        ///< a file with accepted keys; else $WARMGRAPH_ACCEPT_KEYS_FILE [NULL]
    /// Nonzero, or $WARMGRAPH_REQUIRE_SIGNED=1: only entries with an accepted signature are used [0]
    int32_t require_signed;
    /// User ids whose files are read besides this user's and root's, and besides those in $WARMGRAPH_TRUSTED_OWNERS
    /// [NULL]
    const uint32_t* trusted_owners;
    uint64_t trusted_owner_count; ///< [0]
    /// The most bytes and files that the folder may hold. 0: $WARMGRAPH_CACHE_BYTES and $WARMGRAPH_CACHE_FILES, else 8
    /// GiB (or a tenth of the disk where that is less) and 100000 files [0]
    uint64_t max_bytes;
    uint64_t max_files;
    /// Bundle files (.wgb). An artifact that the folder does not have is looked for in these files, in this order. They
    /// are not unpacked [NULL]
    const char* const* bundles;
    uint64_t bundle_count; ///< [0]
    /// Whether the cache counts the sizes that functions are called with. 1: yes, -1: no, 0: $WARMGRAPH_PROFILE ("on"
    /// or "off"), else yes [0]
    int32_t profile;
    /// Nonzero: the cache stops keeping device code after 256 replays in a row, a minute after the last miss at the
    /// earliest. The next miss starts it again (docs/cuda.md) [1]
    int32_t pauses_recording;
    /// The kinds that this cache uses: some of entries, compiled, tuned and profiles. The cache does not look up, read,
    /// write or count the other kinds. NULL: the kinds in $WARMGRAPH_KINDS ("entries,compiled"; "-tuned" means all but
    /// tuned), else all kinds [NULL]
    const wg_artifact_kind* kinds;
    uint64_t kind_count; ///< 0 with an array that is not NULL: no kind [0]
    /// Limits for single kinds within max_bytes, in bytes: for entries (with images and constants), compiled, tuned,
    /// profiles or torch. A kind that is not listed takes its limit from $WARMGRAPH_CACHE_BYTES ("8G,compiled=1G"),
    /// else it has no limit of its own [NULL]
    const wg_kind_bytes* max_bytes_by_kind;
    uint64_t max_bytes_by_kind_count; ///< [0]
    /// How the cache compresses the objects that it writes, by kind: entries (their payloads), images or constants. A
    /// kind that is not listed takes its settings from $WARMGRAPH_COMPRESSION ("payloads=9@64K,images=3"); else entries
    /// have level 3, and the others are not compressed [NULL]
    const wg_kind_compression* compression;
    uint64_t compression_count; ///< [0]
    /// Stores that several machines share, as URLs with attributes: "redis://cache:6379/0?namespace=v7",
    /// "s3://models/a", "https://host/prefix?read-only", "file:///shared/folder" (docs/remote.md). What the folder and the
    /// bundles do not have is looked for in them, in this order, and kept in the folder. What this process makes is sent
    /// to those that are not read-only, behind its calls. Only signed objects are used, unless a URL says allow-unsigned.
    /// NULL: the URLs in $WARMGRAPH_REMOTE [NULL]
    const char* const* remotes;
    uint64_t remote_count;       ///< 0 with an array that is not NULL: no remote [0]
    uint32_t remote_deadline_ms; ///< how long the end of the cache waits for what is not sent yet; 0: 2000 [0]
    /// A salt over all kinds: a cache never uses what caches with other tags made. At most 256 printable ASCII characters. NULL or
    /// "": $WARMGRAPH_CACHE_KEY_TAG, else no tag [NULL]
    const char* cache_key_tag;
    const wg_tier* tiers; ///< stores of the caller's own, which are asked after `remotes`, in this order [NULL]
    uint64_t tier_count;  ///< [0]
} wg_cache_options;

/// Fills in the defaults. `size` is the caller's sizeof(wg_cache_options). invalid_argument: `size` is too small.
WARMGRAPH_API wg_status wg_cache_options_init(wg_cache_options* options, uint64_t size);

/// Returns the absolute path of the folder that `cache_dir` (of wg_cache_options) means now. Valid until this thread
/// calls wg_cache_folder again.
WARMGRAPH_API const char* wg_cache_folder(const char* cache_dir);

/// Opens the cache of one model in one process. invalid_argument: wrong options (a bad name, a bad rank). A folder that
/// cannot be used is not a failure: caching is off then, and wg_cache_disabled_reason and one warning in the log say
/// why.
WARMGRAPH_API wg_status wg_cache_open(const wg_cache_options* options, wg_cache** out);
/// Closes the handle. Functions of the cache stay usable.
WARMGRAPH_API wg_status wg_cache_close(wg_cache* cache);
/// Returns the cache's folder, absolute. Valid as long as the handle.
WARMGRAPH_API const char* wg_cache_directory(const wg_cache* cache);
/// Returns why caching is off; "" when it works. Valid as long as the handle.
WARMGRAPH_API const char* wg_cache_disabled_reason(const wg_cache* cache);
/// Writes one line: "warmgraph: 2 hits, 0 misses, 1 image, 3.9 ms to load, 1.96 s saved".
WARMGRAPH_API wg_status wg_cache_summary(const wg_cache* cache, char* text, uint64_t capacity, uint64_t* length);
/// Writes the entries of this model's function as text, as `warmgraph show` prints them. This counts as a use of each
/// entry. Damaged entries are moved to quarantine.
WARMGRAPH_API wg_status wg_cache_readable(const wg_cache* cache, const char* function, char* text, uint64_t capacity,
                                          uint64_t* length);
/// A caller's reason for running calls of a function as they are, without the cache.
typedef struct wg_refusal {
    uint64_t size; ///< sizeof(wg_refusal)
    /// A short name of the reason, under which the calls are counted: at most 48 letters, digits, '.', '_' and '-'. Any
    /// other text counts as "other".
    const char* word;
    const char* text; ///< the problem (what was expected, and what was found), and the cure
    uint64_t calls;   ///< number of calls since the last report; 0: the library counted them itself
} wg_refusal;
/// Counts calls that ran as they are because their caller did not let the cache record or replay them, and keeps the
/// reason beside the function's misses: `warmgraph explain`, `ls` and `stats` show it. Takes a few milliseconds at
/// most, so report the first refused call for a reason, and later calls only now and then. It succeeds also if the
/// reason cannot be written. invalid_argument: a name that no function can have, or no text. Thread-safe.
WARMGRAPH_API wg_status wg_cache_note_refusal(wg_cache* cache, const wg_device* device, const char* function,
                                              const wg_refusal* refusal);
/// Records the calls that wait to be recorded, if their work is done. `recorded` (may be NULL) gets their number.
WARMGRAPH_API wg_status wg_record_pending(wg_cache* cache, uint64_t* recorded);
/// Removes stored artifacts. `kind` NULL or "entries": this rank's entries of `function`, or of all functions where it
/// is NULL, with the images that no entry names any more. "compiled", "tuned", "profiles" or "torch": all files of that
/// kind in the folder, since no model owns them. "all": each of these kinds. `removed` (may be NULL) gets the number of
/// removed files, not counting the images of entries. invalid_argument: another kind, or `function` with a kind that
/// belongs to no function.
WARMGRAPH_API wg_status wg_cache_clear(wg_cache* cache, const char* function, const char* kind, uint64_t* removed);

typedef struct wg_artifact_options {
    uint64_t size; ///< set it to sizeof(wg_artifact_options) before the call
    /// Not 0: adds the artifacts of the kind "torch" that this process put or got (wg_cache_put_artifact). They go only
    /// into a signed bundle: invalid_argument where no cache has a key to sign with.
    int32_t torch;
} wg_artifact_options;
/// Saves the artifacts that this process made or used through these caches, each once, as the bytes of a bundle
/// (docs/bundles.md): entries with their images and constants, compiled programs, tuned configurations and shape
/// profiles. `options` may be NULL. not_found: there are no artifacts. invalid_argument: a null cache, or
/// `options->torch` without a key to sign with.
WARMGRAPH_API wg_status wg_save_cache_artifacts(const wg_cache* const* caches, uint64_t count,
                                                const wg_artifact_options* options, wg_artifacts** out);
/// Puts the artifacts of a bundle that fit this device, its driver and the environment into the folder. The others are
/// skipped, and the result names them. Nothing in the folder is replaced; shape profiles are merged. `out` (may be
/// NULL) gets the result, without bytes. corrupt, stale, untrusted: the bytes are not a bundle that can be used.
WARMGRAPH_API wg_status wg_load_cache_artifacts(wg_cache* cache, const wg_device* device, const void* bytes,
                                                uint64_t size, wg_artifacts** out);
/// Returns the bytes and their number (`size`), valid as long as the handle. NULL and 0 for a handle from
/// wg_load_cache_artifacts.
WARMGRAPH_API const void* wg_artifacts_bytes(const wg_artifacts* artifacts, uint64_t* size);
/// Returns JSON on the artifacts that were saved or loaded, valid as long as the handle: `kinds` (a list of `kind`
/// ("entries", "images", "constants", "compiled", "tuned", "profiles", "torch"), `count`, `bytes`, `names` and
/// `seconds`: the time of the first calls without the cache, of compiling, or of tuning), `there` (artifacts that the
/// folder has already) and `skipped` (both lists of `name` and `why`).
WARMGRAPH_API const char* wg_artifacts_info(const wg_artifacts* artifacts);
WARMGRAPH_API wg_status wg_artifacts_destroy(wg_artifacts* artifacts);
/// Keeps `size` bytes that the program made, for later processes, which find them by the same kind and facts. `kind`:
/// "torch", for the bytes of torch.compiler.save_cache_artifacts. The bytes may run code where they are used (pickles
/// do), so the cache signs them. They replace the bytes that were kept under the same kind and facts. untrusted: the
/// cache has no key to sign with. invalid_argument: another kind, or facts or bytes that cannot be stored. unsupported:
/// more than 1 GiB. io_failed: caching is off.
WARMGRAPH_API wg_status wg_cache_put_artifact(wg_cache* cache, const char* kind, const wg_key_value* facts,
                                              uint64_t fact_count, const void* bytes, uint64_t size);
/// Gives `out` the bytes that wg_cache_put_artifact kept under this kind and these facts, from the folder or a bundle;
/// wg_artifacts_bytes returns them. not_found: there are no such bytes. untrusted: no accepted key signed them.
/// corrupt, stale: the file cannot be used.
WARMGRAPH_API wg_status wg_cache_get_artifact(const wg_cache* cache, const char* kind, const wg_key_value* facts,
                                              uint64_t fact_count, wg_artifacts** out);
/// Judges which artifacts of a bundle's file fit this device, and writes the result as JSON. It reads the file's header
/// and index, and tuned configurations. Members: `environment_key` (digits for the environment that all entries share;
/// "" where they share none), `environment_here` (digits for the environment here), `environment` (the facts that all
/// entries share), `verdict` on the environment ("fits", "fits_after", "does_not") with `detail`, and `entries` (a list
/// of `name`, `verdict`, `field`, `detail`, also for artifacts of other kinds).
WARMGRAPH_API wg_status wg_cache_check_bundle(const wg_cache* cache, const wg_device* device, const char* file,
                                              char* text, uint64_t capacity, uint64_t* length);

typedef struct wg_statistics {
    uint64_t size;         ///< set it to sizeof(wg_statistics) before the call
    uint64_t cache_faults; ///< failures of the disk and damaged files: they cost time only
    uint64_t untrusted;    ///< entries that were refused for their signature, each once
    /// Loaded images of this cache's entries, also those that another cache of the process loaded
    uint64_t images_loaded;
    uint64_t captures_written; ///< files that wg_capture_write wrote
    uint64_t captures_paired;  ///< captures of other processes that proved an entry
    uint64_t captures_ignored; ///< captures that are damaged or of another version, or that proved nothing
} wg_statistics;

/// Fills `out->size` bytes; members that this library does not know are set to zero.
WARMGRAPH_API wg_status wg_cache_statistics(const wg_cache* cache, wg_statistics* out);

/// Writes the counters of the remotes and tiers in this process, as JSON: a list, in the order of the options, of `label`
/// (a URL without secrets and attributes, or wg_tier's label), `hits`, `misses`, `puts` (objects that were sent),
/// `bytes_read`, `bytes_left` (not fetched, because an object's header said that it does not fit), `bytes_written`,
/// `read_ms`, `write_ms`, `skipped` (look-ups that went on without it while it did not answer) and `errors` (their number
/// by the word of their code: {"io_failed": 1}).
WARMGRAPH_API wg_status wg_cache_remote_statistics(const wg_cache* cache, char* text, uint64_t capacity,
                                                   uint64_t* length);

/// Counters of one kind. Times are in milliseconds.
typedef struct wg_kind_statistics {
    uint64_t size; ///< set it to sizeof(wg_kind_statistics) before the call
    /// Uses of stored artifacts. Entries: first calls that were replayed. Compiled: programs that were loaded. Tuned:
    /// kernels whose stored configuration was used. Profiles: functions whose stored profile was read.
    uint64_t hits;
    uint64_t misses; ///< lookups that found no artifact that could be used
    uint64_t made;   ///< recorded entries, compiled programs, tuned kernels; profiles: 0
    /// Entries: calls that could not be recorded, or whose caller refused the recording (wg_cache_note_refusal).
    /// Compiled: programs that the policy no_compile forbids to compile. Others: 0.
    uint64_t refused;
    double making_ms; ///< time of recording (after the calls' own results), of compiling, of tuning; profiles: 0
    double load_ms;   ///< time of loading and checking the artifacts of hits; profiles: 0
    /// Time that the hits saved. Entries: the time of the first calls without the cache. Compiled, tuned: the time of
    /// the compilations and searches that the hits replaced. load_ms, and the time that another kind counts
    /// (docs/kinds.md), are subtracted. Profiles: 0.
    double saved_ms;
} wg_kind_statistics;

/// Gives the counters of one kind: entries, compiled, tuned or profiles; all are 0 for another kind. Fills `out->size`
/// bytes; members that this library does not know are set to zero. invalid_argument: the number is not a kind.
WARMGRAPH_API wg_status wg_cache_kind_statistics(const wg_cache* cache, wg_artifact_kind kind, wg_kind_statistics* out);
/// Writes the reasons why artifacts of the kind could not be used: at most 64 lines such as "decode: no entry".
/// invalid_argument: the number is not a kind.
WARMGRAPH_API wg_status wg_cache_miss_reasons(const wg_cache* cache, wg_artifact_kind kind, char* text,
                                              uint64_t capacity, uint64_t* length);

// --- functions ------------------------------------------------------------------------------------------------------

typedef struct wg_tensor_decl {
    const char* name;
    wg_dtype dtype;
    uint32_t rank;        ///< number of dimensions
    const int64_t* sizes; ///< elements; NULL when rank is 0
} wg_tensor_decl;

/// The caller's memory that lives across calls: a KV cache (read_write) or weights (read_only).
typedef struct wg_state_decl {
    const char* name;
    wg_memory memory; ///< wg_bind may move it later
    wg_access access;
} wg_state_decl;

/// The caller's memory whose contents the entry carries; the function only reads it.
typedef struct wg_constant_decl {
    const char* name;
    wg_memory memory; ///< zero: this process has no such memory
} wg_constant_decl;

/// The type, sizes and strides of an input, output or state, by name. They replace the declared ones. A tensor that is
/// not contiguous (channels last) needs its strides here, and a state its type. A state without a type holds bytes,
/// which must be equal when results are compared.
typedef struct wg_layout {
    const char* name;
    wg_dtype dtype;
    uint32_t rank;          ///< number of dimensions
    const int64_t* sizes;   ///< elements; NULL for a state: one dimension with as many elements as its memory holds
    const int64_t* strides; ///< elements; NULL: contiguous
} wg_layout;

typedef struct wg_scalar_decl {
    const char* name;
    wg_dtype dtype;    ///< i32, u32, i64, u64, f32 or f64
    int32_t has_range; ///< nonzero: the scalar may be from `low` to `high`, both included. Set zero for a handle (u64)
    /// Recording captures the function at values between `low` and `high` to prove where the scalar goes
    double low;
    double high;
} wg_scalar_decl;

/// A driver's event (CUevent), which must outlive the function.
typedef struct wg_named_event {
    const char* name;
    void* event;
} wg_named_event;

/// A driver's external semaphore (CUexternalSemaphore), which must outlive the function.
typedef struct wg_named_semaphore {
    const char* name;
    void* semaphore;
} wg_named_semaphore;

/// A dimension of an input or output that is padded, and the value that fills it.
typedef struct wg_padded_dimension {
    const char* argument;
    uint64_t dimension; ///< 0: the outermost
    double value;       ///< the argument's type must be able to hold it
} wg_padded_dimension;

typedef int32_t wg_bucket_rule;
enum wg_bucket_rule_values {
    wg_buckets_fixed = 0, ///< sizes are not padded: each size is a variant
    wg_buckets_given = 1, ///< sizes are padded to the smallest of `sizes` that holds them
    wg_buckets_learnt = 2 ///< sizes are padded to buckets that the shape profile gives; the first start has no buckets
};

/// Dimensions that have one common size in each call, and the sizes that they are padded to (docs/profile.md). If no
/// bucket holds the size of a call, the function runs as it is and is not recorded.
typedef struct wg_buckets {
    const wg_padded_dimension* dimensions; ///< at most two of one argument
    uint64_t dimension_count;
    wg_bucket_rule rule;
    uint32_t most;        ///< for wg_buckets_learnt: the most buckets, up to 256; 0: 8
    const int64_t* sizes; ///< for wg_buckets_given: ascending, multiples of multiple_of
    uint64_t size_count;
    int64_t multiple_of; ///< every size is padded to a multiple of this, with or without a bucket; 0: 1
} wg_buckets;

/// The declaration of a function. Names and arrays are copied. Zero is the default of every member but `size` and
/// `name`.
typedef struct wg_function_spec {
    uint64_t size;    ///< sizeof(wg_function_spec)
    const char* name; ///< a folder name, unique within the cache
    const wg_tensor_decl* inputs;
    uint64_t input_count;
    const wg_tensor_decl* outputs;
    uint64_t output_count;
    const wg_state_decl* states;
    uint64_t state_count;
    const wg_scalar_decl* scalars; ///< numbers that are patched into the graph at every call
    uint64_t scalar_count;
    /// Host values that the function specialises on: each value is a guard and has a variant of its own
    const wg_scalar_decl* values;
    uint64_t value_count;
    const wg_program* const* code; ///< programs whose source and options become guards
    uint64_t code_count;
    const wg_key_value* config; ///< further guards of this function; no key twice
    uint64_t config_count;
    const char* const* environment; ///< names of environment variables that become guards
    uint64_t environment_count;
    /// Identifies the code. NULL or "": the build id of the callback's binary identifies it. wg_cache_load and
    /// wg_cache_adopt need a version. So does a callback that was made at run time (ctypes), because it is in no
    /// binary.
    const char* version;
    wg_policy policy;
    /// Events that the graph shares with other work; the restored graph makes an event of its own for each other name
    const wg_named_event* events;
    uint64_t event_count;
    /// Semaphores that the graph signals or waits for. Trial runs on copies leave them out. A later call records the
    /// function, once the work of the first call is done.
    const wg_named_semaphore* semaphores;
    uint64_t semaphore_count;
    /// Module variables that stay as they are while the function is in use, so that the entry may store their contents;
    /// "*": all.
    const char* const* frozen_variables;
    uint64_t frozen_variable_count;
    /// Inputs, outputs and states that hold no addresses, although some of their words may look like one.
    const char* const* no_addresses;
    uint64_t no_address_count;
    /// Nonzero: uninitialised words in kernel parameters are refused (in a recording, words that were never written; in
    /// an adopted graph, words that differ between the captures for no known reason). Zero: they are stored as zeros,
    /// and the function is refused only if its results depend on them.
    int32_t strict;
    const wg_layout* layouts; ///< for inputs, outputs and states whose declarations cannot say everything
    uint64_t layout_count;
    /// Memory that the function only reads, and whose contents the entry carries: a process that restores the entry
    /// needs no such memory. The memory may be null where entries are only loaded. Otherwise its contents must equal
    /// the entry's.
    const wg_constant_decl* constants;
    uint64_t constant_count;
    uint64_t max_constant_bytes; ///< limit for all constants together; 0: 64 MiB
    /// Nonzero: undeclared memory that the work only reads is kept as constants if it holds no addresses: allocations
    /// of libraries (cuFFT's tables), and scratch that an adopted graph reads before it writes it.
    int32_t undeclared_constants;
    const char* metadata; ///< a text that entries carry, for wg_cache_entries; it is not a guard. NULL: none
    /// For wg_cache_load in a process without the code: the `recorded_code` from wg_cache_entries. It replaces
    /// `version` and `code`.
    const wg_key_value* recorded_code;
    uint64_t recorded_code_count;
    const wg_buckets* buckets; ///< groups of dimensions that are padded
    uint64_t bucket_count;
} wg_function_spec;

/// A callback that enqueues the function's work through the recorder. While the function is recorded, the callback is
/// called more than once, in the thread of wg_call, with other addresses and scalar values, and must enqueue the same
/// work each time. It returns 0, or nonzero for a failure. If a wg_ function fails inside the callback (a null or
/// unknown name, a refused launch), the run fails with that code and text, also if the callback returns 0, because that
/// work would be missing. The callback must not throw or jump out. The recorder and its streams are valid only during
/// the call.
typedef int (*wg_callback)(wg_recorder* recorder, void* user);

/// Makes a function from a callback. The callback gets `user` (may be NULL), which must live as long as the function.
/// invalid_argument: a bad name, a name that is taken, a spec that contradicts itself.
WARMGRAPH_API wg_status wg_wrap(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                wg_callback callback, void* user, wg_function** out);
/// Makes a function without a callback, which can only be replayed. A call that misses gives miss_forbidden with the
/// reason; a call whose entry cannot be used gives the error that says why. `spec->version` must be the version that
/// the function was wrapped or adopted with (invalid_argument: it is empty).
WARMGRAPH_API wg_status wg_cache_load(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                      wg_function** out);
/// Chooses the entries that wg_cache_entries lists, and the members of each entry. Zero is the default of every member
/// but `size`.
typedef struct wg_entry_query {
    uint64_t size; ///< sizeof(wg_entry_query)
    /// Lists only entries that a call of a function with this spec could use, as far as a header shows it: their facts
    /// hold here, and their inputs and states look as declared. Outputs are not compared. The spec needs a version.
    /// NULL: all entries
    const wg_function_spec* spec;
    uint64_t most;         ///< at most this many entries, the last used ones; 0: all
    int32_t metadata_only; ///< nonzero: each entry has only the members `digest`, `recorded`, `misfit` and `metadata`
} wg_entry_query;

/// Lists the stored entries of a function as a JSON list, the last used first, for a process that knows only its name,
/// or its name and its inputs. wg_cache_load takes an entry's members as its spec. Members: `digest` (64 hex digits:
/// the name of the entry's file), `recorded` (ISO 8601), `misfit` (how this device or its driver differs, "" where it
/// does not), `inputs`, `outputs` and `states` (lists of `name`, `dtype` ("f32"), `sizes`, `strides` (elements); a
/// state also has `bytes` and `read_only`), `scalars` (lists of `name`, `dtype`, `range` (null: none)), `values` (the
/// same members, and `bits`: the value that calls must give), `config` and `recorded_code` (texts by name),
/// `environment` (names), `metadata`. Without a spec, facts that only the recording process knows (code, versions of
/// its libraries, its settings) are taken from the entry, and not judged. Reads headers alone, and no more than it
/// needs; an entry whose header cannot be read is left out. `query` may be NULL. "[]" under the policies off and
/// refresh. invalid_argument: a name that no function can have, a spec without a version; io_failed, permission_denied:
/// the folder cannot be read.
WARMGRAPH_API wg_status wg_cache_entries(const wg_cache* cache, const wg_device* device, const char* function,
                                         const wg_entry_query* query, char* text, uint64_t capacity, uint64_t* length);

/// Destroys a function. It may be called within the function's own callback (as wg_pair_destroy and wg_stream_destroy
/// may): the call still gives its result, the callback is not called again, and nothing of the call is recorded.
WARMGRAPH_API wg_status wg_function_destroy(wg_function* function);
/// Moves a state to other memory of the same size. invalid_argument: no such state, another size.
WARMGRAPH_API wg_status wg_bind(wg_function* function, const char* state, wg_memory memory);

typedef int32_t wg_arg_kind;
enum wg_arg_kind_values {
    wg_arg_memory = 0, ///< the `memory` of a state, or of an input or output that is as declared
    wg_arg_tensor = 1, ///< `memory`, `dtype`, `rank`, `sizes`, `strides`: for an argument that differs from its
                       ///< declaration
    wg_arg_number = 2  ///< `dtype` and `bits`, for a scalar or value
};

/// A named argument of a call. Members that its kind does not name are ignored.
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

/// Enqueues the function in `stream` (wg_device_stream gives the default stream) and returns without waiting for it.
/// The first call loads or records. `outcome` may be NULL. invalid_argument: an unknown, missing or repeated name, a
/// buffer that is too small, a number that the declared type cannot hold, or a callback that returned nonzero. A wg_
/// function that failed in the callback gives its own code.
WARMGRAPH_API wg_status wg_call(wg_function* function, wg_stream* stream, const wg_arg* args, uint64_t count,
                                wg_outcome* outcome);
/// Does the same as wg_call, for a caller that has just got 0 from wg_stream_is_capturing. The driver is not asked
/// again, which saves 0.1 us. If the stream does capture, the driver ends that capture with an error (driver_failed).
WARMGRAPH_API wg_status wg_call_uncaptured(wg_function* function, wg_stream* stream, const wg_arg* args, uint64_t count,
                                           wg_outcome* outcome);

/// A call that wg_record_profile is about to make.
typedef struct wg_profiled_call wg_profiled_call;
/// Gives the sizes of an input or output that the shape profile asks for, in elements, valid within the callback.
/// invalid_argument: an unknown name.
WARMGRAPH_API wg_status wg_profiled_call_sizes(const wg_profiled_call* call, const char* name, const int64_t** sizes,
                                               uint64_t* rank);
/// Sets the arguments of the call, as wg_call takes them, with the sizes that wg_profiled_call_sizes gives. The
/// arguments are copied. Their memory must stay where it is until the next call is made, or until wg_record_profile
/// returns.
WARMGRAPH_API wg_status wg_profiled_call_args(wg_profiled_call* call, const wg_arg* args, uint64_t count);
/// Gives the call its arguments (wg_profiled_call_args). It returns 0, or nonzero for a failure.
typedef int (*wg_make_arguments)(wg_profiled_call* call, void* user);

/// Records ahead the shapes that the shape profile of all processes has for the function, the most frequent first, at
/// most `most` (0: max_variants). First it learns the buckets that have the rule wg_buckets_learnt; they are used from
/// then on. The function is called, so states that it writes change. `recorded` and `replayed` (may be NULL) get the
/// numbers of shapes that were recorded, and that had an entry already. `text` gets a line with the reason for each
/// other shape, or the reason why nothing was tried. invalid_argument: a function of another cache or without a
/// callback, or arguments of other sizes than asked for.
WARMGRAPH_API wg_status wg_record_profile(wg_cache* cache, wg_function* function, wg_make_arguments make, void* user,
                                          uint64_t most, uint64_t* recorded, uint64_t* replayed, char* text,
                                          uint64_t capacity, uint64_t* length);
/// Writes the shapes that this process called the function with, the most frequent first, as a JSON list: `calls`,
/// `sizes` (lists by argument), `ran` (the sizes that the function saw, for padded arguments), `values`.
WARMGRAPH_API wg_status wg_function_shapes(const wg_function* function, char* text, uint64_t capacity,
                                           uint64_t* length);

/// Writes the sizes to which each of the spec's buckets pads now, ascending, as a JSON list of lists. The list is empty
/// for fixed buckets, and for buckets without a learnt size.
WARMGRAPH_API wg_status wg_function_buckets(const wg_function* function, char* text, uint64_t capacity,
                                            uint64_t* length);

/// Writes the function's last 16 misses in this process, newest first: a line for each ("<time> recorded: no entry"),
/// and below it an indented line for each fact that differs from the nearest variant.
WARMGRAPH_API wg_status wg_function_misses(const wg_function* function, char* text, uint64_t capacity,
                                           uint64_t* length);

/// Makes a report on the first call of the latest variant that was loaded or recorded. The report is a copy.
WARMGRAPH_API wg_status wg_function_report(const wg_function* function, wg_report** out);
WARMGRAPH_API wg_status wg_report_destroy(wg_report* report);
/// Returns the function's name. The texts of a report are valid as long as the report.
WARMGRAPH_API const char* wg_report_function(const wg_report* report);
/// Returns the outcome; wg_outcome_eager before the first call; -1 for NULL.
WARMGRAPH_API wg_outcome wg_report_outcome(const wg_report* report);
/// Returns why the call missed or was refused; "" for a plain hit.
WARMGRAPH_API const char* wg_report_reason(const wg_report* report);
/// Returns the first digits of the entry's guards digest; "" before the first call.
WARMGRAPH_API const char* wg_report_entry(const wg_report* report);
WARMGRAPH_API double wg_report_first_call_ms(const wg_report* report);
/// Returns the most device memory, in bytes, that the recording held at one time; 0 if nothing was recorded.
WARMGRAPH_API uint64_t wg_report_recording_bytes(const wg_report* report);
/// Return the phases of the first call in their order: look up, load, build, compile, ... They return NULL and 0 for an
/// index that is too large.
WARMGRAPH_API uint64_t wg_report_phase_count(const wg_report* report);
WARMGRAPH_API const char* wg_report_phase_name(const wg_report* report, uint64_t index);
WARMGRAPH_API double wg_report_phase_ms(const wg_report* report, uint64_t index);

// --- pairs ----------------------------------------------------------------------------------------------------------

typedef int32_t wg_pair_half;
enum wg_pair_half_values { wg_pair_forward_half = 0, wg_pair_backward_half = 1 };

/// Declares forward and backward of a training step, which are recorded together and used together. Facts on which both
/// depend (code, config, environment, version, policy, metadata) may stand in either spec.
typedef struct wg_pair_spec {
    uint64_t size;                    ///< sizeof(wg_pair_spec)
    const wg_function_spec* forward;  ///< its name is the name of the pair
    const wg_function_spec* backward; ///< its name is not used
    const wg_tensor_decl* saved;      ///< tensors that forward saves for backward, in an arena that the pair owns
    uint64_t saved_count;
    const wg_key_value* gradients; ///< a tensor of backward (key) is the gradient of a tensor of forward (value)
    uint64_t gradient_count;
} wg_pair_spec;

/// Makes a pair from two callbacks, which both get `user`. Each callback asks wg_recorder_address for the saved tensors
/// by name; no call passes them. invalid_argument: a tensor that is saved twice or also declared, or halves whose
/// shapes, versions, policies or configurations differ. unsupported: events, semaphores or buckets.
WARMGRAPH_API wg_status wg_wrap_pair(wg_cache* cache, const wg_device* device, const wg_pair_spec* spec,
                                     wg_callback forward, wg_callback backward, void* user, wg_pair** out);
WARMGRAPH_API wg_status wg_pair_destroy(wg_pair* pair);
/// Does the same as wg_bind, in each half that declares the state.
WARMGRAPH_API wg_status wg_pair_bind(wg_pair* pair, const char* state, wg_memory memory);
/// Enqueues forward, as wg_call does. It overwrites the tensors that an earlier call saved. `generation` gets the
/// number of this call for wg_pair_backward.
WARMGRAPH_API wg_status wg_pair_forward(wg_pair* pair, wg_stream* stream, const wg_arg* args, uint64_t count,
                                        uint64_t* generation, wg_outcome* outcome);
/// Enqueues backward for the forward call that gave `generation`, as wg_call does. stale: a later forward call has
/// overwritten the saved tensors. invalid_argument: `generation` is 0 (forward was not called), or a tensor has another
/// shape than in forward.
WARMGRAPH_API wg_status wg_pair_backward(wg_pair* pair, wg_stream* stream, uint64_t generation, const wg_arg* args,
                                         uint64_t count, wg_outcome* outcome);
/// Makes a report on one half, as wg_function_report does.
WARMGRAPH_API wg_status wg_pair_report(const wg_pair* pair, wg_pair_half half, wg_report** out);
/// Writes the misses of one half, as wg_function_misses does. A miss of the pair is listed with forward; backward lists
/// only misses whose forward was a hit.
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

/// A graph that another framework captured (CUgraph), and the addresses of its memory. The caller keeps the graph; it
/// is not changed.
typedef struct wg_native_capture {
    uint64_t size; ///< sizeof(wg_native_capture)
    void* graph;
    /// Memory of inputs, outputs and states, by their names in the spec. A state that is left out lies where the spec
    /// says.
    const wg_named_memory* regions;
    uint64_t region_count;
    /// Memory pools and workspaces, by names of your choice. The restored graph gets memory of its own for them.
    const wg_named_memory* scratch;
    uint64_t scratch_count;
    const wg_named_event* events; ///< events that the graph records or waits for; without any: the events of the spec
    uint64_t event_count;
    /// Semaphores that the graph signals or waits for; without any: the semaphores of the spec
    const wg_named_semaphore* semaphores;
    uint64_t semaphore_count;
    /// Values that the spec's scalars had at the capture. Only the values of semaphores can follow a scalar. Between
    /// the two captures, each scalar must change by an amount that no other scalar changes by: the amount shows which
    /// values follow which scalar.
    const wg_named_number* scalars;
    uint64_t scalar_count;
    /// Ranges of live allocations that had no user while the graph was captured: the blocks that a framework's
    /// allocator had free in its caches before and after the capture (not those of the graph's own pool), and the
    /// memory that it has allocated since. The graph follows no address in these ranges. Without them, a stale pointer
    /// in uninitialised padding looks like a pointer to undeclared memory, and the graph is refused.
    const wg_memory* free_blocks;
    uint64_t free_block_count;
} wg_native_capture;

/// Fills 128 KiB of the calling thread's stack below the caller with zeros, or does nothing if the stack has less room
/// left. A program that captures calls it in the capturing thread before each call of a library. Libraries pass kernel
/// parameters with bytes that they never wrote. There, bytes that earlier calls left on the stack may look like an
/// address; the graph is then refused. Takes 3 us. Thread-safe.
WARMGRAPH_API void wg_clear_stack(void);

/// One half of a pair whose graphs are adopted one by one, backward first. A process replays both halves or neither.
typedef struct wg_adopted_part {
    uint64_t high; ///< with `low` the recording id: 128 random bits, the same for both halves
    uint64_t low;
    wg_pair_half half;
} wg_adopted_part;

typedef struct wg_adoption {
    uint64_t size; ///< sizeof(wg_adoption)
    const wg_native_capture* first;
    /// The same work, captured with all regions and scratch elsewhere. The second capture proves which words are
    /// addresses. NULL: none
    const wg_native_capture* second;
    int32_t allow_unproven; ///< nonzero: words whose values lie in a region are taken for addresses without that proof
    const wg_named_number* values; ///< values that the spec's values had at the capture
    uint64_t value_count;
    /// A folder, instead of `second`, in which another process wrote its capture of the same call (wg_capture_write).
    /// It proves addresses only where that process's allocator put the memory elsewhere. A folder that other users may
    /// write is not read, because they could fake the proof. NULL: none
    const char* captures;
    /// Checks that the graph does what the function does. A function may enqueue other work while it is captured; then
    /// both captures and the entry agree with each other, but not with the function. So the caller runs the function
    /// from the same contents and compares. `answer` is called after each run of the original graph (is_last 0), while
    /// its results lie in the first capture's memory, and once more after the last run (is_last 1). It runs in the
    /// thread that adopts, after the graph was found to touch declared memory alone. A nonzero result refuses the
    /// graph: not_recordable, with the `text` that `answer` writes (at most `size` bytes with the ending 0). If it
    /// returns 0, the text of the last call says how the results agree ("bitwise"), which `warmgraph show` prints.
    /// NULL: nothing proves that the graph does what the function does.
    int32_t (*answer)(void* user, int32_t is_last, char* text, uint64_t size);
    void* answer_user;
    /// The half that this entry is. The cache keeps, evicts and removes it together with its other half. NULL: it is
    /// used alone
    const wg_adopted_part* part;
    /// How much larger some numbers of the caller's program were in the second capture than in the first; 0: none was. A
    /// word that moved by a multiple of this distance, as an integer or as a floating-point number, is made from such a
    /// number, and the graph is refused. A distance of a million or more hardly ever occurs by chance.
    int64_t number_distance;
} wg_adoption;

/// Makes an entry from a graph that another framework captured. Its guards are those of a call with the capture's
/// memory and the declared shapes. The function replays it; in the next process a function from wg_cache_load with this
/// spec does so. For another variant (a batch size), destroy the function and adopt under the same name again. The
/// device must be idle, and the first capture's memory must have valid contents; that memory is restored afterwards.
/// The spec needs a version. Only values of semaphores can follow scalars. If the folder cannot be written, the call
/// succeeds, and the report's reason says so. Errors: not_recordable, verification_failed, unsupported (OpenCL),
/// miss_forbidden (policy require_hit), invalid_argument, partly_launched (the memory could not be restored), not_found
/// (`adoption->captures` has no capture of this call that another process wrote and this version can read).
WARMGRAPH_API wg_status wg_cache_adopt(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                       const wg_adoption* adoption, wg_function** out);

/// Writes `adoption->first` into the folder `adoption->captures`, which it makes if needed, for an adoption in another
/// process that has no second capture of its own. The file has the graph, the addresses of its memory and digests of
/// its code, and no contents of memory. It runs nothing and publishes no entry. The newest 4 files of one call are
/// kept. Errors: not_recordable, unsupported, invalid_argument, io_failed, no_space, permission_denied.
WARMGRAPH_API wg_status wg_capture_write(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                                         const wg_adoption* adoption);

// --- restoring entries before the calls that need them ---------------------------------------------------------------

typedef struct wg_preload_progress {
    uint64_t size;   ///< set it to sizeof(wg_preload_progress) before wg_preload_progress_of
    uint64_t loaded; ///< restored entries
    uint64_t failed; ///< entries that are damaged, or that the driver refused
    uint64_t total;  ///< entries that are planned so far
    double elapsed_ms;
} wg_preload_progress;

/// When wg_cache_preload returns: once its thread has restored the most urgent entry, once all entries are restored, or
/// at once.
typedef int32_t wg_preload_wait_for;
enum wg_preload_wait_for_values { wg_preload_first = 0, wg_preload_all = 1, wg_preload_none = 2 };

/// Zero is the default of every member but `size`.
typedef struct wg_preload_options {
    uint64_t size; ///< sizeof(wg_preload_options)
    /// Returns how urgent an entry is; entries with a higher number are restored first. `inputs` are the recorded
    /// inputs. It is called in the thread of wg_cache_preload; with wg_preload_none, and after `first`, in a thread of
    /// the cache. NULL: the last used entries come first.
    int32_t (*urgency)(const char* function, const wg_tensor_decl* inputs, uint64_t count, void* user);
    /// Called after each entry, in the thread that restored it, with the entry's function. Its arguments are valid only
    /// during the call.
    void (*progress)(const wg_preload_progress* progress, const char* function, void* user);
    void* user; ///< passed to `urgency` and `progress`; must live until the preload is destroyed
    wg_preload_wait_for wait;
    uint32_t threads; ///< threads that restore at once, eight at most; 0: eight, or as many as the machine has
    /// The function whose last used entry is restored first, before other headers are read; the rest is planned after
    /// it, and `urgency` is called then. NULL, or a function without an entry that fits: the most urgent entry of all
    /// comes first [NULL]
    const char* first;
    /// Names of functions, which need not be wrapped yet: of each function, the last used entry that fits `device` is
    /// restored. A name that ends in '*' stands for all functions of the model whose names begin with the text before
    /// it. No names: all functions that exist now, with all entries whose facts hold here. PreloadOptions::functions
    /// (preload.hpp) has the limits on device memory [NULL]
    const char* const* functions;
    uint64_t function_count;
    const wg_device* device; ///< needed where functions are named [NULL]
} wg_preload_options;

/// Restores entries before the calls that need them. It restores the most urgent entry before it returns; threads of
/// the cache restore the rest, and pause while first calls run. A call whose entry is not restored yet restores it
/// itself. An entry that cannot be used counts as failed; the call succeeds. `options` may be NULL. `out` may be NULL:
/// the preload then goes on by itself, until wg_cache_close at the latest. wg_cache_close waits for the entries that
/// are being restored.
WARMGRAPH_API wg_status wg_cache_preload(wg_cache* cache, const wg_preload_options* options, wg_preload** out);
/// Blocks until all entries are restored and the device has everything that their first launches need. Must not be
/// called from the progress callback.
WARMGRAPH_API wg_status wg_preload_wait(wg_preload* preload);
/// Fills `out->size` bytes; members that this library does not know are set to zero.
WARMGRAPH_API wg_status wg_preload_progress_of(const wg_preload* preload, wg_preload_progress* out);
/// Stops after the entries that are being restored; restored entries stay. Must not be called from the progress
/// callback.
WARMGRAPH_API wg_status wg_preload_destroy(wg_preload* preload);

// --- inside the callback --------------------------------------------------------------------------------------------

/// Returns the stream of this run, which belongs to the recorder.
WARMGRAPH_API wg_stream* wg_recorder_stream(wg_recorder* recorder);
/// Makes a further stream, which starts after all work of wg_recorder_stream so far and belongs to the recorder. The
/// callback must join it before it returns (not_recordable otherwise).
WARMGRAPH_API wg_status wg_recorder_fork(wg_recorder* recorder, wg_stream** out);
/// Orders later work of wg_recorder_stream after the forked stream's work. invalid_argument: the stream is not a fork
/// of this recorder.
WARMGRAPH_API wg_status wg_recorder_join(wg_recorder* recorder, wg_stream* forked);
/// Gives the address of an input, output, state or constant in this run. invalid_argument: an unknown name.
WARMGRAPH_API wg_status wg_recorder_address(wg_recorder* recorder, const char* name, wg_address* out);
/// Gives `bytes` bytes of scratch memory that the entry owns. It holds zeros at first, and then what the call before
/// left there; results must not depend on that. The same name gives the same memory.
WARMGRAPH_API wg_status wg_recorder_alloc(wg_recorder* recorder, const char* name, uint64_t bytes, wg_address* out);
/// Writes a scalar or value of this run to `out`: the 4 or 8 bytes of a number of type `dtype`, which must be the
/// declared type.
WARMGRAPH_API wg_status wg_recorder_scalar(wg_recorder* recorder, const char* name, wg_dtype dtype, void* out);
/// Gives the sizes of an input or output in this run, in elements; they belong to the recorder. A state has one size:
/// its number of bytes.
WARMGRAPH_API wg_status wg_recorder_sizes(wg_recorder* recorder, const char* name, const int64_t** sizes,
                                          uint64_t* rank);
/// Gives the element type of an input or output in this run.
WARMGRAPH_API wg_status wg_recorder_dtype(wg_recorder* recorder, const char* name, wg_dtype* out);
/// Fails this run with the callback's own code and reason, for languages whose exceptions must not leave the callback.
/// It returns `status`; the callback returns nonzero then. While the function is captured, wg_not_recordable makes
/// `reason` the reason of the refusal.
WARMGRAPH_API wg_status wg_recorder_fail(wg_recorder* recorder, wg_status status, const char* reason);

#ifdef __cplusplus
} // extern "C"
#endif
