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
#include "warmgraph/detail/code_address.hpp"
#include "warmgraph/device.hpp"
#include "warmgraph/function.hpp"
#include "warmgraph/pair.hpp"
#include "warmgraph/preload.hpp"
#include "warmgraph/profile.hpp"
#include "warmgraph/recorder.hpp"
#include "warmgraph/spec.hpp"
#include "warmgraph/statistics.hpp"
#include "warmgraph/stored_entry.hpp"
#include "warmgraph/tier.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// When a miss is recorded.
enum class RecordWhen : std::uint8_t {
    in_call,   ///< in the call that misses
    on_demand, ///< in Cache::record_pending; until then, the cache keeps copies of the call's memory
};

/// Whether the folder's name says that the model's shapes are "static" or "dynamic".
enum class ShapeMode : std::uint8_t { fixed, dynamic };

/// Signatures of entries. A key is a line "id:kind:hex" (docs/trust.md). A file of keys must not be writable by others.
/// Keys are never logged. The cache overwrites its copies of them when it is destroyed.
struct SigningOptions {
    std::string sign_with{};      ///< the key that signs the artifacts of this process; else $WARMGRAPH_SIGN_KEY
    std::string sign_with_file{}; ///< a file with that key; else $WARMGRAPH_SIGN_KEY_FILE
    /// Keys that are accepted besides sign_with; else $WARMGRAPH_ACCEPT_KEYS. Several are useful while keys are
    /// rotated.
    std::vector<std::string> accept{};
    std::string accept_file{}; ///< a file with one accepted key on each line; else $WARMGRAPH_ACCEPT_KEYS_FILE
    /// An entry without an accepted signature is not used, and its payload is not read. A process without a key to sign
    /// with only reads. $WARMGRAPH_REQUIRE_SIGNED=1 sets it too.
    bool require = false;
};

/// How objects of one kind are compressed (zstd) when they are written.
struct CompressionOptions {
    int level = 0;                      ///< zstd's level, 1 to 19; 0: not compressed
    std::uint64_t above = 16ULL * 1024; ///< bytes; objects up to this size are not compressed
};

/// A caller's reason for running calls of a function as they are, without the cache.
struct Refusal {
    /// A short name of the reason, under which the calls are counted: at most 48 letters, digits, '.', '_' and '-'. Any
    /// other text counts as "other".
    std::string word;
    std::string text;        ///< the problem (what was expected, and what was found), and the cure
    std::uint64_t calls = 1; ///< number of calls since the last report; 0: they are in the statistics already
};

