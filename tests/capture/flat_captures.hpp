// Hand-made captures for the classifier, of a device with flat addresses like CUDA.
#pragma once

#include "classify/classify.hpp"
#include "expect_error.hpp"

namespace warmgraph::test {

/// Puts the bytes of a parameter together from its parts.
class Packer {
public:
    template <class T>
    Packer& operator<<(T value)
    {
        append(m_bytes, value);
        return *this;
    }
    Packer& skip(std::size_t bytes)
    {
        m_bytes.resize(m_bytes.size() + bytes);
        return *this;
    }
    [[nodiscard]] const Bytes& bytes() const noexcept { return m_bytes; }

private:
    Bytes m_bytes;
};

class FlatCaptures : public testing::Test {
protected:
    static constexpr std::uint64_t k_size = 0x1000;
    /// The addresses and the value of the scalar in one capture.
    struct Places {
        std::uint64_t x, y, pool, graph_memory;
        std::int32_t n = 5;
    };
    using Words = Bytes; ///< the words of the captured kernel's only parameter

    FlatCaptures()
    {
        interface.regions.push_back({"x", cachefmt::RegionKind::input, DType::u8, {k_size}, {}});
        interface.regions.push_back({"y", cachefmt::RegionKind::output, DType::u8, {k_size}, {}});
        captures.flat_addresses = true;
    }
    [[nodiscard]] static MemoryRef at(std::uint64_t flat) { return {Address::from_flat(flat), k_size}; }
    [[nodiscard]] static CapturedGraph places(const Places& places)
    {
        return {{}, {at(places.x), at(places.y)}, {{"pool", at(places.pool)}}};
    }
    /// Captures one kernel with one parameter. `make` returns the parameter's bytes for Places.
    template <class Make>
    void capture_all(Make make)
    {
        const auto capture = [&](const Places& where) {
            CapturedGraph result = places(where);
            backends::RawKernel kernel;
            kernel.kernel = "k";
            kernel.params = {{backends::ParamKind::value, make(where), {}, 0}};
            result.graph.nodes.push_back({kernel, {}});
            return result;
        };
        captures.first = capture(m_first);
        captures.again = capture(m_first);
        captures.moved = capture(m_moved);
        captures.probes.clear();
        for (const std::int32_t n : {0, 50, 100}) {
            if (interface.scalars.empty()) break;
            Places probed = m_first;
            probed.n = n;
            captures.probes.push_back({0, static_cast<std::uint64_t>(n), capture(probed)});
        }
    }
    void capture_only_once()
    {
        captures.again.reset();
        captures.moved.reset();
    }
    void add_to_all(const backends::RawNode& node)
    {
        for (CapturedGraph* capture : {&captures.first, &*captures.again, &*captures.moved})
            capture->graph.nodes.push_back(node);
    }
    [[nodiscard]] Result<Classification> classified() const { return classify(interface, captures); }
    [[nodiscard]] std::vector<cachefmt::Slot> slots()
    {
        auto result = classified();
        if (!result) {
            ADD_FAILURE() << result.error().message;
            return {};
        }
        m_unproven = result->unproven;
        return std::get<cachefmt::KernelNode>(result->graph.nodes[0]).params[0].slots;
    }
    void expect_refused(const testing::Matcher<std::string>& why) const
    {
        const auto result = classified();
        ASSERT_TRUE(failed_with(result, ErrorCode::not_recordable));
        EXPECT_THAT(result.error().message, why);
    }
    static cachefmt::Slot slot(std::uint32_t region, std::uint32_t offset, std::int64_t addend)
    {
        return {cachefmt::SlotKind::region, region, offset, 8, addend};
    }

    Interface interface;
    Captures captures;
    Places m_first{0x7f00'0000'0000, 0x7f00'0100'0000, 0x7f00'0200'0000, 0x7f00'0300'0000};
    Places m_moved{0x7e00'0800'0000, 0x7e00'0400'0000, 0x7e00'0100'0000, 0x7e00'0300'0000};
    std::uint32_t m_unproven = 0;
};

} // namespace warmgraph::test
