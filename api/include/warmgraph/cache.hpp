// The cache of one model in one process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "warmgraph/adoption.hpp"
#include "warmgraph/artifacts.hpp"
#include "warmgraph/base/artifact_kind.hpp"
#include "warmgraph/code_address.hpp"
#include "warmgraph/device.hpp"
#include "warmgraph/function.hpp"
#include "warmgraph/pair.hpp"
#include "warmgraph/preload.hpp"
#include "warmgraph/profile.hpp"
#include "warmgraph/recorder.hpp"
#include "warmgraph/spec.hpp"
#include "warmgraph/statistics.hpp"
#include "warmgraph/stored_entry.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// `on_demand`: when Cache::record_pending is called, on its thread. What the function read and wrote is copied
/// meanwhile.
enum class RecordWhen : std::uint8_t { in_call, on_demand };

enum class ShapeMode : std::uint8_t { fixed, dynamic }; ///< "static" / "dynamic" in the folder's name

/// Signatures of entries. A key is a line "id:kind:hex" (docs/trust.md), or lies in a file that nobody else may
/// write. Keys are never logged; what the cache keeps of them is overwritten when it goes.
struct SigningOptions {
    std::string sign_with{};      ///< what this process publishes is signed with it; else $WARMGRAPH_SIGN_KEY
    std::string sign_with_file{}; ///< else $WARMGRAPH_SIGN_KEY_FILE
    /// Beside sign_with; else $WARMGRAPH_ACCEPT_KEYS. Several while keys are rotated.
    std::vector<std::string> accept{};
    std::string accept_file{}; ///< one key on each line; else $WARMGRAPH_ACCEPT_KEYS_FILE
    /// Or $WARMGRAPH_REQUIRE_SIGNED=1. An entry without an accepted signature is not used, and its payload not read.
    /// A process without a key to sign with reads only.
    bool require = false;
};

/// How objects of one kind are compressed (zstd) as they are written.
struct CompressionOptions {
    int level = 0;                      ///< zstd's, 1 to 19; 0: stored as they are
    std::uint64_t above = 16ULL * 1024; ///< bytes; objects of at most this size are stored as they are
};

/// Why calls of a function run as they are, as their caller decided it.
struct Refusal {
    std::string word; ///< they are counted by it: letters, digits, '.', '_' and '-'; anything else counts as "other"
    std::string text; ///< what, expected against actual, the cure
    std::uint64_t calls = 1; ///< since the last time; 0: the library counted them itself
};

