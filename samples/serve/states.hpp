// Device memory of the states that recorded functions keep: weights from a file, what the entries carry, zeros.
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

/// A tensor in a state's memory, by the name that PyTorch's state_dict() has for it.
struct Part {
    std::string name;
    std::uint64_t offset = 0; ///< bytes from where the state begins
    warmgraph::DType dtype = warmgraph::DType::u8;
    std::vector<std::int64_t> sizes; ///< elements; the tensor is contiguous

    [[nodiscard]] std::uint64_t bytes() const;
};

/// What an entry of a PyTorch function says of its states ("Without PyTorch" in docs/python.md).
struct EntryMetadata {
    std::set<std::string> written;                          ///< states that the function writes
    std::map<std::string, std::vector<Part>> parts;         ///< of states that are not one tensor of their own name
    std::map<std::string, std::vector<std::byte>> contents; ///< of states that no file of weights has

    /// std::invalid_argument for what is no such text.
    [[nodiscard]] static EntryMetadata parse(const std::string& text);
};

/// Owns the memory. Functions share a state by its name: what `prompt` writes, `decode` reads.
class States {
public:
    /// `file` must outlive it.
    States(warmgraph::Device device, const samples::Safetensors& file);

    /// The state's memory: made at its first use, then the same for every function. Its tensors' contents are the file's;
    /// else the entry's; else zeros, where the function writes it. std::invalid_argument names a tensor that is missing, or
    /// is another one in the file.
    [[nodiscard]] warmgraph::MemoryRef of(const warmgraph::StateDecl& state, const EntryMetadata& metadata);

private:
    [[nodiscard]] std::vector<std::byte> contents_of(const warmgraph::StateDecl& state,
                                                     const EntryMetadata& metadata) const;

    warmgraph::Device m_device;
    const samples::Safetensors& m_file;
    std::map<std::string, warmgraph::Buffer> m_buffers;
};

} // namespace serve
