// Tests compiled programs in the cache folder: every file is checked before it is used, and a failure there costs only
// time.
#include "../store/artifact_folder.hpp"
#include "sample_program.hpp"
#include "warmgraph/precompile/program_library.hpp"

namespace warmgraph::precompile::program_library_test {
namespace {

namespace fs = std::filesystem;
using test::sample_program;

class CompiledFolder : public warmgraph::test::ArtifactFolder {
protected:
    CompiledFolder() : ArtifactFolder("compiled") {}
    void damage() const
    {
        std::fstream file(files().at(0), std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(-1, std::ios::end);
        file.put('x');
    }

    ProgramLibrary m_library{*m_store, {}};
    CompiledProgram m_program = sample_program();
};

TEST_F(CompiledFolder, GivesWhatWasPutAndNothingBefore)
{
    EXPECT_FALSE(m_library.find(m_program.ingredients).value());
    ASSERT_TRUE(succeeded(m_library.put(m_program)));
    const auto found = take(m_library.find(m_program.ingredients));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->compiled.image, m_program.compiled.image);
    const std::string hex = to_hex(key_of(m_program.ingredients));
    EXPECT_THAT(files(), ElementsAre(m_root / "compiled" / hex.substr(0, 2) / (hex + ".compiled")));
    EXPECT_EQ(m_store->held().value().at(store::ArtifactKind::compiled).files, 1U);
    EXPECT_GT(m_store->held().value().at(store::ArtifactKind::compiled).bytes, 300U);
}

TEST_F(CompiledFolder, ADamagedOneIsSetAside)
{
    ASSERT_TRUE(succeeded(m_library.put(m_program)));
    damage();
    EXPECT_TRUE(failed_with(m_library.find(m_program.ingredients), ErrorCode::corrupt));
    EXPECT_THAT(files(), IsEmpty());
    EXPECT_FALSE(files("quarantine").empty());
    EXPECT_FALSE(m_library.find(m_program.ingredients).value());
    ASSERT_TRUE(succeeded(m_library.put(m_program)));
    EXPECT_TRUE(m_library.find(m_program.ingredients).value());
}

/// A process that requires less, or that has another key, may still use such a program.
TEST_F(CompiledFolder, OneThatIsNotTrustedStaysWhereItIs)
{
    const auto key = [](const std::string& id) {
        return std::make_shared<const SigningKey>(SigningKey::generate(id, SignatureKind::ed25519).value());
    };
    const ProgramLibrary strict{*m_store, {.sign_with = {}, .accepted = {key("ours")}, .require = true}},
        theirs{*m_store, {.sign_with = key("theirs"), .accepted = {}, .require = true}};
    for (const ProgramLibrary* const writer : std::initializer_list<const ProgramLibrary*>{&m_library, &theirs}) {
        ASSERT_TRUE(succeeded(writer->put(m_program)));
        EXPECT_TRUE(failed_with(strict.find(m_program.ingredients), ErrorCode::untrusted));
        EXPECT_EQ(files().size(), 1U);
        EXPECT_THAT(files("quarantine"), IsEmpty());
        EXPECT_TRUE(writer->find(m_program.ingredients).value());
    }
}

TEST_F(CompiledFolder, OneUnderAnothersNameIsStale)
{
    ASSERT_TRUE(succeeded(m_library.put(m_program)));
    CompiledProgram other = m_program;
    other.ingredients.target = "sm_80";
    const Bytes bytes = encode(other).value();
    overwrite({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    EXPECT_TRUE(failed_with(m_library.find(m_program.ingredients), ErrorCode::stale));
}

TEST_F(CompiledFolder, AFullDiskLeavesNothingBehind)
{
    for (const char* operation : {"write", "rename"}) {
        m_files.fail_all(operation, ErrorCode::no_space);
        EXPECT_TRUE(failed_with(m_library.put(m_program), ErrorCode::no_space)) << operation;
        m_files.stop_failing();
    }
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(CompiledFolder, AReadOnlyFolderIsRead)
{
    ASSERT_TRUE(succeeded(m_library.put(m_program)));
    const auto store = open({.access = store::StoreMode::read_only});
    const ProgramLibrary library{*store, {}};
    EXPECT_TRUE(library.find(m_program.ingredients).value());
    EXPECT_TRUE(failed_with(library.put(m_program), ErrorCode::permission_denied));
    damage();
    EXPECT_TRUE(failed_with(library.find(m_program.ingredients), ErrorCode::corrupt));
    EXPECT_EQ(files().size(), 1U) << "it is not set aside there";
}

TEST_F(CompiledFolder, TheNearestIsTheOneWithTheFewestDifferences)
{
    EXPECT_FALSE(m_library.nearest(m_program.ingredients).value().ingredients);
    CompiledProgram far = m_program, unrelated = m_program;
    far.ingredients.target = "sm_80";
    far.ingredients.compiler = "NVRTC 12.0 (build 1)";
    unrelated.ingredients.program = "other";
    unrelated.ingredients.source = {};
    for (const CompiledProgram* const each : {&m_program, &far, &unrelated})
        ASSERT_TRUE(succeeded(m_library.put(*each)));
    Ingredients now = m_program.ingredients;
    now.headers[0].digest = sha256(as_bytes("edited"));
    const auto nearest = take(m_library.nearest(now));
    EXPECT_EQ(nearest.variants, 2U);
    ASSERT_EQ(nearest.differences.size(), 1U);
    EXPECT_EQ(nearest.differences[0].fact, "header tile.h");
}

TEST_F(CompiledFolder, UpkeepKnowsThem)
{
    ASSERT_TRUE(succeeded(m_library.put(m_program)));
    store::Miss miss;
    miss.id = miss.program = "matmul";
    m_store->note_program_miss(miss);
    EXPECT_EQ(m_store->program_misses().value().list.size(), 1U);
    EXPECT_EQ(m_store->check().value().size(), 0U);
    EXPECT_EQ(m_store->clear({.kinds = {store::ArtifactKind::images}}).value().files(), 0U) << "its image is its own";
    EXPECT_EQ(m_store->clear({.kinds = {store::ArtifactKind::tuned}}).value().files(), 0U);
    EXPECT_EQ(
        m_store->plan_clear({.kinds = {store::ArtifactKind::compiled}}).value().of(store::ArtifactKind::compiled).files,
        1U);
    EXPECT_EQ(
        m_store->clear({.kinds = {store::ArtifactKind::compiled}}).value().of(store::ArtifactKind::compiled).files, 1U);
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(CompiledFolder, TheLeastRecentlyUsedGiveWayToTheBudget)
{
    m_store.reset();
    m_store = open({.budget = {.bytes = 5000, .files = 1000}});
    const ProgramLibrary library{*m_store, {}};
    for (int i = 0; i < 20; ++i) {
        m_program.ingredients.target = std::to_string(i);
        ASSERT_TRUE(succeeded(library.put(m_program)));
    }
    EXPECT_LT(files().size(), 8U);
    EXPECT_TRUE(library.find(m_program.ingredients).value()) << "the last one stays";
}

} // namespace
} // namespace warmgraph::precompile::program_library_test