struct CacheOptions {
    std::string model{};                         ///< folder name: letters, digits, '.', '_', '-'
    std::map<std::string, std::string> config{}; ///< the model's configuration: part of its identity
    std::string cache_dir{}; ///< empty: $WARMGRAPH_CACHE_DIR, else .warmgraph_cache; made absolute at once
    ShapeMode shapes = ShapeMode::fixed;
    std::optional<int> world_size{}, global_rank{}, tp_rank{}, pp_rank{}; ///< else from the launcher's environment
    std::optional<Policy> policy{};                                       ///< else $WARMGRAPH_POLICY, else read_write
    bool accept_newer_driver = false; ///< driver and runtime: same or newer instead of equal
    /// Group-readable and -writable files. Else only this user may write the folder: one that others may write is refused.
    bool share_with_group = false;
    /// User ids whose files are read besides this user's and root's (who built the image with the cache in it), together
    /// with those in $WARMGRAPH_TRUSTED_OWNERS ("1000,1001"). A folder of theirs is read and not written.
    std::vector<std::uint32_t> trusted_owners{};
    /// What the folder may hold, in bytes and in files: all kinds, and quarantine. The least recently used go first,
    /// nothing that a living process uses. 0: $WARMGRAPH_CACHE_BYTES ("8G") and $WARMGRAPH_CACHE_FILES, else 8 GiB, or a
    /// tenth of the disk where that is less, and 100,000 files.
    std::uint64_t max_bytes = 0, max_files = 0;
    /// Bytes that some kinds may take of max_bytes: entries (with images and constants), compiled, tuned, profiles or
    /// torch. A kind that is not named: as $WARMGRAPH_CACHE_BYTES says ("8G,compiled=1G"), else as much as there is.
    std::map<ArtifactKind, std::uint64_t> max_bytes_by_kind{};
    /// How the cache compresses what it writes: entries (their payloads), images or constants. A kind that is not named:
    /// as $WARMGRAPH_COMPRESSION says ("payloads=9@64K,images=3"), else entries with level 3 and the others as they are.
    /// The cache reads all forms.
    std::map<ArtifactKind, CompressionOptions> compression{};
    std::uint32_t max_variants = 64; ///< of one function, on disk and in memory (besides those that were preloaded)
    std::uint32_t record_wait_ms = 60'000; ///< how long Cache::adopt waits for another process that adopts the same
    /// When a miss is recorded. The call's own result is never waiting for it: the function runs as it is first.
    RecordWhen record = RecordWhen::in_call;
    /// For probing a function's scalars while it is recorded, together; a tenth of its compile time where that is more.
    std::uint32_t probing_ms = 200;
    /// The first call that would use a restored graph runs the function instead, on the caller's memory, and the graph
    /// on copies; later calls use it where both did the same. A difference is a cache fault: the entry is removed and
    /// recorded anew. Functions without a callable (Cache::load, Cache::adopt) have nothing to compare with.
    /// WARMGRAPH_VERIFY in the environment says it from outside: "never", "first", or "1/N" (each Nth call of a loaded
    /// graph as well).
    bool verify_on_load = false;
    SigningOptions signing{};
    /// Bundles (.wgb) that are read where they lie, below the folder and in this order: what the folder does not have is
    /// looked for there. Nothing is unpacked or written. One that cannot be used is a cache fault, said in the log.
    /// Where the folder cannot be used they serve alone, and nothing is recorded.
    std::vector<std::string> bundles{};
    /// Is counted with which sizes functions are called? Else $WARMGRAPH_PROFILE ("on" or "off"), else yes. Without it
    /// BucketRule::learnt is `fixed`, and nothing of a profile is read.
    std::optional<bool> profile{};
    /// May Cache::pause_recording be called by itself, after 256 calls in a row that were replayed, the last miss being a minute
    /// ago?
    bool pauses_recording = true;
    /// The kinds that this cache uses, of entries, compiled, tuned and profiles. The cache neither looks up, reads, writes
    /// nor counts another kind: functions run as they are, programs are compiled, tuners give the default. nullopt:
    /// $WARMGRAPH_KINDS ("entries,compiled", or all but some: "-tuned"), else all.
    std::optional<std::set<ArtifactKind>> kinds{};
};

/// The cache of one model in one process.
class WARMGRAPH_API Cache {
public:
    /// Wrong options (a bad name, a bad rank) throw; a folder that cannot be used does not: caching is then off and
    /// disabled_reason() and one warning in the log say why.
    explicit Cache(const CacheOptions& options);
    Cache(Cache&&) noexcept;
    Cache& operator=(Cache&&) noexcept;
    ~Cache();

    /// Wraps a callable. `name` is a folder name, unique within the cache.
    template <class F>
    [[nodiscard]] WARMGRAPH_LOCAL Function wrap(std::string name, const Device& device, Spec spec, F&& callable)
    {
        const void* const code = detail::code_address<std::decay_t<F>>(callable);
        return wrap_code(std::move(name), device, std::move(spec), Callable(std::forward<F>(callable)), code);
    }
    /// The same with the address of the code whose binary identifies it.
    [[nodiscard]] Function wrap_code(std::string name, const Device& device, Spec spec, Callable callable,
                                     const void* code);

    /// Wraps forward and backward of a training step, which are recorded together and used together
    /// (pair.hpp). `name` as wrap's; the halves are called NAME.forward and NAME.backward in reports and logs.
    /// invalid_argument: a name that is taken, a tensor that is saved twice or declared besides, saved memory without
    /// bytes, halves with other shapes, versions, policies or configurations. unsupported: events, semaphores or buckets.
    template <class F, class B>
    [[nodiscard]] WARMGRAPH_LOCAL Pair wrap_pair(std::string name, const Device& device, PairSpec spec, F&& forward,
                                                 B&& backward)
    {
        const void* const forward_code = detail::code_address<std::decay_t<F>>(forward);
        const void* const backward_code = detail::code_address<std::decay_t<B>>(backward);
        return wrap_pair_code(std::move(name), device, std::move(spec), Callable(std::forward<F>(forward)),
                              Callable(std::forward<B>(backward)), forward_code, backward_code);
    }
    /// The same with the addresses of the code whose binaries identify it.
    [[nodiscard]] Pair wrap_pair_code(std::string name, const Device& device, PairSpec spec, Callable forward,
                                      Callable backward, const void* forward_code, const void* backward_code);

    /// A function without a callable: it can only be replayed. Its calls that miss throw miss_forbidden, saying why;
    /// those whose entry cannot be used throw what stood in the way. Spec::version must be the one that the function
    /// was wrapped or adopted with (invalid_argument when empty): there is no code that could tell. Policy refresh acts
    /// as read_only.
    [[nodiscard]] Function load(std::string name, const Device& device, Spec spec);

