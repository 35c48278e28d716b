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

} // namespace
} // namespace warmgraph::test::file_backend_test
