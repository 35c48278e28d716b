#include "verify/spread.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

namespace {

constexpr std::size_t k_none = ~std::size_t{0};
constexpr double k_roundings = 1; // an element may differ in its last bit, because its type is not more precise

} // namespace

Spread::Spread(std::shared_ptr<backends::Device> device, const Interface& interface, std::vector<DType> types,
               std::vector<std::uint8_t> compared)
    : m_device(std::move(device)),
      m_interface(interface),
      m_types(std::move(types)),
      m_compared(std::move(compared)),
      m_regions(m_types.size())
{
}

Spread::~Spread()
{
    for (const Region& region : m_regions)
        for (const MemoryRef& outcome : region.outcomes)
            if (!outcome.address.is_null()) m_device->release(outcome);
}

Result<std::size_t> Spread::keep(Region& region, const MemoryRef& memory)
{
    MemoryRef copy{{}, memory.size};
    if (memory.size != 0) {
        const bool on_host = m_device->space_of(memory.address) == backends::MemorySpace::host;
        auto made = on_host ? m_device->allocate_host(memory.size) : m_device->allocate(memory.size);
        if (!made) return within("save a run's results", made.error());
        copy.address = made->address;
    }
    region.outcomes.push_back(copy); // added first, so that it is released even after an error
    if (memory.size != 0)
        if (auto copied = m_device->bulk().copy(copy.address, memory.address, memory.size); !copied)
            return std::unexpected(copied.error());
    return region.outcomes.size() - 1;
}

Result<std::size_t> Spread::outcome(std::size_t region, const MemoryRef& memory)
{
    Region& known = m_regions[region];
    for (std::size_t i = 0; i < known.outcomes.size(); ++i) {
        if (memory.size == 0) return i;
        auto differs = m_device->bulk().first_difference(known.outcomes[i].address, memory.address, memory.size);
        if (!differs) return std::unexpected(differs.error());
        if (!*differs) return i;
    }
    return keep(known, memory);
}

Result<std::size_t> Spread::add(const std::vector<MemoryRef>& regions)
{
    std::vector<std::size_t> run(regions.size(), 0);
    for (std::size_t r = 0; r < regions.size(); ++r) {
        if (m_compared[r] == 0) continue;
        auto found = outcome(r, regions[r]);
        if (!found) return found;
        run[r] = *found;
    }
    const auto known = std::ranges::find(m_runs, run);
    const auto number = static_cast<std::size_t>(known - m_runs.begin());
    m_runs.push_back(std::move(run));
    return number;
}

bool Spread::is_bitwise() const noexcept
{
    return std::ranges::all_of(m_runs, [&](const auto& run) { return run == m_runs.front(); });
}

std::uint64_t Spread::elements(std::size_t region) const noexcept
{
    return m_regions[region].outcomes.front().size / size_of(m_types[region]);
}

/// Returns how far `candidate` departs from all outcomes except `left_out`.
Result<backends::Departure> Spread::departure(std::size_t region, const Address& candidate, std::size_t left_out) const
{
    const auto& outcomes = m_regions[region].outcomes;
    std::vector<Address> others;
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (i != left_out) others.push_back(outcomes[i].address);
    return m_device->bulk().departure(candidate, others, m_types[region], elements(region), k_roundings);
}

Result<void> Spread::measure()
{
    for (std::size_t r = 0; r < m_regions.size(); ++r) {
        Region& region = m_regions[r];
        region.tolerance = {};
        if (region.outcomes.size() < 2) continue;
        const auto& name = m_interface.regions[r].name;
        if (!is_real(m_types[r]))
            return fail(
                ErrorCode::not_recordable,
                "it gives different contents of '{}' ({}) for the same inputs: it reads memory that it did not write, "
                "initialises something only at its first call, or is nondeterministic in data that has no tolerance",
                name, to_string(m_types[r]));
        for (std::size_t i = 0; i < region.outcomes.size(); ++i) {
            auto own = departure(r, region.outcomes[i].address, i);
            if (!own) return std::unexpected(own.error());
            if (!std::isfinite(own->farthest))
                return fail(ErrorCode::not_recordable,
                            "it gives numbers and in another run NaN or infinity in '{}' (element {}) for the same "
                            "inputs: it reads "
                            "memory that it did not write, or initialises something only at its first call",
                            name, own->first);
            region.tolerance.count = std::max(region.tolerance.count, own->count);
            region.tolerance.farthest = std::max(region.tolerance.farthest, own->farthest);
        }
    }
    return {};
}

Result<void> Spread::accept_region(std::size_t region, const MemoryRef& results, std::string_view whose,
                                   unsigned times) const
{
    const Region& own = m_regions[region];
    const auto& name = m_interface.regions[region].name;
    if (results.size == 0) return {};
    std::uint64_t differing = 0;
    for (const MemoryRef& outcome : own.outcomes) {
        auto differs = m_device->bulk().first_difference(outcome.address, results.address, results.size);
        if (!differs) return std::unexpected(differs.error());
        if (!*differs) return {};
        differing = **differs;
    }
    if (!is_real(m_types[region]))
        return fail(ErrorCode::verification_failed, "{} leaves '{}' different from the function's own runs at byte {}",
                    whose, name, differing);
    auto outside = departure(region, results.address, k_none);
    if (!outside) return std::unexpected(outside.error());
    if (outside->count <= times * own.tolerance.count && outside->farthest <= times * own.tolerance.farthest) return {};
    return fail(
        ErrorCode::verification_failed,
        "{} leaves {} elements of '{}' outside the range of the function's own runs, the first at {}, by up to {:.3g} "
        "roundings; one of the {} own runs leaves {} elements outside the range of the others, by up to {:.3g}",
        whose, outside->count, name, outside->first, outside->farthest, m_runs.size(), own.tolerance.count,
        own.tolerance.farthest);
}

Result<void> Spread::accept(const std::vector<MemoryRef>& replay) const
{
    for (std::size_t r = 0; r < m_regions.size(); ++r)
        if (m_compared[r] != 0)
            if (auto accepted = accept_region(r, replay[r], "the restored graph"); !accepted) return accepted;
    return {};
}

bool Spread::is_near(const std::vector<MemoryRef>& replay) const
{
    for (std::size_t r = 0; r < m_regions.size(); ++r)
        if (m_compared[r] != 0 && !accept_region(r, replay[r], "the restored graph", 2)) return false;
    return true;
}

Result<void> Spread::accept_answer(const std::vector<MemoryRef>& answer)
{
    for (std::size_t r = 0; r < m_regions.size(); ++r)
        if (m_compared[r] != 0)
            if (auto accepted = accept_region(r, answer[r], "the call"); !accepted) return accepted;
    ++m_answers;
    return {};
}

std::string Spread::text() const
{
    if (is_bitwise()) return fmt::format("bitwise ({} runs)", m_runs.size() + m_answers);
    backends::Departure most;
    for (const Region& region : m_regions) {
        most.count = std::max(most.count, region.tolerance.count);
        most.farthest = std::max(most.farthest, region.tolerance.farthest);
    }
    return fmt::format("within spread ({} runs, {} elements by {:.3g} roundings)", m_runs.size() + m_answers,
                       most.count, most.farthest);
}

} // namespace warmgraph
