#include <fstream>

#include <nlohmann/json.hpp>

#include "expect_error.hpp"
#include "sample_profile.hpp"
#include "warmgraph/profile/profile_file.hpp"

namespace warmgraph::profile::profile_file_test {
namespace {

using nlohmann::json;

Result<Profile> read(const std::string& text) { return decode(as_bytes(text)); }

/// Makes one change in the file of the sample, and reads it.
Result<Profile> read_changed(const std::function<void(json&)>& change)
{
    json file = json::parse(encode(test::sample_profile()));
    change(file);
    return read(file.dump());
}

TEST(ProfileFile, WhatIsWrittenIsRead)
{
    const Profile profile = test::sample_profile();
    const auto back = take(read(encode(profile)));
    EXPECT_EQ(back, profile);
    EXPECT_EQ(encode(back), encode(profile));
}

TEST(ProfileFile, PeopleCanReadIt)
{
    const std::string text = encode(test::sample_profile());
    EXPECT_THAT(
        text,
        HasSubstr("\n      {\"sizes\":{\"logits\":[512],\"tokens\":[17]},\"ran\":{\"tokens\":[32]},\"calls\":3}"));
    EXPECT_THAT(text, HasSubstr("\"dimensions\":[[\"tokens\",0]],\"most\":4,\"multiple_of\":8,\"buckets\":[16,32]"));
}

TEST(ProfileFile, PeopleMayEditIt)
{
    const auto edited = take(read_changed([](json& file) {
        file["parts"].push_back({{"writer", "by-hand"},
                                 {"host", ""},
                                 {"last", "2026-11-30T00:00:00Z"},
                                 {"total", 7},
                                 {"calls", {{{"sizes", {{"tokens", {100}}, {"logits", {512}}}}, {"calls", 7}}}}});
        file["learnt"][0]["buckets"] = {24, 104};
    }));
    EXPECT_EQ(total(edited).at(test::prompt_of(100)), 7U);
    EXPECT_THAT(edited.learnt.at(test::sample_wish()).buckets, ElementsAre(24, 104));
}

TEST(ProfileFile, NonsenseIsNamed)
{
    const std::vector<std::pair<std::string, std::function<void(json&)>>> changes{
        {"'function'", [](json& f) { f.erase("function"); }},
        {"an unknown member", [](json& f) { f["more"] = 1; }},
        {"'key'", [](json& f) { f["function"] = "decode"; }},
        {"'parts'", [](json& f) { f["parts"] = 3; }},
        {"'parts'", [](json& f) { f["parts"] = json::array_t(33, json::object()); }},
        {"part 1", [](json& f) { f["parts"][0] = 3; }},
        {"'writer'", [](json& f) { f["parts"][0]["writer"] = "../x"; }},
        {"twice", [](json& f) { f["parts"][1]["writer"] = f["parts"][0]["writer"]; }},
        {"'total'", [](json& f) { f["parts"][0]["total"] = -1; }},
        {"'calls'", [](json& f) { f["parts"][0]["calls"][0]["calls"] = 0; }},
        {"'calls'", [](json& f) { f["parts"][0]["calls"][0]["calls"] = 1ULL << 60; }},
        {"'calls'", [](json& f) { f["parts"][0]["calls"][0]["calls"] = 1.5; }},
        {"'sizes'", [](json& f) { f["parts"][0]["calls"][0]["sizes"]["tokens"] = {-1}; }},
        {"'sizes'", [](json& f) { f["parts"][0]["calls"][0]["sizes"]["tokens"] = {1ULL << 41}; }},
        {"'sizes'", [](json& f) { f["parts"][0]["calls"][0]["sizes"]["tokens"] = std::vector<int>(100, 1); }},
        {"'sizes'", [](json& f) { f["parts"][0]["calls"][0]["sizes"]["other"] = {1}; }},
        {"'ran'", [](json& f) { f["parts"][0]["calls"][0]["ran"] = 7; }},
        {"'values'", [](json& f) { f["parts"][0]["calls"][0]["values"] = {{"a", 3}}; }},
        {"twice", [](json& f) { f["parts"][0]["calls"].push_back(f["parts"][0]["calls"][0]); }},
        {"an unknown member", [](json& f) { f["parts"][0]["calls"][0]["often"] = 1; }},
        {"'buckets'", [](json& f) { f["learnt"][0]["buckets"] = {32, 16}; }},
        {"'buckets'", [](json& f) { f["learnt"][0]["buckets"] = {"16"}; }},
        {"'most'", [](json& f) { f["learnt"][0]["most"] = 0; }},
        {"'multiple_of'", [](json& f) { f["learnt"][0]["multiple_of"] = 0; }},
        {"'dimensions'", [](json& f) { f["learnt"][0]["dimensions"] = {{"tokens", 99}}; }},
        {"'dimensions'", [](json& f) { f["learnt"][0]["dimensions"] = {{"other", 0}}; }},
        {"'arguments'", [](json& f) { f["arguments"]["x"] = "f17"; }},
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const auto read = read_changed(changes[i].second);
        ASSERT_TRUE(failed_with(read, ErrorCode::corrupt)) << "change " << i;
        EXPECT_THAT(read.error().message, HasSubstr(changes[i].first)) << "change " << i;
    }
}

TEST(ProfileFile, OfANewerWarmgraphIsStale)
{
    EXPECT_TRUE(failed_with(read_changed([](json& f) { f["format"] = 2; }), ErrorCode::stale));
    EXPECT_TRUE(failed_with(read_changed([](json& f) { f["format"] = 0; }), ErrorCode::corrupt));
}

TEST(ProfileFile, BytesThatAreNoneAreCorrupt)
{
    const std::string text = encode(test::sample_profile());
    EXPECT_TRUE(failed_with(read(""), ErrorCode::corrupt));
    EXPECT_TRUE(failed_with(read("[]"), ErrorCode::corrupt));
    EXPECT_TRUE(failed_with(read(std::string(100'000, '[')), ErrorCode::corrupt));
    for (std::size_t cut = 1; cut + 3 < text.size(); cut += 11)
        EXPECT_TRUE(failed_with(read(text.substr(0, cut)), ErrorCode::corrupt)) << cut;
    EXPECT_TRUE(failed_with(read(text + std::string(k_profile_cap, ' ')), ErrorCode::corrupt));
}

TEST(ProfileFile, TenMillionShapesAreRefusedByTheirNumber)
{
    const auto many = read_changed([](json& f) {
        json& calls = f["parts"][0]["calls"];
        const json one = calls[0];
        for (std::size_t i = 0; i < k_most_shapes; ++i) calls.push_back(one);
    });
    ASSERT_TRUE(failed_with(many, ErrorCode::corrupt));
    EXPECT_THAT(many.error().message, HasSubstr("at most 512"));
    std::string text = encode(test::sample_profile());
    while (text.size() <= k_profile_cap) text += text;
    EXPECT_TRUE(failed_with(read(text), ErrorCode::corrupt));
}

TEST(ProfileFile, TheMostThatMayBeFits)
{
    Profile profile = test::empty_profile();
    profile.arguments.clear();
    Shape shape;
    for (int i = 0; i < 40; ++i) {
        const std::string name = fmt::format("argument-{:03}-{}", i, std::string(100, 'x'));
        profile.arguments[name] = "f32";
        shape.sizes[name] = {1LL << 39, 1LL << 39};
    }
    profile.key = key_of(profile);
    for (int writer = 0; writer < 32; ++writer)
        for (std::int64_t size = 0; size < 512; ++size) {
            shape.sizes.begin()->second.front() = size;
            for (std::int64_t calls = 0; calls <= size % 3; ++calls)
                count(profile.parts[std::to_string(writer)], shape);
        }
    const std::string text = encode(profile);
    EXPECT_LE(text.size(), k_profile_cap);
    const auto back = take(read(text));
    EXPECT_EQ(back.parts.size(), 32U);
    for (const auto& [kept, calls] : back.parts.at("7").calls) EXPECT_EQ(calls, 3U) << "the most frequent";
}

} // namespace
} // namespace warmgraph::profile::profile_file_test
