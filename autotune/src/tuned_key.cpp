#include "warmgraph/autotune/tuned_key.hpp"

#include <fmt/ranges.h>

#include "warmgraph/autotune/code_text.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/precompile/headers.hpp"
#include "warmgraph/precompile/included_headers.hpp"

namespace warmgraph {
namespace {

autotune::Facts facts_of(const backends::Device& device, bool (*wanted)(const cachefmt::Fact&))
{
    autotune::Facts facts;
    for (const cachefmt::Fact& fact : device.facts())
        if (wanted(fact)) facts[fact.name] = fact.value;
    return facts;
}

void add_facts(Sha256& hash, const autotune::Facts& facts, std::string_view tag)
{
    hash.update_field("device");
    for (const auto& [name, value] : facts) hash.update_field(name).update_field(value);
    if (!tag.empty()) hash.update_field("tag").update_field(tag);
}

} // namespace

autotune::Facts device_facts(const backends::Device& device)
{
    return facts_of(device, [](const cachefmt::Fact& fact) {
        return !cachefmt::fact::has_order(fact.name) &&
               (fact.role == cachefmt::Role::must_match || fact.name == "device.name");
    });
}

autotune::Facts driver_facts(const backends::Device& device)
{
    return facts_of(device, [](const cachefmt::Fact& fact) { return cachefmt::fact::has_order(fact.name); });
}

Digest tuned_key(const TunableKernel& kernel, const autotune::Facts& device, std::string_view tag)
{
    Sha256 hash;
    hash.update_field("warmgraph tuned kernel 1").update_field(kernel.name);
    hash.update_field(autotune::without_comments(kernel.source));
    hash.update_field(included_headers(kernel.source, kernel.options).digest);
    // The options without the folders of headers, because the headers' contents count instead.
    hash.update_field(fmt::format("{}", fmt::join(precompile::parse_options(kernel.options).words, " ")));
    for (const auto& [name, size] : kernel.problem) hash.update_field(name).update_field(std::to_string(size));
    add_facts(hash, device, tag);
    return hash.finish();
}

Digest module_key(const std::string& name, std::string_view code, const autotune::Facts& device, std::string_view tag)
{
    Sha256 hash;
    hash.update_field("warmgraph tuned module 1").update_field(name);
    hash.update_field(autotune::without_comments(code));
    add_facts(hash, device, tag);
    return hash.finish();
}

} // namespace warmgraph
