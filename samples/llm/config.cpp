#include "config.hpp"

#include <charconv>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace llm {
namespace {

const std::string& text_of(const std::map<std::string, std::string>& metadata, const std::string& name)
{
    const auto found = metadata.find(name);
    if (found == metadata.end()) throw std::invalid_argument(fmt::format("the weights' metadata lacks '{}'", name));
    return found->second;
}

template <class T>
T number_of(const std::map<std::string, std::string>& metadata, const std::string& name, T low, T high)
{
    const std::string& text = text_of(metadata, name);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value >= low && value <= high)) {
        throw std::invalid_argument(
            fmt::format("the weights' metadata has {} = '{}', expected {} to {}", name, text, low, high));
    }
    return value;
}

void require(bool holds, const char* what)
{
    if (!holds) throw std::invalid_argument(fmt::format("this model does not fit the kernels: {}", what));
}

void check(const Config& config)
{
    require(config.dim % config.n_heads == 0, "dim is not a multiple of n_heads");
    require(config.n_heads % config.n_kv_heads == 0, "n_heads is not a multiple of n_kv_heads");
    require(config.head_dim() % 2 == 0, "head_dim is odd");
    require(config.admits({}), "a matrix' rows or columns are not a multiple of a group's");
    require(config.max_seq_len >= k_buckets.back(), "max_seq_len is shorter than the longest prompt");
}

} // namespace

Config Config::from_metadata(const std::map<std::string, std::string>& metadata)
{
    // The upper limits keep every product of sizes within 32 bits, because the kernels count in 32 bits.
    const auto size = [&](const char* name, std::uint32_t high) {
        return number_of<std::uint32_t>(metadata, name, 1, high);
    };
    Config config;
    config.name = text_of(metadata, "name");
    config.dim = size("dim", 512);
    config.n_layers = size("n_layers", 64);
    config.n_heads = size("n_heads", 64);
    config.n_kv_heads = size("n_kv_heads", 64);
    config.hidden_dim = size("hidden_dim", 4096);
    config.vocab_size = size("vocab_size", 65'536);
    config.max_seq_len = size("max_seq_len", 2048);
    config.rope_theta = number_of<double>(metadata, "rope_theta", 1.0, 1e9);
    config.norm_eps = number_of<double>(metadata, "norm_eps", 0.0, 1.0);
    check(config);
    return config;
}

bool Config::admits(const Geometry& geometry) const noexcept
{
    if (geometry.lanes == 0 || geometry.rows == 0 || geometry.norm_items == 0 || geometry.items == 0) return false;
    for (const std::uint32_t size : {dim, kv_dim(), hidden_dim, vocab_size})
        if (size % geometry.rows != 0) return false;
    for (const std::uint32_t size : {dim, hidden_dim})
        if (size % (4 * geometry.lanes) != 0 || size % geometry.items != 0) return false;
    return k_buckets.front() % geometry.lanes == 0 && (geometry.norm_items & (geometry.norm_items - 1)) == 0;
}

std::map<std::string, std::string> Config::identity() const
{
    return {{"dim", std::to_string(dim)},
            {"n_layers", std::to_string(n_layers)},
            {"n_heads", std::to_string(n_heads)},
            {"n_kv_heads", std::to_string(n_kv_heads)},
            {"hidden_dim", std::to_string(hidden_dim)},
            {"vocab_size", std::to_string(vocab_size)},
            {"max_seq_len", std::to_string(max_seq_len)},
            {"rope_theta", fmt::format("{}", rope_theta)},
            {"norm_eps", fmt::format("{}", norm_eps)},
            {"dtype", "f32"}};
}

std::string Config::definitions() const
{
    // The number always has an exponent: "1e-05f" is a float literal of OpenCL C and of CUDA C++, "10000f" is not.
    return fmt::format("-D DIM={} -D HEADS={} -D KV_HEADS={} -D HEAD_DIM={} -D HIDDEN={} -D VOCAB={} "
                       "-D MAX_SEQ={} -D ROPE_THETA={:.9e}f -D NORM_EPS={:.9e}f",
                       dim, n_heads, n_kv_heads, head_dim(), hidden_dim, vocab_size, max_seq_len, rope_theta, norm_eps);
}

std::uint32_t bucket_for(std::size_t tokens)
{
    if (tokens == 0) throw std::invalid_argument("the prompt is empty, expected at least one byte");
    for (const std::uint32_t bucket : k_buckets) {
        if (tokens <= bucket) return bucket;
    }
    throw std::invalid_argument(
        fmt::format("the prompt has {} bytes, at most {} are possible", tokens, k_buckets.back()));
}

} // namespace llm
