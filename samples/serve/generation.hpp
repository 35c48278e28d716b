// Greedy generation with two recorded functions, `prompt` and `decode`. This program does not have their code.
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

/// golden.json: the tokens that PyTorch generated.
struct Golden {
    std::string model; ///< the cache's model name
    Tokens prompt, tokens;
    double first_token_ms = 0; ///< the time from the start of PyTorch's process to its first token

    /// Throws std::runtime_error when the file cannot be read.
    [[nodiscard]] static Golden read(const std::filesystem::path& file);
};

/// A recorded function on this device, with memory for its inputs and its output, which are i64.
class NextToken {
public:
    /// Finds the last used entry of the function with inputs of these sizes. Throws std::runtime_error if there is no
    /// such entry.
    NextToken(warmgraph::Cache& cache, const warmgraph::Device& device, const std::string& name,
              const std::map<std::string, std::vector<std::int64_t>>& sizes, States& states);

    /// Returns the next token. `inputs`: all elements of each input, by name.
    [[nodiscard]] std::int64_t operator()(const std::map<std::string, Tokens>& inputs);

private:
    warmgraph::Device m_device;
    std::map<std::string, warmgraph::Buffer> m_buffers; ///< inputs and outputs by name
    std::string m_output;
    warmgraph::Function m_function;
};

struct Generated {
    Tokens tokens;
    double first_token_ms = 0; ///< the time from this process's start to its first token
};

/// Generates as many tokens as PyTorch did.
[[nodiscard]] Generated generate(warmgraph::Cache& cache, const warmgraph::Device& device, States& states,
                                 const Golden& golden);

} // namespace serve
