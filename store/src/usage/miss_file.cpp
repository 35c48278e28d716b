#include "usage/miss_file.hpp"

#include <algorithm>
#include <array>

#include "warmgraph/base/json_members.hpp"

namespace warmgraph::store {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_longest_text = 1024, k_longest_call = 1U << 20;
constexpr std::size_t k_longest_read = 4 * k_longest_text; // U+FFFD takes three bytes
constexpr std::array k_ends{MissEnd::ran,    MissEnd::recorded, MissEnd::refused,
                            MissEnd::thrown, MissEnd::replayed, MissEnd::compiled};

/// Cuts a long text and ends it with "...".
std::string cut(const std::string& text)
{
    if (text.size() <= k_longest_text) return text;
    constexpr std::string_view k_mark = "...";
    return text.substr(0, k_longest_text - k_mark.size()).append(k_mark);
}

Json to_json(const Miss& miss)
{
    Json differences = Json::array();
    for (const MissedFact& fact : miss.differences) {
        if (differences.size() == k_most_missed_facts) break;
        differences.push_back({{"fact", cut(fact.fact)},
                               {"recorded", cut(fact.recorded)},
                               {"now", cut(fact.now)},
                               {"cure", cut(fact.cure)}});
    }
    Json json{{"id", cut(miss.id)},         {"time", cut(miss.time)},
              {"host", cut(miss.host)},     {"process", miss.process},
              {"policy", cut(miss.policy)}, {"reason", cut(miss.reason)},
              {"end", to_string(miss.end)}, {"call", to_hex(miss.call)},
              {"variants", miss.variants},  {"nearest", miss.nearest ? Json(to_hex(*miss.nearest)) : Json()},
              {"more", miss.more},          {"agree", miss.agree},
              {"differences", differences}};
    if (miss.calls != 0) json["calls"] = miss.calls;
    if (!miss.program.empty()) json["program"] = cut(miss.program);
    return json;
}

void read_end(JsonMembers& reader, MissEnd& end)
{
    std::string text;
    reader.text("end", text);
    const auto known = std::ranges::find(k_ends, text, [](MissEnd each) { return to_string(each); });
    if (known == k_ends.end()) return reader.wrong("end");
    end = *known;
}

std::string read_differences(JsonMembers& reader, std::vector<MissedFact>& differences)
{
    const Json* const list = reader.find("differences", &Json::is_array);
    if (list == nullptr) return reader.first_problem();
    if (list->size() > k_most_missed_facts) return "it has too many differences";
    for (const Json& item : *list) {
        JsonMembers fields(item, k_longest_read);
        MissedFact& fact = differences.emplace_back();
        fields.text("fact", fact.fact);
        fields.text("recorded", fact.recorded);
        fields.text("now", fact.now);
        fields.text("cure", fact.cure);
        if (!fields.first_problem().empty()) return "a difference: " + fields.first_problem();
    }
    return {};
}

Result<Miss> parse_miss(const Json& json)
{
    Miss miss;
    JsonMembers reader(json, k_longest_read);
    reader.text("id", miss.id);
    reader.text("time", miss.time);
    reader.text("host", miss.host);
    reader.number("process", miss.process);
    reader.text("policy", miss.policy);
    reader.text("reason", miss.reason);
    read_end(reader, miss.end);
    reader.digest("call", miss.call);
    reader.number("variants", miss.variants);
    reader.number("more", miss.more);
    reader.number("agree", miss.agree);
    std::string wrong = read_differences(reader, miss.differences);
    if (wrong.empty() && json.contains("nearest") && !json["nearest"].is_null())
        reader.digest("nearest", miss.nearest.emplace());
    if (wrong.empty() && json.contains("calls")) reader.number("calls", miss.calls);
    if (wrong.empty() && json.contains("program")) reader.text("program", miss.program);
    if (wrong.empty()) wrong = reader.first_problem();
    if (!wrong.empty()) return fail(ErrorCode::corrupt, "{}", wrong);
    return miss;
}

std::string_view next_line(std::string_view& text)
{
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
}

} // namespace

std::string_view to_string(MissEnd end) noexcept
{
    switch (end) {
    case MissEnd::ran: return "ran as it is";
    case MissEnd::recorded: return "recorded";
    case MissEnd::refused: return "refused";
    case MissEnd::thrown: return "thrown";
    case MissEnd::replayed: return "replayed";
    case MissEnd::compiled: return "compiled";
    }
    return "unknown";
}

void add_miss(std::vector<Miss>& list, Miss miss)
{
    std::erase_if(list, [&](const Miss& known) { return known.id == miss.id; });
    list.insert(list.begin(), std::move(miss));
    if (list.size() > k_most_misses) list.resize(k_most_misses);
}

std::string to_miss_lines(const Misses& misses)
{
    const auto line = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; };
    std::string lines = misses.newest_call.size() <= k_longest_call && !misses.newest_call.contains('\n')
                            ? misses.newest_call + "\n"
                            : "\n";
    const std::size_t count = std::min(misses.list.size(), k_most_misses);
    std::string rest;
    for (std::size_t i = 0; i < count; ++i) { // newest first, as many as fit
        const std::string more = line(to_json(misses.list[i]));
        if (lines.size() + rest.size() + more.size() > k_miss_file_cap) break;
        rest.insert(0, more);
    }
    return lines + rest;
}

Result<Misses> parse_misses(ByteView bytes)
{
    std::string_view text = as_text(bytes);
    Misses misses;
    misses.newest_call = next_line(text);
    for (std::size_t number = 2; !text.empty(); ++number) {
        const std::string_view line = next_line(text);
        if (misses.list.size() == k_most_misses)
            return fail(ErrorCode::corrupt, "it has more than {} misses", k_most_misses);
        const Json json = Json::parse(line, nullptr, false);
        auto miss = json.is_discarded() ? Result<Miss>{fail(ErrorCode::corrupt, "it is not JSON")} : parse_miss(json);
        if (!miss) return within(fmt::format("line {}", number), miss.error());
        misses.list.insert(misses.list.begin(), std::move(*miss));
    }
    return misses;
}

} // namespace warmgraph::store
