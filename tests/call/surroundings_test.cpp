// Tests Surroundings: it gathers facts once, and again when something changes on which they depend.
#include <cstdlib>

#include "call_fixture.hpp"
#include "warmgraph/call/call_arguments.hpp"
#include "warmgraph/call/surroundings.hpp"

namespace warmgraph::test::surroundings_test {
namespace {

constexpr const char* k_variable = "WARMGRAPH_TEST_SURROUNDINGS";

class SurroundingsTest : public CallTest {
protected:
    SurroundingsTest() { ::setenv(k_variable, "one", 1); }
    ~SurroundingsTest() override { ::unsetenv(k_variable); }
    [[nodiscard]] std::shared_ptr<const Declaration> depending()
    {
        Spec spec;
        spec.environment = {k_variable};
        return declare({}, std::move(spec));
    }
    [[nodiscard]] FirstCall described(const std::vector<Arg>& args)
    {
        FirstCall first_call;
        read.read(args);
        surroundings.describe(read.frame(), first_call);
        return first_call;
    }
    int gathered = 0;
    std::shared_ptr<const Declaration> declaration = depending();
    CallArguments read{declaration};
    Surroundings surroundings{declaration, [this] {
                                  ++gathered;
                                  return std::vector<cachefmt::Fact>{
                                      {"a", environment_of(declaration->spec).front(), cachefmt::Role::must_match}};
                              }};
};

TEST_F(SurroundingsTest, FactsAreGatheredOnce)
{
    EXPECT_EQ(surroundings.notice().drops_all, "");
    const Digest first = described(arguments()).digest;
    EXPECT_EQ(described(arguments()).digest, first);
    EXPECT_EQ(gathered, 1);
    EXPECT_EQ(surroundings.notice().drops_all, "");
}

TEST_F(SurroundingsTest, AVariableThatChangesDropsAllThatIsLoadedAndIsAnotherFact)
{
    static_cast<void>(surroundings.notice());
    const Digest first = described(arguments()).digest;
    ::setenv(k_variable, "two", 1);
    EXPECT_NE(surroundings.notice().drops_all, "");
    EXPECT_EQ(surroundings.environment(), std::vector<std::string>{"two"});
    EXPECT_NE(described(arguments()).digest, first);
    EXPECT_EQ(gathered, 2);
    EXPECT_EQ(surroundings.notice().drops_all, "");
}

TEST_F(SurroundingsTest, OtherSizesAreOtherGuards)
{
    const FirstCall whole = described(arguments());
    const FirstCall part = described({{"x", Tensor{memory[0], DType::i32, {2, 4}, {}}}, {"y", memory[1]}});
    EXPECT_NE(part.digest, whole.digest);
    ASSERT_EQ(part.now.tensors.size(), 3U);
    EXPECT_EQ(part.now.tensors[0].sizes, (std::vector<std::int64_t>{2, 4}));
}

} // namespace
} // namespace warmgraph::test::surroundings_test
