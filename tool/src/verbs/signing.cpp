// `warmgraph sign`: signs everything that can be signed, and makes keys. docs/trust.md explains signatures.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.hpp"
#include "selection.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/bundle/transfer.hpp"

namespace warmgraph::tool {

namespace {

/// One object and the result of signing it.
struct Line {
    store::Name name;
    std::string state; ///< "signed", "signed already", or an error's code
    std::string detail;
    bool is_wrong = false;
};

Line failed(const store::Name& name, const Error& error)
{
    return {name, std::string(to_string(error.code)), error.message, true};
}

const Error k_removed{ErrorCode::not_found, "it was removed while it was being read"};

/// Reads the whole entry first, so that only an intact entry is signed.
Line sign_entry(store::LocalStore& store, const cachefmt::EntryKey& key, const SigningKey& with)
{
    // The lock keeps a concurrent recording (e.g. of a tombstone) from being overwritten.
    const auto lock = store.try_record_lock(key);
    if (!lock) return failed(key, lock.error());
    if (!*lock) return failed(key, {ErrorCode::io_failed, "it is being recorded: sign it again later"});
    const auto entry = store.entry(key, store::ReadPurpose::preload);
    if (!entry) return failed(key, entry.error());
    if (!*entry) return failed(key, k_removed);
    if ((**entry).header.signed_by == with.id()) return {key, "signed already", with.id()};
    if (auto done = store.publish(**entry); !done) return failed(key, done.error());
    return {key, "signed", with.id()};
}

/// Verifies the artifact like its user does, and signs it. nullopt: artifacts of this kind are not signed.
std::optional<Line> sign_artifact(store::LocalStore& store, const store::ArtifactName& name,
                                  const cachefmt::Trust& trust)
{
    const bundle::KindReader& reader = bundle::reader_of(name.kind);
    const auto found = store.tier().get(name, {store::row_of(name.kind).most_bytes});
    if (!found) return failed(name, found.error());
    if (!*found) return failed(name, k_removed);
    const auto& object = (*found)->bytes;
    if (!object) return failed(name, object.error());
    if (const auto whole = reader.verify(name, *object); !whole) return failed(name, whole.error());
    if (reader.sealed == nullptr) return std::nullopt;
    const SigningKey& with = *trust.sign_with;
    const auto sealed = cachefmt::open_sealed(*reader.sealed, *object);
    if (!sealed) return failed(name, sealed.error());
    if (sealed->is_signed_by(with, *reader.sealed)) return Line{name, "signed already", with.id()};
    // Artifacts that can run any code are signed again only if they had an accepted signature before.
    if (trust.require || store::needs_signed_bundle(reader.kind))
        if (const auto trusted = cachefmt::check_signature(*reader.sealed, *sealed, trust); !trusted)
            return failed(name, trusted.error());
    const auto again = cachefmt::seal(*reader.sealed, as_text(sealed->facts), sealed->contents, &with);
    if (!again) return failed(name, again.error());
    if (auto done = store.tier().put(name, *again); !done) return failed(name, done.error());
    return Line{name, "signed", with.id()};
}

Result<std::vector<Line>> sign_all(store::LocalStore& store, const cachefmt::Trust& trust)
{
    std::vector<Line> lines;
    const auto functions = store.functions();
    if (!functions) return std::unexpected(functions.error());
    for (const cachefmt::FunctionKey& function : *functions) {
        const auto variants = store.variants(function);
        if (!variants) return std::unexpected(variants.error());
        for (const store::Variant& variant : *variants) {
            const cachefmt::EntryKey key{function, variant.guards_digest};
            lines.push_back(variant.header ? sign_entry(store, key, *trust.sign_with)
                                           : failed(key, variant.header.error()));
        }
    }
    const auto names = bundle::artifacts_of(store.tier(), [](store::ArtifactKind) { return true; });
    if (!names) return std::unexpected(names.error());
    for (const store::ArtifactName& name : *names)
        if (auto line = sign_artifact(store, name, trust)) lines.push_back(std::move(*line));
    return lines;
}

Json to_json(const Context& context, const std::vector<Line>& lines)
{
    Json entries = Json::array(), artifacts = Json::array();
    for (const Line& line : lines) {
        Json json{{"state", line.state}, {"detail", line.detail}};
        if (const auto* const key = std::get_if<cachefmt::EntryKey>(&line.name)) {
            json["function"] = full_name(key->function);
            json["guards"] = to_hex(key->guards_digest);
            entries.push_back(std::move(json));
        } else {
            json["name"] = store::to_text(line.name);
            artifacts.push_back(std::move(json));
        }
    }
    return {{"cache_dir", context.cache_dir.string()}, {"entries", entries}, {"artifacts", artifacts}};
}

std::string to_text(const Context& context, const std::vector<Line>& lines)
{
    constexpr std::size_t k_most = 400;
    Table table({{"function"}, {"variant"}, {"state"}, {"detail"}}, 0, k_most);
    std::size_t variants = 0;
    for (const Line& line : lines) {
        if (const auto* const key = std::get_if<cachefmt::EntryKey>(&line.name)) {
            ++variants;
            table.add({full_name(key->function), short_hex(key->guards_digest), line.state, line.detail});
        } else {
            const auto& name = std::get<store::ArtifactName>(line.name);
            table.add({fmt::format("({})", to_string(name.kind)), short_hex(name.digest), line.state, line.detail});
        }
    }
    const auto wrong = static_cast<std::uint64_t>(std::ranges::count_if(lines, &Line::is_wrong));
    const std::size_t others = lines.size() - variants;
    return table.text(context.style) + fmt::format("{}{}, {} with problems\n", plural(variants, "variant"),
                                                   others == 0 ? "" : " and " + plural(others, "artifact"), wrong);
}

/// Writes a key to a new file; never overwrites a file, because it may hold the key of a whole fleet.
Result<void> write_key(const std::string& path, std::string line, mode_t mode)
{
    const int file =
        above_standard_streams(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file < 0) {
        wipe(line);
        return fail(ErrorCode::invalid_argument, "cannot make key file {}: {}", path, std::strerror(errno));
    }
    line += '\n';
    const ssize_t written = ::write(file, line.data(), line.size());
    const bool is_whole = written == static_cast<ssize_t>(line.size()) && ::fsync(file) == 0;
    wipe(line);
    if (::close(file) == 0 && is_whole) return {};
    ::unlink(path.c_str());
    return fail(ErrorCode::io_failed, "cannot write key file {}", path);
}

} // namespace

Result<int> sign(const Context& context, const SigningFiles& files)
{
    const auto trust = trust_of(files);
    if (!trust) return std::unexpected(trust.error());
    if (!trust->sign_with)
        return fail(
            ErrorCode::invalid_argument,
            "no key to sign with: give --key-file or WARMGRAPH_SIGN_KEY_FILE; `warmgraph sign --new-key FILE --id "
            "ID` makes one");
    const auto store = open_store(context, store::StoreMode::read_write, *trust);
    if (!store) return std::unexpected(store.error());
    if (!*store) return fail(ErrorCode::io_failed, "{}", no_folder_text(context));
    const auto lines = sign_all(**store, *trust);
    if (!lines) return std::unexpected(lines.error());
    if (context.output == Output::json)
        print(to_json(context, *lines));
    else
        print(to_text(context, *lines));
    return std::ranges::any_of(*lines, &Line::is_wrong) ? k_found_wrong : k_ok;
}

Result<int> make_key(const Context& context, const NewKey& wanted)
{
    const bool is_ed25519 = wanted.kind == to_string(SignatureKind::ed25519);
    const auto key = SigningKey::generate(wanted.id, is_ed25519 ? SignatureKind::ed25519 : SignatureKind::hmac_sha256);
    if (!key) return std::unexpected(key.error());
    constexpr mode_t k_own = 0600, k_all_read = 0644;
    if (auto made = write_key(wanted.file, key->secret_line(), k_own); !made) return std::unexpected(made.error());
    const std::string public_file = is_ed25519 ? wanted.file + ".pub" : "";
    if (is_ed25519)
        if (auto made = write_key(public_file, key->public_line(), k_all_read); !made) {
            ::unlink(wanted.file.c_str()); // no secret key without its public half
            return std::unexpected(made.error());
        }
    if (context.output == Output::json)
        print(Json{
            {"id", key->id()}, {"kind", to_string(key->kind())}, {"file", wanted.file}, {"public_file", public_file}});
    else
        print(fmt::format("{} key '{}' in {}{}\n", to_string(key->kind()), key->id(), path_text(wanted.file),
                          is_ed25519 ? "; give it to those who verify: " + path_text(public_file)
                                     : "; sign and verify with it"));
    return k_ok;
}

} // namespace warmgraph::tool