struct CacheOptions {
    std::string model{};                         ///< the model's folder name: letters, digits, '.', '_', '-'
    std::map<std::string, std::string> config{}; ///< the model's configuration, which is part of its identity
    std::string cache_dir{}; ///< empty: $WARMGRAPH_CACHE_DIR, else .warmgraph_cache; made absolute at once
    ShapeMode shapes = ShapeMode::fixed;
    /// nullopt: taken from the launcher's environment.
    std::optional<int> world_size{}, global_rank{}, tp_rank{}, pp_rank{};
    std::optional<Policy> policy{};   ///< nullopt: $WARMGRAPH_POLICY, else read_write
    bool accept_newer_driver = false; ///< driver and runtime may be newer than at the recording, instead of equal
    /// The group may read and write the files. Otherwise only this user may write the folder; a folder that others may
    /// write is refused.
    bool share_with_group = false;
    /// User ids whose files are read besides this user's and root's, and besides those in $WARMGRAPH_TRUSTED_OWNERS
    /// ("1000,1001"): for example the user that built a container image with the cache in it. A folder of such a user
    /// is read and not written.
    std::vector<std::uint32_t> trusted_owners{};
    /// The most bytes and files that the folder may hold, all kinds and quarantine together. The least recently used
    /// files go first; files that a living process uses stay. 0: $WARMGRAPH_CACHE_BYTES ("8G") and
    /// $WARMGRAPH_CACHE_FILES, else 8 GiB (or a tenth of the disk where that is less) and 100,000 files.
    std::uint64_t max_bytes = 0, max_files = 0;
    /// Limits for single kinds within max_bytes, in bytes: for entries (with images and constants), compiled, tuned,
    /// profiles or torch. A kind that is not listed takes its limit from $WARMGRAPH_CACHE_BYTES ("8G,compiled=1G"),
    /// else it has no limit of its own.
    std::map<ArtifactKind, std::uint64_t> max_bytes_by_kind{};
    /// How the cache compresses the objects that it writes, by kind: entries (their payloads), images or constants. A
    /// kind that is not listed takes its settings from $WARMGRAPH_COMPRESSION ("payloads=9@64K,images=3"); else entries
    /// have level 3, and the others are not compressed. The cache reads objects of every level.
    std::map<ArtifactKind, CompressionOptions> compression{};
    std::uint32_t max_variants = 64; ///< variants of one function, on disk and in memory; preloaded ones do not count
    /// How long Cache::adopt waits for another process that adopts the same graph
    std::uint32_t record_wait_ms = 60'000;
    /// When a miss is recorded. The call's result does not wait for the recording: the function runs as it is first.
    RecordWhen record = RecordWhen::in_call;
    /// Time for probing all scalars of a function while it is recorded; a tenth of its compile time where that is more.
    std::uint32_t probing_ms = 200;
    /// The first call that would use a restored graph runs the function on the caller's memory instead, and the graph
    /// on copies. Later calls use the graph if both gave the same results. A difference is a cache fault: the entry is
    /// removed and recorded again. Functions without a callable (Cache::load, Cache::adopt) cannot be compared. The
    /// variable WARMGRAPH_VERIFY sets this option from outside: "never", "first", or "1/N" (also each Nth call of a
    /// loaded graph).
    bool verify_on_load = false;
    SigningOptions signing{};
    /// Bundles (.wgb) that are read where they lie: artifacts that the folder does not have are looked for in them, in
    /// this order. They are neither unpacked nor written. A bundle that cannot be used is a cache fault, which the log
    /// reports. If the folder cannot be used, the bundles serve alone, and nothing is recorded.
    std::vector<std::string> bundles{};
    /// Stores that several machines share, as URLs with attributes: "redis://cache:6379/0?namespace=v7", "s3://models/a",
    /// "https://host/prefix?read-only", "file:///shared/folder" (docs/remote.md). What the folder and the bundles do not
    /// have is looked for in them, in this order, and kept in the folder. What this process makes is sent to those that
    /// are not read-only, behind its calls. Only signed objects are used, unless a URL says allow-unsigned. nullopt: the
    /// URLs in $WARMGRAPH_REMOTE. invalid_argument: a wrong URL. A store that fails costs time only.
    std::optional<std::vector<std::string>> remote{};
    /// How long the end of the cache waits for what is not sent yet; a later process sends the rest.
    std::uint32_t remote_deadline_ms = 2'000;
    /// Stores of the program's own (tier.hpp), which are asked after `remote`, in this order. invalid_argument: a label
    /// that is no name or is taken, no tier.
    std::vector<TierOptions> tiers{};
    /// A salt over all kinds: a cache never uses what caches with other tags made, e.g. by two compilers that call
    /// themselves the same. At most 256 printable ASCII characters. Empty: $WARMGRAPH_CACHE_KEY_TAG, else no tag. The
    /// name "cache_key_tag" is reserved in `config`.
    std::string cache_key_tag{};
    /// Whether the cache counts the sizes that functions are called with. nullopt: $WARMGRAPH_PROFILE ("on" or "off"),
    /// else yes. Without the counts, BucketRule::learnt acts as `fixed`, and no profile is read.
    std::optional<bool> profile{};
    /// Whether the cache stops keeping device code when nothing is recorded any more: after 256 replayed calls in a
    /// row, and a minute after the last miss at the earliest. The next miss, or Device::prepare_recording, starts it
    /// again. Keeping device code (CUPTI on CUDA) costs each graph launch of the process 0.25 to 0.4 us a node
    /// (docs/cuda.md).
    bool pauses_recording = true;
    /// The kinds that this cache uses: some of entries, compiled, tuned and profiles. The cache does not look up, read,
    /// write or count the other kinds: without entries, functions run as they are; without compiled, programs are
    /// compiled; without tuned, tuners give the default. nullopt: the kinds in $WARMGRAPH_KINDS ("entries,compiled";
    /// "-tuned" means all but tuned), else all kinds.
    std::optional<std::set<ArtifactKind>> kinds{};
};

