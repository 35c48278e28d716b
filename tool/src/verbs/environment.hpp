// The environments that entries were recorded in, against this machine's: one line, and the same as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "context.hpp"
#include "verbs/this_machine.hpp"
#include "warmgraph/guards/environment.hpp"

namespace warmgraph::tool {

/// Of some entries that were recorded on one kind of machine.
struct JudgedEnvironment {
    std::string key;     ///< as it was recorded
    std::string here;    ///< of this machine's device of that name; "" where it cannot be opened
    std::string problem; ///< why not
    std::uint64_t entries = 0;
    guards::EnvironmentComparison compared{};
};

/// What a folder's or a bundle's entries say. Entries that name no fact of the environment are not counted.
class Environments {
public:
    void add(const cachefmt::Guards& guards);
    /// Opens the devices that the entries name.
    [[nodiscard]] std::vector<JudgedEnvironment> judge(ThisMachine& machine) const;

private:
    struct Recorded {
        cachefmt::Guards guards; ///< of one of them
        std::uint64_t entries = 0;
    };
    std::map<std::pair<std::string, std::string>, Recorded> m_recorded; ///< by device and key
};

/// "environment key 3f9a1c07b2d4 fits: 5 entries were recorded in it"; "" for none.
[[nodiscard]] std::string environment_line(const std::vector<JudgedEnvironment>& environments,
                                           const guards::Relaxation& relaxation = {});
/// The fields in which all entries differ from here, where none fits: "device.units 2 recorded, 4 here". Else "".
[[nodiscard]] std::string dead_because(const std::vector<JudgedEnvironment>& environments);
[[nodiscard]] Json to_json(const std::vector<JudgedEnvironment>& environments);

} // namespace warmgraph::tool
