#include "context.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "warmgraph/base/output_file.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/store/settings.hpp"
#include "warmgraph/store/signing.hpp"

namespace warmgraph::tool {

namespace {

/// True if the folder is empty; follows a link. A folder that cannot be listed counts as not empty: opening it reports
/// the error.
bool is_empty_folder(const Context& context)
{
    std::error_code error;
    return std::filesystem::is_directory(context.cache_dir, error) &&
           std::filesystem::is_empty(context.cache_dir, error);
}

/// Returns the link's target, for people who keep caches on another disk.
std::filesystem::path behind_link(const std::filesystem::path& folder)
{
    std::error_code error;
    std::filesystem::path target = std::filesystem::canonical(folder, error);
    return error ? folder : target;
}

Result<store::StoreOptions> options_for(const FileInfo& folder)
{
    auto owners = trusted_owners();
    if (!owners) return std::unexpected(owners.error());
    store::StoreOptions options;
    options.sharing = is_shared(folder) ? store::Sharing::group : store::Sharing::owner_only;
    options.trusted_owners = std::move(*owners);
    options.budget = store::environment_budget();
    options.packings = store::environment_packings();
    return options;
}

/// Opens the store; `fill` sets the other options.
template <class Fill>
Result<std::unique_ptr<store::LocalStore>> open_with(const Context& context, const Fill& fill)
{
    const auto info = context.files.info(behind_link(context.cache_dir));
    if (!info) return within("open the cache folder", info.error());
    if (!*info) return nullptr;
    auto options = options_for(**info);
    if (!options) return std::unexpected(options.error());
    fill(*options);
    const bool is_empty = is_empty_folder(context);
    if (is_empty) options->access = store::StoreMode::read_only; // checks the owner without marking the folder
    auto store = store::LocalStore::open(context.cache_dir, *options, context.files, context.clock);
    if (store && is_empty) return nullptr;
    return store;
}

} // namespace

Result<cachefmt::Trust> trust_of(const SigningFiles& files)
{
    store::SigningSource source;
    source.sign_with_file = files.key;
    source.accept_file = files.accepted;
    return store::resolve_signing(source, environment);
}

Result<std::vector<std::uint32_t>> trusted_owners()
{
    constexpr const char* k_owners = "WARMGRAPH_TRUSTED_OWNERS";
    return store::parse_owners(k_owners, environment(k_owners).value_or(""));
}

bool is_shared(const FileInfo& folder) noexcept
{
    constexpr std::uint32_t k_group_writes = 0020, k_others_write = 0002, k_group_is_kept = 02000;
    if ((folder.mode & k_group_writes) == 0) return false;
    return (folder.mode & k_group_is_kept) != 0 || (folder.mode & k_others_write) == 0;
}

Result<std::unique_ptr<store::LocalStore>> open_store(const Context& context, store::StoreMode access,
                                                      const std::optional<cachefmt::Trust>& trust)
{
    auto trusted = trust ? Result<cachefmt::Trust>(*trust) : trust_of({});
    if (!trusted) return std::unexpected(trusted.error());
    return open_with(context, [&](store::StoreOptions& options) {
        options.access = access;
        options.trust = std::move(*trusted);
        // The program's limit is not known here, and `sign` publishes existing entries only.
        options.max_variants = std::numeric_limits<std::uint32_t>::max();
    });
}

Result<std::unique_ptr<store::LocalStore>> open_store_to_fill(const Context& context, const cachefmt::Trust& trust)
{
    const auto info = context.files.info(behind_link(context.cache_dir));
    if (!info) return within("open the cache folder", info.error());
    auto options = options_for(*info ? **info : FileInfo{});
    if (!options) return std::unexpected(options.error());
    options->trust = trust;
    return store::LocalStore::open(context.cache_dir, *options, context.files, context.clock);
}

Result<std::unique_ptr<store::LocalStore>> open_store_as_programs_do(const Context& context)
{
    auto trusted = trust_of({});
    return open_with(context, [&](store::StoreOptions& options) {
        options.falls_back = true;
        if (trusted) options.trust = std::move(*trusted); // else no owner is trusted; `doctor` reports the error
    });
}

void print(const Json& document) { print(document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n"); }

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Result<void> check_output(const Context& context, const std::string& file)
{
    if (context.output == Output::json && is_standard_output(file))
        return fail(ErrorCode::invalid_argument,
                    "'-' is standard output, where --json writes: give a file, or leave --json out");
    return {};
}

int report_failure(Output output, const Error& error)
{
    if (output == Output::json) print(Json{{"error", {{"code", to_string(error.code)}, {"message", error.message}}}});
    // A message may have several lines (a list to choose from). Each line is made safe for a terminal.
    const std::string text = "warmgraph: " + printable_lines(error.message, 4096) + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
    switch (error.code) {
    case ErrorCode::invalid_argument: return k_usage;
    case ErrorCode::io_failed:
    case ErrorCode::no_space:
    case ErrorCode::permission_denied: return k_no_cache;
    default: return k_found_wrong;
    }
}

std::string path_text(const std::filesystem::path& path)
{
    constexpr std::size_t k_longest_path = 4096;
    return printable(path.string(), k_longest_path);
}

std::string no_folder_text(const Context& context)
{
    return fmt::format("no cache{} at {}: nothing was recorded yet, or give --cache-dir",
                       is_empty_folder(context) ? " in the empty folder" : " folder", path_text(context.cache_dir));
}

} // namespace warmgraph::tool
