// Every kind of artifact is packed into a bundle and loaded into another folder. Some bundles have hostile members.
#include "artifact_fixture.hpp"

namespace warmgraph::test::artifacts_test {
namespace {

class Artifacts : public ArtifactTest {
protected:
    Artifacts() { put_all(*m_store); }
    std::unique_ptr<LocalStore> m_store = open();
};

TEST_F(Artifacts, OfEveryKindFillAnotherFolderWithTheSameFiles)
{
    Transfer made;
    const Bytes bytes = bundle_of(*m_store, {}, &made);
    EXPECT_EQ(made.moved.at(store::ArtifactKind::compiled).count, 1U);
    EXPECT_DOUBLE_EQ(made.moved.at(store::ArtifactKind::compiled).seconds, 0.1805);
    EXPECT_EQ(made.moved.at(store::ArtifactKind::tuned).count, 2U);
    EXPECT_DOUBLE_EQ(made.moved.at(store::ArtifactKind::tuned).seconds, 1.2345);
    EXPECT_EQ(made.moved.at(store::ArtifactKind::profiles).count, 1U);
    const auto bundle = open_bundle(bytes).value();
    for (const Member& member : bundle->members()) EXPECT_TRUE(succeeded(bundle->verify(member))) << member.name;
    const auto store = other();
    const auto loaded = take(bundle::unpack(*bundle, store->tier(), k_all));
    EXPECT_THAT(loaded.skipped, IsEmpty());
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::tuned).count, 2U);
    EXPECT_DOUBLE_EQ(loaded.moved.at(store::ArtifactKind::compiled).seconds, 0.1805);
    auto here = snapshot(m_root), there = snapshot(m_dir.path() / "other");
    for (auto* files : {&here, &there}) std::erase_if(*files, [](const auto& f) { return f.first.starts_with("."); });
    EXPECT_EQ(there, here);
}

TEST_F(Artifacts, ReplaceNothingInAFolder)
{
    const auto bundle_bytes = bundle_of(*m_store);
    const auto bundle = open_bundle(bundle_bytes).value();
    const auto store = other();
    autotune::BestConfig mine = m_best;
    mine.written = "2026-11-25T00:00:00Z";
    ASSERT_TRUE(succeeded(autotune::ConfigLibrary(store->tier()).put(mine)));
    const auto loaded = take(bundle::unpack(*bundle, store->tier(), k_all));
    EXPECT_EQ(why(loaded.there, m_best_name), "it is already in the folder");
    EXPECT_EQ(autotune::ConfigLibrary(store->tier()).find(mine.key).value(), mine);
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::tuned).count, 1U);
    const auto again = take(bundle::unpack(*bundle, store->tier(), k_all));
    EXPECT_THAT(again.moved, IsEmpty());
    EXPECT_EQ(again.there.size(), 4U);
}

TEST_F(Artifacts, JoinAProfileWithTheFolders)
{
    const Bytes bytes = bundle_of(*m_store);
    const auto store = other();
    profile::Profile mine = profile::test::empty_profile();
    mine.parts["here"] = {"2026-11-25T00:00:00Z", "host-c"};
    profile::count(mine.parts["here"], profile::test::prompt_of(99));
    ASSERT_TRUE(succeeded(profile::ProfileLibrary(store->tier()).merge(mine)));
    bundle::UnpackOptions how;
    int locked = 0;
    how.profile_lock = [&](const ArtifactName& name) {
        ++locked;
        return store->try_artifact_lock(name);
    };
    const auto loaded = take(bundle::unpack(*open_bundle(bytes).value(), store->tier(), k_all, how));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::profiles).count, 1U);
    EXPECT_EQ(locked, 1);
    EXPECT_EQ(profile::ProfileLibrary(store->tier()).find(mine.key).value(), profile::join(mine, m_profile).value());
}

