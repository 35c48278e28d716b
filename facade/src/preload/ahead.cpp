#include "preload/ahead.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "call/phase_times.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph {

namespace {

/// Not held when it was stopped. Who holds the mutex may be a call whose callable exits the process, which then waits for
/// this very thread.
std::unique_lock<std::mutex> lock_unless(std::mutex& mutex, const std::stop_token& stop)
{
    std::unique_lock lock{mutex, std::try_to_lock};
    while (!lock && !stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::microseconds{100});
        static_cast<void>(lock.try_lock());
    }
    return lock;
}

std::unexpected<Error> stopped() { return fail(ErrorCode::not_found, "it is no longer wanted: its opening ends"); }

} // namespace

std::vector<OpenCandidate> candidates_of(const Function::Impl& function)
{
    if (!function.lookup.looks_ahead()) return {};
    return function.lookup.candidates(function.surroundings.gather());
}

Result<void> restore_ahead(Function::Impl& function, const OpenCandidate& candidate,
                           std::shared_ptr<const Placeholder> placeholder, replay::Instantiation instantiation,
                           const std::stop_token& stop)
{
    const auto started = system_clock().steady();
    const Declaration& its = *function.declaration;
    const auto failed = [&](const Error& error) {
        function.lookup.note_failure("open", error);
        return std::unexpected(error);
    };
    if (candidate.damage) return failed(*candidate.damage);
    if (!placeholder) return failed({ErrorCode::out_of_memory, "no placeholder addresses could be reserved"});
    const auto is_loaded = [&] { return function.loaded.find(candidate.guards_digest) != function.loaded.end(); };
    std::vector<MemoryRef> regions;
    {
        const auto lock = lock_unless(function.mutex, stop);
        if (!lock) return stopped();
        if (is_loaded()) return {};
        regions = function.arguments.default_memory();
    }
    std::uint64_t used = 0;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        if (!regions[i].address.is_null()) continue; // a state, where it is declared
        const std::uint64_t bytes = placeholder_bytes(candidate.recorded.tensors[i]);
        regions[i] = {placeholder->memory().address + used, bytes};
        used += bytes;
    }
    // Not under the lock: calls go on meanwhile, and one of them may restore the same entry.
    const std::uint64_t registrations = its.backend()->registrations(), exposures = its.backend()->exposures();
    Phases phases;
    auto restored =
        function.lookup.restore({its.key, candidate.guards_digest}, store::Reading::ahead, regions,
                                std::vector<std::uint64_t>(its.interface.scalars.size()), phases, instantiation);
    if (!restored) return failed(restored.error());
    if (!*restored) return fail(ErrorCode::not_found, "the entry was removed while it was opened");
    (**restored).mark.reset(); // nobody may ever call it
    const double load_ms = Milliseconds{system_clock().steady() - started}.count();
    const auto lock = lock_unless(function.mutex, stop);
    if (!lock) return stopped();
    if (is_loaded()) return {}; // a call was faster: ours is dropped
    // A call may have noticed already, and would take this for bound to what is registered now.
    if (its.backend()->registrations() != registrations || its.backend()->exposures() != exposures)
        return fail(ErrorCode::not_found,
                    "a module was registered, or the address of a module's variable asked for, while the entry was "
                    "opened: its first call loads it");
    const auto& header = (**restored).header;
    auto variant = function.lookup.variant_of(header, std::move((**restored).executable));
    variant.unused =
        Unused{std::move(placeholder), load_ms, header.info.answer_ms, times_of(phases), header.info.compiled};
    function.loaded.keep_unused(std::move(variant));
    return {};
}

bool is_unused(Function::Impl& function, const Digest& guards)
{
    const std::unique_lock lock{function.mutex, std::try_to_lock};
    if (!lock) return true; // a call of it is under way
    const auto variant = function.loaded.find(guards);
    return variant != function.loaded.end() && variant->unused;
}

Result<void> upload(Function::Impl& function, const Digest& guards, const std::stop_token& stop)
{
    const auto lock = lock_unless(function.mutex, stop);
    if (!lock) return stopped();
    const auto variant = function.loaded.find(guards);
    if (variant == function.loaded.end()) return {};
    if (!variant->unused) return function.loaded.complete(*variant);
    const auto mark = function.lookup.begin_load(guards);
    return mark ? variant->executable->upload() : std::unexpected(mark.error());
}

} // namespace warmgraph
