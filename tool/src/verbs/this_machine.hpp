// What this machine has, to judge entries by their headers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::tool {

/// What is known of this machine for an entry: its device's facts, and the environment variables that the entry names.
/// Each device is opened once. Not thread-safe.
class ThisMachine {
public:
    [[nodiscard]] std::vector<cachefmt::Fact> facts_for(const cachefmt::Guards& recorded);
    /// A backend's first device, open as long as this lives; null where it cannot be opened.
    [[nodiscard]] backends::Device* first_device(const std::string& backend);
    /// Why devices cannot be opened, by their ids.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept { return m_problems; }
    /// A device that somebody has opened already.
    void note_device(const std::string& id, std::vector<cachefmt::Fact> facts);

private:
    const std::vector<cachefmt::Fact>& device(const std::string& id);
    std::map<std::string, std::vector<cachefmt::Fact>> m_devices;
    std::map<std::string, std::shared_ptr<backends::Device>> m_open;
    std::map<std::string, std::string> m_problems;
};

} // namespace warmgraph::tool