    /// For a process that knows a function's inputs and not what it gives: Spec::metadata of the entry under these
    /// facts whose inputs and states look as declared, the most recently used of several. Reads headers alone; judges
    /// neither outputs nor where memory lies, so a call may still miss. nullopt: none, or the policy is off or refresh.
    [[nodiscard]] std::optional<std::string> find(const std::string& name, const Device& device, Spec spec) const;

    /// For a process that knows nothing of a function but its name: its entries on disk, most recently used first. Each
    /// can be loaded by its `spec` once the states have addresses. What only the recording process can tell (code,
    /// versions of its libraries, its settings) is taken from the entry, so it is not judged: devices, drivers, device
    /// code, shapes, alignment and overlaps are, at every call. Reads headers alone; those that cannot be read are left
    /// out with a line in the log. Empty under policies off and refresh. Throws where the folder cannot be read.
    [[nodiscard]] std::vector<StoredEntry> entries(const std::string& name, const Device& device) const;

    /// A graph that somebody else captured becomes an entry, under the guards that a call with the capture's memory and
    /// the declared shapes has; the function that is returned replays it, as one of load() with this Spec does in the
    /// next process. For another variant (a batch size) destroy the function and adopt under the same name again.
    /// REQUIRES: the device is idle, and the first capture's memory has valid contents; it is put back as it was.
    /// Spec::version is needed; scalars are possible for the values of semaphores alone (`values` for all else). What
    /// cannot be adopted throws: not_recordable, verification_failed, unsupported (OpenCL), miss_forbidden (policy
    /// require_hit), invalid_argument, partly_launched (the memory could not be put back), not_found (Adoption::captures
    /// has none of this call that another process wrote). A folder that cannot be written does not: report().reason says
    /// it.
    [[nodiscard]] Function adopt(std::string name, const Device& device, Spec spec, const Adoption& adoption);

    /// Writes adoption.first into the folder adoption.captures, for an adoption in another process that has no second
    /// capture of its own: the graph, where its memory was, digests of its code. Runs nothing, publishes nothing, and
    /// reads no contents. At most 4 files of one call are kept. Returns the file's name. Throws as adopt() does for a
    /// graph that cannot be read, and where the folder cannot be written.
    std::string write_capture(std::string name, const Device& device, Spec spec, const Adoption& adoption);

    /// Restores entries on disk (this model and rank) before the calls that need them: of all functions that exist now, or of
    /// functions by name, as early as that is known. The most urgent one is restored before it returns, the rest by threads of
    /// the cache, which rest while first calls are under way. A call whose entry was not restored yet restores it itself, at
    /// once, and waits for one that is under way. Decides nothing and launches nothing. Statistics count a hit when such an entry
    /// is first used. Never throws for an entry that cannot be used: it counts as failed, and where its function is wrapped as a
    /// cache fault. Nothing under policies off and refresh. For a table of functions that is called at once, call it behind the
    /// first call: on CUDA the others are then restored on the memory that this one has, and not beside it. invalid_argument:
    /// a name that no function can have, names without a device, a call inside of a wrapped callable.
    [[nodiscard]] Preload preload(const PreloadOptions& options = {});

    /// Records what calls of this cache's functions left to be recorded (CacheOptions::record, functions that work
    /// together with the outside), as far as their work is done, and returns how many were recorded. What cannot be
    /// recorded is counted and logged. Read-only states must still be where they were at the call.
    std::size_t record_pending();

    /// Records before demand what the shape profile says of this function (of all processes): buckets are learnt where they
    /// are to be, and are in use from then on; then the function is called with each shape, the most frequent first, at most
    /// `most` (0: CacheOptions::max_variants). So it runs, and states that it writes change: do it before serving, or when
    /// idle. Returns when all is recorded. Nothing where nothing can be recorded (why_not). invalid_argument: a function of
    /// another cache or without a callable, arguments of other sizes than asked for. What `make` or the callable throws
    /// passes through.
    ProfileRecording record_profile(Function& function, const MakeArguments& make, std::size_t most = 0);

