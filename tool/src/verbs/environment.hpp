// Compares the environments of entries with this machine's environment: as one line, and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "context.hpp"
#include "verbs/this_machine.hpp"
#include "warmgraph/guards/environment.hpp"

namespace warmgraph::tool {

/// The entries that were recorded in one environment.
struct EnvironmentVerdict {
    std::string key;     ///< the recorded key
    std::string here;    ///< the key of this machine's device with the same name; "" when it cannot be opened
    std::string problem; ///< the reason why this device cannot be opened
    std::uint64_t entries = 0;
    guards::EnvironmentComparison compared{};
};

/// The environments of a folder's or a bundle's entries. Entries without environment facts are not counted.
class Environments {
public:
    void add(const cachefmt::Guards& guards);
    /// Opens the devices that the entries name.
    [[nodiscard]] std::vector<EnvironmentVerdict> judge(ThisMachine& machine) const;

private:
    struct EnvironmentGroup {
        cachefmt::Guards guards; ///< guards of one of the entries
        std::uint64_t entries = 0;
    };
    std::map<std::pair<std::string, std::string>, EnvironmentGroup> m_recorded; ///< environments by device and key
};

/// Returns e.g. "environment key 3f9a1c07b2d4 fits: 5 entries were recorded in it"; "" without entries.
[[nodiscard]] std::string environment_line(const std::vector<EnvironmentVerdict>& environments,
                                           const guards::Relaxation& relaxation = {});
/// Returns the fields in which all entries differ from this machine, e.g. "device.units 2 recorded, 4 here"; "" if an
/// entry fits.
[[nodiscard]] std::string dead_because(const std::vector<EnvironmentVerdict>& environments);
[[nodiscard]] Json to_json(const std::vector<EnvironmentVerdict>& environments);

} // namespace warmgraph::tool
