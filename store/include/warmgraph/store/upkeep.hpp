// What upkeep of a cache folder is asked for, finds and removes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "warmgraph/base/error.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

struct Damage {
    std::filesystem::path path; ///< relative to the root
    Error error;
};

/// Reads an artifact as it is read where it is used: `corrupt` or `stale`, it is refused. The store knows names, and not what
/// the bytes mean: bundle/kinds.hpp does.
using ArtifactVerifier = std::function<Result<void>(const ArtifactName& name, ByteView bytes)>;

/// What clear() is asked for. The names choose functions, for entries alone: each one that is given must fit.
struct ClearRequest {
    /// Entries go with their functions' usage, and with the images that nothing names then, however young. Images alone:
    /// those that no entry names and that are older than an hour (a writer publishes images first).
    KindSet kinds{ArtifactKind::entries};
    bool quarantine = false;            ///< what failed verification
    std::optional<std::string> model{}; ///< its name, or the whole model_info for one configuration of it
    std::optional<std::string> rank{};
    std::optional<std::string> function{};

    [[nodiscard]] static ClearRequest everything() { return {.kinds = all_for(KindUse::cleared), .quarantine = true}; }
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
        bool operator==(const Amount&) const = default;
    };
    std::uint64_t functions = 0; ///< that fit the request, also those without entries
    Amount quarantined{};
    std::array<Amount, k_kinds.size()> kinds{}; ///< in the table's order

    [[nodiscard]] Amount& of(ArtifactKind kind) noexcept { return kinds[static_cast<std::size_t>(kind) - 1]; }
    [[nodiscard]] const Amount& of(ArtifactKind kind) const noexcept
    {
        return kinds[static_cast<std::size_t>(kind) - 1];
    }
    /// Of all kinds and quarantine.
    [[nodiscard]] Amount total() const noexcept
    {
        Amount total = quarantined;
        for (const Amount& amount : kinds) total += amount;
        return total;
    }
    [[nodiscard]] std::uint64_t files() const noexcept { return total().files; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return total().bytes; }
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
    /// Of this kind alone, with what is a part of it: `bytes` is what may stay of it, else its own part of the budget.
    std::optional<ArtifactKind> kind{};
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
