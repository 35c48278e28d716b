#include "prefetching.hpp"

#include <algorithm>
#include <stop_token>
#include <system_error>

#include <unistd.h>

#include "cache_impl.hpp"
#include "device_impl.hpp"
#include "prepared.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph {

namespace {

/// A function that is called with many shapes has as many entries; which one comes first nobody knows.
/// Of the last used one the graph is restored, too.
constexpr std::size_t k_most_entries = 2;

/// Of the images whose variables hold no addresses: those are other modules wherever what they point to lies.
bool is_same_everywhere(const cachefmt::ImageRef& image)
{
    return std::ranges::all_of(image.variables, [](const auto& variable) { return variable.slots.empty(); });
}

Result<Bytes> read_image(Cache::Impl& cache, const cachefmt::ImageRef& image)
{
    auto read = cache.store->image(image.digest, image.size);
    if (!read) return std::unexpected(read.error());
    if (!*read) return fail(ErrorCode::not_found, "image {} is missing or damaged", short_hex(image.digest));
    if ((**read).size() != image.size)
        return fail(ErrorCode::corrupt, "image {} has {} bytes, the entry says {}", short_hex(image.digest),
                    (**read).size(), image.size);
    return std::move(**read);
}

/// Under a mark, as a restore does: drivers die of some code, and the next process must know of which. Whether all of
/// them are loaded now, and whoever restores the graph shares them.
Result<bool> load_images(Cache::Impl& cache, const cachefmt::EntryKey& key, const cachefmt::Graph& graph,
                         Device::Impl& device, const std::stop_token& stop)
{
    std::unique_ptr<store::LoadMark> mark;
    bool is_marked = false, are_all_shared = true;
    for (const auto& image : graph.images) {
        if (stop.stop_requested()) return false;
        if (!is_same_everywhere(image)) {
            are_all_shared = false;
            continue;
        }
        const auto bytes = [&]() -> Result<Bytes> {
            if (!std::exchange(is_marked, true)) {
                auto begun = cache.store->begin_load(key, device.load_target());
                if (!begun) return std::unexpected(begun.error());
                mark.swap(*begun);
            }
            return read_image(cache, image);
        };
        auto loaded = cache.modules.load(device.device, image, replay::k_nobody, bytes);
        if (!loaded) return std::unexpected(loaded.error());
        if ((**loaded).keeps_state()) are_all_shared = false;
    }
    if (mark) mark->succeed();
    return are_all_shared;
}

/// The code of an entry, and where that can be, its graph.
Result<void> restore_ahead(Cache::Impl& cache, const cachefmt::EntryKey& key, bool whole, Device::Impl& device,
                           const std::stop_token& stop)
{
    auto entry = cache.store->entry(key, store::Reading::ahead);
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return {};
    std::optional<PreparedGraphs::Turn> turn;
    if (whole && is_preparable((**entry).graph)) turn.emplace(cache.prepared, key, *device.device);
    const auto are_shared = load_images(cache, key, (**entry).graph, device, stop);
    if (!are_shared) return std::unexpected(are_shared.error());
    if (!turn || !*are_shared || stop.stop_requested()) return {};
    const auto images = [&cache](const cachefmt::ImageRef& image) { return read_image(cache, image); };
    auto graph = prepare(device.device, std::move(**entry), cache.modules, images);
    if (!graph) return std::unexpected(graph.error());
    turn->succeed(std::move(*graph));
    return {};
}

void prefetch(Cache::Impl& cache, const std::string& name, Device::Impl& device, const std::stop_token& stop)
{
    const auto& backend = *device.device;
    device.device->begin_warm_up();
    const auto function = cache.key(name, backend);
    auto variants = cache.store->variants(function);
    if (!variants) return log().debug("'{}' is not loaded ahead: {}", name, variants.error().message);
    std::ranges::stable_sort(*variants, std::ranges::greater{}, &store::Variant::last_used);
    auto here = backend.facts();
    guards::canonicalize(here);
    std::size_t loaded = 0;
    for (const auto& variant : *variants) {
        if (stop.stop_requested() || loaded == k_most_entries) return;
        if (!variant.header || variant.header->kind != cachefmt::EntryKind::graph) continue;
        if (!device_mismatches(variant.header->guards, here, cache.relaxation).empty()) continue;
        ++loaded;
        if (auto done = restore_ahead(cache, {function, variant.guards_digest}, loaded == 1, device, stop); !done)
            log().debug("entry {} of '{}' is not loaded ahead: {}", short_hex(variant.guards_digest), name,
                        done.error().message);
    }
}

} // namespace

void Prefetching::begin(Cache::Impl& cache, const std::string& name, std::shared_ptr<Device::Impl> device)
try {
    const std::scoped_lock lock{m_mutex};
    if (!m_begun.emplace(name, device->device.get()).second) return;
    m_process = ::getpid();
    if (!m_at_exit) m_at_exit.emplace([this] { end(); });
    m_threads.emplace_back([&cache, name, device = std::move(device)](const std::stop_token& stop) noexcept {
        try {
            prefetch(cache, name, *device, stop);
        } catch (const std::exception& thrown) { // memory: whoever needs it will hear of it
            log().debug("'{}' is not loaded ahead: {}", name, thrown.what());
        }
    });
} catch (const std::system_error& thrown) {
    log().debug("'{}' is not loaded ahead: {}", name, thrown.what());
}

void Prefetching::end()
{
    const std::scoped_lock lock{m_mutex};
    const bool are_ours = m_process == ::getpid();
    for (std::jthread& one : m_threads) {
        one.request_stop();
        if (!are_ours && one.joinable()) one.detach();
    }
    for (std::jthread& one : m_threads)
        if (one.joinable()) one.join();
}

void Cache::prefetch(const std::string& name, const Device& device)
{
    value_or_raise(cachefmt::check_name("function name", name));
    if (!m_impl->store || m_impl->policy == Policy::off || m_impl->policy == Policy::refresh) return;
    m_impl->prefetching->begin(*m_impl, name, DeviceAccess::impl(device));
}

} // namespace warmgraph
