// A fixture for the adoption of a foreign graph: it makes two captures of the same work with different memory.
#pragma once

#include <algorithm>
#include <array>

#include "flat_fixture.hpp"
#include "warmgraph/capture/adoption.hpp"
#include "warmgraph/device/recorder.hpp"

namespace warmgraph::test {

class AdoptionTest : public FlatFunction {
protected:
    AdoptionTest()
    {
        declare("x", RegionKind::input, k_count, 5);
        declare("y", RegionKind::output, k_count, -7);
        first = captured(frame.memory, pool);
        const std::array other = memory_elsewhere();
        second = captured({other[0], other[1]}, other[2]);
    }
    /// Memory for x, y and the pool in the second capture. Each region's distance between the captures must differ from
    /// the others, and neither it nor k_stale may be the difference of two distances. The allocator decides the
    /// distances, so the function tries until this holds.
    std::array<MemoryRef, 3> memory_elsewhere()
    {
        for (std::int32_t padding = 1000;; padding += 100) {
            const MemoryRef other_pool = make(k_count + 4, 0);
            (void)make(padding, 0);
            const MemoryRef other_y = make(k_count, 0);
            (void)make(3 * padding, 0);
            const std::array other{make(k_count, 0), other_y, other_pool};
            std::array<std::uint64_t, 3> moved{};
            for (std::size_t i = 0; i < moved.size(); ++i)
                moved[i] = other[i].address.flat() - (i < 2 ? frame.memory[i] : pool).address.flat();
            const auto is_between = [&](std::uint64_t distance) {
                return std::ranges::any_of(moved, [&](std::uint64_t delta) {
                    return std::ranges::find(moved, delta + distance) != moved.end();
                });
            };
            if (std::ranges::none_of(moved, is_between) && !is_between(k_stale)) return other;
        }
    }
    static constexpr std::uint64_t k_stale = 0x7770; ///< bytes between the stale addresses of the tests
    /// The work tmp = x + bias; y = tmp + bias, as a captured graph.
    struct RawCapture {
        backends::RawGraph graph;
        AdoptedCapture capture;
    };
    std::unique_ptr<RawCapture> captured(std::vector<MemoryRef> regions, const MemoryRef& scratch)
    {
        auto result = std::make_unique<RawCapture>();
        result->graph.nodes.push_back({kernel("add", {scratch.address + 16, regions[0].address}, k_count), {}});
        result->graph.nodes.push_back({kernel("add", {regions[1].address, scratch.address + 16}, k_count), {0}});
        result->capture = {&result->graph, std::move(regions), {{"pool", scratch}}, {}};
        return result;
    }
    Result<Recording> adopted(const AdoptedCapture& one, const AdoptedCapture* other, Proof proof = Proof::required)
    {
        const Callable none;
        StreamPool streams{device};
        const std::string name = "f";
        const std::shared_ptr<backends::Device> on = device;
        const CaptureTarget target{name, interface, device, run_once({name, interface, none, on, streams})};
        return adopt(target, frame, header(), one, other,
                     {.proof = proof,
                      .unused = unused,
                      .frozen_variables = frozen,
                      .most_constant_bytes = most_constant_bytes,
                      .keeps_undeclared = keeps_undeclared},
                     modules, phases);
    }
    void expect_refused(const Result<Recording>& result, ErrorCode code, const testing::Matcher<std::string>& why)
    {
        ASSERT_TRUE(failed_with(result, code));
        EXPECT_THAT(result.error().message, why);
        expect_untouched();
    }
    void expect_untouched()
    {
        EXPECT_EQ(read(frame.memory[0]), all(5));
        EXPECT_EQ(read(frame.memory[1]), all(-7));
        EXPECT_EQ(read(pool), std::vector<std::int32_t>(k_count + 4, 99));
    }
    MemoryRef pool = make(k_count + 4, 99);
    UnusedWords unused = UnusedWords::tried;
    std::vector<std::string> frozen;
    std::uint64_t most_constant_bytes = 1 << 20;
    bool keeps_undeclared = false;
    std::unique_ptr<RawCapture> first, second;
};

} // namespace warmgraph::test
