// Function::Impl, the way of an entry that is restored ahead of its first call, and that call.
#include <algorithm>
#include <chrono>
#include <thread>

#include "function_impl.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph {

namespace {

constexpr std::uint64_t k_placeholder_step = cachefmt::k_max_alignment; // keeps every alignment class

std::uint64_t placeholder_bytes(const cachefmt::TensorSpec& spec) noexcept
{
    guards::TensorArg tensor;
    tensor.dtype = spec.dtype;
    tensor.rank = static_cast<std::uint8_t>(spec.sizes.size());
    std::ranges::copy(spec.sizes, tensor.sizes.begin());
    std::ranges::copy(spec.strides, tensor.strides.begin());
    const std::uint64_t bytes = std::max<std::uint64_t>(guards::extent_bytes(tensor), 1);
    return (bytes + k_placeholder_step - 1) / k_placeholder_step * k_placeholder_step;
}

/// Can a call of this interface look like the recorded one, its inputs and outputs in device memory? Others are left to
/// their first call.
bool fits(const Interface& interface, const cachefmt::Guards& recorded, const std::string& device)
{
    const auto& tensors = recorded.tensors;
    if (!std::ranges::equal(tensors, interface.region_names, {}, &cachefmt::TensorSpec::name)) return false;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const cachefmt::TensorSpec& tensor = tensors[i];
        const bool is_here = interface.regions[i].kind == cachefmt::RegionKind::state ||
                             interface.regions[i].kind == cachefmt::RegionKind::weights;
        if (tensor.device != device && !(is_here && tensor.device == k_host_memory)) return false;
        if (tensor.sizes.size() > cachefmt::k_max_rank || tensor.strides.size() != tensor.sizes.size()) return false;
    }
    return true;
}

} // namespace

std::vector<OpenCandidate> Function::Impl::candidates() const
{
    std::vector<OpenCandidate> result;
    const bool looks = m_policy != Policy::off && !(m_policy == Policy::refresh && m_callable);
    if (!m_cache->store || !looks || m_half) return result; // a pair is loaded by its first forward
    auto variants = m_cache->store->variants(m_key);
    if (!variants) {
        cache_fault("look-up", variants.error());
        return result;
    }
    note_untrusted(*variants);
    const auto facts = gather_facts(*m_cache, m_name, m_spec, *m_device->device, m_interface.text(), m_code);
    for (const auto& variant : *variants)
        if (auto found = candidate(variant, facts)) result.push_back(std::move(*found));
    return result;
}

std::optional<OpenCandidate> Function::Impl::candidate(const store::Variant& variant,
                                                       const std::vector<cachefmt::Fact>& facts) const
{
    OpenCandidate result;
    result.guards_digest = variant.guards_digest;
    result.last_used = variant.last_used;
    if (!variant.header) {
        result.damage = variant.header.error();
        return result;
    }
    if (variant.header->kind != cachefmt::EntryKind::graph) return std::nullopt;
    result.recorded = variant.header->guards;
    // Tensors and values are every call's own: only the facts are judged now.
    if (!guards::evaluate_facts(result.recorded.facts, facts, m_cache->relaxation).empty()) return std::nullopt;
    if (!fits(m_interface, result.recorded, m_device->device->id())) return std::nullopt;
    for (std::size_t i = 0; i < m_interface.regions.size(); ++i) {
        const auto& tensor = result.recorded.tensors[i];
        result.placeholder_bytes += placeholder_bytes(tensor);
        if (m_interface.regions[i].kind == cachefmt::RegionKind::input)
            result.inputs.push_back({tensor.name, tensor.dtype, tensor.sizes, tensor.strides});
    }
    return result;
}

bool Function::Impl::is_loaded(const Digest& digest) const noexcept
{
    return std::ranges::find(m_variants, digest, &LoadedVariant::guards_digest) != m_variants.end();
}

/// Not held when it was stopped. Who holds the mutex may be a call whose callable exits the process, which then waits
/// for this very thread.
std::unique_lock<std::mutex> Function::Impl::lock_unless(const std::stop_token& stop) const
{
    std::unique_lock lock{m_mutex, std::try_to_lock};
    while (!lock && !stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::microseconds{100});
        static_cast<void>(lock.try_lock());
    }
    return lock;
}

namespace {

std::unexpected<Error> stopped() { return fail(ErrorCode::not_found, "it is no longer wanted: its opening ends"); }

} // namespace

