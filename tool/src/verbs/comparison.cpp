#include "comparison.hpp"

#include <algorithm>
#include <array>

#include "warmgraph/backends/built.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph::tool {

namespace {

using cachefmt::EntryHeader;
using cachefmt::Fact;
using cachefmt::Guards;
using cachefmt::Role;

namespace fact_name = cachefmt::fact;
using fact_name::k_environment, fact_name::k_build_id;

bool is_device_fact(const std::string& name)
{
    static constexpr std::array<std::string_view, 4> prefixes{fact_name::k_backend, fact_name::k_device, "driver.",
                                                              "runtime."};
    return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Returns e.g. "opencl:0": the device of a tensor, else the backend's first device (for older entries).
std::string device_id(const std::vector<EntryHeader>& recorded)
{
    for (const EntryHeader& header : recorded)
        if (!header.guards.tensors.empty()) return header.guards.tensors.front().device;
    for (const EntryHeader& header : recorded)
        for (const Fact& fact : header.guards.facts)
            if (fact.name == fact_name::k_backend) return fact.value;
    return "opencl";
}

/// The recorded guards without facts that are not known here.
Guards restricted(const Guards& guards, const std::vector<Fact>& local)
{
    Guards part;
    std::ranges::copy_if(guards.facts, std::back_inserter(part.facts), [&](const Fact& fact) {
        return is_device_fact(fact.name) ||
               std::ranges::any_of(local, [&](const Fact& other) { return other.name == fact.name; });
    });
    return part;
}

const Fact* find(const Guards& guards, std::string_view name)
{
    const auto fact = std::ranges::find(guards.facts, name, &Fact::name);
    return fact == guards.facts.end() ? nullptr : &*fact;
}

/// The file that held the callable at the recording, if its build id is a guard.
const Fact* binary_of(const EntryHeader& header)
{
    return find(header.guards, k_build_id) != nullptr ? find(header.guards, fact_name::k_binary_path) : nullptr;
}

void add_build_ids(LocalFacts& local, const std::vector<EntryHeader>& recorded)
{
    for (const EntryHeader& header : recorded) {
        const Fact* const binary = binary_of(header);
        if (binary == nullptr || !binary->value.starts_with('/') || local.build_ids.contains(binary->value)) continue;
        if (std::ranges::find(local.missing_binaries, binary->value) != local.missing_binaries.end()) continue;
        if (auto id = build_id_of_file(binary->value))
            local.build_ids.emplace(binary->value, std::move(*id));
        else
            local.missing_binaries.push_back(binary->value);
    }
}

Comparison compare(const EntryHeader& header, const Guards& recorded, const Guards& now,
                   const guards::Relaxation& relaxation)
{
    Comparison comparison{header.key.guards_digest, guards::evaluate(recorded, now, relaxation),
                          guards::compared_count(recorded, now), std::nullopt};
    if (header.kind == cachefmt::EntryKind::tombstone) comparison.tombstone = header.info;
    return comparison;
}

template <class Compare>
Comparison fewest(const std::vector<EntryHeader>& recorded, Compare compare_one)
{
    std::vector<Comparison> all;
    std::ranges::transform(recorded, std::back_inserter(all), compare_one);
    return *std::ranges::min_element(all, {}, [](const Comparison& c) { return c.mismatches.size(); });
}

} // namespace

LocalFacts gather_local_facts(const std::vector<EntryHeader>& recorded)
{
    LocalFacts local;
    if (const auto device = backends::open_built_device(device_id(recorded))) {
        local.facts = (*device)->facts();
    } else {
        local.problem = device.error().message;
        for (const EntryHeader& header : recorded)
            for (const Fact& fact : header.guards.facts)
                if (is_device_fact(fact.name)) local.facts.push_back({fact.name, cachefmt::k_unknown, fact.role});
    }
    for (const EntryHeader& header : recorded)
        for (const Fact& fact : header.guards.facts)
            if (fact.name.starts_with(k_environment))
                local.facts.push_back(
                    {fact.name,
                     environment(fact.name.c_str() + k_environment.size()).value_or(std::string(fact_name::k_unset)),
                     fact.role});
    guards::canonicalize(local.facts);
    add_build_ids(local, recorded);
    return local;
}

Comparison nearest_here(const std::vector<EntryHeader>& recorded, const LocalFacts& local,
                        const guards::Relaxation& relaxation)
{
    return fewest(recorded, [&](const EntryHeader& header) {
        // Leave out the environment variables of other variants.
        Guards now;
        std::ranges::copy_if(local.facts, std::back_inserter(now.facts), [&](const Fact& fact) {
            return !fact.name.starts_with(k_environment) ||
                   std::ranges::any_of(header.guards.facts, [&](const Fact& f) { return f.name == fact.name; });
        });
        const Fact* const binary = binary_of(header);
        if (binary != nullptr && local.build_ids.contains(binary->value))
            now.facts.push_back(
                {std::string(k_build_id), local.build_ids.at(binary->value), cachefmt::Role::must_match});
        return compare(header, restricted(header.guards, now.facts), now, relaxation);
    });
}

Comparison nearest(const std::vector<EntryHeader>& recorded, const Guards& now, const guards::Relaxation& relaxation)
{
    return fewest(recorded, [&](const EntryHeader& header) { return compare(header, header.guards, now, relaxation); });
}

} // namespace warmgraph::tool
