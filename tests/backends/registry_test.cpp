#include "expect_error.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::backends::test::registry_test {
namespace {

class Registry : public testing::Test {
protected:
    void SetUp() override
    {
        FakeOptions options;
        options.devices = 3;
        register_backend(make_fake_backend(options));
    }
};

TEST_F(Registry, OpensByBackendAndSelector)
{
    const auto by_index = take(open_device("fake:2"));
    EXPECT_EQ(by_index->id(), "fake:2");
    const auto first = take(open_device("fake"));
    EXPECT_EQ(first->id(), "fake:0");
    const auto by_name = take(open_device("fake:accelerator 1"));
    EXPECT_EQ(by_name->id(), "fake:1");
}

TEST_F(Registry, GivesTheSameObjectForTheSameDevice)
{
    const auto one = open_device("fake:1");
    const auto same = open_device("fake:1");
    ASSERT_TRUE(succeeded(one));
    ASSERT_TRUE(succeeded(same));
    EXPECT_EQ(*one, *same);
}

TEST_F(Registry, NamesWhatThereIs)
{
    EXPECT_TRUE(failed_with(open_device("cuda:0"), ErrorCode::not_found, "backends: fake"));
    EXPECT_TRUE(failed_with(open_device("fake:7"), ErrorCode::not_found, "fake:0 (Fake Accelerator 0), fake:1"));
    EXPECT_TRUE(failed_with(open_device(""), ErrorCode::not_found));
}

TEST_F(Registry, ReplacesABackendOfTheSameName)
{
    const auto other = make_fake_backend();
    register_backend(other);
    EXPECT_EQ(backends().size(), 1U);
    EXPECT_EQ(backends().front(), other);
}

} // namespace
} // namespace warmgraph::backends::test::registry_test