    /// Finds and keeps the best configurations of kernels in this cache's folder, for all its models and ranks
    /// (tuning.hpp). May outlive the cache. invalid_argument: options that make no sense.
    [[nodiscard]] Tuner tuner(const Device& device, const TuningOptions& options = {});
    /// What this process made or hit through this cache, as a bundle's bytes, out of its bundles too: entries with what they
    /// need, compiled programs, tuned configurations, and the shape profiles of functions that it counted. nullopt where
    /// there is nothing. Signed where the cache has a key. Throws where it cannot be made.
    [[nodiscard]] std::optional<CacheArtifacts> save_cache_artifacts(const ArtifactOptions& options = {}) const;
    /// The same of several caches, each artifact once. REQUIRES: none is null. Signed with the key of the first that has one.
    [[nodiscard]] static std::optional<CacheArtifacts> save_cache_artifacts_of(std::span<const Cache* const> caches,
                                                                               const ArtifactOptions& options = {});
    /// Puts what fits this device, its driver and the environment into the folder. What does not is skipped and named, and
    /// so is what is damaged or not trusted; nothing in the folder is replaced, profiles are joined. Throws for bytes that
    /// are no bundle (corrupt, stale, untrusted), and where the folder cannot be written.
    CacheInfo load_cache_artifacts(const Device& device, std::span<const std::byte> bytes);
    /// What PyTorch compiled in a process (the bytes of torch.compiler.save_cache_artifacts), for another one: found by
    /// `facts`, names and values that a caller chooses. They hold pickles, and whoever made them runs code where they are
    /// used: they are stored signed or not at all. Replaces what is there. Throws untrusted (there is no key to sign with),
    /// invalid_argument (facts or bytes that cannot be stored), unsupported (over 1 GiB), and where nothing can be written.
    void put_torch_artifacts(const std::map<std::string, std::string>& facts, std::span<const std::byte> bytes);
    /// Those that an accepted key signed, of the folder or its bundles; nullopt: there are none. Throws untrusted (another
    /// key signed them, or none is accepted), corrupt or stale.
    [[nodiscard]] std::optional<std::vector<std::byte>> torch_artifacts(
        const std::map<std::string, std::string>& facts) const;
    /// What of a bundle's file fits this device, from its header and index alone; tuned configurations are read. Throws for
    /// a file that cannot be read or is none.
    [[nodiscard]] BundleCheck check_bundle(const std::string& file, const Device& device) const;

    /// Ends to keep device code, for the whole process, until the next miss (or Device::prepare_recording) begins it anew.
    /// What keeps it (CUPTI on CUDA) costs each launch of a graph 0.25 to 0.4 us a node, also of others' graphs
    /// (docs/measurements.md). Code that is loaded meanwhile cannot be recorded by this process, but for that of CUDA's and
    /// PyTorch's own libraries that was known before; a recording that is refused for it has the next process keep code to
    /// its end. Empty: paused; else why not (a function that was not called yet, code that keeps state, a profiler, a
    /// recording). Thread-safe.
    std::string pause_recording();
    /// The same of several caches, whose functions are all asked. REQUIRES: none is null.
    [[nodiscard]] static std::string pause_recording_of(std::span<const Cache* const> caches);

    [[nodiscard]] Statistics statistics() const;
    /// "warmgraph: 2 hits, 0 misses, 1 image, 3.9 ms to load, 1.96 s saved"
    [[nodiscard]] std::string summary() const;
    [[nodiscard]] std::string directory() const;       ///< absolute
    [[nodiscard]] std::string disabled_reason() const; ///< empty when caching works
    /// Entries of this model's function as text (as `warmgraph show`); one block for each variant. Counts as a use of
    /// each; what is damaged is moved to quarantine.
    [[nodiscard]] std::string readable(std::string_view function) const;
    /// Counts calls that ran as they are because their caller did not have them recorded or replayed, and keeps the reason
    /// beside the function's misses: `warmgraph explain`, `ls` and `stats` show it. A few milliseconds at most, so call it for
    /// the first call of a kind and then now and then. What cannot be written is no failure. invalid_argument for a name that
    /// no function can have, or no text. Thread-safe.
    void note_refusal(const std::string& name, const Device& device, const Refusal& refusal);
    /// Removes this rank's entries of one function, or of all, with the images that nothing names then; returns how many
    /// entries.
    std::uint64_t clear(std::string_view function = {});
    /// The same of one kind: "entries" (as clear()), or of the whole folder "compiled", "tuned", "profiles" or "torch",
    /// which no model owns; "all": each of them. Returns how many files, not counting the images of entries.
    std::uint64_t clear_kind(std::string_view kind);

    struct Impl; ///< opaque

private:
    friend struct CacheAccess;
    [[nodiscard]] Function make_function(std::string name, const Device& device, Spec spec, Callable callable,
                                         const void* code);
    explicit Cache(std::shared_ptr<Impl> impl) noexcept;
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
