// The C interface: adoption of captured graphs.
#include <array>
#include <functional>
#include <stdexcept>
#include <vector>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

constexpr std::size_t k_longest_answer = 4096; ///< bytes of a caller's text, with the ending 0

std::vector<std::pair<std::string, MemoryRef>> to_regions(const wg_named_memory* first, std::uint64_t count,
                                                          std::string_view what)
{
    std::vector<std::pair<std::string, MemoryRef>> result;
    for (const wg_named_memory& memory : need_array(first, count, what)) {
        const char* name = need_text(memory.name, fmt::format("a name in {}", what));
        result.emplace_back(name, MemoryRef{Address::from_flat(memory.pointer), memory.size});
    }
    return result;
}

std::vector<std::pair<std::string, Number>> to_numbers(const wg_named_number* first, std::uint64_t count,
                                                       std::string_view what)
{
    std::vector<std::pair<std::string, Number>> result;
    for (const wg_named_number& number : need_array(first, count, what)) {
        const char* name = need_text(number.name, fmt::format("a name in {}", what));
        result.emplace_back(name, Number{to_dtype(number.dtype, name), number.bits});
    }
    return result;
}

NativeCapture to_capture(const wg_native_capture& given)
{
    wg_native_capture from{};
    copy_versioned(&from, sizeof from, &given, k_least_native_capture, "wg_native_capture");
    NativeCapture result;
    result.graph = from.graph;
    result.regions = to_regions(from.regions, from.region_count, "the capture's regions");
    result.scratch = to_regions(from.scratch, from.scratch_count, "the capture's scratch");
    for (const wg_named_event& event : need_array(from.events, from.event_count, "the capture's events"))
        result.events.emplace_back(need_text(event.name, "a name in the capture's events"), event.event);
    for (const wg_named_semaphore& one : need_array(from.semaphores, from.semaphore_count, "the capture's semaphores"))
        result.semaphores.emplace_back(need_text(one.name, "a name in the capture's semaphores"), one.semaphore);
    result.scalars = to_numbers(from.scalars, from.scalar_count, "the capture's scalars");
    for (const wg_memory& block : need_array(from.free_blocks, from.free_block_count, "the capture's free blocks"))
        result.free_blocks.push_back(to_memory(block));
    return result;
}

Adoption to_adoption(const wg_adoption* given)
{
    wg_adoption from{};
    copy_versioned(&from, sizeof from, &need(given, "adoption", "a wg_adoption"), k_least_adoption, "wg_adoption");
    Adoption result;
    result.first = to_capture(need(from.first, "the first capture", "a wg_native_capture"));
    if (from.second != nullptr) result.second = to_capture(*from.second);
    result.unproven = from.allow_unproven != 0 ? Unproven::allow : Unproven::refuse;
    result.values = to_numbers(from.values, from.value_count, "the adoption's values");
    result.captures = from.captures != nullptr ? from.captures : "";
    result.number_distance = from.number_distance;
    if (from.part != nullptr) result.part = {from.part->high, from.part->low, to_half(from.part->half)};
    if (from.answer != nullptr) {
        const auto ask = [answer = from.answer, user = from.answer_user](std::int32_t is_last) {
            std::array<char, k_longest_answer> text{};
            const bool is_refused = answer(user, is_last, text.data(), text.size() - 1) != 0;
            std::string said = text.data();
            if (is_refused)
                throw std::runtime_error(said.empty() ? "the caller's check refused the graph's results" : said);
            return said;
        };
        result.after_run = [ask] { static_cast<void>(ask(0)); };
        result.agreement = [ask] { return ask(1); };
    }
    return result;
}

} // namespace

void wg_clear_stack(void) { clear_stack(); }

wg_status wg_cache_adopt(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                         const wg_adoption* adoption, wg_function** out)
{
    return guarded_handle(out, [&] {
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto& target = need_device(device).device;
        const wg_function_spec known = known_spec(spec);
        return new wg_function{owner.adopt(known.name, target, to_spec(known), to_adoption(adoption))};
    });
}

wg_status wg_capture_write(wg_cache* cache, const wg_device* device, const wg_function_spec* spec,
                           const wg_adoption* adoption)
{
    return guarded([&] {
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto& target = need_device(device).device;
        const wg_function_spec known = known_spec(spec);
        static_cast<void>(owner.write_capture(known.name, target, to_spec(known), to_adoption(adoption)));
    });
}
