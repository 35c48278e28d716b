#include "kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "memory.hpp"

namespace fake_cuda {
namespace {

/// The i32 elements of an argument. An access past the end of the allocation is noted.
class Elements {
public:
    explicit Elements(CUdeviceptr address) : m_bytes(fake_cuda::memory().rest(address)) {}
    [[nodiscard]] std::int32_t at(std::uint64_t index)
    {
        std::int32_t value = 0;
        if (holds(index)) std::memcpy(&value, m_bytes.data() + index * sizeof value, sizeof value);
        return value;
    }
    void set(std::uint64_t index, std::int32_t value)
    {
        if (holds(index)) std::memcpy(m_bytes.data() + index * sizeof value, &value, sizeof value);
    }
    [[nodiscard]] bool is_good() const { return m_is_good; }

private:
    bool holds(std::uint64_t index)
    {
        const bool inside = (index + 1) * sizeof(std::int32_t) <= m_bytes.size();
        m_is_good = m_is_good && inside;
        return inside;
    }
    std::span<std::byte> m_bytes;
    bool m_is_good = true;
};

std::int32_t wrap(std::int64_t value) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(value)); }

std::uint64_t count_of(const Arguments& args)
{
    const std::int32_t count = args.values.back();
    return std::min<std::uint64_t>(args.items, count < 0 ? 0 : static_cast<std::uint64_t>(count));
}

/// A kernel that changes each element of its first memory argument. For an element it reads only the elements of the
/// other arguments with the same index. The last value argument is the number of elements.
template <class Change>
std::function<bool(const Arguments&)> each(Change change)
{
    return [change](const Arguments& args) {
        std::vector<Elements> x;
        for (const CUdeviceptr address : args.memory) x.emplace_back(address);
        for (std::uint64_t i = 0; i < count_of(args); ++i) x[0].set(i, wrap(change(args, x, i)));
        return std::ranges::all_of(x, &Elements::is_good);
    };
}

bool sum(const Arguments& args)
{
    std::int64_t total = 0;
    Elements out(args.memory[0]), x(args.memory[1]);
    for (std::int32_t i = 0; i < args.values[0]; ++i) total += x.at(static_cast<std::uint64_t>(i));
    out.set(0, wrap(total));
    return out.is_good() && x.is_good();
}

using Views = std::vector<Elements>;

const std::vector<Kernel>& kernels()
{
    using enum ArgumentKind;
    static const std::vector<Kernel> list{
        {"iota", {memory, value}, each([](const Arguments&, Views&, std::uint64_t i) {
             return static_cast<std::int64_t>(i);
         })},
        {"add_scalar", {memory, value, value}, each([](const Arguments& args, Views& x, std::uint64_t i) {
             return std::int64_t{x[0].at(i)} + args.values[0];
         })},
        {"scale", {memory, value, value}, each([](const Arguments& args, Views& x, std::uint64_t i) {
             return std::int64_t{x[0].at(i)} * args.values[0];
         })},
        {"copy", {memory, memory, value}, each([](const Arguments&, Views& x, std::uint64_t i) {
             return std::int64_t{x[1].at(i)};
         })},
        {"add", {memory, memory, memory, value}, each([](const Arguments&, Views& x, std::uint64_t i) {
             return std::int64_t{x[1].at(i)} + x[2].at(i);
         })},
        {"sum", {memory, memory, local, value}, sum},
    };
    return list;
}

constexpr std::array<std::string_view, 3> k_words{"memory", "value", "local"};

} // namespace

const Kernel* find_kernel(std::string_view name)
{
    const auto found = std::ranges::find(kernels(), name, &Kernel::name);
    return found == kernels().end() ? nullptr : &*found;
}

std::string to_text(std::span<const ArgumentKind> arguments)
{
    std::string text;
    for (const ArgumentKind kind : arguments) text += std::string(k_words[static_cast<std::size_t>(kind)]) + ",";
    if (!text.empty()) text.pop_back();
    return text;
}

std::optional<std::vector<ArgumentKind>> arguments_of(std::string_view text)
{
    std::vector<ArgumentKind> arguments;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(','));
        const auto found = std::ranges::find(k_words, word);
        if (found == k_words.end()) return std::nullopt;
        arguments.push_back(static_cast<ArgumentKind>(found - k_words.begin()));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
    }
    return arguments;
}

} // namespace fake_cuda
