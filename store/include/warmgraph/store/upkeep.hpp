// What upkeep of a cache folder is asked for, finds and removes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "warmgraph/base/error.hpp"
#include "warmgraph/store/kind.hpp"

namespace warmgraph::store {

struct Damage {
    std::filesystem::path path; ///< relative to the root
    Error error;
};

/// How an artifact is read where it is used. The store knows names, and not what the bytes mean: the table of kinds does
/// (bundle/kinds.hpp).
struct ArtifactReader {
    std::uint64_t most_bytes = 0;                                       ///< a larger one is refused
    Result<void> (*verify)(const Name& name, ByteView bytes) = nullptr; ///< `corrupt` or `stale`: it is refused
};
using ArtifactReaders = std::function<ArtifactReader(const ArtifactName& name)>;

enum class ClearKind : std::uint8_t {
    entries,    ///< with their functions' usage, and the images that nothing names then, however young
    images,     ///< that no entry names and that are older than an hour (a writer publishes images first)
    quarantine, ///< what failed verification
    all,
    tuned,    ///< tuned configurations, of single kernels and of modules
    compiled, ///< compiled programs
    profile,  ///< shape profiles
    torch,    ///< what PyTorch compiled
};

/// Of the kind; of graphs their entries.
[[nodiscard]] constexpr ClearKind clear_kind(Kind kind) noexcept
{
    switch (kind) {
    case Kind::compiled: return ClearKind::compiled;
    case Kind::tuned: return ClearKind::tuned;
    case Kind::profile: return ClearKind::profile;
    case Kind::torch: return ClearKind::torch;
    case Kind::graphs: break;
    }
    return ClearKind::entries;
}

/// What clear() is asked for. The names choose functions, for entries alone: each one that is given must fit.
struct ClearRequest {
    ClearKind kind = ClearKind::entries;
    std::optional<std::string> model{}; ///< its name, or the whole model_info for one configuration of it
    std::optional<std::string> rank{};
    std::optional<std::string> function{};

    [[nodiscard]] bool chooses_functions() const noexcept { return model || rank || function; }
};

/// What clear() takes away.
struct Removal {
    struct Amount {
        std::uint64_t files = 0, bytes = 0;
        Amount& operator+=(const Amount& more) noexcept
        {
            files += more.files;
            bytes += more.bytes;
            return *this;
        }
    };
    std::uint64_t functions = 0; ///< that fit the request, also those without entries
    Amount entries{}, images{}, quarantined{}, tuned{}, compiled{}, profiles{}, torch{};

    /// Of an artifact's kind. REQUIRES: it is not Kind::graphs.
    [[nodiscard]] Amount& of(Kind kind) noexcept
    {
        return kind == Kind::compiled  ? compiled
               : kind == Kind::tuned   ? tuned
               : kind == Kind::profile ? profiles
                                       : torch;
    }
    [[nodiscard]] std::uint64_t files() const noexcept
    {
        return entries.files + images.files + quarantined.files + tuned.files + compiled.files + profiles.files +
               torch.files;
    }
    [[nodiscard]] std::uint64_t bytes() const noexcept
    {
        return entries.bytes + images.bytes + quarantined.bytes + tuned.bytes + compiled.bytes + profiles.bytes +
               torch.bytes;
    }
};

/// What the folder may hold: all kinds and quarantine together.
struct Budget {
    std::uint64_t bytes = 0; ///< 0: 8 GiB, or a tenth of the disk where that is less
    std::uint64_t files = 0; ///< 0: 100,000
    KindBytes kinds{};       ///< what some kinds may take of it; the others: as much as there is
    bool operator==(const Budget&) const = default;
};

/// What prune() is asked for, besides removing images that no entry names (older than ten minutes: a writer publishes
/// images first).
struct PruneRequest {
    std::optional<std::uint64_t> bytes{};        ///< what may stay at most; else the store's budget
    std::optional<std::chrono::seconds> older{}; ///< what was not used for so long goes in any case
    /// Of this kind alone: `bytes` is what may stay of it, else its own part of the budget.
    std::optional<Kind> kind{};
};

struct Pruned {
    Removal removed{};
    Removal::Amount before{}, after{}; ///< all kinds and quarantine together, or of the one that was asked for
    KindBytes left{};                  ///< of every kind
    std::uint64_t in_use = 0;          ///< entries that would have gone, and that a living process uses
    /// Set where it could not do all: there are entries that cannot be read here (a newer warmgraph's, another user's), so
    /// that all images stay; there are too many entries; or another process makes room just now.
    std::string why_not{};
};

} // namespace warmgraph::store