TEST_F(Artifacts, LeaveAFoldersProfileThatCannotBeRead)
{
    const Bytes bytes = bundle_of(*m_store);
    const auto store = other();
    ASSERT_TRUE(succeeded(store->tier().put(m_profile_name, as_bytes("{edited"))));
    const auto loaded = take(bundle::unpack(*open_bundle(bytes).value(), store->tier(), k_all));
    EXPECT_THAT(why(loaded.there, m_profile_name), HasSubstr("the profile in the folder cannot be read"));
    EXPECT_EQ((**store->tier().get(m_profile_name, {1000})).bytes.value(), bytes_of("{edited"));
}

TEST_F(Artifacts, ThatAreDamagedInTheFolderStayOutOfABundle)
{
    ASSERT_TRUE(succeeded(m_store->tier().put(m_best_name, as_bytes("{}"))));
    Transfer made;
    const Bytes bytes = bundle_of(*m_store, {}, &made);
    EXPECT_FALSE(why(made.skipped, m_best_name).empty());
    EXPECT_EQ(open_bundle(bytes).value()->find(member_name(m_best_name)), nullptr);
    EXPECT_NE(open_bundle(bytes).value()->find(member_name(m_module_name)), nullptr);
}

/// The writer of the bundle is hostile, and has made the bundle's digests match.
TEST_F(Artifacts, ThatAreHostileAreSkippedAndNamed)
{
    precompile::CompiledProgram renamed = m_program;
    renamed.ingredients.target = "sm_80";
    const Bytes program = precompile::encode(renamed).value();
    const auto extent = precompile::facts_extent(program).value();
    std::string best = autotune::encode(m_best), module = autotune::encode(m_module);
    best.replace(best.find("16"), 2, "32");
    const std::string sample = profile::encode(m_profile);
    const ByteView head = ByteView(program).first(extent), image = ByteView(program).subspan(extent);
    ArtifactName other_profile = profile::Profiles::name_of(sha256(as_bytes("another")));
    ArtifactName odd_profile = profile::Profiles::name_of(sha256(as_bytes("odd")));
    ArtifactName cut{ArtifactKind::compiled, precompile::key_of(renamed.ingredients)};
    const Bytes bytes = assemble_bundle({
        raw_member(4, member_name(m_program_name), image, head),
        raw_member(4, member_name(cut), image.first(10), head),
        raw_member(5, member_name(m_best_name), as_bytes(best)),
        raw_member(5, member_name(m_module_name), as_bytes(autotune::encode(m_best))),
        raw_member(6, member_name(m_profile_name), as_bytes(R"({"format": 1, "parts": [[]]})")),
        raw_member(6, member_name(other_profile), as_bytes(sample)),
        raw_member(6, member_name(odd_profile), as_bytes("")),
    });
    const auto bundle = open_bundle(bytes).value();
    for (const Member& member : bundle->members())
        EXPECT_TRUE(failed_with(bundle->verify(member), ErrorCode::corrupt)) << member.name;
    const auto store = other();
    const auto loaded = take(bundle::unpack(*bundle, store->tier(), k_all));
    EXPECT_THAT(loaded.moved, IsEmpty());
    EXPECT_EQ(loaded.skipped.size(), 7U);
    EXPECT_THAT(why(loaded.skipped, m_program_name), HasSubstr("its name says"));
    EXPECT_THAT(why(loaded.skipped, cut), HasSubstr("its image has 10 bytes"));
    EXPECT_THAT(why(loaded.skipped, other_profile), HasSubstr("its name says"));
    EXPECT_FALSE(fs::exists(m_dir.path() / "other" / "compiled"));
}

TEST_F(Artifacts, AreRefusedByTheirIndexWhereNameOrHeadIsOfAnotherKind)
{
    const Bytes program = precompile::encode(m_program).value();
    for (const auto& member : {raw_member(4, member_name(m_program_name), program),
                               raw_member(5, member_name(m_best_name), as_bytes(autotune::encode(m_best)), program),
                               raw_member(4, member_name(m_best_name), program, program),
                               raw_member(6, "profile/../" + member_name(m_profile_name), program)})
        EXPECT_TRUE(failed_with(open_bundle(assemble_bundle({member})), ErrorCode::corrupt)) << member.name;
}

