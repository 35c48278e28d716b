// Part of AdoptionSession: runs the original on its own memory to get the right results, then restores that memory.
#include <algorithm>

#include "record/adoption_session.hpp"
#include "verify/decoys.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph {

namespace {

constexpr std::size_t k_original_runs = 3; // runs of the original; more if the results differ

} // namespace

/// Runs the original on the caller's memory, the only memory that it can use, with the same contents each time. Fill
/// the scratch before this call: a declared region may lie inside a pool, and reset_original() fills that region
/// afterwards.
Result<void> AdoptionSession::original_run(backends::GraphExec& exec)
{
    if (auto reset = m_trial->reset_original(); !reset) return reset;
    const auto started = system_clock().steady();
    auto launched = exec.launch(*m_stream);
    if (auto done = m_stream->synchronize(); !done && launched) return done;
    if (!launched) return within("run the original graph", launched.error());
    m_took = std::max(m_took, std::chrono::nanoseconds{system_clock().steady() - started});
    return {};
}

/// Stores contents of scratch in the entry if the graph reads them before it writes there, and if the caller allows
/// that.
Result<void> AdoptionSession::keep_contents(const ScratchContents& scratch,
                                            std::span<const ScratchContents::Range> ranges, RestorationRequest& request)
{
    const auto& regions = request.graph.regions;
    for (const auto& range : ranges) {
        const auto refused = [&](const std::string& why) {
            return fail(
                ErrorCode::not_recordable,
                "its results depend on the contents that {} had at the capture, because the graph reads this memory "
                "before it writes it{}: declare that memory (a state, a constant), or write it in the graph",
                scratch.text(range), why);
        };
        if (!m_options.keeps_undeclared)
            return refused(", and Undeclared::constants, which would store the contents in the entry, is off");
        auto unchanged = scratch.is_unchanged(range);
        if (!unchanged) return std::unexpected(unchanged.error());
        if (!*unchanged) return refused(", and the graph writes it later");
        if (const auto address = scratch.address_in(range))
            return refused(fmt::format(", and it contains an address, at byte {}", *address));
        auto added = m_constants.contents_of(scratch.memory(range));
        if (!added) return std::unexpected(added.error());
        if (!*added)
            return refused(
                fmt::format(", and it is larger than the {} bytes that may be stored", m_options.most_constant_bytes));
        auto& [digest, contents] = **added;
        const MemoryRef at = scratch.memory(range);
        const auto pool = std::ranges::find_if(m_pools, [&](const NamedMemory& one) {
            return at.address.flat() - one.second.address.flat() < one.second.size;
        });
        const auto arena = std::ranges::find_if(regions, [&](const cachefmt::Region& region) {
            return region.kind == cachefmt::RegionKind::arena && pool != m_pools.end() && region.name == pool->first;
        });
        if (arena == regions.end()) return refused(", and it lies in no arena");
        const std::uint64_t offset = at.address.flat() - pool->second.address.flat();
        cachefmt::Region kept;
        kept.name = fmt::format("{} from byte {}", arena->name, offset);
        kept.kind = cachefmt::RegionKind::constant;
        kept.size = range.to - range.from;
        kept.digest = digest;
        kept.exclusive = true;
        kept.inside = static_cast<std::uint32_t>(arena - regions.begin());
        kept.inside_offset = offset;
        request.graph.regions.push_back(std::move(kept));
        request.constants.emplace_back(digest, std::move(contents));
    }
    return {};
}

Result<void> AdoptionSession::judge_scratch(ScratchContents& scratch, backends::GraphExec& exec,
                                            RestorationRequest& request)
{
    const auto accepts = [&]() -> Result<bool> {
        if (auto ran = original_run(exec); !ran) return std::unexpected(ran.error());
        auto accepted = m_spread->accept(m_trial->original());
        if (!accepted && accepted.error().code != ErrorCode::verification_failed)
            return std::unexpected(accepted.error());
        return accepted.has_value();
    };
    const auto ranges = scratch.read_before_written(accepts);
    if (!ranges) return std::unexpected(ranges.error());
    if (auto followed = scratch.check_addresses(accepts); !followed) return followed;
    if (ranges->empty()) return {};
    if (auto restored = scratch.restore(); !restored) return restored;
    if (auto ran = original_run(exec); !ran) return ran;
    return keep_contents(scratch, *ranges, request);
}

