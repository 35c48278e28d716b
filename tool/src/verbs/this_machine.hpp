// The devices and environment of this machine, for judging entries by their headers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::tool {

/// This machine's facts for an entry: facts of the entry's device, and the environment variables that the entry names.
/// Opens each device once. Not thread-safe.
class ThisMachine {
public:
    [[nodiscard]] std::vector<cachefmt::Fact> facts_for(const cachefmt::Guards& recorded);
    /// A backend's first device, open as long as this object lives; null when it cannot be opened.
    [[nodiscard]] backends::Device* first_device(const std::string& backend);
    /// The reasons why devices cannot be opened, by id.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept { return m_problems; }
    /// Adds a device that the caller has already opened.
    void note_device(const std::string& id, std::vector<cachefmt::Fact> facts);

private:
    const std::vector<cachefmt::Fact>& device(const std::string& id);
    std::map<std::string, std::vector<cachefmt::Fact>> m_devices;
    std::map<std::string, std::shared_ptr<backends::Device>> m_open;
    std::map<std::string, std::string> m_problems;
};

} // namespace warmgraph::tool
