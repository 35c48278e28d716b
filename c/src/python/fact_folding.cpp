#include "fact_folding.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "texts.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::python {

namespace {

constexpr std::size_t k_digits = 64; // hex digits of a digest

struct Fact {
    Object *name, *value;
    std::string_view path, text;
    std::vector<std::size_t> steps; ///< offsets in the path at which a step begins: a full stop, or an index
};

/// The facts whose paths begin with `start`.
struct Group {
    std::string_view start;
    const Fact* first; ///< the first of these facts
    std::size_t count;

    [[nodiscard]] bool is_one_fact() const { return count == 1 && first->path == start; }
};

struct Groups {
    std::vector<Group> all;      ///< in the order of their first facts
    std::vector<std::size_t> of; ///< the group of each fact
};

/// Returns the number of letters, as Python's len().
std::size_t letters_in(std::string_view text)
{
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

std::vector<Fact> read(const Api& python, Object* facts)
{
    std::vector<Fact> found;
    std::ptrdiff_t at = 0;
    Object *name = nullptr, *value = nullptr;
    while (python.dict_next(facts, &at, &name, &value) != 0) {
        Fact one{name, value, view_of(python, name), view_of(python, value), {}};
        for (std::size_t i = 0; i < one.path.size(); ++i)
            if (one.path[i] == '.' || one.path[i] == '[') one.steps.push_back(i);
        found.push_back(std::move(one));
    }
    return found;
}

Groups groups_at(const std::vector<Fact>& facts, std::size_t depth)
{
    Groups groups;
    groups.of.reserve(facts.size());
    std::unordered_map<std::string_view, std::size_t> known(facts.size());
    for (const Fact& one : facts) {
        const auto start = one.steps.size() < depth ? one.path : one.path.substr(0, one.steps[depth - 1]);
        const auto [at, is_new] = known.try_emplace(start, groups.all.size());
        if (is_new) groups.all.push_back({start, &one, 0});
        ++groups.all[at->second].count;
        groups.of.push_back(at->second);
    }
    return groups;
}

std::string head_of(std::size_t count) { return fmt::format("{} values, sha256 ", count); }

std::size_t letters_in(const std::vector<Group>& groups)
{
    std::size_t letters = 0;
    for (const Group& one : groups)
        letters += letters_in(one.start) +
                   (one.is_one_fact() ? letters_in(one.first->text) : head_of(one.count).size() + k_digits);
    return letters;
}

std::size_t most_steps(const std::vector<Fact>& facts)
{
    std::size_t most = 0;
    for (const Fact& one : facts) most = std::max(most, one.steps.size());
    return most;
}

std::string digest_of(std::vector<const Fact*> facts)
{
    std::ranges::sort(facts, {}, [](const Fact* one) { return one->path; });
    Sha256 state;
    for (const Fact* const one : facts) state.update_field(one->path).update_field(one->text);
    return head_of(facts.size()) + to_hex(state.finish());
}

/// Returns the facts of each group.
std::vector<std::vector<const Fact*>> facts_by_group(const std::vector<Fact>& facts, const Groups& groups)
{
    std::vector<std::vector<const Fact*>> found(groups.all.size());
    for (std::size_t i = 0; i < facts.size(); ++i) found[groups.of[i]].push_back(&facts[i]);
    return found;
}

} // namespace

void fold_facts(const Api& python, Object* facts, std::uint64_t most, std::uint64_t deepest, Object* into)
{
    const std::vector<Fact> all = read(python, facts);
    Groups groups;
    for (std::uint64_t depth = std::min<std::uint64_t>(deepest, most_steps(all) + 1); depth > 0; --depth) {
        groups = groups_at(all, depth);
        if (letters_in(groups.all) <= most) break;
    }
    auto members = facts_by_group(all, groups);
    for (std::size_t i = 0; i < groups.all.size(); ++i) {
        const Group& one = groups.all[i];
        if (one.is_one_fact()) {
            Api::checked(python.dict_set(into, one.first->name, one.first->value));
            continue;
        }
        const std::string text = digest_of(std::move(members[i]));
        const Ref start = Api::checked(python.text_of(one.start.data(), static_cast<std::ptrdiff_t>(one.start.size())));
        const Ref value = Api::checked(python.text_of(text.data(), static_cast<std::ptrdiff_t>(text.size())));
        Api::checked(python.dict_set(into, start.get(), value.get()));
    }
}

} // namespace warmgraph::python
