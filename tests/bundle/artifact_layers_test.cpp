// Compiled programs, tuned configurations and profiles are read from a bundle without unpacking it.
#include "artifact_fixture.hpp"

namespace warmgraph::test::artifact_layers_test {
namespace {

class ArtifactLayers : public ArtifactTest {
protected:
    ArtifactLayers()
    {
        const auto origin = other("origin");
        put_all(*origin);
        m_bytes = bundle_of(*origin);
    }
    void damage(const ArtifactName& name)
    {
        const auto bundle = open_bundle(m_bytes).value();
        m_bytes[bundle->find(member_name(name))->offset] ^= std::byte{1};
    }
    void expect_all(LocalStore& store) const
    {
        const auto program = take(precompile::ProgramLibrary(store, {}).find(m_program.ingredients));
        ASSERT_TRUE(program.has_value());
        EXPECT_EQ((*program).compiled.image, m_program.compiled.image);
        const autotune::ConfigLibrary tuned(store.tiers());
        EXPECT_EQ(tuned.find(m_best.key).value(), m_best);
        EXPECT_EQ(tuned.modules().find(m_module.key).value(), m_module);
        EXPECT_EQ(profile::ProfileLibrary(store.tiers()).find(m_profile.key).value(), m_profile);
    }
    Bytes m_bytes;
};

TEST_F(ArtifactLayers, GiveWhatTheFolderDoesNotHaveAndUnpackNothing)
{
    const auto store = open();
    add_bundle(*store, m_bytes);
    expect_all(*store);
    EXPECT_THAT(names_in(m_root), IsEmpty());
    EXPECT_TRUE(store->object(m_best_name).value().has_value());
}

TEST_F(ArtifactLayers, ServeWithoutAFolder)
{
    const auto store = LocalStore::without_folder("the disk is read-only");
    add_bundle(*store, m_bytes);
    expect_all(*store);
    EXPECT_TRUE(failed_with(autotune::ConfigLibrary(store->tiers()).put(m_best), ErrorCode::permission_denied));
}

TEST_F(ArtifactLayers, ComeAfterTheFolderAndOneAfterTheOther)
{
    const auto store = open();
    autotune::BestConfig mine = m_best;
    mine.written = "2026-11-25T00:00:00Z";
    autotune::BestConfig theirs = mine;
    theirs.written = "2026-11-26T00:00:00Z";
    const auto second = other("second");
    ASSERT_TRUE(succeeded(autotune::ConfigLibrary(second->tier()).put(theirs)));
    const Bytes first_bundle = bundle_of(*second);
    add_bundle(*store, first_bundle);
    add_bundle(*store, m_bytes);
    autotune::ConfigLibrary tuned(store->tiers());
    EXPECT_EQ(tuned.find(m_best.key).value(), theirs);
    ASSERT_TRUE(succeeded(tuned.put(mine)));
    EXPECT_EQ(tuned.find(m_best.key).value(), mine);
    EXPECT_EQ(tuned.modules().find(m_module.key).value(), m_module);
}

TEST_F(ArtifactLayers, JoinTheirProfileWithTheFoldersAndWriteOnlyTheFolders)
{
    const auto store = open();
    add_bundle(*store, m_bytes);
    profile::Profile mine = profile::test::empty_profile();
    mine.parts["here"] = {"2026-11-25T00:00:00Z", "host-c"};
    profile::count(mine.parts["here"], profile::test::prompt_of(99));
    const profile::ProfileLibrary library(store->tiers());
    ASSERT_TRUE(succeeded(library.merge(mine)));
    EXPECT_EQ(library.find(mine.key).value(), profile::join(mine, m_profile).value());
    EXPECT_EQ(profile::ProfileLibrary(store->tier()).find(mine.key).value(), mine);
}

TEST_F(ArtifactLayers, AreMissesOnceWhereTheyAreDamaged)
{
    for (const auto& name : {m_program_name, m_best_name, m_profile_name}) damage(name);
    const auto store = open();
    add_bundle(*store, m_bytes);
    const precompile::ProgramLibrary programs(*store, {});
    EXPECT_TRUE(failed_with(programs.find(m_program.ingredients), ErrorCode::corrupt));
    EXPECT_EQ(programs.find(m_program.ingredients).value(), std::nullopt) << "it counts once";
    const autotune::ConfigLibrary tuned(store->tiers());
    EXPECT_TRUE(failed_with(tuned.find(m_best.key), ErrorCode::corrupt));
    EXPECT_EQ(tuned.find(m_best.key).value(), std::nullopt);
    EXPECT_EQ(tuned.modules().find(m_module.key).value(), m_module) << "the rest works";
    const profile::ProfileLibrary profiles(store->tiers());
    EXPECT_TRUE(failed_with(profiles.find(m_profile.key), ErrorCode::corrupt));
    EXPECT_EQ(profiles.find(m_profile.key).value(), std::nullopt);
}

TEST_F(ArtifactLayers, StandInForWhatIsDamagedInTheFolder)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(store->tier().put(m_best_name, as_bytes("{}"))));
    add_bundle(*store, m_bytes);
    EXPECT_EQ(autotune::ConfigLibrary(store->tiers()).find(m_best.key).value(), m_best);
}

TEST_F(ArtifactLayers, AreNotAskedAgainForWhatWasRemovedOrSetAside)
{
    const auto store = open();
    add_bundle(*store, m_bytes);
    autotune::ConfigLibrary tuned(store->tiers());
    ASSERT_TRUE(succeeded(tuned.remove(m_best.key)));
    EXPECT_EQ(tuned.find(m_best.key).value(), std::nullopt);
    const precompile::ProgramLibrary programs(*store, {});
    programs.set_aside(m_program.ingredients, {ErrorCode::stale, "the driver does not take it"});
    EXPECT_EQ(programs.find(m_program.ingredients).value(), std::nullopt);
}

TEST_F(ArtifactLayers, AreComparedToExplainAMiss)
{
    const auto store = open();
    add_bundle(*store, m_bytes);
    precompile::Ingredients wanted = m_program.ingredients;
    wanted.headers[0].digest = sha256(as_bytes("edited"));
    const precompile::ProgramLibrary programs(*store, {});
    const auto nearest = programs.nearest(wanted).value();
    EXPECT_EQ(nearest.variants, 1U);
    ASSERT_EQ(nearest.differences.size(), 1U);
    EXPECT_EQ(nearest.differences[0].fact, "header tile.h");
    ASSERT_TRUE(succeeded(programs.put(m_program)));
    EXPECT_EQ(programs.nearest(wanted).value().variants, 1U) << "one that both have is one";
}

} // namespace
} // namespace warmgraph::test::artifact_layers_test
