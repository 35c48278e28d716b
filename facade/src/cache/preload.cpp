// Cache::preload: chooses the entries, their order, and the threads.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/cache_impl.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/capture/run_context.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

/// The most functions that one name with k_all can mean. Engines have fewer than a hundred functions in a table.
constexpr std::size_t k_most_functions = 256;
/// The longest wait for all first calls of a table together. Each first call takes a graph and so makes room for
/// another graph.
constexpr std::chrono::seconds k_table_patience{10};
/// The most threads for functions that PreloadOptions::functions names. They are preloaded while the program reads its
/// model (measured: a fourth thread gains nothing).
constexpr std::size_t k_threads_by_name = 3;

/// A name that ends with this character means all names with the same beginning. No function's name may contain it.
constexpr char k_all = '*';

bool is_beginning(std::string_view name) noexcept { return name.ends_with(k_all); }

/// Returns the name without k_all at its end. Throws invalid_argument if it is not a valid name.
std::string plain_name(const std::string& name)
{
    std::string plain = is_beginning(name) ? name.substr(0, name.size() - 1) : name;
    value_or_raise(cachefmt::check_name("function name", plain));
    return plain;
}

struct PlannedEntry {
    cachefmt::EntryKey key;
    std::string name; ///< the function's name
    std::shared_ptr<Device::Impl> device;
    /// The function; null if it was not wrapped at planning time.
    std::shared_ptr<const WrappedFunction> function{};
    std::vector<TensorDecl> inputs{};
    std::chrono::system_clock::time_point last_used{};
    std::optional<Error> damage{};
    int urgency = 0;
    bool is_of_table = false;
    std::chrono::steady_clock::time_point end{}; ///< time at which the wait for room ends
    replay::Instantiation instantiation = replay::Instantiation::at_restore;
};

using Plan = std::vector<PlannedEntry>;

Plan plan_of(const std::shared_ptr<const WrappedFunction>& function)
{
    const Declaration& its = function->declaration();
    Plan result;
    for (PreloadCandidate& entry : function->preload_candidates())
        result.push_back({{its.key, entry.guards_digest},
                          its.name,
                          its.device,
                          function,
                          std::move(entry.inputs),
                          entry.last_used,
                          std::move(entry.damage)});
    return result;
}

/// Returns the function's last used entry that fits this device. The function is not wrapped, so the description of its
/// inputs comes from the entry.
std::optional<PlannedEntry> last_used_of(Cache::Impl& cache, const cachefmt::FunctionKey& function,
                                         const std::shared_ptr<Device::Impl>& device)
{
    const auto variants = cache.store->variants(function);
    if (!variants) {
        log().debug("'{}' is not preloaded: {}", function.function, variants.error().message);
        return std::nullopt;
    }
    auto here = device->device->facts();
    guards::canonicalize(here);
    const store::Variant* last = nullptr;
    for (const store::Variant& variant : *variants) {
        const bool fits = variant.header && variant.header->kind == cachefmt::EntryKind::graph &&
                          device_mismatches(variant.header->guards, here, cache.settings.relaxation).empty();
        if (fits && (last == nullptr || variant.last_used > last->last_used)) last = &variant;
    }
    if (last == nullptr) return std::nullopt;
    PlannedEntry planned{{function, last->guards_digest}, function.function, device};
    for (const auto& tensor : last->header->guards.tensors)
        planned.inputs.push_back({tensor.name, tensor.dtype, tensor.sizes, tensor.strides});
    planned.last_used = last->last_used;
    return planned;
}

/// Returns the functions of this model and rank whose names begin with `beginning`.
std::vector<cachefmt::FunctionKey> functions_from(const Cache::Impl& cache, std::string_view beginning,
                                                  const backends::Device& device)
{
    const auto model = cache.settings.key("all", device);
    auto functions = cache.store->functions();
    if (!functions) {
        log().debug("'{}*' is not preloaded: {}", beginning, functions.error().message);
        return {};
    }
    std::erase_if(*functions, [&](const cachefmt::FunctionKey& function) {
        return function.model_info != model.model_info || function.rank != model.rank ||
               !function.function.starts_with(beginning);
    });
    if (functions->size() > k_most_functions) functions->resize(k_most_functions);
    return std::move(*functions);
}

