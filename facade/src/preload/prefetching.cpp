#include "preload/prefetching.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "cache/cache_impl.hpp"
#include "device/device_impl.hpp"
#include "preload/prepared.hpp"
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
/// For all first calls of a table together.
constexpr std::chrono::seconds k_table_patience{10};
/// Between two looks whether a pause is over.
constexpr std::chrono::microseconds k_look{500};

/// Of the images whose variables hold no addresses: those are other modules wherever what they point to lies.
bool is_same_everywhere(const cachefmt::ImageRef& image)
{
    return std::ranges::all_of(image.variables, [](const auto& variable) { return variable.slots.empty(); });
}

/// `work(i)` for each i below `count`, in order, by several threads: whoever needs the result does the next thing meanwhile,
/// or waits. Fewer where the system gives no more.
void for_each_of(std::size_t count, const std::stop_token& stop, const std::function<void(std::size_t)>& work)
{
    constexpr std::size_t k_most_threads = 3; ///< measured: a fourth gains nothing, the driver's locks take the rest
    std::atomic<std::size_t> next = 0;
    const auto go_on = [&]() noexcept {
        for (std::size_t i = next++; i < count && !stop.stop_requested(); i = next++) {
            try {
                work(i);
            } catch (const std::exception& thrown) { // memory: whoever needs it will hear of it
                log().debug("{} of {} is not loaded ahead: {}", i, count, thrown.what());
            }
        }
    };
    const std::size_t wanted = std::min<std::size_t>({k_most_threads, std::thread::hardware_concurrency() / 2, count});
    std::vector<std::jthread> helpers; // joined before what they use goes
    try {
        while (helpers.size() + 1 < wanted) helpers.emplace_back(go_on);
    } catch (const std::system_error& thrown) {
        log().debug("{} are loaded ahead with {} threads: {}", count, helpers.size() + 1, thrown.what());
    }
    go_on();
}

/// The images of one entry. Under a mark, as a restore does: drivers die of some code, and the next process must know of
/// which. Thread-safe.
class Images {
public:
    Images(Cache::Impl& cache, const cachefmt::EntryKey& key, Device::Impl& device)
        : m_cache(cache), m_key(key), m_device(device), m_source(cache.image_source())
    {
    }
    void load(const cachefmt::ImageRef& image)
    {
        if (!is_same_everywhere(image)) return;
        const auto bytes = [&]() -> Result<Bytes> {
            if (auto marked = mark(); !marked) return std::unexpected(marked.error());
            return m_source(image);
        };
        auto loaded = m_cache.modules.load(m_device.device, image, replay::k_nobody, bytes);
        if (!loaded) {
            const std::scoped_lock lock{m_mutex};
            m_failure = loaded.error();
            return;
        }
        if ((**loaded).keeps_state()) return;
        const std::scoped_lock lock{m_mutex};
        ++m_shared;
    }
    /// Of `count` images: whether all of them are loaded now, and whoever restores the graph shares them.
    [[nodiscard]] Result<bool> are_shared(std::size_t count)
    {
        const std::scoped_lock lock{m_mutex};
        if (m_failure) return std::unexpected(*m_failure);
        return m_shared == count;
    }
    /// Before the first of them, and before the graph. It lasts as long as this lives.
    Result<void> mark()
    {
        const std::scoped_lock lock{m_mutex};
        if (m_failure) return std::unexpected(*m_failure);
        if (std::exchange(m_is_marked, true)) return {};
        auto begun = m_cache.store->begin_load(m_key, m_device.load_target());
        if (!begun) return std::unexpected(m_failure.emplace(begun.error()));
        m_mark = std::move(*begun);
        return {};
    }

private:
    Cache::Impl& m_cache;
    const cachefmt::EntryKey& m_key;
    Device::Impl& m_device;
    const replay::ImageSource m_source;
    std::mutex m_mutex; // guards the rest
    bool m_is_marked = false;
    std::unique_ptr<store::LoadMark> m_mark; ///< null where the store keeps none
    std::optional<Error> m_failure;
    std::size_t m_shared = 0;
};

Result<bool> load_images(Images& images, const cachefmt::Graph& graph, bool is_alone, const std::stop_token& stop)
{
    const auto load = [&](std::size_t i) { images.load(graph.images[i]); };
    if (is_alone)
        for_each_of(graph.images.size(), stop, load);
    else
        for (std::size_t i = 0; i < graph.images.size() && !stop.stop_requested(); ++i) load(i);
    return images.are_shared(graph.images.size());
}

