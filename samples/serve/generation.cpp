#include "generation.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "start.hpp"

namespace serve {
namespace {

namespace wg = warmgraph;
using Sizes = std::map<std::string, std::vector<std::int64_t>>;

bool takes(const wg::StoredEntry& entry, const Sizes& sizes)
{
    return entry.spec.inputs.size() == sizes.size() &&
           std::ranges::all_of(entry.spec.inputs, [&](const wg::TensorDecl& input) {
               const auto wanted = sizes.find(input.name);
               return wanted != sizes.end() && input.dtype == wg::i64 && input.sizes == wanted->second;
           });
}

wg::Spec spec_for(const wg::Cache& cache, const wg::Device& device, const std::string& name, const Sizes& sizes)
{
    std::string misfit;
    for (wg::StoredEntry& entry : cache.entries(name, device)) {
        if (!takes(entry, sizes)) continue;
        if (entry.misfit.empty()) return std::move(entry.spec);
        misfit = entry.misfit;
    }
    throw std::runtime_error(
        misfit.empty() ? fmt::format("no entry of '{}' in {} takes these inputs: record it", name, cache.directory())
                       : fmt::format("'{}' was recorded for another device: {}", name, misfit));
}

/// The spec with the states' addresses, which an entry does not have.
wg::Spec bound(wg::Spec spec, States& states)
{
    const EntryMetadata metadata = EntryMetadata::parse(spec.metadata);
    for (wg::StateDecl& state : spec.states) state.memory = states.of(state, metadata);
    return spec;
}

std::map<std::string, wg::Buffer> buffers_of(const wg::Device& device, const wg::Spec& spec)
{
    std::map<std::string, wg::Buffer> buffers;
    for (const auto* list : {&spec.inputs, &spec.outputs})
        for (const wg::TensorDecl& tensor : *list) {
            const auto count =
                std::accumulate(tensor.sizes.begin(), tensor.sizes.end(), std::int64_t{1}, std::multiplies{});
            buffers.emplace(tensor.name,
                            device.allocate(static_cast<std::uint64_t>(count) * wg::size_of(tensor.dtype)));
        }
    return buffers;
}

std::string only_output(const wg::Spec& spec)
{
    if (spec.outputs.size() != 1 || spec.outputs[0].dtype != wg::i64)
        throw std::runtime_error(fmt::format("the entry has {} outputs, expected one token", spec.outputs.size()));
    return spec.outputs[0].name;
}

} // namespace

Golden Golden::read(const std::filesystem::path& file)
{
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error(fmt::format("cannot read '{}': run record.py first", file.string()));
    try {
        const auto json = nlohmann::json::parse(stream);
        return {json.at("model"), json.at("prompt"), json.at("tokens"), json.at("first_token_ms")};
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(fmt::format("'{}' was not written by record.py: {}", file.string(), error.what()));
    }
}

NextToken::NextToken(wg::Cache& cache, const wg::Device& device, const std::string& name, const Sizes& sizes,
                     States& states)
    : m_device(device), m_function([&] {
          const wg::Spec spec = bound(spec_for(cache, device, name, sizes), states);
          m_buffers = buffers_of(device, spec);
          m_output = only_output(spec);
          return cache.load(name, device, spec);
      }())
{
}

std::int64_t NextToken::operator()(const std::map<std::string, Tokens>& inputs)
{
    std::vector<wg::Arg> args;
    for (const auto& [name, values] : inputs) m_buffers.at(name).write(values);
    for (const auto& [name, buffer] : m_buffers) args.emplace_back(name, buffer);
    m_function.call(args);
    m_device.synchronize();
    return m_buffers.at(m_output).read<std::int64_t>().at(0);
}

Generated generate(wg::Cache& cache, const wg::Device& device, States& states, const Golden& golden)
{
    const auto length = static_cast<std::int64_t>(golden.prompt.size());
    NextToken prompt{cache, device, "prompt", {{"tokens", {1, length}}}, states};
    Generated result;
    result.tokens.push_back(prompt({{"tokens", golden.prompt}}));
    result.first_token_ms = since_start_ms();
    if (golden.tokens.size() < 2) return result;
    NextToken decode{cache, device, "decode", {{"token", {1, 1}}, {"position", {1}}}, states};
    for (std::int64_t position = length; result.tokens.size() < golden.tokens.size(); ++position)
        result.tokens.push_back(decode({{"token", {result.tokens.back()}}, {"position", {position}}}));
    return result;
}

} // namespace serve
