#include "warmgraph/guards/json.hpp"

#include <array>
#include <optional>

#include <nlohmann/json.hpp>

#include "warmgraph/cachefmt/fact_lists.hpp"

namespace warmgraph::guards {

namespace {

using nlohmann::json;

constexpr std::array k_roles{cachefmt::Role::must_match, cachefmt::Role::identity, cachefmt::Role::advisory};

cachefmt::Role role_of(const json& item)
{
    const auto name = item.at("role").get<std::string>();
    for (const cachefmt::Role role : k_roles)
        if (name == to_string(role)) return role;
    throw std::invalid_argument("role '" + name + "', expected must_match, identity or advisory");
}

DType dtype_of(const json& item)
{
    const auto name = item.at("dtype").get<std::string>();
    if (const std::optional<DType> type = parse_dtype(name)) return *type;
    throw std::invalid_argument("element type '" + name + "' is unknown");
}

cachefmt::Fact fact_of(const json& item)
{
    const json& value = item.at("value");
    return {item.at("name"), value.is_null() ? std::string(cachefmt::k_unknown) : value.get<std::string>(),
            role_of(item)};
}

cachefmt::TensorSpec tensor_of(const json& item)
{
    cachefmt::TensorSpec tensor{item.at("name"),   dtype_of(item),       item.at("sizes"),      item.at("strides"),
                                item.at("device"), item.at("alignment"), item.at("alias_group")};
    if (const json& distance = item.value("distance", json()); !distance.is_null())
        tensor.distance = distance.get<std::int64_t>();
    if (tensor.sizes.size() > cachefmt::k_max_rank || tensor.sizes.size() != tensor.strides.size())
        throw std::invalid_argument("tensor '" + tensor.name + "' has " + std::to_string(tensor.sizes.size()) +
                                    " sizes and " + std::to_string(tensor.strides.size()) +
                                    " strides, expected as many of each and at most 8");
    return tensor;
}

cachefmt::Guards guards_of(const json& document)
{
    cachefmt::Guards guards;
    for (const json& item : document.at("facts")) guards.facts.push_back(fact_of(item));
    for (const json& item : document.at("tensors")) guards.tensors.push_back(tensor_of(item));
    for (const json& item : document.at("values"))
        guards.values.push_back({item.at("name"), dtype_of(item), item.at("bits")});
    return guards;
}

} // namespace

std::string to_json(const cachefmt::Guards& guards)
{
    json document{{"facts", json::array()}, {"tensors", json::array()}, {"values", json::array()}};
    for (const cachefmt::Fact& fact : cachefmt::each_fact(guards.facts)) // each_fact() splits lists into single facts
        document["facts"].push_back({{"name", fact.name},
                                     {"value", fact.value == cachefmt::k_unknown ? json() : json(fact.value)},
                                     {"role", to_string(fact.role)}});
    for (const cachefmt::TensorSpec& tensor : guards.tensors)
        document["tensors"].push_back({{"name", tensor.name},
                                       {"dtype", warmgraph::to_string(tensor.dtype)},
                                       {"sizes", tensor.sizes},
                                       {"strides", tensor.strides},
                                       {"device", tensor.device},
                                       {"alignment", tensor.alignment},
                                       {"alias_group", tensor.alias_group},
                                       {"distance", tensor.distance ? json(*tensor.distance) : json()}});
    for (const cachefmt::ValueSpec& value : guards.values)
        document["values"].push_back(
            {{"name", value.name}, {"dtype", warmgraph::to_string(value.dtype)}, {"bits", value.bits}});
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<cachefmt::Guards> from_json(std::string_view text)
{
    // The library throws for a wrong member; no exception leaves this function.
    try {
        return guards_of(json::parse(text));
    } catch (const std::exception& error) {
        return fail(ErrorCode::corrupt, "guards in JSON cannot be read: {}", error.what());
    }
}

} // namespace warmgraph::guards
