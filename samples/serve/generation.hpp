// Greedy generation by two recorded functions, `prompt` and `decode`, that this program has no code of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "states.hpp"
#include <warmgraph/warmgraph.hpp>

namespace serve {

using Tokens = std::vector<std::int64_t>;

/// golden.json: what PyTorch generated.
struct Golden {
    std::string model; ///< the cache's
    Tokens prompt, tokens;
    double first_token_ms = 0; ///< from PyTorch's process start

    /// std::runtime_error where the file cannot be read.
    [[nodiscard]] static Golden read(const std::filesystem::path& file);
};

/// An entry on this device, with memory for its inputs and its output, which are i64.
class NextToken {
public:
    /// The most recently used entry of the function that takes inputs of these sizes. std::runtime_error where there is none.
    NextToken(warmgraph::Cache& cache, const warmgraph::Device& device, const std::string& name,
              const std::map<std::string, std::vector<std::int64_t>>& sizes, States& states);

    /// The token that follows. `inputs` by name, each with all of its elements.
    [[nodiscard]] std::int64_t operator()(const std::map<std::string, Tokens>& inputs);

private:
    warmgraph::Device m_device;
    std::map<std::string, warmgraph::Buffer> m_buffers; ///< inputs and outputs by name
    std::string m_output;
    warmgraph::Function m_function;
};

struct Generated {
    Tokens tokens;
    double first_token_ms = 0; ///< from this process's start
};

/// As many tokens behind the prompt as PyTorch generated.
[[nodiscard]] Generated generate(warmgraph::Cache& cache, const warmgraph::Device& device, States& states,
                                 const Golden& golden);

} // namespace serve