TEST_F(Artifacts, NeedASignatureOfTheirOwnOrTheBundlesWhereThatIsRequired)
{
    const auto key =
        std::make_shared<const SigningKey>(SigningKey::generate("release", SignatureKind::hmac_sha256).value());
    const cachefmt::Trust strict{{}, {key}, true};
    const Bytes plain = bundle_of(*m_store), sealed = bundle_of(*m_store, {.sign_with = key.get()});
    const auto load = [&](ByteView bytes, const std::string& folder) {
        return bundle::unpack(*open_bundle(bytes, strict).value(), other(folder)->tier(), k_all).value();
    };
    const Transfer nothing = load(plain, "a");
    EXPECT_THAT(nothing.moved, IsEmpty());
    EXPECT_THAT(why(nothing.skipped, m_program_name), HasSubstr("it is not signed"));
    EXPECT_THAT(why(nothing.skipped, m_best_name), HasSubstr("the bundle has none that is accepted"));
    const Transfer by_bundle = load(sealed, "b");
    EXPECT_EQ(by_bundle.moved.at(store::ArtifactKind::tuned).count, 2U);
    EXPECT_EQ(by_bundle.moved.at(store::ArtifactKind::profiles).count, 1U);
    EXPECT_FALSE(by_bundle.moved.contains(store::ArtifactKind::compiled)) << "the folder would not take it";
    const auto signer = other("signer");
    ASSERT_TRUE(succeeded(precompile::ProgramLibrary(*signer, {key, {}, false}).put(m_program)));
    const Transfer by_itself = load(bundle_of(*signer), "c");
    EXPECT_EQ(by_itself.moved.at(store::ArtifactKind::compiled).count, 1U);
    // Does the same with the bundle as a layer, which is read without unpacking it.
    const auto store = other("d");
    add_bundle(*store, plain, strict);
    EXPECT_TRUE(failed_with(precompile::ProgramLibrary(*store, {}).find(m_program.ingredients), ErrorCode::untrusted));
    EXPECT_TRUE(failed_with(autotune::ConfigLibrary(store->tiers()).find(m_best.key), ErrorCode::untrusted));
    EXPECT_TRUE(failed_with(profile::ProfileLibrary(store->tiers()).find(m_profile.key), ErrorCode::untrusted));
}

TEST_F(Artifacts, AreCopiedIntoAnotherBundleWhereTheyAreWantedAndWhole)
{
    Bytes bytes = bundle_of(*m_store);
    const auto offset = open_bundle(bytes).value()->find(member_name(m_best_name))->offset;
    bytes[offset] ^= std::byte{1};
    const auto bundle = open_bundle(bytes).value();
    Bytes copy;
    bundle::Writer writer(bundle::into_bytes(copy));
    const auto copied = take(bundle::copy_members(*bundle, writer, k_all, [](const Bundle&, const Member& member) {
        return member.kind == store::ArtifactKind::profiles ? std::string("not chosen") : std::string();
    }));
    ASSERT_TRUE(succeeded(writer.finish()));
    EXPECT_EQ(why(copied.skipped, m_profile_name), "not chosen");
    EXPECT_THAT(why(copied.skipped, m_best_name), HasSubstr("digest does not match"));
    const auto small = open_bundle(copy).value();
    EXPECT_EQ(small->members().size(), 2U);
    EXPECT_EQ(bundle::architecture_of(*small, *small->find(member_name(m_program_name))).value(), "sm_90");
    EXPECT_EQ(bundle::describe_artifact(*small, *small->find(member_name(m_program_name))).value(),
              "matmul for sm_90, by NVRTC 13.0 (build 65be0db342ad51a0)");
    EXPECT_THAT(bundle::describe_artifact(*small, *small->find(member_name(m_module_name))).value(),
                HasSubstr("module model: "));
}

} // namespace
} // namespace warmgraph::test::artifacts_test
