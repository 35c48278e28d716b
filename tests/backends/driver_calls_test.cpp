// Every OpenCL call must go through driver.hpp, which keeps the text of the call for errors.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

namespace warmgraph::backends::test::driver_calls_test {
namespace {

std::vector<std::string> raw_calls(const std::string& source)
{
    std::vector<std::string> found;
    const std::regex call(R"(\bcl[A-Z][A-Za-z]*\s*\()");
    for (std::sregex_iterator at(source.begin(), source.end(), call), end; at != end; ++at) found.push_back(at->str());
    return found;
}

TEST(DriverCalls, GoThroughTheWrapper)
{
    int files = 0;
    for (const auto& item : std::filesystem::directory_iterator(WARMGRAPH_OPENCL_SOURCES)) {
        if (item.path().stem() == "driver") continue;
        std::stringstream text;
        text << std::ifstream(item.path()).rdbuf();
        EXPECT_EQ(raw_calls(text.str()), std::vector<std::string>{}) << item.path();
        ++files;
    }
    EXPECT_GT(files, 10);
}

TEST(DriverCalls, AreFoundWhenRaw)
{
    EXPECT_EQ(raw_calls("int x = clFinish(queue); call(\"clFlush\", clFlush, queue);").size(), 1U);
}

} // namespace
} // namespace warmgraph::backends::test::driver_calls_test
