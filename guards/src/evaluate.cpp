#include "warmgraph/guards/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cure.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/fact_lists.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph::guards {

namespace {

constexpr const char* k_absent = "(absent)";
constexpr const char* k_call_cure = "call it as recorded, or record a variant (policy read_write)";

/// Collects mismatches and counts comparisons.
struct Comparison {
    std::vector<Mismatch> mismatches;
    std::size_t count = 0;
    bool counts_lists = false; ///< whether each fact in a list is counted; if not, equal lists are skipped

    void add(bool agrees, std::string fact, std::string recorded, std::string now, std::string cure)
    {
        ++count;
        if (!agrees) mismatches.push_back({std::move(fact), std::move(recorded), std::move(now), std::move(cure)});
    }
    /// Compares a property of a call's tensor.
    template <class T, class Show>
    void property(const TensorSpec& tensor, const char* name, const T& recorded, const T& now, Show show)
    {
        ++count;
        if (recorded == now) return;
        mismatches.push_back({fmt::format("input {}: {}", tensor.name, name), show(recorded), show(now), k_call_cure});
    }
};

// --- facts

bool agree(const Fact& recorded, const Fact& now, const Relaxation& relaxation)
{
    if (recorded.value == cachefmt::k_unknown || now.value == cachefmt::k_unknown) return false;
    if (recorded.value == now.value) return true;
    return relaxation.driver == VersionRule::same_or_newer && cachefmt::fact::has_order(recorded.name) &&
           same_or_newer(recorded.value, now.value);
}

std::string shown(const Fact* fact)
{
    if (fact == nullptr) return k_absent;
    return fact->value == cachefmt::k_unknown ? "unknown" : fact->value;
}

void compare_fact(Comparison& comparison, const Fact* recorded, const Fact* now, const Relaxation& relaxation)
{
    // A fact is a guard if either side says so: so an entry cannot make a fact of this process advisory.
    const auto advisory = [](const Fact* fact) { return fact == nullptr || fact->role == Role::advisory; };
    if (advisory(recorded) && advisory(now)) return;
    comparison.count += comparison.counts_lists ? cachefmt::facts_in(recorded != nullptr ? *recorded : *now) : 1;
    if (recorded != nullptr && now != nullptr && agree(*recorded, *now, relaxation)) return;
    const std::string& name = (recorded != nullptr ? recorded : now)->name;
    const auto value = [](const Fact* fact) { return fact == nullptr ? nullptr : &fact->value; };
    comparison.mismatches.push_back(
        {name, shown(recorded), shown(now), cure_of(name, value(recorded), value(now), relaxation)});
}

bool is_by_name(const std::vector<Fact>& facts)
{
    return std::ranges::adjacent_find(facts, std::ranges::greater_equal{}, &Fact::name) == facts.end();
}

/// Compares sorted facts with distinct names, the usual case. A model has a thousand facts, and most first calls match
/// all of them.
void compare_sorted(Comparison& comparison, const std::vector<Fact>& recorded, const std::vector<Fact>& now,
                    const Relaxation& relaxation)
{
    auto was = recorded.begin();
    auto is = now.begin();
    while (was != recorded.end() || is != now.end()) {
        const auto order = was == recorded.end() ? std::strong_ordering::greater
                           : is == now.end()     ? std::strong_ordering::less
                                                 : was->name <=> is->name;
        compare_fact(comparison, order <= 0 ? &*was : nullptr, order >= 0 ? &*is : nullptr, relaxation);
        if (order <= 0) ++was;
        if (order >= 0) ++is;
    }
}

void compare_as_they_are(Comparison& comparison, const std::vector<Fact>& recorded, const std::vector<Fact>& now,
                         const Relaxation& relaxation)
{
    if (is_by_name(recorded) && is_by_name(now)) return compare_sorted(comparison, recorded, now, relaxation);
    std::map<std::string_view, std::pair<const Fact*, const Fact*>> by_name;
    for (const Fact& fact : recorded) by_name[fact.name].first = &fact;
    for (const Fact& fact : now) by_name[fact.name].second = &fact;
    for (const auto& [name, both] : by_name) compare_fact(comparison, both.first, both.second, relaxation);
}

/// Compares the facts. Equal lists are compared as one text. Unequal lists are compared item by item, so that a
/// mismatch names the item; the same item may be in different lists in `recorded` and in `now`.
void compare_facts(Comparison& comparison, const std::vector<Fact>& recorded, const std::vector<Fact>& now,
                   const Relaxation& relaxation)
{
    Comparison lists;
    lists.counts_lists = comparison.counts_lists;
    compare_as_they_are(lists, recorded, now, relaxation);
    if (!lists.mismatches.empty() && (cachefmt::has_lists(recorded) || cachefmt::has_lists(now))) {
        lists = {};
        compare_as_they_are(lists, cachefmt::each_fact(recorded), cachefmt::each_fact(now), relaxation);
    }
    comparison.count += lists.count;
    std::ranges::move(lists.mismatches, std::back_inserter(comparison.mismatches));
}

// --- tensors and values, which are paired by name and compared in order

template <class T>
struct Pairing {
    std::vector<std::pair<const T*, const T*>> common; ///< pairs of items with equal names, in the recorded order
    std::vector<const T*> missing, extra;
    bool same_order = true;
};

/// Pairs the k-th item of a name with the k-th item of the same name.
template <class T>
Pairing<T> pair_by_name(const std::vector<T>& recorded, const std::vector<T>& now)
{
    Pairing<T> pairing;
    if (std::ranges::equal(recorded, now, {}, &T::name, &T::name)) {
        for (std::size_t i = 0; i < now.size(); ++i) pairing.common.emplace_back(&recorded[i], &now[i]);
        return pairing;
    }
    std::multimap<std::string_view, std::size_t> left;
    for (std::size_t i = 0; i < now.size(); ++i) left.emplace(now[i].name, i);
    std::optional<std::size_t> previous;
    for (const T& item : recorded) {
        const auto found = left.find(item.name); // the first item with this name
        if (found == left.end()) {
            pairing.missing.push_back(&item);
            continue;
        }
        if (previous && found->second < *previous) pairing.same_order = false;
        previous = found->second;
        pairing.common.emplace_back(&item, &now[found->second]);
        left.erase(found);
    }
    for (std::size_t i = 0; i < now.size(); ++i)
        if (std::ranges::any_of(left, [i](const auto& item) { return item.second == i; }))
            pairing.extra.push_back(&now[i]);
    return pairing;
}

template <class T>
std::string names_of(const std::vector<T>& items)
{
    std::string names;
    for (const T& item : items) names += (names.empty() ? "" : ", ") + item.name;
    return names;
}

std::string to_text(const std::vector<std::int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

std::string to_text(const TensorSpec& tensor)
{
    return fmt::format("{}{}", warmgraph::to_string(tensor.dtype), to_text(tensor.sizes));
}

std::string to_text(const ValueSpec& value)
{
    const std::string_view type = warmgraph::to_string(value.dtype);
    switch (value.dtype) {
    case DType::f32: return fmt::format("{} {}", type, std::bit_cast<float>(static_cast<std::uint32_t>(value.bits)));
    case DType::f64: return fmt::format("{} {}", type, std::bit_cast<double>(value.bits));
    case DType::i8: return fmt::format("{} {}", type, static_cast<std::int8_t>(value.bits));
    case DType::i16: return fmt::format("{} {}", type, static_cast<std::int16_t>(value.bits));
    case DType::i32: return fmt::format("{} {}", type, static_cast<std::int32_t>(value.bits));
    case DType::i64: return fmt::format("{} {}", type, static_cast<std::int64_t>(value.bits));
    case DType::f16:
    case DType::bf16: return fmt::format("{} bits {:#06x}", type, value.bits);
    default: return fmt::format("{} {}", type, value.bits);
    }
}

bool is_alone(const TensorSpec& tensor, const std::vector<TensorSpec>& all)
{
    return tensor.alias_group < all.size() && &all[tensor.alias_group] == &tensor;
}

/// Returns the name of the first tensor of the group. Its index would shift if a tensor is missing.
std::string alias_of(const TensorSpec& tensor, const std::vector<TensorSpec>& all)
{
    if (tensor.alias_group >= all.size()) return fmt::format("overlaps tensor {}", tensor.alias_group);
    return is_alone(tensor, all) ? "alone or first of its group"
                                 : fmt::format("overlaps {}", all[tensor.alias_group].name);
}

void compare_tensor(Comparison& comparison, const TensorSpec& recorded, const TensorSpec& now,
                    const Guards& recorded_all, const Guards& now_all)
{
    const auto text = [](const std::string& value) { return value; };
    comparison.property(recorded, "dtype", recorded.dtype, now.dtype,
                        [](DType type) { return std::string(warmgraph::to_string(type)); });
    const auto numbers = [](const std::vector<std::int64_t>& list) { return to_text(list); };
    comparison.property(recorded, "sizes", recorded.sizes, now.sizes, numbers);
    comparison.property(recorded, "strides", recorded.strides, now.strides, numbers);
    comparison.property(recorded, "device", recorded.device, now.device, text);
    ++comparison.count;
    if (now.alignment < recorded.alignment)
        comparison.mismatches.push_back(
            {fmt::format("input {}: alignment", recorded.name), fmt::format("{} bytes", recorded.alignment),
             fmt::format("{} bytes", now.alignment),
             fmt::format("align it to {} bytes, or record a variant (policy read_write)", recorded.alignment)});
    if (is_alone(recorded, recorded_all.tensors) && is_alone(now, now_all.tensors))
        ++comparison.count; // a tensor without overlap, the usual case, counts as one comparison
    else
        comparison.property(recorded, "aliasing", alias_of(recorded, recorded_all.tensors),
                            alias_of(now, now_all.tensors), text);
    if (recorded.distance)
        comparison.property(recorded, "distance in its group", *recorded.distance, now.distance.value_or(0),
                            [](std::int64_t bytes) { return fmt::format("{} bytes", bytes); });
}

template <class T>
void compare_presence(Comparison& comparison, const char* kind, const Pairing<T>& pairing,
                      const std::vector<T>& recorded, const std::vector<T>& now)
{
    for (const T* item : pairing.missing)
        comparison.add(false, fmt::format("{} {}", kind, item->name), to_text(*item), k_absent, k_call_cure);
    for (const T* item : pairing.extra)
        comparison.add(false, fmt::format("{} {}", kind, item->name), k_absent, to_text(*item), k_call_cure);
    if (!pairing.same_order)
        comparison.add(false, fmt::format("{}s: order", kind), names_of(recorded), names_of(now),
                       "declare them in the recorded order, or record again");
}

Comparison compare(const Guards& recorded, const Guards& now, const Relaxation& relaxation, bool counts_lists = false)
{
    Comparison comparison;
    comparison.counts_lists = counts_lists;
    compare_facts(comparison, recorded.facts, now.facts, relaxation);

    const Pairing<TensorSpec> tensors = pair_by_name(recorded.tensors, now.tensors);
    for (const auto& [before, after] : tensors.common) compare_tensor(comparison, *before, *after, recorded, now);
    compare_presence(comparison, "input", tensors, recorded.tensors, now.tensors);

    const Pairing<ValueSpec> values = pair_by_name(recorded.values, now.values);
    for (const auto& [before, after] : values.common)
        comparison.add(before->dtype == after->dtype && before->bits == after->bits,
                       fmt::format("value {}", before->name), to_text(*before), to_text(*after), k_call_cure);
    compare_presence(comparison, "value", values, recorded.values, now.values);
    return comparison;
}

} // namespace

std::vector<Mismatch> evaluate(const Guards& recorded, const Guards& now, const Relaxation& relaxation)
{
    return compare(recorded, now, relaxation).mismatches;
}

std::vector<Mismatch> evaluate_facts(const std::vector<Fact>& recorded, const std::vector<Fact>& now,
                                     const Relaxation& relaxation)
{
    Comparison comparison;
    compare_facts(comparison, recorded, now, relaxation);
    return std::move(comparison.mismatches);
}

std::vector<Mismatch> device_mismatches(const Guards& recorded, const std::vector<Fact>& here,
                                        const Relaxation& relaxation)
{
    std::vector<Fact> of_device;
    for (const Fact& fact : here) {
        const auto same = std::ranges::find(recorded.facts, fact.name, &Fact::name);
        if (same != recorded.facts.end()) of_device.push_back(*same);
    }
    return evaluate_facts(of_device, here, relaxation);
}

std::size_t compared_count(const Guards& recorded, const Guards& now) { return compare(recorded, now, {}, true).count; }

std::string summarize(const std::vector<Mismatch>& mismatches)
{
    if (mismatches.empty()) return {};
    const Mismatch& first = mismatches.front();
    std::string text =
        fmt::format("{} {} recorded, {} now", printable(first.fact), printable(first.recorded), printable(first.now));
    if (mismatches.size() > 1) text += fmt::format("; and {} more", mismatches.size() - 1);
    return text;
}

void canonicalize(std::vector<Fact>& facts)
{
    // Reverses the facts and sorts them stably. So the last fact of each name comes first, and unique() keeps it.
    std::ranges::reverse(facts);
    std::ranges::stable_sort(facts, {}, &Fact::name);
    const auto rest = std::ranges::unique(facts, {}, &Fact::name);
    facts.erase(rest.begin(), rest.end());
}

} // namespace warmgraph::guards
