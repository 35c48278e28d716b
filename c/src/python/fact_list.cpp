#include "fact_list.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "texts.hpp"

namespace warmgraph::python {

namespace {

struct Line {
    std::string_view name, value;
};

bool is_read_so(const Line& line)
{
    return line.name.find_first_of("\t\n") == std::string_view::npos && line.value.find('\n') == std::string_view::npos;
}

std::string joined(const std::vector<Line>& lines)
{
    std::string text;
    text.reserve(std::accumulate(lines.begin(), lines.end(), std::size_t{0}, [](std::size_t size, const Line& line) {
        return size + line.name.size() + line.value.size() + 2;
    }));
    for (const auto& [name, value] : lines) {
        if (!text.empty()) text += '\n';
        text.append(name).append(1, '\t').append(value);
    }
    return text;
}

} // namespace

Ref fact_list(const Api& python, Object* facts, Object* known, std::string_view beginning, Object* apart)
{
    std::vector<Line> lines;
    lines.reserve(static_cast<std::size_t>(std::max<std::ptrdiff_t>(python.dict_size(facts), 0)));
    std::ptrdiff_t at = 0;
    Object *name = nullptr, *value = nullptr;
    while (python.dict_next(facts, &at, &name, &value) != 0) {
        const std::string_view text = view_of(python, name);
        const int is_known = text.starts_with(beginning) ? 1 : python.contains(known, name);
        Api::checked(is_known);
        if (is_known != 0)
            lines.push_back({text, view_of(python, value)});
        else
            Api::checked(python.dict_set(apart, name, value));
    }
    std::ranges::sort(lines, {}, &Line::name);
    const std::string text = std::ranges::all_of(lines, is_read_so) ? joined(lines) : "";
    return Api::checked(python.text_of(text.data(), static_cast<std::ptrdiff_t>(text.size())));
}

} // namespace warmgraph::python
