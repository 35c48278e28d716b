// Writes the log line at the start: how many stored entries fit this machine, and why other entries do not.
#include "cache/compatibility_log.hpp"

#include <algorithm>

#include "cache/cache_impl.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph {

namespace {

struct DeviceCompatibility {
    std::uint64_t entries = 0, fitting = 0;
    std::map<std::string, std::uint64_t> reasons; ///< why entries do not fit, and the number of entries for each reason

    void add(const store::Variant& variant, const std::vector<cachefmt::Fact>& here,
             const guards::Relaxation& relaxation)
    {
        ++entries;
        if (!variant.header) {
            ++reasons[fmt::format("cannot be read: {}", to_string(variant.header.error().code))];
            return;
        }
        const auto mismatches = device_mismatches(variant.header->guards, here, relaxation);
        if (mismatches.empty())
            ++fitting;
        else
            ++reasons[guards::summarize(mismatches)];
    }

    [[nodiscard]] std::string text() const
    {
        if (entries == 0) return "nothing is recorded yet";
        std::string text = fmt::format("{}, {} fit this machine", plural(entries, "entry"),
                                       fitting == entries ? "all" : count_text(fitting));
        constexpr std::size_t k_most = 4; // the most reasons in the line
        std::size_t told = 0;
        for (const auto& [reason, count] : reasons) {
            if (told++ == k_most)
                return text + fmt::format("; and {}", plural(reasons.size() - k_most, "other reason"));
            text += fmt::format("; {} not: {}", count_text(count), reason);
        }
        return text;
    }
};

} // namespace

void CompatibilityLog::tell(const CacheSettings& settings, store::LocalStore* store, const backends::Device& device)
try {
    if (store == nullptr || !log().should_log(spdlog::level::info)) return; // reads no header if the line is not logged
    const std::string id = device.id();
    {
        const std::scoped_lock lock{m_mutex};
        if (!m_told.insert(id).second) return;
    }
    auto here = device.facts();
    guards::canonicalize(here);
    DeviceCompatibility fit;
    const auto keys = store->functions();
    for (const auto& key : keys ? *keys : std::vector<cachefmt::FunctionKey>{}) {
        if (key.model_info != settings.model_info(device.backend()) || key.rank != cachefmt::folder_name(settings.rank))
            continue;
        const auto variants = store->variants(key);
        if (!variants) continue; // a call will report the error
        for (const auto& variant : *variants) fit.add(variant, here, settings.relaxation);
    }
    log().info("opened {} for {} on {}: {}", settings.directory, settings.options.model, id, fit.text());
} catch (const std::exception& error) {
    log().debug("cannot determine which entries fit: {}", error.what());
}

} // namespace warmgraph
