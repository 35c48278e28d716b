// Requests and results of the cache folder's upkeep.
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

/// Verifies an artifact in the same way as its user does; the error `corrupt` or `stale` refuses the artifact. The
/// store knows only names; bundle/kinds.hpp knows the bytes.
using ArtifactVerifier = std::function<Result<void>(const ArtifactName& name, ByteView bytes)>;

/// The request to clear(). The names choose functions, for entries only; each given name must fit.
struct ClearRequest {
    /// When entries are cleared, their functions' usage and the images that become unused are removed too, however
    /// young. When only images are cleared, unused images older than an hour are removed (a writer publishes images
    /// first).
    KindSet kinds{ArtifactKind::entries};
    bool quarantine = false;            ///< files that failed verification
    std::optional<std::string> model{}; ///< the model's name, or the whole model_info for one configuration of it
    std::optional<std::string> rank{};
    std::optional<std::string> function{};

    [[nodiscard]] static ClearRequest everything() { return {.kinds = all_for(KindUse::cleared), .quarantine = true}; }
    [[nodiscard]] bool chooses_functions() const noexcept { return model || rank || function; }
};

/// The files that clear() removes.
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
    std::uint64_t functions = 0; ///< functions that fit the request, including functions without entries
    Amount quarantined{};
    std::array<Amount, k_kinds.size()> kinds{}; ///< in the table's order

    [[nodiscard]] Amount& of(ArtifactKind kind) noexcept { return kinds[static_cast<std::size_t>(kind) - 1]; }
    [[nodiscard]] const Amount& of(ArtifactKind kind) const noexcept
    {
        return kinds[static_cast<std::size_t>(kind) - 1];
    }
    /// The sum over all kinds and quarantine.
    [[nodiscard]] Amount total() const noexcept
    {
        Amount total = quarantined;
        for (const Amount& amount : kinds) total += amount;
        return total;
    }
    [[nodiscard]] std::uint64_t files() const noexcept { return total().files; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return total().bytes; }
};

/// The most that the folder may hold: all kinds and quarantine together.
struct Budget {
    std::uint64_t bytes = 0; ///< 0: 8 GiB, or a tenth of the disk if that is less
    std::uint64_t files = 0; ///< 0: 100,000
    KindBytes kinds{};       ///< limits for single kinds; other kinds have no limit of their own
    bool operator==(const Budget&) const = default;
};

/// The request to prune(), which always removes unused images older than ten minutes (a writer publishes images first).
struct PruneRequest {
    std::optional<std::uint64_t> bytes{};        ///< the most bytes that may stay; default: the store's budget
    std::optional<std::chrono::seconds> older{}; ///< objects that were not used for this long are removed in any case
    /// Prune only this kind and its parts; `bytes` is then its limit, by default its part of the budget.
    std::optional<ArtifactKind> kind{};
};

struct PruneResult {
    Removal removed{};
    Removal::Amount before{}, after{}; ///< all kinds and quarantine together, or only the requested kind
    KindBytes left{};                  ///< bytes that are left, of every kind
    std::uint64_t in_use = 0;          ///< entries that stayed because a living process uses them
    /// The reason why prune() could not do everything: all images stay because some entries cannot be read here
    /// (entries of a newer warmgraph or of another user); there are too many entries; or another process is pruning.
    std::string why_not{};
};

} // namespace warmgraph::store
