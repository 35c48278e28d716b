// `warmgraph report`: the cache's contents and statistics, as a page for people and as JSON for programs.
#include "commands.hpp"
#include "report/gather.hpp"
#include "report/page.hpp"
#include "verbs/statistics.hpp"
#include "warmgraph/base/output_file.hpp"

namespace warmgraph::tool {

namespace {

constexpr const char* k_default_file = "warmgraph-report.html";

/// Does not follow a link at the default name, because another user may have put it there.
Result<void> write(const std::string& page, const std::string& path, OutputFile::PathOrigin named)
{
    auto file = OutputFile::open(path, OutputFile::k_usual, named);
    Result<void> done = file ? file->append(as_bytes(page)) : std::unexpected(file.error());
    if (done) done = file->commit();
    if (done || is_standard_output(path)) return done;
    return fail(ErrorCode::invalid_argument, "{}; give -o a file in a folder that you may write", done.error().message);
}

std::string report_text(const Json& document, const std::string& page, const std::string& path)
{
    const Json& totals = document["totals"];
    return fmt::format("{}: {} of {} and {}; open it in a browser\n", path_text(path), size_text(page.size()),
                       plural(totals["functions"].get<std::uint64_t>(), "function"),
                       plural(totals["variants"].get<std::uint64_t>(), "variant"));
}

} // namespace

Result<int> report(const Context& context, const std::optional<std::string>& file)
{
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    auto document = gather_report(context, store->get());
    if (!document) return std::unexpected(document.error());
    Json& remotes = (*document)["remotes"] = Json::array();
    if (*store)
        for (const RemoteStatistics& of : remote_statistics(**store)) remotes.push_back(to_json(of));
    const bool is_json = context.output == Output::json;
    if (auto free = check_output(context, file.value_or("")); !free) return std::unexpected(free.error());
    if (file || !is_json) {
        const std::string page = page_of(*document), path = file.value_or(k_default_file);
        const auto named = file ? OutputFile::PathOrigin::by_user : OutputFile::PathOrigin::by_program;
        if (const auto written = write(page, path, named); !written) return std::unexpected(written.error());
        if (!is_json && !is_standard_output(path)) print(report_text(*document, page, path));
    }
    if (is_json) print(*document);
    return k_ok;
}

} // namespace warmgraph::tool
