// A fixture: a function with one input and one output on a FlatDevice.
#pragma once

#include "expect_error.hpp"
#include "flat_fixture.hpp"

namespace warmgraph::test {

class RecordingTest : public FlatFunction {
protected:
    RecordingTest()
    {
        x = declare("x", RegionKind::input, k_count, 5);
        y = declare("y", RegionKind::output, k_count, 0);
    }
    void expect_refused(const Callable& callable, const testing::Matcher<std::string>& why)
    {
        const auto refused = recorded(callable);
        ASSERT_TRUE(failed_with(refused, ErrorCode::not_recordable));
        EXPECT_THAT(refused.error().message, why);
    }
    Callable add = [this](Recorder& r) { launch(r, kernel("add", {r["y"], r["x"]}, k_count)); };
    MemoryRef x, y;
};

} // namespace warmgraph::test
