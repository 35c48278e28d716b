// A store of the program's own that caches share: an engine's object store, a database, a service.
//
// A cache asks it for what the folder, the bundles and the remotes do not have (CacheOptions::tiers), keeps what it gives
// in the folder, and sends it what this process made, behind the calls. What it gives is verified: its size before memory
// is taken, its digests, its key, and its signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>


namespace warmgraph {

/// Whether Tier::put replaces an object that has the name already.
enum class TierPut : std::uint8_t {
    replace,
    create_only, ///< the object there stays, and that is a success; a store that cannot tell replaces it
};

/// Keeps bytes under names. Names are lines of [A-Za-z0-9._/-], of at most 1 KiB: "images/<64 hex digits>",
/// "entries/<model>/<rank>/<function>/<64 hex digits>". Caches call it from several threads at once, among them threads
/// of their own, and as long as the cache or a function of it exists. A call must end soon by itself: a look-up waits for
/// it. An exception is a failure of the store: it is counted (RemoteStatistics::errors), the store is not asked for 30
/// seconds, and no call of the program sees it.
class Tier {
public:
    struct Object {
        std::uint64_t size = 0; ///< bytes of the whole object
        std::vector<std::byte> bytes{};
    };

    Tier() = default;
    Tier(const Tier&) = delete;
    Tier& operator=(const Tier&) = delete;
    virtual ~Tier() = default;

    /// Returns at most `bytes` bytes of an object from `offset` on: fewer only where the object ends; none where it ends
    /// before `offset`, or `bytes` is 0. nullopt: there is no such object.
    virtual std::optional<Object> get(const std::string& name, std::uint64_t offset, std::uint64_t bytes) = 0;
    /// Keeps exactly these bytes under the name, or leaves what was there. A get() meanwhile sees one of the two.
    virtual void put(const std::string& name, std::span<const std::byte> bytes, TierPut mode) = 0;
    /// Removes an object. It is no failure if the object is missing.
    virtual void remove(const std::string& name) = 0;
    /// Returns the names that begin with `prefix`, in any order.
    virtual std::vector<std::string> list(const std::string& prefix) = 0;
};

/// A Tier of a cache.
struct TierOptions {
    std::string label{};          ///< its name in statistics and messages: letters, digits, '.', '_', '-'
    std::shared_ptr<Tier> tier{}; ///< several caches may share it
    bool read_only = false;       ///< nothing is sent to it
    bool allow_unsigned = false;  ///< objects without an accepted signature are used, too
};

} // namespace warmgraph
