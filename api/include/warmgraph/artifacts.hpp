// Artifacts that one process made or used, as bytes for another process; and the check whether a bundle fits this
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace warmgraph {

/// The artifacts of one kind: "entries", "images", "constants", "compiled", "tuned", "profiles", "torch"
/// (docs/kinds.md).
struct ArtifactAmount {
    std::string kind;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0; ///< size of the artifacts in a cache folder
    /// The time that it took to make them, in seconds. For entries: the first calls without the cache, compiling
    /// included. For compiled programs: compiling. For tuned configurations: tuning. 0 for other kinds.
    double seconds = 0;
    std::vector<std::string>
        names{}; ///< "entries/<model_info>/<rank>/<function>/<digest>", "compiled/<digest>.compiled"
};

/// An artifact that was not moved, and the reason.
struct SkippedArtifact {
    std::string name;
    std::string why;
};

struct CacheInfo {
    std::vector<ArtifactAmount> kinds{}; ///< the artifacts that were saved or loaded; empty where there were none
    /// Artifacts that were not loaded because the folder has them. The artifacts in the folder stay as they are; shape
    /// profiles are merged.
    std::vector<SkippedArtifact> there{};
    std::vector<SkippedArtifact> skipped{}; ///< artifacts that do not fit here, are damaged, or are not trusted
};

/// Further artifacts that Cache::save_cache_artifacts saves on request.
struct ArtifactOptions {
    /// Adds the artifacts of the kind "torch" that this process put or got (Cache::put_artifact). They can run code
    /// where they are used, so they go only into a signed bundle: invalid_argument where the cache has no key to sign
    /// with.
    bool torch = false;
};

/// The bytes of a bundle (docs/format.md, "The bundle"). A file with these bytes is a bundle.
struct CacheArtifacts {
    std::vector<std::byte> bytes{};
    CacheInfo info{};
};

enum class FitVerdict : std::uint8_t {
    fits,
    fits_after, ///< fits with CacheOptions::accept_newer_driver; a tuned configuration: with TuningDriver::any
    does_not,
};

/// A member of a bundle and the verdict on it. An entry is judged by its facts about device, driver and environment; a
/// compiled program by its target and compiler; a tuned configuration by its device and driver. A shape profile fits
/// everywhere.
struct BundledEntry {
    std::string name;
    FitVerdict verdict = FitVerdict::fits;
    /// The fact that differs ("device.architecture"); if the member cannot be read: the error's code
    std::string field{};
    std::string detail{}; ///< how it differs ("device.architecture sm_80 recorded, sm_90 now"), and the cure
};

struct BundleCheck {
    /// 12 digits for the environment that all entries share, and 12 digits for the environment here. Machines that are
    /// alike have the same digits. `environment_key` is "" where the entries share none, or were recorded on several
    /// machines.
    std::string environment_key{}, environment_here{};
    std::string environment{};             ///< the facts that all entries share: "backend opencl, driver.version 3.1"
    FitVerdict verdict = FitVerdict::fits; ///< on the environment; if the environment does not fit, no entry fits
    std::string detail{};
    std::vector<BundledEntry> entries{};
};

} // namespace warmgraph