/// The cache of one model in one process. Move-only. Thread-safe. Its functions and pairs may outlive it.
class WARMGRAPH_API Cache {
public:
    /// Opens the folder. invalid_argument: wrong options (a bad name, a bad rank). If the folder cannot be used,
    /// caching is off: disabled_reason() and one warning in the log say why.
    explicit Cache(const CacheOptions& options);
    Cache(Cache&&) noexcept;
    Cache& operator=(Cache&&) noexcept;
    ~Cache();

    /// Makes a function from a callable, which enqueues the work through a Recorder. `name` is a folder name, unique
    /// within the cache. invalid_argument: a bad name, a name that is taken, a Spec that contradicts itself.
    template <class F>
    [[nodiscard]] WARMGRAPH_LOCAL Function wrap(std::string name, const Device& device, Spec spec, F&& callable)
    {
        const void* const code = detail::code_address<std::decay_t<F>>(callable);
        return wrap_code(std::move(name), device, std::move(spec), Callable(std::forward<F>(callable)), code);
    }
    /// Makes a pair from forward and backward of a training step, which are recorded together and used together
    /// (pair.hpp). `name` is a folder name, unique within the cache; reports and logs call the halves NAME.forward and
    /// NAME.backward. invalid_argument: a name that is taken, a tensor that is saved twice or also declared, a saved
    /// tensor without bytes, or halves whose shapes, versions, policies or configurations differ. unsupported: events,
    /// semaphores or buckets.
    template <class F, class B>
    [[nodiscard]] WARMGRAPH_LOCAL Pair wrap_pair(std::string name, const Device& device, PairSpec spec, F&& forward,
                                                 B&& backward)
    {
        const void* const forward_code = detail::code_address<std::decay_t<F>>(forward);
        const void* const backward_code = detail::code_address<std::decay_t<B>>(backward);
        return wrap_pair_code(std::move(name), device, std::move(spec), Callable(std::forward<F>(forward)),
                              Callable(std::forward<B>(backward)), forward_code, backward_code);
    }
    /// Makes a function without a callable, which can only be replayed. A call that misses throws miss_forbidden with
    /// the reason; a call whose entry cannot be used throws the error that says why. Spec::version must be the version
    /// that the function was wrapped or adopted with, because no code is there to identify (invalid_argument: it is
    /// empty). The policy refresh acts as read_only.
    [[nodiscard]] Function load(std::string name, const Device& device, Spec spec);

    /// Lists the stored entries of a function, the last used first, for a process that knows only its name, or its name
    /// and its inputs (EntryQuery::spec). Cache::load takes the `spec` of an entry once its states have addresses. The
    /// device, its driver, shapes, alignment and overlaps are judged at each call; without EntryQuery::spec, facts that
    /// only the recording process knows (code, versions of its libraries, its settings) are taken from the entry. Reads
    /// headers alone, one after another, and no more than it needs. An entry whose header cannot be read is left out.
    /// Empty under the policies off and refresh. invalid_argument: a name that no function can have, a Spec without a
    /// version. Throws where the folder cannot be read.
    [[nodiscard]] std::vector<StoredEntry> entries(const std::string& name, const Device& device,
                                                   EntryQuery query = {}) const;