/// What is restored of an entry, and how long is waited for room to do so.
struct Wish {
    bool graph = false;                 ///< where that can be, besides the code
    bool is_alone = false;              ///< nothing else is restored ahead meanwhile
    std::function<void()> rest = [] {}; ///< called between two steps
    std::chrono::steady_clock::time_point end{};
    std::function<bool()> is_late{}; ///< whether calls came first by now
    std::function<void()> no_room{}; ///< told where only that stood against the graph
};

Result<void> restore_ahead(Cache::Impl& cache, const cachefmt::EntryKey& key, const Wish& wish, Device::Impl& device,
                           const std::stop_token& stop)
{
    store::Stamp stamp;
    auto entry = cache.store->entry(key, store::Reading::ahead, &stamp);
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return {};
    const cachefmt::Graph& wanted = (**entry).graph;
    const auto turn = wish.graph ? cache.preload.prepared.turn(key, wanted, *device.device, wish.end, stop) : nullptr;
    if (!turn && wish.no_room && PreparedGraphs::may_hold(wanted, *device.device)) wish.no_room();
    wish.rest();
    if (wish.is_late && wish.is_late()) return {};
    Images images{cache, key, device};
    const auto are_shared = load_images(images, (**entry).graph, wish.is_alone, stop);
    if (!are_shared) return std::unexpected(are_shared.error());
    wish.rest();
    if (!turn || !*are_shared || stop.stop_requested()) return {};
    if (auto marked = images.mark(); !marked) return std::unexpected(marked.error());
    auto graph = prepare(device.device, std::move(**entry), cache.modules, cache.image_source(), cache.preload.places,
                         wish.rest);
    if (!graph) return std::unexpected(graph.error());
    graph->stamp = stamp;
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
               !device_mismatches(variant.header->guards, here, cache.settings.relaxation).empty();
    });
    std::ranges::stable_sort(*variants, std::ranges::greater{}, &store::Variant::last_used);
    return std::move(*variants);
}

void prefetch_function(Cache::Impl& cache, const cachefmt::FunctionKey& function, Device::Impl& device,
                       const std::stop_token& stop)
{
    const auto variants = fitting_variants(cache, function, *device.device);
    for (std::size_t i = 0; i < std::min(variants.size(), k_most_entries) && !stop.stop_requested(); ++i)
        if (auto done = restore_ahead(cache, {function, variants[i].guards_digest}, {.graph = i == 0, .is_alone = true},
                                      device, stop);
            !done)
            log().debug("entry {} of '{}' is not loaded ahead: {}", short_hex(variants[i].guards_digest),
                        function.function, done.error().message);
}

/// Those of this model and rank whose names begin so.
Result<std::vector<cachefmt::FunctionKey>> functions_from(const Cache::Impl& cache, std::string_view beginning,
                                                          const backends::Device& device)
{
    const auto model = cache.settings.key("all", device);
    auto functions = cache.store->functions();
    if (!functions) return std::unexpected(functions.error());
    std::erase_if(*functions, [&](const cachefmt::FunctionKey& function) {
        return function.model_info != model.model_info || function.rank != model.rank ||
               !function.function.starts_with(beginning);
    });
    return functions;
}

/// A program that has a table of functions calls them in the order in which it called them last time. False: some found no
/// room.
bool prefetch_all(Cache::Impl& cache, std::string_view beginning, Device::Impl& device, const std::stop_token& stop)
{
    auto functions = functions_from(cache, beginning, *device.device);
    if (!functions) {
        log().debug("'{}*' is not loaded ahead: {}", beginning, functions.error().message);
        return true;
    }
    if (functions->size() > k_most_functions) functions->resize(k_most_functions);
    struct Found {
        const cachefmt::FunctionKey* function = nullptr; ///< null: none of its entries fits
        Digest last;
        std::chrono::system_clock::time_point used{};
    };
    std::vector<Found> found(functions->size());
    for_each_of(found.size(), stop, [&](std::size_t i) {
        const auto variants = fitting_variants(cache, (*functions)[i], *device.device);
        if (!variants.empty())
            found[i] = {&(*functions)[i], variants.front().guards_digest, variants.front().last_used};
    });
    std::erase_if(found, [](const Found& one) { return one.function == nullptr; });
    std::ranges::stable_sort(found, {}, &Found::used);
    // Its first calls take what is there, so that the rest finds room. Who calls a few of them only is not waited for long, and
    // who called none, whose program may read its weights for minutes, not at all.
    auto end = std::chrono::steady_clock::now();
    if (std::ranges::any_of(found, [&](const Found& one) { return cache.functions.has(one.function->function); }))
        end += k_table_patience;
    std::atomic<bool> has_room = true;
    for_each_of(found.size(), stop, [&](std::size_t i) {
        const cachefmt::EntryKey key{*found[i].function, found[i].last};
        const auto is_late = [&] { return cache.functions.has(key.function.function); };
        // The first one never waits: it is what the call most likely needs. Nor does one whose call waits for it.
        const auto rest = [&] {
            while (i > 0 && cache.preload.queue.is_paused() && !is_late() && !stop.stop_requested())
                std::this_thread::sleep_for(k_look);
        };
        rest();
        if (is_late() || cache.preload.prepared.has(key, *device.device)) return;
        const Wish wish{
            .graph = true, .rest = rest, .end = end, .is_late = is_late, .no_room = [&] { has_room = false; }};
        if (auto done = restore_ahead(cache, key, wish, device, stop); !done)
            log().debug("'{}' is not loaded ahead: {}", key.function.function, done.error().message);
    });
    return has_room;
}

