#include "warmgraph/call/loaded_variants.hpp"

#include <algorithm>

#include "warmgraph/base/log.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

/// An event and its device, which must outlive it.
struct EventQuery {
    std::shared_ptr<backends::Device> device;
    std::shared_ptr<backends::Event> event;
    Result<bool> operator()() const { return event->is_done(); }
};

} // namespace

LoadedVariants::LoadedVariants(std::shared_ptr<const Declaration> declaration, std::shared_ptr<store::LocalStore> store,
                               std::size_t most)
    : m_declaration(std::move(declaration)), m_store(std::move(store)), m_most(most)
{
}

auto LoadedVariants::find(const Digest& digest) -> Iterator
{
    return std::ranges::find(m_variants, digest, &LoadedVariant::guards_digest);
}

auto LoadedVariants::keep(LoadedVariant variant) -> Iterator
{
    note_served(variant);
    if (variant.is_preloaded) m_most = std::max(m_most, m_variants.size() + 1);
    m_variants.push_front(std::move(variant));
    if (m_variants.size() > m_most) m_variants.pop_back();
    return m_variants.begin();
}

void LoadedVariants::use(Iterator variant)
{
    if (variant != m_variants.begin()) m_variants.splice(m_variants.begin(), m_variants, variant);
    note_served(*variant);
}

LoadedVariant LoadedVariants::take(Iterator variant)
{
    LoadedVariant taken = std::move(*variant);
    m_variants.erase(variant);
    return taken;
}

void LoadedVariants::erase_if(const Predicate& is_gone) { m_variants.remove_if(is_gone); }

void LoadedVariants::erase_all(std::string_view why)
{
    if (std::ranges::any_of(m_variants, &LoadedVariant::only_here))
        log().warn("{}: adopted entries that could not be published are dropped, because {}", m_declaration->path, why);
    m_variants.clear();
}

Result<void> LoadedVariants::launch(LoadedVariant& variant, const std::shared_ptr<backends::Stream>& stream,
                                    CallArguments& arguments, CallableRunner& runner, replay::AskedCapture asked) const
{
    runner.order_after_last(stream);
    auto launched =
        variant.executable->launch(*stream, arguments.bindings(variant.executable->graph().regions.size()), asked);
    if (launched)
        note_launch(variant, *stream);
    else
        variant.mark.reset();
    if (!launched && launched.error().code == ErrorCode::partly_launched)
        raise(within(m_declaration->path, launched.error()).error());
    return launched;
}

Result<void> LoadedVariants::complete(LoadedVariant& variant) const
{
    auto completed = variant.executable->complete();
    if (completed) end_load(variant);
    return completed;
}

void LoadedVariants::note_served(const LoadedVariant& variant)
{
    if (variant.recording) m_served = {variant.recording->id, variant.use == LoadedVariant::Use::waits};
}

void LoadedVariants::end_wait(const cachefmt::RecordingId& forward)
{
    for (LoadedVariant& variant : m_variants)
        if (variant.recording && variant.recording->id == forward && variant.use == LoadedVariant::Use::waits)
            variant.use = LoadedVariant::Use::replayed;
}

void LoadedVariants::give_up(const cachefmt::RecordingId& forward)
{
    for (LoadedVariant& variant : m_variants) {
        if (!variant.recording || variant.recording->id != forward || variant.use == LoadedVariant::Use::runs_as_it_is)
            continue;
        log().warn("{} {} is not replayed: its backward cannot be recorded", m_declaration->path,
                   short_hex(variant.guards_digest));
        variant.use = LoadedVariant::Use::runs_as_it_is;
        variant.executable.reset();
    }
}

/// Notes a launch, so that its load ends when the launch is done. Notes nothing in a caller's capture, because the work
/// does not run yet and nothing can show when it runs.
void LoadedVariants::note_launch(LoadedVariant& variant, backends::Stream& stream) const noexcept
try {
    if (m_store) m_store->settle_loads();
    if (!variant.mark) return;
    if (stream.is_capturing()) return variant.mark.reset();
    auto event = stream.record_event();
    if (event) {
        variant.launched = EventQuery{m_declaration->backend(), std::move(*event)};
        return end_load(variant);
    }
    // This backend has no events, so the launch counts as done.
    if (event.error().code == ErrorCode::unsupported) variant.mark->succeed();
    variant.mark.reset();
} catch (const std::bad_alloc&) {
    variant.mark.reset(); // drops the mark without noting a success
}

/// Ends the load when the launch is done. Does nothing before a launch, or before the graph is instantiated.
void LoadedVariants::end_load(LoadedVariant& variant) const noexcept
{
    if (!variant.mark || !variant.launched || !variant.executable->is_complete()) return;
    m_store->end_load_behind(std::exchange(variant.mark, nullptr), std::exchange(variant.launched, nullptr));
}

} // namespace warmgraph
