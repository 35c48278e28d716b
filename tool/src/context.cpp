#include "context.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::tool {

std::filesystem::path resolve_cache_dir(const std::string& option)
{
    std::string folder = option;
    if (folder.empty()) folder = environment("WARMGRAPH_CACHE_DIR").value_or("");
    if (folder.empty()) folder = ".warmgraph_cache";
    return std::filesystem::absolute(folder).lexically_normal();
}

namespace {

/// Follows a link. What cannot be listed is not known to be empty: opening it says what is wrong.
bool is_empty_folder(const Context& context)
{
    std::error_code error;
    return std::filesystem::is_directory(context.cache_dir, error) &&
           std::filesystem::is_empty(context.cache_dir, error);
}

} // namespace

Result<std::unique_ptr<store::LocalStore>> open_store(const Context& context, store::Access access,
                                                      const cachefmt::Trust& trust)
{
    const auto info = context.files.info(context.cache_dir);
    if (!info) return within("open the cache folder", info.error());
    if (!*info) return nullptr;
    // As it was made: a folder that its group may write is shared (CacheOptions::share_with_group).
    constexpr std::uint32_t group_writable = 0020;
    const auto sharing = ((*info)->mode & group_writable) != 0 ? store::Sharing::group : store::Sharing::owner_only;
    const bool is_empty = is_empty_folder(context);
    if (is_empty) access = store::Access::read_only; // says whose it is, and does not mark it
    auto store =
        store::LocalStore::open(context.cache_dir,
                                {.sharing = sharing,
                                 .access = access,
                                 // The program's limit is not known here, and `sign` publishes what is there already.
                                 .max_variants = std::numeric_limits<std::uint32_t>::max(),
                                 .limits = {},
                                 .trust = trust},
                                context.files, context.clock);
    if (store && is_empty) return nullptr;
    return store;
}

void print(const Json& document) { print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int report_failure(Output output, const Error& error)
{
    if (output == Output::json) print(Json{{"error", {{"code", to_string(error.code)}, {"message", error.message}}}});
    // A message may hold several lines (a list to choose from); each is made safe for a terminal by itself.
    std::string text = "warmgraph: ";
    for (std::size_t start = 0; start <= error.message.size();) {
        const std::size_t end = std::min(error.message.find('\n', start), error.message.size());
        text += printable(std::string_view(error.message).substr(start, end - start), 4096) + "\n";
        start = end + 1;
    }
    std::fwrite(text.data(), 1, text.size(), stderr);
    switch (error.code) {
    case ErrorCode::invalid_argument: return k_usage;
    case ErrorCode::io_failed:
    case ErrorCode::no_space:
    case ErrorCode::permission_denied: return k_no_cache;
    default: return k_found_wrong;
    }
}

std::string no_folder_text(const Context& context)
{
    return fmt::format("no cache{} at {}: nothing was recorded yet, or give --cache-dir",
                       is_empty_folder(context) ? " in the empty folder" : " folder", context.cache_dir.string());
}

} // namespace warmgraph::tool
