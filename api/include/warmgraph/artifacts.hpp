// What a process made or used, as bytes that another one starts with; and what a bundle would be worth here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace warmgraph {

/// Artifacts of one kind: "entries", "images", "constants", "compiled", "tuned", "profiles", "torch" (docs/kinds.md).
struct ArtifactAmount {
    std::string kind;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0; ///< as they lie in a cache folder
    /// The time that it took to make them: for entries what first calls without the cache took, compiling included; of compiled
    /// programs compiling; of tuned configurations tuning. 0 of others.
    double seconds = 0;
    std::vector<std::string>
        names{}; ///< "entries/<model_info>/<rank>/<function>/<digest>", "compiled/<digest>.compiled"
};

/// An artifact that stayed where it was.
struct SkippedArtifact {
    std::string name;
    std::string why;
};

struct CacheInfo {
    std::vector<ArtifactAmount> kinds{}; ///< that were saved or loaded; empty where nothing was
    std::vector<SkippedArtifact>
        there{}; ///< load: the folder had them, and they stay as they are (profiles are joined)
    std::vector<SkippedArtifact> skipped{}; ///< what does not fit here, is damaged, or is not trusted
};

/// What save_cache_artifacts takes besides entries and what they need.
struct ArtifactOptions {
    /// Adds the artifacts of the kind "torch" that this process put or got (Cache::put_artifact). They can run code where
    /// they are used, so they go only into a signed bundle: invalid_argument where the cache has no key to sign with.
    bool torch = false;
};

/// Bytes of a bundle (docs/format.md, "The bundle"): a file of them is one.
struct CacheArtifacts {
    std::vector<std::byte> bytes{};
    CacheInfo info{};
};

enum class FitVerdict : std::uint8_t {
    fits,
    fits_after, ///< CacheOptions::accept_newer_driver; of a tuned configuration TuningDriver::any
    does_not,
};

/// An entry of a bundle, judged by its facts about device, driver and environment; a compiled program, by its target and
/// compiler; a tuned configuration, by its device and driver; or a shape profile, which fits everywhere.
struct BundledEntry {
    std::string name;
    FitVerdict verdict = FitVerdict::fits;
    std::string field{};  ///< that differs: "device.architecture"; the error's code where it cannot be read
    std::string detail{}; ///< "device.architecture sm_80 recorded, sm_90 now", and what to do
};

struct BundleCheck {
    /// What all entries share as 12 digits, which are the same on machines that are alike; "" where they share none, or
    /// were recorded on several. And what this device has.
    std::string environment_key{}, environment_here{};
    std::string environment{};             ///< what all entries share: "backend opencl, driver.version 3.1"
    FitVerdict verdict = FitVerdict::fits; ///< of the environment: where it does not fit, no entry does
    std::string detail{};
    std::vector<BundledEntry> entries{};
};

} // namespace warmgraph
