// Promise H18: `check` and `repair` of a folder use the same readers as the product.
#include <sys/stat.h>

#include "artifact_fixture.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::test::upkeep_test {
namespace {

class ArtifactUpkeep : public ArtifactTest {
protected:
    ArtifactUpkeep() : m_store(open())
    {
        put_all(*m_store);
        const cachefmt::Trust trust{.sign_with = std::make_shared<const SigningKey>(
                                        SigningKey::generate("k", SignatureKind::hmac_sha256).value())};
        if (!put_torch(*m_store, m_facts, "2026-11-25T06:00:00Z", image_of("pickles"), trust))
            throw std::runtime_error("PyTorch's artifacts cannot be stored");
    }
    fs::path path_of(const ArtifactName& name) const
    {
        const std::string file = store::file_name(name);
        return m_root / store::row_of(name.kind).folder / file.substr(0, 2) / file;
    }
    /// Runs check(), which must change nothing. Returns its findings as (path, code).
    std::vector<std::pair<std::string, ErrorCode>> found() const
    {
        const auto before = snapshot(m_root);
        std::vector<std::pair<std::string, ErrorCode>> result;
        const auto damages = m_store->check(bundle::verify_artifact);
        EXPECT_TRUE(succeeded(damages));
        for (const auto& [path, error] : damages.value()) result.emplace_back(path.string(), error.code);
        EXPECT_EQ(snapshot(m_root), before) << "check changed something";
        return result;
    }

    const store::TorchFacts m_facts{{"torch", "2.11.0"}};
    const ArtifactName m_torch_name = store::torch_name(m_facts);
    const std::vector<ArtifactName> m_names{m_program_name, m_best_name, m_module_name, m_profile_name, m_torch_name};
    std::unique_ptr<LocalStore> m_store;
};

TEST_F(ArtifactUpkeep, FindsNothingWrongWithWhatIsWhole) { EXPECT_THAT(found(), IsEmpty()); }

TEST_F(ArtifactUpkeep, FindsAndSetsAsideWhatIsDamagedOfEachKind)
{
    const auto damage = [&](const fs::path& path, const std::string& way) {
        const std::string whole = text_of(path);
        if (way == "flipped") flip(path, whole.size() / 2);
        if (way == "cut") fs::resize_file(path, whole.size() - 20);
        if (way == "empty") fs::resize_file(path, 0);
        if (way == "longer") std::ofstream(path, std::ios::app) << "{}";
        if (way == "zeros") write(path, std::string(whole.size(), '\0'));
        if (way == "a pipe") {
            fs::remove(path);
            ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
        }
    };
    for (const char* way : {"flipped", "cut", "empty", "longer", "zeros", "a pipe"}) {
        for (const ArtifactName& name : m_names) {
            SCOPED_TRACE(std::string(way) + ": " + store::file_name(name));
            const fs::path path = path_of(name);
            const bool is_pipe = way == std::string("a pipe");
            const std::string whole = text_of(path);
            damage(path, way);
            EXPECT_THAT(found(), ElementsAre(std::pair(path.lexically_relative(m_root).string(), ErrorCode::corrupt)));
            const auto repaired = take(m_store->repair(bundle::verify_artifact));
            EXPECT_THAT(repaired, SizeIs(1));
            EXPECT_FALSE(fs::exists(fs::symlink_status(path)));
            EXPECT_THAT(quarantined(), SizeIs(1));
            EXPECT_THAT(found(), IsEmpty());
            EXPECT_EQ(m_store->clear({.kinds = {}, .quarantine = true})->quarantined.files, 1U)
                << "its name is one that the library makes";
            EXPECT_THAT(names_in(m_root / "quarantine"), IsEmpty());
            if (is_pipe) continue;
            write(path, whole);
            fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
        }
    }
}

TEST_F(ArtifactUpkeep, FindsWhatLiesUnderAnothersName)
{
    for (const ArtifactName& name : m_names) {
        SCOPED_TRACE(store::file_name(name));
        const ArtifactName other{name.kind, sha256(as_bytes("another"))};
        fs::create_directories(path_of(other).parent_path());
        fs::copy_file(path_of(name), path_of(other));
        EXPECT_THAT(found(), SizeIs(1));
        ASSERT_TRUE(succeeded(m_store->repair(bundle::verify_artifact)));
        EXPECT_FALSE(fs::exists(path_of(other)));
        EXPECT_TRUE(fs::exists(path_of(name)));
        EXPECT_THAT(found(), IsEmpty());
    }
}

TEST_F(ArtifactUpkeep, LeavesWhatItMayNotRead)
{
    for (const ArtifactName& name : m_names) {
        SCOPED_TRACE(store::file_name(name));
        fs::permissions(path_of(name), fs::perms::others_write, fs::perm_options::add);
        EXPECT_THAT(found(), ElementsAre(std::pair(path_of(name).lexically_relative(m_root).string(),
                                                   ErrorCode::permission_denied)));
        ASSERT_TRUE(succeeded(m_store->repair(bundle::verify_artifact)));
        EXPECT_TRUE(fs::exists(path_of(name)));
        fs::permissions(path_of(name), fs::perms::others_write, fs::perm_options::remove);
    }
}

} // namespace
} // namespace warmgraph::test::upkeep_test