/// A name that ends so stands for all that begin as it does: no function's name may have it.
constexpr char k_all = '*';

bool is_beginning(std::string_view name) noexcept { return name.ends_with(k_all); }

/// Without that. Throws invalid_argument where it is no name.
std::string plain_name(const std::string& name)
{
    std::string plain = is_beginning(name) ? name.substr(0, name.size() - 1) : name;
    value_or_raise(cachefmt::check_name("function name", plain));
    return plain;
}

} // namespace

void Prefetching::pause() noexcept { m_pause_end = (Clock::now() + k_longest_pause).time_since_epoch().count(); }

bool Prefetching::is_paused() const noexcept { return Clock::now().time_since_epoch().count() < m_pause_end; }

void Prefetching::begin(Cache::Impl& cache, const std::string& name, std::shared_ptr<Device::Impl> device)
try {
    m_pause_end = 0;
    const std::scoped_lock lock{m_mutex};
    const auto [begun, is_new] = m_begun.try_emplace({name, device->device.get()}, false);
    if (!is_new) {
        begun->second = true;
        return;
    }
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

/// Who asks again asks behind a call, which makes room.
void Prefetching::had_no_room(Wanted wanted)
{
    const std::scoped_lock lock{m_mutex};
    const auto begun = m_begun.find({wanted.name, wanted.device->device.get()});
    if (begun == m_begun.end()) return;
    if (std::exchange(begun->second, false))
        m_queue.push_back(std::move(wanted));
    else
        m_begun.erase(begun);
}

void Prefetching::work(Cache::Impl& cache, const std::stop_token& stop) noexcept
{
    if (cache.store) cache.store->expect_usage(); // else a first call begins their threads
    if (cache.profiles) cache.profiles->expect();
    while (const auto wanted = next(stop)) {
        const std::string_view name = wanted->name;
        try {
            wanted->device->device->begin_warm_up();
            if (is_beginning(name)) {
                if (!prefetch_all(cache, name.substr(0, name.size() - 1), *wanted->device, stop)) had_no_room(*wanted);
            } else {
                prefetch_function(cache, cache.settings.key(wanted->name, *wanted->device->device), *wanted->device,
                                  stop);
            }
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
    static_cast<void>(plain_name(name));
    if (!m_impl->looks_for_entries(m_impl->settings.policy)) return;
    m_impl->preload.queue.begin(*m_impl, name, DeviceAccess::impl(device));
}

void Cache::pause_prefetch() noexcept { m_impl->preload.queue.pause(); }

std::optional<std::string> Cache::latest_metadata(const std::string& name, const Device& device) const
{
    const auto plain = plain_name(name);
    if (!m_impl->looks_for_entries(m_impl->settings.policy)) return std::nullopt;
    const auto& backend = *DeviceAccess::impl(device)->device;
    std::vector<cachefmt::FunctionKey> functions{m_impl->settings.key(plain, backend)};
    if (is_beginning(name))
        functions = functions_from(*m_impl, plain, backend).value_or(std::vector<cachefmt::FunctionKey>{});
    for (const auto& function : functions) {
        const auto variants = fitting_variants(*m_impl, function, backend);
        if (variants.empty()) continue;
        const auto& facts = variants.front().header->guards.facts;
        const auto metadata = std::ranges::find(facts, k_metadata_fact, &cachefmt::Fact::name);
        return metadata != facts.end() ? metadata->value : "";
    }
    return std::nullopt;
}

} // namespace warmgraph