/// Suspect words that are not needed as addresses become zeros.
Result<void> AdoptionSession::judge_suspects(ScratchContents& scratch, RestorationRequest& request)
{
    if (m_suspects.empty()) return {};
    const std::string& why = m_suspects[0].why;
    if (m_reduced || !m_suspicious.allocations.empty())
        return fail(ErrorCode::not_recordable, "{}{}", why, m_constants.why_not());
    Decoys decoys{m_device};
    if (auto laid = decoys.lay(m_suspects, m_suspicious); !laid)
        return fail(laid.error().code, "{}{}", laid.error().message, m_constants.why_not());
    auto exec = m_device.instantiate(m_suspicious);
    if (!exec) return within("instantiate the original graph with other upper halves of addresses", exec.error());
    if (auto restored = scratch.restore(); !restored) return restored;
    if (auto ran = original_run(**exec); !ran) return ran;
    const auto accepted = m_spread->accept(m_trial->original());
    if (!accepted && accepted.error().code != ErrorCode::verification_failed) return accepted;
    const auto untouched = decoys.are_untouched();
    if (!untouched) return std::unexpected(untouched.error());
    if (!accepted || !*untouched) return fail(ErrorCode::not_recordable, "{}{}", why, m_constants.why_not());
    for (const SuspectHalf& suspect : m_suspects) {
        Bytes& value = std::get<cachefmt::KernelNode>(request.graph.nodes[suspect.node]).params[suspect.param].value;
        set_upper_half(value, suspect, 0);
        if (suspect.is_whole)
            std::fill_n(value.begin() + static_cast<std::ptrdiff_t>(suspect.offset - sizeof(std::uint32_t)),
                        sizeof(std::uint32_t), std::byte{0});
    }
    return {};
}

/// Checks that the original gives the results of the function's own run, if these results are known.
Result<void> AdoptionSession::hold_to_answer()
{
    if (!m_options.agreement) return {};
    auto agreement = m_options.agreement();
    if (!agreement) return std::unexpected(agreement.error());
    m_agreement = std::move(*agreement);
    return {};
}

/// Must not throw, because the caller's memory has to be restored.
Result<void> AdoptionSession::run_original_within(ScratchContents& scratch, RestorationRequest& request)
try {
    auto exec = m_reduced ? m_device.instantiate(*m_reduced) : m_device.recording().instantiate_native(m_first.graph);
    if (!exec) return within("instantiate the original graph", exec.error());
    const auto run = [&]() -> Result<std::size_t> {
        if (auto restored = scratch.restore(); !restored) return std::unexpected(restored.error());
        if (auto ran = original_run(**exec); !ran) return std::unexpected(ran.error());
        if (m_options.after_run)
            if (auto looked = m_options.after_run(); !looked) return std::unexpected(looked.error());
        return m_spread->add(m_trial->original());
    };
    if (auto learned = learn_spread(*m_spread, k_original_runs, run); !learned) return learned;
    if (auto agreed = hold_to_answer(); !agreed) return agreed;
    if (auto judged = judge_scratch(scratch, **exec, request); !judged) return judged;
    if (auto judged = judge_suspects(scratch, request); !judged) return judged;
    return m_trial->check_in_place();
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "out of host memory while the original graph was run");
}

Result<void> AdoptionSession::run_original(RestorationRequest& request)
{
    const auto timer = m_phases.measure("original");
    ScratchContents scratch{m_device};
    if (auto saved = scratch.save(m_pools, m_frame.memory); !saved) return saved;
    auto ran = run_original_within(scratch, request);
    auto put_back = scratch.put_back();
    if (auto written = m_trial->write_back(); !written && put_back) put_back = written;
    if (!put_back) // the caller's memory still holds the contents that the runs wrote
        return fail(ErrorCode::partly_launched, "the contents of the caller's memory could not be restored: {}",
                    put_back.error().message);
    return ran;
}

} // namespace warmgraph
