#include "report/page.hpp"

#include <string_view>

#include "page_template.hpp"

namespace warmgraph::tool {

namespace {

/// The document as JSON inside a script of an HTML page. Characters that begin a tag or comment, or end the script,
/// occur only in strings, where they are escaped.
std::string for_a_script(const Json& document)
{
    std::string out;
    for (const char c : document.dump(-1, ' ', true, Json::error_handler_t::replace)) {
        switch (c) {
        case '<': out += "\\u003c"; break;
        case '>': out += "\\u003e"; break;
        case '&': out += "\\u0026"; break;
        default: out += c;
        }
    }
    return out;
}

} // namespace

std::string page_of(const Json& document)
{
    constexpr std::string_view k_place = "{\"document\": \"goes here\"}";
    constexpr std::size_t k_at = k_page_template.find(k_place);
    static_assert(k_at != std::string_view::npos, "page.html has no place for the document");
    std::string page{k_page_template};
    return page.replace(k_at, k_place.size(), for_a_script(document));
}

} // namespace warmgraph::tool
