// An adoption of somebody's graph: two captures of the same work, elsewhere.
#pragma once

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
        const MemoryRef other_pool = make(k_count + 4, 0);
        (void)make(1000, 0); // padding, so that each region moves by a distance of its own
        const MemoryRef other_y = make(k_count, 0);
        (void)make(5000, 0);
        second = captured({make(k_count, 0), other_y}, other_pool);
    }
    /// tmp = x + bias; y = tmp + bias.
    struct Captured {
        backends::RawGraph graph;
        AdoptedCapture capture;
    };
    std::unique_ptr<Captured> captured(std::vector<MemoryRef> regions, const MemoryRef& scratch)
    {
        auto result = std::make_unique<Captured>();
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
        const Subject subject{name, interface, device, run_once({name, interface, none, on, streams})};
        return adopt(subject, frame, header(), one, other,
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
    std::unique_ptr<Captured> first, second;
};

} // namespace warmgraph::test
