// What a wrapped callable talks to.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "warmgraph/arguments.hpp"
#include "warmgraph/stream.hpp"

namespace warmgraph {

/// What the wrapped callable talks to. It is called more than once while recording, with other addresses and scalar
/// values, and must enqueue the same work each time.
class WARMGRAPH_API Recorder {
public:
    [[nodiscard]] Stream& stream() noexcept;
    /// A further stream that starts after all work enqueued in stream() so far. Join it before the callable returns
    /// (not_recordable otherwise).
    [[nodiscard]] Stream& fork();
    void join(Stream& forked);

    /// Where an input, output or state is in this run; of scratch memory, what alloc gave. invalid_argument for an
    /// unknown name.
    [[nodiscard]] Address address(std::string_view name) const;
    [[nodiscard]] Address operator[](std::string_view name) const { return address(name); }
    /// Sizes of an input or output in this run.
    [[nodiscard]] const std::vector<std::int64_t>& sizes(std::string_view name) const;
    [[nodiscard]] DType dtype(std::string_view name) const;

    /// Scratch memory that the entry owns: zeros at first, then what the call before left, and results may not follow
    /// that. The same name gives the same memory. invalid_argument: 0 bytes, a declared name, another size for a name
    /// in one run.
    [[nodiscard]] Address alloc(std::string_view name, std::uint64_t bytes);

    /// A scalar or value of this run. T must be the declared type.
    template <class T>
        requires std::is_arithmetic_v<T>
    [[nodiscard]] T scalar(std::string_view name) const
    {
        const Number number = number_of(name, Number::of(T{}).dtype);
        T value;
        std::memcpy(&value, &number.bits, sizeof value);
        return value;
    }

    struct Impl;
    explicit Recorder(Impl& impl) noexcept : m_impl(impl) {}
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

private:
    [[nodiscard]] Number number_of(std::string_view name, DType dtype) const;
    Impl& m_impl;
};

using Callable = std::function<void(Recorder&)>;

} // namespace warmgraph
