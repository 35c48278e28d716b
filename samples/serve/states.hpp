// Device memory for the states of recorded functions: weights from a file, contents from the entries, or zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "safetensors.hpp"
#include <warmgraph/warmgraph.hpp>

namespace serve {

/// A tensor in a state's memory, with its name in PyTorch's state_dict().
struct Part {
    std::string name;
    std::uint64_t offset = 0; ///< bytes from the state's begin
    warmgraph::DType dtype = warmgraph::DType::u8;
    std::vector<std::int64_t> sizes; ///< elements; the tensor is contiguous

    [[nodiscard]] std::uint64_t bytes() const;
};

/// An entry's metadata of a PyTorch function's states ("Without PyTorch" in docs/python.md).
struct EntryMetadata {
    std::set<std::string> written;                  ///< states that the function writes
    std::map<std::string, std::vector<Part>> parts; ///< tensors of a state, unless its only tensor has its own name
    std::map<std::string, std::vector<std::byte>> contents; ///< contents of states that a weights file does not have

    /// Throws std::invalid_argument for any other text.
    [[nodiscard]] static EntryMetadata parse(const std::string& text);
};

/// Owns the memory. Functions share a state by its name, so `decode` reads what `prompt` wrote.
class States {
public:
    /// `file` must outlive this object.
    States(warmgraph::Device device, const samples::Safetensors& file);

    /// The state's memory: made at its first use, then the same for every function. Its contents come from the file,
    /// else from the entry; else they are zeros if the function writes the state. Throws std::invalid_argument with the
    /// tensor's name when the tensor is missing, or differs in the file.
    [[nodiscard]] warmgraph::MemoryRef of(const warmgraph::StateDecl& state, const EntryMetadata& metadata);

private:
    [[nodiscard]] std::vector<std::byte> contents_of(const warmgraph::StateDecl& state,
                                                     const EntryMetadata& metadata) const;

    warmgraph::Device m_device;
    const samples::Safetensors& m_file;
    std::map<std::string, warmgraph::Buffer> m_buffers;
};

} // namespace serve
