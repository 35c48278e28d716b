// Loads the tuned configurations of a module's kernels from one file when the module begins, and stores them in that
// file when the module ends.
#include <exception>

#include "warmgraph/autotune/tuned_key.hpp"
#include "warmgraph/autotune/tuner_impl.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

autotune::ModuleConfigs Tuner::Impl::load_module(const std::string& name, std::string_view code)
{
    value_or_raise(cachefmt::check_name("module's name", name));
    autotune::ModuleConfigs none{name,
                                 module_key(name, code, device_facts(*DeviceAccess::impl(device)->device), cache.tag)};
    if (!library || cache.policy == Policy::refresh) return none;
    auto loaded = library->modules().find(none.key);
    if (!loaded) fault("read", fmt::format("the tuned configurations of module '{}'", name), loaded.error());
    if (!loaded || !*loaded) return none;
    cache.touched.note({store::ArtifactKind::tuned, none.key, store::k_module_form});
    return std::move(**loaded);
}

void Tuner::Impl::end_module(const autotune::ModuleConfigs& loaded,
                             const std::vector<std::shared_ptr<TunedKernel>>& asked)
{
    if (!library || !why_not_written().empty()) return;
    autotune::ModuleConfigs module{loaded.module, loaded.key};
    auto kept = loaded.configs;
    {
        const std::scoped_lock lock{mutex};
        for (const auto& shared : asked) {
            if (has_rejected(*shared)) kept.erase(shared->wanted.key);
            if (shared->best) module.configs.insert_or_assign(shared->best->key, *shared->best);
        }
    }
    module.configs = autotune::merged(std::move(kept), module.configs);
    if (module.configs == loaded.configs) return;
    if (const auto put = library->modules().put(module); !put)
        return fault("write", fmt::format("the tuned configurations of module '{}'", module.module), put.error());
    cache.touched.note({store::ArtifactKind::tuned, module.key, store::k_module_form});
    cache.store->make_room();
}

TuningModule Tuner::begin_module(const std::string& name, std::string_view code)
{
    return TuningModule{std::make_unique<TuningModule::Impl>(m_impl, m_impl->load_module(name, code))};
}

TuningModule::TuningModule(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
TuningModule::TuningModule(TuningModule&&) noexcept = default;
TuningModule& TuningModule::operator=(TuningModule&& other) noexcept
{
    end();
    m_impl = std::move(other.m_impl);
    return *this;
}
TuningModule::~TuningModule() { end(); }

Tuned TuningModule::tune(const TunableKernel& kernel)
{
    if (!m_impl || m_impl->has_ended)
        raise({ErrorCode::invalid_argument, "the module has ended: begin another with Tuner::begin_module"});
    Tuned tuned = m_impl->tuner->tune(kernel, m_impl->loaded.configs);
    m_impl->asked.push_back(TunedAccess::shared(tuned));
    return tuned;
}

std::size_t TuningModule::loaded() const noexcept { return m_impl ? m_impl->loaded.configs.size() : 0; }

void TuningModule::end() noexcept
try {
    if (!m_impl || std::exchange(m_impl->has_ended, true)) return;
    m_impl->tuner->end_module(m_impl->loaded, m_impl->asked);
} catch (const std::exception& error) {
    log().warn("the tuned configurations of module '{}' are not stored: {}", m_impl->loaded.module, error.what());
}

} // namespace warmgraph
