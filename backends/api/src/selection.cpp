#include "warmgraph/backends/selection.hpp"

#include <algorithm>
#include <charconv>

namespace warmgraph::backends {
namespace {

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

bool contains(std::string_view text, std::string_view part)
{
    return !std::ranges::search(text, part, {}, lower, lower).empty();
}

std::string list_of(std::span<const DeviceInfo> devices)
{
    std::string text;
    for (const DeviceInfo& device : devices)
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", device.id, device.name);
    return text.empty() ? "none" : text;
}

} // namespace

Result<std::size_t> select_device(std::string_view selector, std::span<const DeviceInfo> devices)
{
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(selector.data(), selector.data() + selector.size(), index);
    const bool is_index = selector.empty() || (error == std::errc{} && end == selector.data() + selector.size());
    if (is_index && index < devices.size()) return index;
    if (!is_index) {
        for (std::size_t i = 0; i < devices.size(); ++i) {
            if (contains(devices[i].name, selector) || contains(devices[i].detail, selector)) return i;
        }
    }
    return fail(ErrorCode::not_found, "no device '{}'; devices: {}", selector.empty() ? "0" : selector,
                list_of(devices));
}

} // namespace warmgraph::backends
