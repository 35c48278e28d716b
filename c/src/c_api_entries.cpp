// The C interface: stored entries as JSON.
#include <nlohmann/json.hpp>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

using nlohmann::json;

std::vector<std::int64_t> contiguous(const std::vector<std::int64_t>& sizes)
{
    std::vector<std::int64_t> strides(sizes.size());
    std::uint64_t step = 1; // unsigned: sizes of an empty tensor may be so large that the product overflows
    for (std::size_t d = sizes.size(); d-- > 0;) {
        strides[d] = static_cast<std::int64_t>(step);
        step *= static_cast<std::uint64_t>(std::max<std::int64_t>(sizes[d], 1));
    }
    return strides;
}

template <class Decl>
json tensor(const Decl& decl)
{
    return {{"name", decl.name},
            {"dtype", to_string(decl.dtype)},
            {"sizes", decl.sizes},
            {"strides", decl.strides.empty() ? contiguous(decl.sizes) : decl.strides}};
}

json tensors(const std::vector<TensorDecl>& decls)
{
    json list = json::array();
    for (const TensorDecl& decl : decls) list.push_back(tensor(decl));
    return list;
}

json states(const std::vector<StateDecl>& decls)
{
    json list = json::array();
    for (const StateDecl& decl : decls) {
        list.push_back(tensor(decl));
        list.back()["bytes"] = decl.memory.size;
        list.back()["read_only"] = decl.access == Access::read_only;
    }
    return list;
}

json scalars(const std::vector<ScalarDecl>& decls)
{
    json list = json::array();
    for (const ScalarDecl& decl : decls)
        list.push_back({{"name", decl.name},
                        {"dtype", to_string(decl.dtype)},
                        {"range", decl.range ? json{decl.range->first, decl.range->second} : json()}});
    return list;
}

json values(const StoredEntry& entry)
{
    json list = json::array();
    for (const auto& [name, number] : entry.values)
        list.push_back({{"name", name}, {"dtype", to_string(number.dtype)}, {"bits", number.bits}});
    return list;
}

json label(const StoredEntry& entry)
{
    return {{"digest", entry.digest},
            {"recorded", entry.recorded},
            {"misfit", entry.misfit},
            {"metadata", entry.spec.metadata}};
}

json to_json(const StoredEntry& entry)
{
    const Spec& spec = entry.spec;
    json object = label(entry);
    object.update({{"inputs", tensors(spec.inputs)},
                   {"outputs", tensors(spec.outputs)},
                   {"states", states(spec.states)},
                   {"scalars", scalars(spec.scalars)},
                   {"values", values(entry)},
                   {"config", spec.config},
                   {"recorded_code", spec.recorded_code},
                   {"environment", spec.environment}});
    return object;
}

} // namespace

wg_status wg_cache_entries(const wg_cache* cache, const wg_device* device, const char* function,
                           const wg_entry_query* query, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded([&] {
        const auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto& target = need_device(device).device;
        const std::string name = need_text(function, "function name");
        wg_entry_query known{};
        if (query != nullptr) copy_versioned(&known, sizeof known, query, k_least_entry_query, "wg_entry_query");
        EntryQuery wanted{.metadata_only = known.metadata_only != 0};
        if (known.spec != nullptr) wanted.spec = to_unnamed_spec(known.spec, "the query's spec");
        if (known.most != 0) wanted.most = known.most;
        json list = json::array();
        for (const StoredEntry& entry : owner.entries(name, target, std::move(wanted)))
            list.push_back(known.metadata_only != 0 ? label(entry) : to_json(entry));
        write_text(list.dump(-1, ' ', false, json::error_handler_t::replace), text, capacity, length);
    });
}
