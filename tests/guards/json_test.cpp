#include "expect_error.hpp"
#include "sample_guards.hpp"
#include "warmgraph/guards/json.hpp"

namespace warmgraph::guards::json_test {
namespace {

TEST(GuardsJson, GivesBackWhatWasWritten)
{
    Guards guards = test::sample_guards();
    guards.facts[0].value = cachefmt::k_unknown;
    guards.values[0].bits = ~std::uint64_t{0};
    guards.tensors[0].strides = {-1};
    guards.tensors[1].distance = 0; // a distance of 0 is another guard than no distance
    guards.tensors[2].distance = -64;
    const Result<Guards> read = from_json(to_json(guards));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, guards);
}

TEST(GuardsJson, ReadsTensorsThatWereWrittenBeforeDistances)
{
    const Result<Guards> read = from_json(
        R"({"facts":[],"values":[],"tensors":[{"name":"x","dtype":"i32","sizes":[1],"strides":[1],"device":"d",)"
        R"("alignment":1,"alias_group":0}]})");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_FALSE(read->tensors.at(0).distance);
}

TEST(GuardsJson, WritesUnknownAsNullOnOneLine)
{
    Guards guards;
    guards.facts = {{"driver.version", cachefmt::k_unknown, Role::must_match}};
    EXPECT_EQ(to_json(guards),
              R"({"facts":[{"name":"driver.version","role":"must_match","value":null}],"tensors":[],"values":[]})");
}

TEST(GuardsJson, LeavesMembersAloneThatItDoesNotKnow)
{
    EXPECT_TRUE(from_json(R"({"time":"now","process":7,"facts":[],"tensors":[],"values":[]})"));
}

TEST(GuardsJson, SurvivesBytesThatAreNoUtf8)
{
    Guards guards;
    guards.facts = {{"env.X", "a\xff", Role::must_match}};
    const Result<Guards> read = from_json(to_json(guards));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->facts[0].value, "a\xef\xbf\xbd");
}

TEST(GuardsJson, RefusesWhatIsNoGuards)
{
    const std::string tensor_front =
        R"({"facts":[],"values":[],"tensors":[{"name":"x","device":"d","alignment":1,"alias_group":0,)";
    for (const std::string& text :
         {std::string{}, std::string("["), std::string("[]"), std::string("null"), std::string(R"({"facts":[]})"),
          std::string(R"({"facts":[{"name":"a","value":1,"role":"must_match"}],"tensors":[],"values":[]})"),
          std::string(R"({"facts":[{"name":"a","value":"1","role":"maybe"}],"tensors":[],"values":[]})"),
          tensor_front + R"("dtype":"i33","sizes":[1],"strides":[1]}]})",
          tensor_front + R"("dtype":"i32","sizes":[1,2],"strides":[1]}]})",
          tensor_front + R"("dtype":"i32","sizes":[1],"strides":[1],"distance":"8"}]})",
          tensor_front + R"("dtype":"i32","sizes":[1,1,1,1,1,1,1,1,1],"strides":[1,1,1,1,1,1,1,1,1]}]})"}) {
        const Result<Guards> read = from_json(text);
        EXPECT_TRUE(failed_with(read, ErrorCode::corrupt, "guards in JSON cannot be read")) << text;
    }
}

} // namespace
} // namespace warmgraph::guards::json_test
