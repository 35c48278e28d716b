// `warmgraph report`: what is cached and what it did, as a page for people and as JSON for programs.
#include <fstream>

#include "commands.hpp"
#include "report/gather.hpp"
#include "report/page.hpp"

namespace warmgraph::tool {

namespace {

constexpr const char* k_default_file = "warmgraph-report.html";

Result<void> write(const std::string& page, const std::string& path)
{
    errno = 0;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << page;
    if (file.flush()) return {};
    return fail(ErrorCode::invalid_argument, "cannot write '{}': {}; give -o a file in a folder that you may write",
                path, errno != 0 ? std::generic_category().message(errno) : "the file did not take it");
}

std::string report_text(const Json& document, const std::string& page, const std::string& path)
{
    const Json& totals = document["totals"];
    return fmt::format("{}: {} of {} and {}; open it in a browser\n", path, size_text(page.size()),
                       plural(totals["functions"].get<std::uint64_t>(), "function"),
                       plural(totals["variants"].get<std::uint64_t>(), "variant"));
}

} // namespace

Result<int> report(const Context& context, const std::optional<std::string>& file)
{
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    const auto document = gather_report(context, store->get());
    if (!document) return std::unexpected(document.error());
    const bool is_json = context.output == Output::json;
    if (file || !is_json) {
        const std::string page = page_of(*document), path = file.value_or(k_default_file);
        if (const auto written = write(page, path); !written) return std::unexpected(written.error());
        if (!is_json) print(report_text(*document, page, path));
    }
    if (is_json) print(*document);
    return k_ok;
}

} // namespace warmgraph::tool