Result<void> Function::Impl::open(const OpenCandidate& candidate, std::shared_ptr<const Placeholder> placeholder,
                                  replay::Instantiation instantiation, const std::stop_token& stop)
{
    const auto started = system_clock().steady();
    const auto failed = [this](const Error& error) {
        cache_fault("open", error);
        return std::unexpected(error);
    };
    if (candidate.damage) return failed(*candidate.damage);
    if (!placeholder) return failed({ErrorCode::out_of_memory, "no placeholder addresses could be reserved"});
    std::vector<MemoryRef> regions;
    {
        const auto lock = lock_unless(stop);
        if (!lock) return stopped();
        if (is_loaded(candidate.guards_digest)) return {};
        regions = m_reader.default_memory();
    }
    std::uint64_t used = 0;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        if (!regions[i].address.is_null()) continue; // a state, where it is declared
        const std::uint64_t bytes = placeholder_bytes(candidate.recorded.tensors[i]);
        regions[i] = {placeholder->memory().address + used, bytes};
        used += bytes;
    }
    // Not under the lock: calls go on meanwhile, and one of them may restore the same entry.
    const std::uint64_t registrations = m_device->device->registrations(), exposures = m_device->device->exposures();
    Phases phases;
    auto restored = restore({m_key, candidate.guards_digest}, store::Reading::ahead, regions,
                            std::vector<std::uint64_t>(m_interface.scalars.size()), phases, instantiation);
    if (!restored) return failed(restored.error());
    if (!*restored) return fail(ErrorCode::not_found, "the entry was removed while it was opened");
    (**restored).mark.reset(); // nobody may ever call it
    const double load_ms = Milliseconds{system_clock().steady() - started}.count();
    const auto lock = lock_unless(stop);
    if (!lock) return stopped();
    if (is_loaded(candidate.guards_digest)) return {}; // a call was faster: ours is dropped
    // A call may have noticed already, and would take this for bound to what is registered now.
    if (m_device->device->registrations() != registrations || m_device->device->exposures() != exposures)
        return fail(ErrorCode::not_found,
                    "a module was registered, or the address of a module's variable asked for, while the entry was "
                    "opened: its first call loads it");
    const auto& header = (**restored).header;
    m_variants.push_back(variant_of(header.guards, candidate.guards_digest, std::move((**restored).executable)));
    m_variants.back().unused =
        Unused{std::move(placeholder), load_ms, header.info.answer_ms, times_of(phases), header.info.compiled};
    m_most_variants = std::max(m_most_variants, m_variants.size());
    return {};
}

bool Function::Impl::is_unused(const Digest& guards) const
{
    const std::unique_lock lock{m_mutex, std::try_to_lock};
    if (!lock) return true; // a call of it is under way
    const auto variant = std::ranges::find(m_variants, guards, &LoadedVariant::guards_digest);
    return variant != m_variants.end() && variant->unused;
}

Result<void> Function::Impl::upload(const Digest& guards, const std::stop_token& stop)
{
    const auto lock = lock_unless(stop);
    if (!lock) return stopped();
    const auto variant = std::ranges::find(m_variants, guards, &LoadedVariant::guards_digest);
    if (variant == m_variants.end()) return {};
    if (!variant->unused) {
        auto completed = variant->executable->complete();
        end_load(*variant);
        return completed;
    }
    const auto mark = m_shelf->begin_load({m_key, guards}, m_device->load_target());
    return mark ? variant->executable->upload() : std::unexpected(mark.error());
}

/// Of a variant that open_all restored: what a load does besides restoring happens now.
Outcome Function::Impl::first_use(Variants::iterator variant, const std::shared_ptr<backends::Stream>& stream,
                                  std::unique_ptr<Job>& job)
{
    if (auto same = check_constants(*variant->executable, *stream); !same)
        return run_instead(variant, same.error(), stream);
    Journey journey;
    journey.started = system_clock().steady();
    if (m_cache->verifies_first && m_callable) {
        describe_call(journey);
        if (has_pending()) return run_beside_pending(journey, stream, job);
        LoadedVariant verified = std::move(*variant);
        m_variants.erase(variant);
        return answer_and_verify(std::move(verified), journey, stream, job);
    }
    auto mark = m_shelf->begin_load({m_key, variant->guards_digest}, m_device->load_target());
    if (!mark) { // loaded anew, it is set aside
        const std::string why = mark.error().message;
        m_variants.erase(variant);
        return first_call(stream, why, job);
    }
    variant->mark = std::move(*mark);
    journey.digest = variant->guards_digest;
    Result<void> launched;
    {
        const auto timer = journey.phases.measure("first launch");
        launched = launch(*variant, stream);
    }
    if (!launched && launched.error().code == ErrorCode::stale)
        return first_call(stream, launched.error().message, job);
    if (!launched) return run_instead(variant, launched.error(), stream);
    count_hit(*variant);
    m_shelf->note_use({m_key, variant->guards_digest});
    m_variants.splice(m_variants.begin(), m_variants, variant);
    finish(journey, Outcome::replayed, "", Remember::no);
    end_report(journey);
    return Outcome::replayed;
}

} // namespace warmgraph