    /// Makes an entry from a graph that another framework captured. Its guards are those of a call with the capture's
    /// memory and the declared shapes. The returned function replays it; in the next process a function from load()
    /// with this Spec does so. For another variant (a batch size), destroy the function and adopt under the same name
    /// again. REQUIRES: the device is idle, and the first capture's memory has valid contents. That memory is restored
    /// afterwards. Spec::version is needed. In the adopted graph a scalar can only set the value of a semaphore
    /// (Spec::semaphores); other numbers that the graph depends on must be in Spec::values. If the folder cannot be
    /// written, report().reason says so, and nothing is thrown. Throws not_recordable, verification_failed, unsupported
    /// (OpenCL), miss_forbidden (policy require_hit), invalid_argument, partly_launched (the memory could not be
    /// restored), not_found (Adoption::captures has no capture of this call from another process).
    [[nodiscard]] Function adopt(std::string name, const Device& device, Spec spec, const Adoption& adoption);

    /// Writes adoption.first into the folder adoption.captures, for an adoption in another process that has no second
    /// capture of its own. The file has the graph, the addresses of its memory and digests of its code, and no contents
    /// of memory. It runs nothing and publishes no entry. At most 4 files of one call are kept. Returns the file's
    /// name. Throws like adopt() for a graph that cannot be read, and where the folder cannot be written.
    std::string write_capture(std::string name, const Device& device, Spec spec, const Adoption& adoption);

    /// Restores stored entries of this model and rank before the calls that need them: of all functions that exist now,
    /// or of functions by name, which need not be wrapped yet. It restores the most urgent entry before it returns;
    /// threads of the cache restore the rest, and pause while first calls run. A call whose entry is not restored yet
    /// restores it itself, or waits for the thread that is restoring it. Preloading launches nothing and does not
    /// decide which entry a call uses. Statistics count a hit at the first use of such an entry. An entry that cannot
    /// be used counts as failed, and as a cache fault if its function is wrapped; nothing is thrown. Under the policies
    /// off and refresh it does nothing. If a program calls many functions right after its start (a table with a graph
    /// for each batch size), preload after the first call: on CUDA the graphs of the other functions then run in the
    /// scratch memory that the first call allocated. invalid_argument: a name that no function can have, names without
    /// a device, or a call inside a wrapped callable.
    [[nodiscard]] Preload preload(const PreloadOptions& options = {});

    /// Records the calls of this cache's functions that wait to be recorded (RecordWhen::on_demand, and functions with
    /// events or semaphores), if their work is done. Returns how many were recorded. A call that cannot be recorded is
    /// counted and logged. Read-only states must still lie where they lay at the call.
    std::size_t record_pending();

    /// Records ahead the shapes that the shape profile of all processes has for this function. First it learns the
    /// buckets that have the rule BucketRule::learnt; they are used from then on. Then it calls the function with each
    /// shape, the most frequent first, at most `most` (0: CacheOptions::max_variants). The function runs, so states
    /// that it writes change: call this before serving, or when idle. Returns when all shapes are recorded. If nothing
    /// can be recorded, it does nothing, and ProfileRecording::why_not says why. invalid_argument: a function of
    /// another cache or without a callable, or arguments of other sizes than asked for. Exceptions of `make` and of the
    /// callable pass through.
    ProfileRecording record_profile(Function& function, const MakeArguments& make, std::size_t most = 0);

