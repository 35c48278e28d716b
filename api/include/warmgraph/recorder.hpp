// The recorder: a wrapped callable enqueues its work through it.
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

/// Gives a wrapped callable its stream and the addresses, sizes and numbers of the current run. While a function is
/// recorded, its callable is called more than once, with other addresses and scalar values, and must enqueue the same
/// work each time. Valid only within the call, and only in the thread that runs the callable.
class WARMGRAPH_API Recorder {
public:
    [[nodiscard]] Stream& stream() noexcept;
    /// Makes a further stream, which starts after all work that was enqueued in stream() so far. The callable must join
    /// it before it returns (not_recordable otherwise).
    [[nodiscard]] Stream& fork();
    void join(Stream& forked); ///< orders later work of stream() after all work of `forked`

    /// Returns the address of an input, output, state or constant in this run, or of scratch memory from alloc().
    /// invalid_argument: an unknown name.
    [[nodiscard]] Address address(std::string_view name) const;
    [[nodiscard]] Address operator[](std::string_view name) const { return address(name); }
    /// Returns the sizes of an input or output in this run, in elements. invalid_argument: an unknown name.
    [[nodiscard]] const std::vector<std::int64_t>& sizes(std::string_view name) const;
    [[nodiscard]] DType dtype(std::string_view name) const;

    /// Returns scratch memory that the entry owns. It holds zeros at first, and then what the call before left there;
    /// results must not depend on that. The same name gives the same memory. invalid_argument: 0 bytes, a declared
    /// name, or another size for the same name in one run.
    [[nodiscard]] Address alloc(std::string_view name, std::uint64_t bytes);

    /// Returns a scalar or value of this run. T must be the declared type (invalid_argument otherwise).
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
