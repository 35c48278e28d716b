#include "cure.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph::guards {

namespace {

namespace fact = cachefmt::fact;

struct Cure {
    std::string_view prefix; ///< beginning of the fact's name
    std::string_view text;
};

/// The first matching prefix wins.
constexpr std::array k_cures{
    Cure{fact::k_build_id, "the binary was rebuilt: record again, or set Spec::version"},
    Cure{"code.version", "record again for this version"},
    Cure{"program.", "kernel source or build options changed: record again"},
    Cure{"config.", "start with the recorded configuration, or record a variant for this one"},
    Cure{fact::k_device, "run on the kind of device that was recorded, or record on this one"},
    Cure{fact::k_backend, "open the device through the recorded backend, or record with this one"},
    Cure{"library.", "install the recorded version, or record again"},
    Cure{"interface", "the function's declaration (inputs, outputs, states, scalars) changed: record again"},
    Cure{"entry.format", "written by another version of warmgraph: record again"},
    Cure{"model", "the entry belongs to another model: record this one"},
    Cure{"function", "the entry belongs to another function: record this one"},
    Cure{fact::k_rank, "start with the recorded number of ranks, or record with this one"},
};

std::string driver_cure(const std::string* recorded, const std::string* now, const Relaxation& relaxation)
{
    if (recorded == nullptr || now == nullptr) return "record again";
    if (relaxation.driver == VersionRule::exact && same_or_newer(*recorded, *now))
        return "relax with accept_newer_driver (same or newer)";
    return "the driver is older than recorded, or cannot be compared: update the driver, or record again";
}

std::string environment_cure(std::string_view variable, const std::string* recorded)
{
    if (recorded == nullptr || *recorded == fact::k_unset)
        return fmt::format("unset {}, or record again", printable(variable));
    return fmt::format("set {}={}, or record again", printable(variable), cachefmt::fact_text(*recorded));
}

} // namespace

std::string cure_of(const std::string& name, const std::string* recorded, const std::string* now,
                    const Relaxation& relaxation)
{
    if (now != nullptr && *now == cachefmt::k_unknown) return "not known in this process: `warmgraph doctor` says more";
    if (recorded != nullptr && *recorded == cachefmt::k_unknown) return "not known when it was recorded: record again";
    if (fact::has_order(name)) return driver_cure(recorded, now, relaxation);
    if (name.starts_with(fact::k_environment))
        return environment_cure(std::string_view(name).substr(fact::k_environment.size()), recorded);
    for (const Cure& cure : k_cures)
        if (name.starts_with(cure.prefix)) return std::string(cure.text);
    return "record again";
}

} // namespace warmgraph::guards
