#include <gtest/gtest.h>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards::version_test {
namespace {

TEST(SameOrNewer, ComparesVersionsByTheirNumbers)
{
    struct Row {
        const char* recorded;
        const char* now;
        bool accepted;
    };
    for (const Row& row :
         {Row{"580.159.04", "580.159.04", true}, Row{"580.159.04", "580.159.05", true},
          Row{"580.159.04", "580.126.20", false}, Row{"580.159.04", "580.159.4", true}, Row{"9.0", "10.0", true},
          Row{"10.0", "9.9", false}, Row{"3.1", "3.1.1", true}, Row{"3.1.1", "3.1", false}, Row{"3.1.0", "3.1", true},
          Row{"OpenCL 3.0 PoCL 3.1+debian", "OpenCL 3.0 PoCL 5.0", true},
          Row{"OpenCL 3.0 PoCL 5.0", "OpenCL 3.0 PoCL 3.1+debian", false}, Row{"PoCL 3.1", "NVIDIA 580", false},
          Row{"", "", true}, Row{"", "1", false}, Row{"1", "", false}, Row{"same", "same", true},
          Row{"one", "two", false}, Row{"99999999999999999999999.1", "99999999999999999999999.2", true},
          Row{"100000000000000000000000", "99999999999999999999999", false}})
        EXPECT_EQ(same_or_newer(row.recorded, row.now), row.accepted) << row.recorded << " -> " << row.now;
}

} // namespace
} // namespace warmgraph::guards::version_test
