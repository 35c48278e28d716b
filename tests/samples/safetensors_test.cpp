#include <cstdlib>
#include <fstream>
#include <random>

#include "safetensors.hpp"
#include "temp_dir.hpp"

namespace samples::safetensors_test {
namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t data, std::uint64_t length)
{
    std::vector<std::byte> content;
    for (int i = 0; i < 8; ++i) content.push_back(static_cast<std::byte>((length >> (8 * i)) & 0xff));
    for (const char c : header) content.push_back(static_cast<std::byte>(c));
    for (std::size_t i = 0; i < data; ++i) content.push_back(static_cast<std::byte>(i));
    return content;
}

std::vector<std::byte> file_of(const std::string& header, std::size_t data)
{
    return file_of(header, data, header.size());
}

SafetensorsFault fault_of(std::vector<std::byte> content)
{
    try {
        static_cast<void>(Safetensors::parse(std::move(content)));
    } catch (const SafetensorsError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("safetensors: ")) << error.what();
        return error.fault();
    }
    ADD_FAILURE() << "the file was accepted";
    return {};
}

const std::string k_good = R"({"__metadata__":{"name":"m"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                           R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}}  )";

TEST(Safetensors, ReadsTensorsAndMetadata)
{
    const Safetensors file = Safetensors::parse(file_of(k_good, 11));
    EXPECT_EQ(file.metadata().at("name"), "m");
    ASSERT_EQ(file.tensors().size(), 2U);
    const TensorView& a = file.f32("a", {2, 1});
    EXPECT_EQ(a.bytes.size(), 8U);
    EXPECT_EQ(a.bytes[7], std::byte{7});
    EXPECT_EQ(file.tensors().at("b").bytes[0], std::byte{8});
}

TEST(Safetensors, KeepsItsTensorsWhenMoved)
{
    Safetensors file = Safetensors::parse(file_of(k_good, 11));
    const Safetensors moved = std::move(file);
    EXPECT_EQ(moved.f32("a", {2, 1}).bytes[3], std::byte{3});
}

TEST(Safetensors, ReadsScalarsAndEmptyTensors)
{
    const Safetensors file = Safetensors::parse(file_of(
        R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0,9],"data_offsets":[4,4]}})",
        4));
    EXPECT_EQ(file.f32("s", {}).bytes.size(), 4U);
    EXPECT_TRUE(file.f32("e", {0, 9}).bytes.empty());
}

TEST(Safetensors, RefusesEveryTruncation)
{
    const std::vector<std::byte> whole = file_of(k_good, 11);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_EQ(fault_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}),
                  SafetensorsFault::truncated)
            << size;
    }
}

TEST(Safetensors, RefusesBytesThatNoTensorCovers)
{
    EXPECT_EQ(fault_of(file_of(k_good, 12)), SafetensorsFault::bad_layout);
}

TEST(Safetensors, RefusesLengthsThatLie)
{
    EXPECT_EQ(fault_of(file_of(k_good, 11, 0)), SafetensorsFault::bad_header);
    EXPECT_EQ(fault_of(file_of(k_good, 11, k_good.size() + 12)), SafetensorsFault::truncated);
    EXPECT_EQ(fault_of(file_of(k_good, 11, 100'000'001)), SafetensorsFault::header_too_large);
    EXPECT_EQ(fault_of(file_of(k_good, 11, std::uint64_t{1} << 63)), SafetensorsFault::header_too_large);
    EXPECT_EQ(fault_of(file_of(k_good, 11, UINT64_MAX)), SafetensorsFault::header_too_large);
}

struct Hostile {
    const char* what;
    const char* header;
    SafetensorsFault fault;
};

class SafetensorsHeader : public testing::TestWithParam<Hostile> {};

TEST_P(SafetensorsHeader, IsRefusedWithItsFault)
{
    EXPECT_EQ(fault_of(file_of(GetParam().header, 8)), GetParam().fault);
}

