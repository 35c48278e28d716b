// The folder of another machine as a remote tier.
#include "../store/tier_conformance.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::test::file_backend_test {
namespace {

std::unique_ptr<store::Tier> make(const fs::path& folder)
{
    remote::Settings settings;
    settings.scheme = remote::Scheme::file;
    settings.path = folder.string();
    settings.label = "file://" + settings.path;
    return remote::backend_of(settings).value();
}

constexpr TierMaker k_file{"file", make};
INSTANTIATE_TEST_SUITE_P(File, TierConformance, testing::Values(k_file),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(FileBackend, KeepsWhatAReaderRefuses)
{
    const TempDir folder;
    const auto tier = make(folder.path());
    const store::Name name = store::ImageName{sha256(as_bytes("a"))};
    ASSERT_TRUE(succeeded(tier->put(name, as_bytes("a"))));
    tier->refuse(name, {}, {ErrorCode::corrupt, "a test says so"});
    EXPECT_TRUE(take(tier->get(name, {10}))) << "others use it";
}

} // namespace
} // namespace warmgraph::test::file_backend_test
