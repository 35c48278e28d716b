// The sizes of the model, and the geometry that its kernels are compiled for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace llm {

/// Sizes of the kernels' work-groups (kernels.cl, kernels.cu), fixed at their compilation. Tuning finds better sizes.
struct Geometry {
    /// matvec: items that share a dot product; OpenCL's matmul: also rows of a tile. 0, on CUDA: use cuBLASLt
    std::uint32_t lanes = 8;
    std::uint32_t rows = 8;        ///< matrix rows in one group
    std::uint32_t norm_items = 32; ///< items in one group of rmsnorm; a power of two
    std::uint32_t items = 32;      ///< items in one group of kernels that work element by element
};

/// Padded lengths of a prompt. Each is one variant of the function `prompt`.
inline constexpr std::array<std::uint32_t, 4> k_buckets{16, 32, 64, 128};

struct Config {
    std::string name;
    std::uint32_t dim = 0;
    std::uint32_t n_layers = 0;
    std::uint32_t n_heads = 0;
    std::uint32_t n_kv_heads = 0;
    std::uint32_t hidden_dim = 0;
    std::uint32_t vocab_size = 0;
    std::uint32_t max_seq_len = 0;
    double rope_theta = 0;
    double norm_eps = 0;

    /// Reads the sizes from the metadata of a safetensors file. Throws std::invalid_argument when a value is missing,
    /// is not a number, or does not fit the kernels.
    [[nodiscard]] static Config from_metadata(const std::map<std::string, std::string>& metadata);

    [[nodiscard]] std::uint32_t head_dim() const noexcept { return dim / n_heads; }
    [[nodiscard]] std::uint32_t kv_dim() const noexcept { return n_kv_heads * head_dim(); }
    [[nodiscard]] std::uint64_t kv_layer_bytes() const noexcept
    {
        return std::uint64_t{2} * kv_dim() * max_seq_len * sizeof(float);
    }
    /// Whether the kernels can be compiled for this geometry. They do not mask the end of a matrix, so sizes must
    /// divide evenly.
    [[nodiscard]] bool admits(const Geometry& geometry) const noexcept;
    /// Returns "-D DIM=128 ...": the build options for kernels.cl and kernels.cu, without the geometry.
    [[nodiscard]] std::string definitions() const;
    /// Returns the same options as a map: the model's identity in the cache.
    [[nodiscard]] std::map<std::string, std::string> identity() const;
};

/// Returns the smallest bucket that holds a prompt; throws std::invalid_argument when none does.
[[nodiscard]] std::uint32_t bucket_for(std::size_t tokens);

} // namespace llm