using enum SafetensorsFault;
INSTANTIATE_TEST_SUITE_P(
    Hostile, SafetensorsHeader,
    testing::Values(
        Hostile{"NoJson", "not json", bad_header}, Hostile{"AList", "[]", bad_header},
        Hostile{"ANumber", "7", bad_header}, Hostile{"Unclosed", R"({"a":{"dtype":"F32")", bad_header},
        Hostile{"BadUtf8", "{\"\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", bad_header},
        Hostile{"MetadataIsAList", R"({"__metadata__":[]})", bad_header},
        Hostile{"MetadataHoldsANumber", R"({"__metadata__":{"dim":128}})", bad_header},
        Hostile{"TensorIsANumber", R"({"a":1})", bad_header},
        Hostile{"NoDtype", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", bad_header},
        Hostile{"DtypeIsANumber", R"({"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})", bad_header},
        Hostile{"UnknownDtype", R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", bad_tensor},
        Hostile{"NoShape", R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", bad_header},
        Hostile{"NegativeSize", R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", bad_header},
        Hostile{"FractionalSize", R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", bad_header},
        Hostile{"SizeIsText", R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})", bad_header},
        Hostile{"SizeOver63Bits", R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})",
                bad_header},
        // In 64 bits, 2^32 * 2^32 * 4 overflows to 0, and 2^62 * 4 + 8 overflows to 8.
        Hostile{"ProductOverflows", R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                bad_tensor},
        Hostile{"BytesOverflow", R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})",
                bad_tensor},
        Hostile{"ShapeTooSmall", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", bad_tensor},
        Hostile{"ShapeTooLarge", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", bad_tensor},
        Hostile{"NoOffsets", R"({"a":{"dtype":"F32","shape":[2]}})", bad_header},
        Hostile{"OneOffset", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8]}})", bad_header},
        Hostile{"NegativeOffset", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", bad_header},
        Hostile{"OffsetsReversed", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", bad_tensor},
        Hostile{"OffsetPastTheEnd", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", truncated},
        Hostile{"HugeOffset",
                R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[9223372036854775799,9223372036854775807]}})",
                truncated},
        Hostile{
            "Overlap",
            R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            bad_layout},
        Hostile{"Hole", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", bad_layout},
        Hostile{"NothingAtAll", "{}", bad_layout},
        Hostile{
            "SameNameTwice",
            R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
            bad_header}),
    [](const auto& tested) { return tested.param.what; });

TEST(Safetensors, SurvivesDeepNesting)
{
    EXPECT_EQ(fault_of(file_of(std::string(1'000'000, '['), 0)), SafetensorsFault::bad_header);
    const std::string nested = R"({"a":)" + std::string(20'000, '[') + std::string(20'000, ']') + "}";
    EXPECT_EQ(fault_of(file_of(nested, 0)), SafetensorsFault::bad_header);
}

TEST(Safetensors, NeverCrashesOnFlippedBytes)
{
    const char* given = std::getenv("WARMGRAPH_TEST_SEED");
    const unsigned seed = given != nullptr ? static_cast<unsigned>(std::stoul(given)) : std::random_device{}();
    SCOPED_TRACE("WARMGRAPH_TEST_SEED=" + std::to_string(seed));
    std::mt19937 engine(seed);
    const auto random = [&engine](std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(engine);
    };
    const std::vector<std::byte> whole = file_of(k_good, 11);
    int accepted = 0;
    for (int i = 0; i < 5'000; ++i) {
        std::vector<std::byte> content = whole;
        for (std::size_t flips = 1 + random(3); flips > 0; --flips) {
            content[random(content.size())] = static_cast<std::byte>(random(256));
        }
        try {
            const Safetensors file = Safetensors::parse(std::move(content));
            std::size_t covered = 0;
            for (const auto& [name, tensor] : file.tensors()) covered += tensor.bytes.size();
            EXPECT_EQ(covered, 11U); // in a file that is accepted, the tensors still cover exactly the data
            ++accepted;
        } catch (const SafetensorsError&) {
        }
    }
    EXPECT_GT(accepted, 0); // flips in the data and in names do no harm
    EXPECT_LT(accepted, 5'000);
}

TEST(Safetensors, NamesTheTensorThatIsMissingOrOfAnotherShape)
{
    const Safetensors file = Safetensors::parse(file_of(k_good, 11));
    const auto text_of = [&](const std::string& name, const std::vector<std::int64_t>& shape) -> std::string {
        try {
            static_cast<void>(file.f32(name, shape));
        } catch (const SafetensorsError& error) {
            EXPECT_EQ(error.fault(), SafetensorsFault::missing_tensor);
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(text_of("c", {2}), "safetensors: there is no tensor 'c'");
    EXPECT_EQ(text_of("a", {1, 2}), "safetensors: tensor 'a' is F32 [2, 1], expected F32 [1, 2]");
    EXPECT_EQ(text_of("b", {3}), "safetensors: tensor 'b' is U8 [3], expected F32 [3]");
}

TEST(Safetensors, RefusesFilesThatCannotBeRead)
{
    const warmgraph::test::TempDir folder;
    for (const auto& path : {folder.path() / "missing", folder.path()}) {
        try {
            static_cast<void>(Safetensors::read(path));
            ADD_FAILURE() << path << " was accepted";
        } catch (const SafetensorsError& error) {
            EXPECT_EQ(error.fault(), unreadable);
        }
    }
}

TEST(Safetensors, ReadsAFile)
{
    const warmgraph::test::TempDir folder;
    const std::vector<std::byte> content = file_of(k_good, 11);
    std::ofstream(folder.path() / "file", std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    EXPECT_EQ(Safetensors::read(folder.path() / "file").tensors().size(), 2U);
}

} // namespace
} // namespace samples::safetensors_test
