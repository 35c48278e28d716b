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
/// Of a table of functions. Engines have fewer than a hundred.
constexpr std::size_t k_most_functions = 256;

/// Of the images whose variables hold no addresses: those are other modules wherever what they point to lies.
bool is_same_everywhere(const cachefmt::ImageRef& image)
{
    return std::ranges::all_of(image.variables, [](const auto& variable) { return variable.slots.empty(); });
}

/// Under a mark, as a restore does: drivers die of some code, and the next process must know of which. Whether all of
/// them are loaded now, and whoever restores the graph shares them.
Result<bool> load_images(Cache::Impl& cache, const cachefmt::EntryKey& key, const cachefmt::Graph& graph,
                         Device::Impl& device, const std::stop_token& stop)
{
    const auto images = cache.image_source();
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
            return images(image);
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
    if (whole && cache.prepared.has_room_for((**entry).graph)) turn.emplace(cache.prepared, key, *device.device);
    const auto are_shared = load_images(cache, key, (**entry).graph, device, stop);
    if (!are_shared) return std::unexpected(are_shared.error());
    if (!turn || !*are_shared || stop.stop_requested()) return {};
    auto graph = prepare(device.device, std::move(**entry), cache.modules, cache.image_source());
    if (!graph) return std::unexpected(graph.error());
    turn->succeed(std::move(*graph));
    return {};
}

std::vector<store::Variant> fitting_variants(Cache::Impl& cache, const cachefmt::FunctionKey& function,
                                             const backends::Device& device)
{
    auto variants = cache.store->variants(function);
    if (!variants) {
        log().debug("'{}' is not loaded ahead: {}", function.function, variants.error().message);
        return {};
    }
    auto here = device.facts();
    guards::canonicalize(here);
    std::erase_if(*variants, [&](const store::Variant& variant) {
        return !variant.header || variant.header->kind != cachefmt::EntryKind::graph ||
               !device_mismatches(variant.header->guards, here, cache.relaxation).empty();
    });
    std::ranges::stable_sort(*variants, std::ranges::greater{}, &store::Variant::last_used);
    return std::move(*variants);
}

void prefetch_function(Cache::Impl& cache, const cachefmt::FunctionKey& function, Device::Impl& device,
                       const std::stop_token& stop)
{
    const auto variants = fitting_variants(cache, function, *device.device);
    for (std::size_t i = 0; i < std::min(variants.size(), k_most_entries) && !stop.stop_requested(); ++i)
        if (auto done = restore_ahead(cache, {function, variants[i].guards_digest}, i == 0, device, stop); !done)
            log().debug("entry {} of '{}' is not loaded ahead: {}", short_hex(variants[i].guards_digest),
                        function.function, done.error().message);
}

/// A program that has a table of functions calls them in the order in which it called them last time.
void prefetch_all(Cache::Impl& cache, std::string_view beginning, Device::Impl& device, const std::stop_token& stop)
{
    const auto model = cache.key("all", *device.device);
    auto functions = cache.store->functions();
    if (!functions) return log().debug("'{}*' is not loaded ahead: {}", beginning, functions.error().message);
    struct Found {
        cachefmt::FunctionKey function;
        store::Variant last;
    };
    std::vector<Found> found;
    for (auto& function : *functions) {
        const bool is_meant = function.model_info == model.model_info && function.rank == model.rank &&
                              function.function.starts_with(beginning);
        if (!is_meant) continue;
        if (found.size() == k_most_functions || stop.stop_requested()) break;
        auto variants = fitting_variants(cache, function, *device.device);
        if (!variants.empty()) found.push_back({std::move(function), std::move(variants.front())});
    }
    std::ranges::stable_sort(found, {}, [](const Found& one) { return one.last.last_used; });
    for (const auto& [function, last] : found) {
        if (stop.stop_requested()) return;
        if (cache.has_function(function.function)) continue; // its calls came first
        if (auto done = restore_ahead(cache, {function, last.guards_digest}, true, device, stop); !done)
            log().debug("'{}' is not loaded ahead: {}", function.function, done.error().message);
    }
}

/// A name that ends so stands for all that begin as it does: no function's name may have it.
constexpr char k_all = '*';

bool is_beginning(std::string_view name) noexcept { return name.ends_with(k_all); }

} // namespace

void Prefetching::begin(Cache::Impl& cache, const std::string& name, std::shared_ptr<Device::Impl> device)
try {
    const std::scoped_lock lock{m_mutex};
    if (!m_begun.emplace(name, device->device.get()).second) return;
    m_queue.insert(is_beginning(name) ? m_queue.end() : m_queue.begin(), {name, std::move(device)});
    if (m_is_working) return;
    m_process = ::getpid();
    if (!m_at_exit) m_at_exit.emplace([this] { end(); });
    m_thread = std::jthread{[this, &cache](const std::stop_token& stop) { work(cache, stop); }}; // the last one is done
    m_is_working = true;
} catch (const std::system_error& thrown) {
    log().debug("'{}' is not loaded ahead: {}", name, thrown.what());
}

auto Prefetching::next(const std::stop_token& stop) -> std::optional<Wanted>
{
    const std::scoped_lock lock{m_mutex};
    m_is_working = !m_queue.empty() && !stop.stop_requested();
    if (!m_is_working) return std::nullopt;
    Wanted first = std::move(m_queue.front());
    m_queue.pop_front();
    return first;
}

void Prefetching::work(Cache::Impl& cache, const std::stop_token& stop) noexcept
{
    while (const auto wanted = next(stop)) {
        const std::string_view name = wanted->name;
        try {
            wanted->device->device->begin_warm_up();
            if (is_beginning(name))
                prefetch_all(cache, name.substr(0, name.size() - 1), *wanted->device, stop);
            else
                prefetch_function(cache, cache.key(wanted->name, *wanted->device->device), *wanted->device, stop);
        } catch (const std::exception& thrown) { // memory: whoever needs it will hear of it
            log().debug("'{}' is not loaded ahead: {}", name, thrown.what());
        }
    }
}

void Prefetching::end()
{
    std::jthread last;
    {
        const std::scoped_lock lock{m_mutex};
        m_thread.request_stop();
        last.swap(m_thread);
        m_queue.clear();
        if (m_process != ::getpid() && last.joinable()) last.detach();
    }
    if (last.joinable()) last.join(); // it takes the lock to see that nothing is left
}

void Cache::prefetch(const std::string& name, const Device& device)
{
    const auto plain = is_beginning(name) ? name.substr(0, name.size() - 1) : name;
    value_or_raise(cachefmt::check_name("function name", plain));
    if (!m_impl->looks_for_graphs(m_impl->policy)) return;
    m_impl->prefetching->begin(*m_impl, name, DeviceAccess::impl(device));
}

} // namespace warmgraph