    /// Makes a tuner, which finds the best configurations of kernels and keeps them in this cache's folder, for all
    /// models and ranks (tuning.hpp). It may outlive the cache. invalid_argument: options that make no sense.
    [[nodiscard]] Tuner tuner(const Device& device, const TuningOptions& options = {});
    /// Saves the artifacts that this process made or used through this cache, from the folder and its bundles, as the
    /// bytes of a bundle: entries with their images and constants, compiled programs, tuned configurations, and shape
    /// profiles. They are signed if the cache has a key. nullopt: there are no artifacts. Throws where the bundle
    /// cannot be made.
    [[nodiscard]] std::optional<CacheArtifacts> save_cache_artifacts(const ArtifactOptions& options = {}) const;
    /// Saves the artifacts of several caches, each artifact once. They are signed with the key of the first cache that
    /// has one. REQUIRES: no pointer is null.
    [[nodiscard]] static std::optional<CacheArtifacts> save_cache_artifacts(std::span<const Cache* const> caches,
                                                                            const ArtifactOptions& options = {});
    /// Puts the artifacts of a bundle that fit this device, its driver and the environment into the folder. CacheInfo
    /// names the artifacts that were skipped: they do not fit, are damaged, or are not trusted. Nothing in the folder
    /// is replaced; shape profiles are merged. corrupt, stale, untrusted: the bytes are not a bundle that can be used.
    /// Throws where the folder cannot be written.
    CacheInfo load_cache_artifacts(const Device& device, std::span<const std::byte> bytes);
    /// Keeps bytes that the program made, for later processes, which find them by the same kind and facts. `kind`:
    /// "torch", for the bytes of torch.compiler.save_cache_artifacts. `facts`: names and values that the caller
    /// chooses. The bytes may run code where they are used (pickles do), so the cache signs them. They replace the
    /// bytes that were kept under the same kind and facts. invalid_argument: another kind, or facts or bytes that
    /// cannot be stored. untrusted: the cache has no key to sign with. unsupported: more than 1 GiB. Throws where the
    /// folder cannot be written.
    void put_artifact(std::string_view kind, const std::map<std::string, std::string>& facts,
                      std::span<const std::byte> bytes);
    /// Returns the bytes that put_artifact() kept under this kind and these facts, from the folder or its bundles.
    /// nullopt: there are no such bytes. invalid_argument: another kind. untrusted: no accepted key signed them.
    /// corrupt, stale: the file cannot be used.
    [[nodiscard]] std::optional<std::vector<std::byte>> artifact(std::string_view kind,
                                                                 const std::map<std::string, std::string>& facts) const;
    /// Judges which artifacts of a bundle's file fit this device. It reads the file's header and index, and tuned
    /// configurations. Throws for a file that cannot be read or is not a bundle.
    [[nodiscard]] BundleCheck check_bundle(const std::string& file, const Device& device) const;

    [[nodiscard]] Statistics statistics() const;
    /// Returns one line: "warmgraph: 2 hits, 0 misses, 1 image, 3.9 ms to load, 1.96 s saved".
    [[nodiscard]] std::string summary() const;
    [[nodiscard]] std::string directory() const;       ///< the folder, absolute
    [[nodiscard]] std::string disabled_reason() const; ///< why caching is off; empty when it works
    /// Returns the entries of this model's function as text, one block for each variant, as `warmgraph show` prints
    /// them. This counts as a use of each entry. Damaged entries are moved to quarantine. Throws where the folder
    /// cannot be read.
    [[nodiscard]] std::string readable(std::string_view function) const;
    /// Counts calls that ran as they are because their caller did not let the cache record or replay them, and keeps
    /// the reason beside the function's misses: `warmgraph explain`, `ls` and `stats` show it. Takes a few milliseconds
    /// at most, so report the first refused call for a reason, and later calls only now and then. If the reason cannot
    /// be written, nothing is thrown. invalid_argument: a name that no function can have, or no text. Thread-safe.
    void note_refusal(const std::string& name, const Device& device, const Refusal& refusal);
    /// Removes stored artifacts and returns the number of removed files, not counting the images of entries. `kind`
    /// "entries": this rank's entries of `function`, or of all functions of this model where it is empty, with the
    /// images that no entry names any more. "compiled", "tuned", "profiles" or "torch": all files of that kind in the
    /// folder, since no model owns them. "all": each of these kinds. invalid_argument: another kind, or `function` with
    /// a kind that belongs to no function. Throws where the folder cannot be changed.
    std::uint64_t clear(std::string_view function = {}, std::string_view kind = "entries");

    struct Impl; ///< opaque

private:
    friend struct CacheAccess;
    /// `code`: an address in the binary that identifies the callable's code.
    [[nodiscard]] Function wrap_code(std::string name, const Device& device, Spec spec, Callable callable,
                                     const void* code);
    [[nodiscard]] Pair wrap_pair_code(std::string name, const Device& device, PairSpec spec, Callable forward,
                                      Callable backward, const void* forward_code, const void* backward_code);
    [[nodiscard]] Function make_function(std::string name, const Device& device, Spec spec, Callable callable,
                                         const void* code);
    explicit Cache(std::shared_ptr<Impl> impl) noexcept;
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