Plan plan_of(Cache::Impl& cache, const std::string& name, const std::shared_ptr<Device::Impl>& device)
{
    Plan result;
    if (!is_beginning(name)) {
        if (const auto function = cache.functions.find(name)) return plan_of(function);
        if (auto last = last_used_of(cache, cache.settings.key(name, *device->device), device))
            result.push_back(std::move(*last));
        return result;
    }
    bool is_called = false;
    for (const auto& function : functions_from(cache, plain_name(name), *device->device)) {
        // A wrapped function is probably being called, and its call restores the entry.
        if (cache.functions.has(function.function))
            is_called = true;
        else if (auto last = last_used_of(cache, function, device))
            result.push_back(std::move(*last));
    }
    const auto now = std::chrono::steady_clock::now();
    for (PlannedEntry& entry : result) {
        entry.is_of_table = true;
        // If no function is called yet, does not wait for room: the program may read its weights for minutes.
        entry.end = is_called ? now + k_table_patience : now;
    }
    return result;
}

} // namespace

struct Preload::Impl {
    std::shared_ptr<Cache::Impl> cache;
    std::shared_ptr<PreloadRequest> request;
};

namespace {

/// One call of Cache::preload. The cache must outlive the tasks of the call.
class Preloader : public std::enable_shared_from_this<Preloader> {
public:
    Preloader(Cache::Impl& cache, const PreloadOptions& options, std::shared_ptr<Device::Impl> device)
        : m_cache(cache),
          m_options(options),
          m_device(std::move(device)),
          m_preloader(cache.preload.state, cache.store, cache.modules, cache.image_source()),
          m_request(std::make_shared<PreloadRequest>(options.progress, threads()))
    {
    }

    [[nodiscard]] const std::shared_ptr<PreloadRequest>& request() const noexcept { return m_request; }

    void start()
    {
        if (m_options.wait != PreloadWait::first && m_options.first.empty()) return plan_later({});
        if (auto first = plan_first()) {
            if (m_options.wait == PreloadWait::first) first->instantiation = replay::Instantiation::later;
            m_request->add_to_total(1);
            preload(*first, m_request->stop_token());
            return plan_later(first->key);
        }
        Plan entries = plan(m_options.urgency);
        m_request->add_to_total(entries.size());
        if (entries.empty()) return;
        preload(entries.front(), m_request->stop_token());
        entries.erase(entries.begin());
        add(std::move(entries));
    }

private:
    using Urgency = decltype(PreloadOptions::urgency);

    [[nodiscard]] std::size_t threads() const
    {
        if (m_options.threads != 0) return m_options.threads;
        const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
        return m_options.functions.empty() ? cores : std::clamp<std::size_t>(cores / 2, 1, k_threads_by_name);
    }

    [[nodiscard]] Plan plan(const Urgency& urgency) const
    {
        Plan result;
        const auto append = [&](Plan more) { std::ranges::move(more, std::back_inserter(result)); };
        if (m_options.functions.empty())
            for (const auto& function : m_cache.functions.living()) append(plan_of(function));
        for (const std::string& name : m_options.functions) append(plan_of(m_cache, name, m_device));
        if (urgency)
            for (PlannedEntry& entry : result) entry.urgency = urgency(entry.name, entry.inputs);
        std::ranges::stable_sort(result, [](const PlannedEntry& a, const PlannedEntry& b) {
            if (a.urgency != b.urgency) return a.urgency > b.urgency;
            if (a.is_of_table != b.is_of_table) return b.is_of_table;
            return a.is_of_table ? a.last_used < b.last_used : a.last_used > b.last_used;
        });
        return result;
    }

    /// Plans only the last used entry of PreloadOptions::first, if one fits.
    [[nodiscard]] std::optional<PlannedEntry> plan_first() const
    {
        if (m_options.first.empty()) return std::nullopt;
        const auto function = m_cache.functions.find(m_options.first);
        Plan entries = function              ? plan_of(function)
                       : m_device != nullptr ? plan_of(m_cache, m_options.first, m_device)
                                             : Plan{};
        const auto last = std::ranges::max_element(entries, {}, &PlannedEntry::last_used);
        if (last == entries.end() || last->damage) return std::nullopt;
        return std::move(*last);
    }

    /// Plans all entries except `but`, which was already preloaded, in a thread of the cache.
    void plan_later(const std::optional<cachefmt::EntryKey>& but)
    {
        auto task = [self = shared_from_this(), but](const std::stop_token&) {
            self->begin_threads();
            Plan entries = self->plan_or_all_equal();
            if (but) std::erase_if(entries, [&](const PlannedEntry& entry) { return entry.key == *but; });
            self->m_request->add_to_total(entries.size());
            self->add(std::move(entries));
        };
        std::vector<PreloadQueue::Task> tasks;
        tasks.emplace_back(std::move(task));
        m_cache.preload.queue.add(m_request, std::move(tasks), is_needed());
    }

