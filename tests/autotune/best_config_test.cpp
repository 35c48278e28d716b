// Files with the extension `.best_config`: find() reads what put() writes, and damaged or senseless files are refused.
#include <cmath>
#include <limits>

#include "expect_error.hpp"
#include "sample_best_config.hpp"

namespace warmgraph::autotune::best_config_test {
namespace {

using test::sample_best_config;

std::string replaced(std::string text, std::string_view what, std::string_view by)
{
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(BestConfigFile, ReadsAsItWasWritten)
{
    const BestConfig best = sample_best_config();
    const auto read = take(decode(as_bytes(encode(best))));
    EXPECT_EQ(read, best);
    EXPECT_DOUBLE_EQ(gain(read), 3.0);
}

TEST(BestConfigFile, IsForPeopleToo)
{
    const std::string text = encode(sample_best_config());
    EXPECT_THAT(text, HasSubstr("\"kernel\": \"matmul\""));
    EXPECT_THAT(text, HasSubstr("\"found_by\": \"enumeration\""));
    EXPECT_THAT(text, HasSubstr("\"LANES\": 4"));
}

TEST(BestConfigFile, WithAnyByteChangedIsRefused)
{
    const std::string text = encode(sample_best_config());
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        EXPECT_FALSE(decode(as_bytes(damaged))) << "byte " << at << " of\n" << damaged;
    }
}

TEST(BestConfigFile, WithMoreOrFewerBytesIsRefused)
{
    const std::string text = encode(sample_best_config());
    EXPECT_TRUE(failed_with(decode({}), ErrorCode::corrupt, "empty"));
    for (std::size_t size = 1; size < text.size(); size += 7)
        EXPECT_TRUE(failed_with(decode(as_bytes(text.substr(0, size))), ErrorCode::corrupt)) << size;
    for (const std::string& more : {std::string(" "), std::string("\n"), std::string("{}"), std::string(1, '\0')})
        EXPECT_TRUE(failed_with(decode(as_bytes(text + more)), ErrorCode::corrupt));
    EXPECT_TRUE(failed_with(decode(Bytes(k_best_config_cap + 1, std::byte{' '})), ErrorCode::corrupt, "at most"));
}

// The file's checksum is right, but its contents make no sense.
TEST(BestConfigFile, ThatMakesNoSenseIsRefused)
{
    BestConfig best = sample_best_config();
    best.config = {{"LANES", 2}, {"ROWS", 2}};
    EXPECT_TRUE(failed_with(decode(as_bytes(encode(best))), ErrorCode::corrupt, "'LANES=2 ROWS=2' was not timed"));
    best.config = best.timings[2].config;
    EXPECT_TRUE(failed_with(decode(as_bytes(encode(best))), ErrorCode::corrupt, "was not timed"));
    best = sample_best_config();
    best.took_ms = -1;
    EXPECT_TRUE(failed_with(decode(as_bytes(encode(best))), ErrorCode::corrupt, "took_ms"));
    best.took_ms = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(failed_with(decode(as_bytes(encode(best))), ErrorCode::corrupt, "took_ms"));
    best = sample_best_config();
    best.timings.clear();
    EXPECT_TRUE(failed_with(decode(as_bytes(encode(best))), ErrorCode::corrupt, "timings"));
}

TEST(BestConfigFile, WithADoubledMemberOrANumberThatWrapsIsRefused)
{
    const std::string text = encode(sample_best_config());
    EXPECT_FALSE(decode(as_bytes(replaced(text, "\"took_ms\"", "\"took_ms\": 1.0, \"took_ms\""))));
    EXPECT_FALSE(decode(as_bytes(replaced(text, "\"rows\": 64", "\"rows\": 18446744073709551615"))));
    EXPECT_FALSE(decode(as_bytes(replaced(text, "\"rows\": 64", "\"rows\": 64.5"))));
    EXPECT_FALSE(decode(as_bytes(replaced(text, "1234.5", "1e999"))));
    EXPECT_FALSE(decode(as_bytes(std::string(100'000, '['))));
}

TEST(BestConfigFile, OfAnotherFormatIsStaleAndNotDamaged)
{
    const std::string text = replaced(encode(sample_best_config()), "\"format\": 1", "\"format\": 2");
    EXPECT_TRUE(failed_with(decode(as_bytes(text)), ErrorCode::stale, "format 2, expected 1"));
}

TEST(BestConfigFile, KeepsTextsOfDriversThatAreNoUtf8OrTooLong)
{
    BestConfig best = sample_best_config();
    best.timings[2].failed = "\xff\xfe" + std::string(1021, 'x') + "\xc3\xa9" + std::string(5000, 'y');
    const auto read = take(decode(as_bytes(encode(best))));
    EXPECT_LE(read.timings[2].failed.size(), 1024U);
    EXPECT_EQ(encode(read), encode(best));
}

TEST(ModuleConfigsFile, ReadsAsItWasWritten)
{
    const ModuleConfigs module = test::sample_module();
    const auto read = take(decode_module(as_bytes(encode(module))));
    EXPECT_EQ(read, module);
}

TEST(ModuleConfigsFile, WithAnyByteChangedMoreOrFewerIsRefused)
{
    const std::string text = encode(test::sample_module());
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        EXPECT_FALSE(decode_module(as_bytes(damaged))) << "byte " << at;
    }
    EXPECT_TRUE(failed_with(decode_module({}), ErrorCode::corrupt, "empty"));
    EXPECT_TRUE(failed_with(decode_module(as_bytes(text + "\n")), ErrorCode::corrupt));
    EXPECT_TRUE(failed_with(decode_module(as_bytes(text.substr(0, text.size() / 2))), ErrorCode::corrupt));
    EXPECT_TRUE(failed_with(decode_module(Bytes(k_module_cap + 1)), ErrorCode::corrupt, "at most"));
}

// The checksum is right, but one member makes no sense.
TEST(ModuleConfigsFile, ThatMakesNoSenseIsRefused)
{
    ModuleConfigs module = test::sample_module();
    module.configs.begin()->second.timings.clear();
    EXPECT_TRUE(failed_with(decode_module(as_bytes(encode(module))), ErrorCode::corrupt, "configuration 0: 'timings'"));
    module = test::sample_module();
    module.configs.begin()->second = std::next(module.configs.begin())->second; // now has one configuration twice
    EXPECT_TRUE(failed_with(decode_module(as_bytes(encode(module))), ErrorCode::corrupt));
    for (const char* text : {"[]", "{}", R"({"format": 1})", R"({"format": 1, "module": 2, "key": "", "configs": []})",
                             R"({"format": 1, "module": "m", "key": "x", "configs": {}})"})
        EXPECT_TRUE(failed_with(decode_module(as_bytes(text)), ErrorCode::corrupt)) << text;
    EXPECT_TRUE(failed_with(decode_module(as_bytes(R"({"format": 2})")), ErrorCode::stale, "format 2"));
}

TEST(ModuleConfigsFile, TakesTheNewerOfTwo)
{
    const ModuleConfigs module = test::sample_module();
    BestConfig newer = module.configs.begin()->second;
    newer.took_ms = 1;
    const auto both = merged(module.configs, {{newer.key, newer}});
    EXPECT_EQ(both.size(), 2U);
    EXPECT_EQ(both.at(newer.key).took_ms, 1);
    std::map<Digest, BestConfig> many;
    for (std::size_t i = 0; i < k_most_module_configs; ++i) many[sha256(as_bytes(std::to_string(i)))];
    EXPECT_EQ(merged(many, module.configs).size(), 2U) << "too many: what was asked for now stays";
}

} // namespace
} // namespace warmgraph::autotune::best_config_test
