#include "fake_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace warmgraph::backends {
namespace {

using enum ParamKind;

/// The i32 elements of an argument. Reads and writes past the end of its allocation have no effect.
class Elements {
public:
    explicit Elements(std::span<std::byte> bytes) : m_bytes(bytes) {}
    [[nodiscard]] std::int32_t at(std::uint64_t index) const
    {
        std::int32_t value = 0;
        if (holds(index)) std::memcpy(&value, m_bytes.data() + index * sizeof value, sizeof value);
        return value;
    }
    void set(std::uint64_t index, std::int32_t value) const
    {
        if (holds(index)) std::memcpy(m_bytes.data() + index * sizeof value, &value, sizeof value);
    }

private:
    [[nodiscard]] bool holds(std::uint64_t index) const { return (index + 1) * sizeof(std::int32_t) <= m_bytes.size(); }
    std::span<std::byte> m_bytes;
};

std::uint64_t count_of(const FakeArguments& args)
{
    const std::int32_t count = args.values.back();
    return std::min<std::uint64_t>(args.items, count < 0 ? 0 : static_cast<std::uint64_t>(count));
}

/// A kernel that changes each element of its first memory parameter independently. Its last value parameter is the
/// number of elements.
template <class Change>
std::function<void(const FakeArguments&)> each(Change change)
{
    return [change](const FakeArguments& args) {
        const Elements elements(args.memory[0]);
        for (std::uint64_t i = 0; i < count_of(args); ++i) elements.set(i, change(args, elements, i));
    };
}

std::int32_t wrap(std::int64_t value) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(value)); }

void sum(const FakeArguments& args)
{
    std::int64_t total = 0;
    for (std::int32_t i = 0; i < args.values[0]; ++i)
        total += Elements(args.memory[1]).at(static_cast<std::uint64_t>(i));
    Elements(args.memory[0]).set(0, wrap(total));
}

/// Returns another value in each call, so that verification finds nondeterminism.
std::int32_t next_noise()
{
    static std::atomic<std::int32_t> counter = 0;
    return ++counter;
}

const std::vector<FakeKernel>& kernels()
{
    static const std::vector<FakeKernel> list{
        {"iota", {memory, value}, each([](const FakeArguments&, const Elements&, std::uint64_t i) {
             return wrap(static_cast<std::int64_t>(i));
         })},
        {"add_scalar", {memory, value, value}, each([](const FakeArguments& args, const Elements& x, std::uint64_t i) {
             return wrap(std::int64_t{x.at(i)} + args.values[0]);
         })},
        {"scale", {memory, value, value}, each([](const FakeArguments& args, const Elements& x, std::uint64_t i) {
             return wrap(std::int64_t{x.at(i)} * args.values[0]);
         })},
        {"copy", {memory, memory, value}, each([](const FakeArguments& args, const Elements&, std::uint64_t i) {
             return Elements(args.memory[1]).at(i);
         })},
        {"add", {memory, memory, memory, value}, each([](const FakeArguments& args, const Elements&, std::uint64_t i) {
             return wrap(std::int64_t{Elements(args.memory[1]).at(i)} + Elements(args.memory[2]).at(i));
         })},
        {"sum", {memory, memory, local, value}, sum},
        {"noise", {memory, value}, each([](const FakeArguments&, const Elements&, std::uint64_t) {
             return next_noise();
         })},
    };
    return list;
}

} // namespace

const FakeKernel* find_fake_kernel(std::string_view name)
{
    const auto found = std::ranges::find(kernels(), name, &FakeKernel::name);
    return found == kernels().end() ? nullptr : &*found;
}

} // namespace warmgraph::backends
