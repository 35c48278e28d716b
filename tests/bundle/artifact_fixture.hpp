// A fixture with compiled programs, tuned configurations and shape profiles, in a folder and in bundles.
#pragma once

#include "bundle_fixture.hpp"
#include "sample_best_config.hpp"
#include "sample_profile.hpp"
#include "sample_program.hpp"
#include "warmgraph/autotune/config_library.hpp"
#include "warmgraph/bundle/artifact_compatibility.hpp"
#include "warmgraph/bundle/bundle_tier.hpp"
#include "warmgraph/precompile/program_library.hpp"
#include "warmgraph/profile/profile_library.hpp"

namespace warmgraph::test {

using store::ArtifactKind;
using store::ArtifactName;

inline Bytes bytes_of(std::string_view text) { return {as_bytes(text).begin(), as_bytes(text).end()}; }
inline std::string member_name(const ArtifactName& name) { return to_text(store::Name(name)); }

class ArtifactTest : public BundleTest {
protected:
    /// Puts one object of each kind into the store.
    void put_all(LocalStore& store) const
    {
        autotune::ConfigLibrary tuned(store.tier());
        const bool done = precompile::ProgramLibrary(store, {}).put(m_program).has_value() &&
                          tuned.put(m_best).has_value() && tuned.modules().put(m_module).has_value() &&
                          profile::ProfileLibrary(store.tier()).merge(m_profile).has_value();
        if (!done) throw std::runtime_error("the samples cannot be stored");
    }
    /// Makes a bundle of all objects in the store.
    static Bytes bundle_of(LocalStore& store, const bundle::WriteOptions& options = {}, Transfer* transfer = nullptr)
    {
        Bytes bytes;
        bundle::Writer writer(bundle::into_bytes(bytes), options);
        const auto names = bundle::artifacts_of(store.tier(), [](ArtifactKind) { return true; }).value();
        auto gathered = take(bundle::gather(writer, names, getter(store)));
        if (transfer != nullptr) *transfer = std::move(gathered);
        take(writer.finish());
        return bytes;
    }
    std::unique_ptr<LocalStore> other(const std::string& name = "other", const StoreOptions& options = {}) const
    {
        return LocalStore::open(m_dir.path() / name, options).value();
    }
    static void add_bundle(LocalStore& store, ByteView bytes, const cachefmt::Trust& trust = {})
    {
        store.add_layer(std::make_shared<bundle::BundleTier>(open_bundle(bytes, trust).value(), "test.wgb"), trust);
    }
    static std::string why(const std::vector<bundle::UnmovedArtifact>& left, const ArtifactName& name)
    {
        for (const auto& [of, text] : left)
            if (of == member_name(name)) return text;
        return {};
    }

    const precompile::CompiledProgram m_program = precompile::test::sample_program();
    const autotune::BestConfig m_best = autotune::test::sample_best_config();
    const autotune::ModuleConfigs m_module = autotune::test::sample_module();
    const profile::Profile m_profile = profile::test::sample_profile();
    const ArtifactName m_program_name{ArtifactKind::compiled, precompile::key_of(m_program.ingredients)},
        m_best_name{ArtifactKind::tuned, m_best.key},
        m_module_name{ArtifactKind::tuned, m_module.key, store::k_module_form},
        m_profile_name = profile::Profiles::name_of(m_profile.key);
};

} // namespace warmgraph::test
