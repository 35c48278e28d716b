// `warmgraph show`: prints entries as text, JSON or Graphviz.
#include "commands.hpp"
#include "entry_file.hpp"
#include "selection.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::tool {

namespace {

/// The files of a function, or the one given file.
Result<std::vector<std::pair<std::filesystem::path, cachefmt::EntryKey>>> files_of(const Context& context,
                                                                                   const std::string& target)
{
    if (target.ends_with(".wg")) {
        const auto key = key_of_path(target);
        if (!key) return std::unexpected(key.error());
        return {{{std::filesystem::absolute(target), *key}}};
    }
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    const auto key = select(context, store->get(), target);
    if (!key) return std::unexpected(key.error());
    const auto variants = (*store)->variants(*key);
    if (!variants) return std::unexpected(variants.error());
    if (variants->empty()) return fail(ErrorCode::not_found, "function {} has no entries", full_name(*key));

    std::vector<std::pair<std::filesystem::path, cachefmt::EntryKey>> files;
    for (const store::Variant& variant : *variants) {
        const cachefmt::EntryKey entry{*key, variant.guards_digest};
        files.emplace_back(path_of((*store)->root(), entry), entry);
    }
    return files;
}

std::string entry_text(const Context& context, const cachefmt::Entry& entry, const ShowOptions& options)
{
    if (options.form == ShowForm::dot) return cachefmt::to_dot(entry);
    return cachefmt::to_readable(entry, options.only,
                                 context.style.colours ? cachefmt::Inks::terminal : cachefmt::Inks::none,
                                 terminal_columns().value_or(cachefmt::k_text_columns));
}

Json json_of(const cachefmt::Entry& entry, const std::filesystem::path& path, const ShowOptions& options)
{
    Json item = options.form == ShowForm::dot ? Json{{"dot", cachefmt::to_dot(entry)}}
                                              : Json::parse(cachefmt::to_json(entry, options.only));
    item["path"] = path.string();
    return item;
}

/// Keeps only the files whose digest begins with `digits`.
Result<void> choose_variant(std::vector<std::pair<std::filesystem::path, cachefmt::EntryKey>>& files,
                            const std::string& digits)
{
    std::string there_are;
    for (const auto& [path, key] : files) there_are += "\n  " + to_hex(key.guards_digest);
    std::erase_if(files, [&](const auto& file) { return !to_hex(file.second.guards_digest).starts_with(digits); });
    if (files.empty()) return fail(ErrorCode::not_found, "no variant begins with {}; there are:{}", digits, there_are);
    return {};
}

} // namespace

Result<int> show(const Context& context, const std::string& target, const ShowOptions& options)
{
    auto files = files_of(context, target);
    if (!files) return std::unexpected(files.error());
    if (auto chosen = choose_variant(*files, options.variant); !chosen) return std::unexpected(chosen.error());
    Json entries = Json::array();
    Json damaged = Json::array();
    std::string text;
    for (const auto& [path, key] : *files) {
        const auto entry = read_entry(context, path, key);
        if (!entry && files->size() == 1) return std::unexpected(entry.error());
        if (!entry) {
            damaged.push_back({{"path", path.string()}, {"error", entry.error().message}});
        } else if (context.output == Output::json) {
            entries.push_back(json_of(*entry, path, options));
        } else {
            text += (text.empty() ? "" : "\n") + entry_text(context, *entry, options);
        }
    }
    if (context.output == Output::json) {
        print(Json{{"entries", entries}, {"damaged", damaged}});
    } else {
        print(text);
        for (const Json& item : damaged)
            static_cast<void>(report_failure(Output::text, {ErrorCode::corrupt, item["error"].get<std::string>()}));
    }
    return damaged.empty() ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