    [[nodiscard]] Plan plan_or_all_equal() const
    try {
        return plan(m_options.urgency);
    } catch (const std::exception& thrown) { // thrown by the urgency callback, or out of memory
        log().warn("preload: the urgency callback throws: {}", thrown.what());
        return plan({});
    } catch (...) {
        log().warn("preload: the urgency callback throws something that is not a std::exception");
        return plan({});
    }

    /// Starts the background threads that a first call would otherwise start.
    void begin_threads() const
    {
        if (m_options.functions.empty()) return;
        m_cache.store->expect_usage();
        if (m_cache.profiles) m_cache.profiles->expect();
        m_device->device->begin_warm_up();
    }

    void add(Plan entries)
    {
        std::vector<PreloadQueue::Task> tasks;
        for (PlannedEntry& entry : entries)
            tasks.emplace_back([self = shared_from_this(), planned = std::move(entry)](const std::stop_token& stop) {
                self->preload(planned, stop);
            });
        if (!tasks.empty()) m_cache.preload.queue.add(m_request, std::move(tasks), is_needed());
    }

    [[nodiscard]] bool is_needed() const noexcept { return m_options.functions.empty(); }

    void preload(const PlannedEntry& entry, const std::stop_token& stop)
    {
        std::optional<PreloadClient> function;
        if (entry.function) {
            if (!entry.damage) function = entry.function->preload_for(entry.key.guards_digest, stop);
            if (!entry.function->exists())
                return m_request->report(entry.name, [](PreloadProgress& now) { --now.total; });
            if (stop.stop_requested()) return;
        }
        const bool is_there = entry.function ? !function && !entry.damage : m_cache.functions.has(entry.name);
        Result<void> done;
        if (entry.damage)
            done = std::unexpected(*entry.damage);
        else if (!is_there)
            done = m_preloader.preload({entry.key, entry.device->device, entry.device->load_target(),
                                        function ? &*function : nullptr, entry.end, entry.instantiation},
                                       stop);
        if (!done && entry.function)
            entry.function->note_preload_failure(done.error());
        else if (!done)
            log().debug("entry {} of '{}' is not preloaded: {}", short_hex(entry.key.guards_digest), entry.name,
                        done.error().message);
        m_request->report(entry.name, [&done](PreloadProgress& now) { ++(done ? now.loaded : now.failed); });
    }

    Cache::Impl& m_cache;
    const PreloadOptions m_options;
    const std::shared_ptr<Device::Impl> m_device; ///< device of the functions in PreloadOptions::functions
    const EntryPreloader m_preloader;
    const std::shared_ptr<PreloadRequest> m_request;
};

} // namespace

Preload Cache::preload(const PreloadOptions& options)
{
    // Refuses the call inside a callable: the callable's own call holds the lock that this call would wait for.
    if (const RunContext* running = current_run())
        raise({ErrorCode::invalid_argument,
               fmt::format("preload is called inside '{}': call it before the first call", running->function)});
    for (const std::string& name : options.functions) static_cast<void>(plain_name(name));
    if (!options.functions.empty() && options.device == nullptr)
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' cannot be preloaded without a device: name it (PreloadOptions::device)",
                           options.functions.front())});
    auto request = std::make_shared<PreloadRequest>(nullptr, 1);
    if (m_impl->looks_for_entries(m_impl->settings.policy) || (m_impl->store && options.functions.empty())) {
        const auto preloader = std::make_shared<Preloader>(
            *m_impl, options, options.device != nullptr ? DeviceAccess::impl(*options.device) : nullptr);
        request = preloader->request();
        preloader->start();
        if (options.wait == PreloadWait::all) request->wait();
    }
    return Preload{std::make_unique<Preload::Impl>(m_impl, std::move(request))};
}

// --- the public class

Preload::Preload(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Preload::Preload(Preload&&) noexcept = default;
Preload& Preload::operator=(Preload&& other) noexcept
{
    std::swap(m_impl, other.m_impl);
    return *this;
}

Preload::~Preload()
{
    if (m_impl) PreloadQueue::stop(*m_impl->request);
}

void Preload::wait()
{
    if (m_impl) m_impl->request->wait();
}

PreloadProgress Preload::progress() const { return m_impl ? m_impl->request->progress() : PreloadProgress{}; }

void Preload::detach() noexcept { m_impl.reset(); }

} // namespace warmgraph
