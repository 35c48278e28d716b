// Tests those parts of the sample that need no device: tokens, configuration, tables.

#include "config.hpp"
#include "generate.hpp"
#include "matchers.hpp"
#include "result.hpp"
#include "table.hpp"
#include "tokenizer.hpp"

namespace llm::text_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::map<std::string, std::string> metadata()
{
    return {{"name", "tiny"},          {"dim", "128"},        {"n_layers", "4"},     {"n_heads", "4"},
            {"n_kv_heads", "2"},       {"hidden_dim", "352"}, {"vocab_size", "256"}, {"max_seq_len", "256"},
            {"rope_theta", "10000.0"}, {"norm_eps", "1e-05"}};
}

std::string refusal_with(const std::string& name, const std::string& value)
{
    auto changed = metadata();
    changed[name] = value;
    try {
        static_cast<void>(Config::from_metadata(changed));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Tokenizer, GivesBackEveryByte)
{
    std::string all;
    for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
    EXPECT_EQ(decode(encode(all)), all);
    EXPECT_THAT(encode("A\xff"), ElementsAre(65, 255));
}

TEST(Tokenizer, DropsWhatIsNoByte) { EXPECT_EQ(decode({-1, 65, 256, 66}), "AB"); }

TEST(ModelConfig, IsReadFromTheWeightsMetadata)
{
    const Config config = Config::from_metadata(metadata());
    EXPECT_EQ(config.head_dim(), 32U);
    EXPECT_EQ(config.kv_dim(), 64U);
    EXPECT_EQ(config.kv_layer_bytes(), 131'072U);
    EXPECT_THAT(config.definitions(), HasSubstr("-D DIM=128 -D HEADS=4 -D KV_HEADS=2 -D HEAD_DIM=32"));
    EXPECT_THAT(config.definitions(), HasSubstr("-D ROPE_THETA=1.000000000e+04f -D NORM_EPS=1.000000000e-05f"));
}

TEST(ModelConfig, RefusesWhatTheKernelsCannotDo)
{
    EXPECT_THAT(refusal_with("dim", "0"), HasSubstr("dim = '0', expected 1 to 512"));
    EXPECT_THAT(refusal_with("dim", "4294967424"), HasSubstr("expected 1 to 512"));
    EXPECT_THAT(refusal_with("dim", "128x"), HasSubstr("dim = '128x'"));
    EXPECT_THAT(refusal_with("dim", "-128"), HasSubstr("dim = '-128'"));
    EXPECT_THAT(refusal_with("n_heads", "3"), HasSubstr("dim is not a multiple of n_heads"));
    EXPECT_THAT(refusal_with("n_kv_heads", "3"), HasSubstr("n_heads is not a multiple of n_kv_heads"));
    EXPECT_THAT(refusal_with("hidden_dim", "350"), HasSubstr("rows or columns are not a multiple"));
    EXPECT_THAT(refusal_with("hidden_dim", "360"), HasSubstr("rows or columns are not a multiple"));
    EXPECT_THAT(refusal_with("max_seq_len", "64"), HasSubstr("shorter than the longest prompt"));
    EXPECT_THAT(refusal_with("norm_eps", "nan"), HasSubstr("norm_eps = 'nan'"));
    auto without = metadata();
    without.erase("rope_theta");
    EXPECT_THROW(static_cast<void>(Config::from_metadata(without)), std::invalid_argument);
}

TEST(Bucket, IsTheSmallestThatHoldsThePrompt)
{
    EXPECT_EQ(bucket_for(1), 16U);
    EXPECT_EQ(bucket_for(16), 16U);
    EXPECT_EQ(bucket_for(17), 32U);
    EXPECT_EQ(bucket_for(128), 128U);
    EXPECT_THROW(static_cast<void>(bucket_for(0)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(bucket_for(129)), std::invalid_argument);
}

TEST(Argmax, TakesTheFirstOfEquals) { EXPECT_EQ(argmax({-1.0F, 3.0F, 3.0F, 2.0F}), 1); }

TEST(CallTimes, KeepTheFirstCallApart)
{
    CallTimes times;
    EXPECT_EQ(times.median_us(), std::nullopt);
    for (const double took : {900.0, 3.0, 1.0, 2.0}) times.add(took);
    EXPECT_EQ(times.first_ms, 900.0);
    EXPECT_EQ(times.median_us(), 2000.0);
    EXPECT_EQ(times.calls(), 4U);
}

TEST(Quantities, AreGroupedByThousands)
{
    EXPECT_EQ(milliseconds(0.037), "0.04 ms");
    EXPECT_EQ(milliseconds(14.06), "14.1 ms");
    EXPECT_EQ(milliseconds(1912.0), "1 912.0 ms");
    EXPECT_EQ(milliseconds(1234567.89), "1 234 567.9 ms");
    EXPECT_EQ(microseconds(471.4), "471 us");
    EXPECT_EQ(microseconds(14801.0), "14 801 us");
}

TEST(PhaseTable, AlignsColumnsAndColoursOnlyOnRequest)
{
    Table table;
    table.row({"", "cold", "warm"});
    table.rule();
    table.strong_row({"first token", "1 961.8 ms", "6.5 ms", "302x"});
    EXPECT_EQ(table.text(Colour::plain), "                     cold      warm\n"
                                         "-------------------------------------------\n"
                                         "first token    1 961.8 ms    6.5 ms    302x\n");
    EXPECT_THAT(table.text(Colour::ansi), HasSubstr("\033[1;32mfirst token"));
}

TEST(PhaseTable, MergesThePhasesOfBothRunsInOrder)
{
    EXPECT_THAT(
        merged({"look up", "compile", "verify", "first launch"}, {"look up", "load", "build", "first launch", "wait"}),
        ElementsAre("look up", "load", "build", "compile", "verify", "first launch", "wait"));
    EXPECT_THAT(merged({}, {"a", "b"}), ElementsAre("a", "b"));
}

} // namespace
} // namespace llm::text_test
