// Makes skipped tests fail: a skipped test proves nothing and is easily overlooked. WARMGRAPH_ALLOW_SKIPS=1 lets a
// developer without a resource (an OpenCL device, a file system) run the rest. lacking.hpp has the skips that are
// allowed.
#include <cstdlib>
#include <string_view>

#include "lacking.hpp"

namespace {

bool is_excused(const testing::TestResult& result)
{
    for (int i = 0; i < result.test_property_count(); ++i)
        if (std::string_view{result.GetTestProperty(i).key()} == warmgraph::test::k_lacking) return true;
    return false;
}

class RefuseSkips : public testing::EmptyTestEventListener {
    // This runs before the handler of the printer, which then shows a failed test (googletest: "Extending by handling
    // test events").
    void OnTestEnd(const testing::TestInfo& test) override
    {
        const auto& result = *test.result();
        if (result.Skipped() && !is_excused(result) && std::getenv("WARMGRAPH_ALLOW_SKIPS") == nullptr) {
            ADD_FAILURE()
                << "this test was skipped; install what it needs (./dev setup) or set WARMGRAPH_ALLOW_SKIPS=1";
        }
    }
};

[[maybe_unused]] const bool k_installed = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new RefuseSkips); // the list becomes the owner
    return true;
}();

} // namespace
