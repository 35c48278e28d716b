#include "warmgraph/store/signing.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

using Keys = std::vector<SigningKey>;

struct Descriptor {
    explicit Descriptor(int opened) : number(opened) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor()
    {
        if (number >= 0) ::close(number);
    }
    int number;
};

/// Text that may hold a secret. The destructor overwrites it.
class SecretText {
public:
    explicit SecretText(std::string text) : m_text(std::move(text)) {}
    SecretText(const SecretText&) = delete;
    SecretText& operator=(const SecretText&) = delete;
    ~SecretText() { wipe(m_text); }
    [[nodiscard]] std::string_view view() const noexcept { return m_text; }
    [[nodiscard]] char* data() noexcept { return m_text.data(); }

private:
    std::string m_text;
};

std::string_view trimmed(std::string_view text)
{
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

Result<void> parse_into(Keys& keys, std::string_view text, char separator)
{
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        const std::string_view line = trimmed(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line.starts_with('#')) continue;
        auto key = SigningKey::parse(line);
        if (!key) return std::unexpected(std::move(key.error()));
        keys.push_back(std::move(*key));
    }
    return {};
}

/// A key file that others may write gives an error: the file's keys decide which code is run. The owner may always
/// write the file. A secret key that others may read gives a warning.
Result<void> check_mode(const std::string& path, const struct stat& status)
{
    constexpr mode_t k_others_write = 022;
    if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, "key file {} is not a regular file", path);
    if (status.st_uid != ::geteuid() && status.st_uid != 0)
        return fail(ErrorCode::permission_denied, "key file {} belongs to another user ({}): chown it to yours ({})",
                    path, status.st_uid, ::geteuid());
    if ((status.st_mode & k_others_write) != 0)
        return fail(ErrorCode::permission_denied,
                    "key file {} can be written by other users (mode {:o}): chmod go-w {}", path,
                    status.st_mode & 0777U, path);
    return {};
}

std::string variable(const EnvironmentReader& environment, const char* name) { return environment(name).value_or(""); }

/// Reads keys from an option, else from the environment. A given text or file must contain a key: a process must not
/// run unsigned because a secret was not filled in yet.
Result<Keys> keys_of(std::string_view text, const std::string& file, char separator)
{
    Keys keys;
    if (auto ok = parse_into(keys, text, separator); !ok) return std::unexpected(std::move(ok.error()));
    if (!text.empty() && keys.empty()) return fail(ErrorCode::invalid_argument, "the text for keys has no key in it");
    if (file.empty()) return keys;
    auto more = read_key_file(file);
    if (!more) return more;
    for (SigningKey& key : *more) keys.push_back(std::move(key));
    return keys;
}

Result<Keys> keys_to_sign(const SigningSource& given, const EnvironmentReader& environment)
{
    if (!given.sign_with.empty() || !given.sign_with_file.empty())
        return keys_of(given.sign_with, given.sign_with_file, '\n');
    const SecretText text{variable(environment, "WARMGRAPH_SIGN_KEY")};
    return keys_of(text.view(), variable(environment, "WARMGRAPH_SIGN_KEY_FILE"), '\n');
}

Result<Keys> keys_to_accept(const SigningSource& given, const EnvironmentReader& environment)
{
    if (given.accept.empty() && given.accept_file.empty()) {
        const SecretText text{variable(environment, "WARMGRAPH_ACCEPT_KEYS")};
        return keys_of(text.view(), variable(environment, "WARMGRAPH_ACCEPT_KEYS_FILE"), ',');
    }
    Keys keys;
    for (const std::string& line : given.accept)
        if (auto ok = parse_into(keys, line, '\n'); !ok) return std::unexpected(std::move(ok.error()));
    auto more = keys_of({}, given.accept_file, '\n');
    if (!more) return more;
    for (SigningKey& key : *more) keys.push_back(std::move(key));
    return keys;
}

Result<bool> is_required(const SigningSource& given, const EnvironmentReader& environment)
{
    const std::string text = variable(environment, "WARMGRAPH_REQUIRE_SIGNED");
    if (!text.empty() && text != "0" && text != "1")
        return fail(ErrorCode::invalid_argument, "WARMGRAPH_REQUIRE_SIGNED is '{}', expected 0 or 1", text);
    return given.require || text == "1";
}

/// Whether `key` is the same key as `secret`, or its public half: then it verifies the signature of `secret`.
bool is_half_of(const SigningKey& secret, const SigningKey& key)
{
    if (secret.id() != key.id() || secret.kind() != key.kind()) return false;
    const ByteView probe = as_bytes(std::string_view{"warmgraph key probe"}); // not the start of any entry's message
    const auto made = secret.sign(probe);
    return made && key.verifies(probe, *made);
}

Result<void> add_accepted(cachefmt::Trust& trust, SigningKey key)
{
    if (trust.sign_with && is_half_of(*trust.sign_with, key)) return {};
    if (trust.find(key.id()) != nullptr)
        return fail(ErrorCode::invalid_argument, "two keys have the id '{}': give each its own", key.id());
    trust.accepted.push_back(std::make_shared<const SigningKey>(std::move(key)));
    return {};
}

} // namespace

void SigningSource::forget() noexcept
{
    wipe(sign_with);
    for (std::string& key : accept) wipe(key);
    accept.clear();
}

Result<std::vector<SigningKey>> read_key_file(const std::string& path)
{
    constexpr off_t k_most = 64 << 10;
    // The checked file is the open file, even if the name changes. O_NONBLOCK: a pipe must not block the process.
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct stat status{};
    if (file.number < 0 || ::fstat(file.number, &status) != 0)
        return fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::permission_denied,
                    "cannot read key file {}: {}", path, std::strerror(errno));
    if (auto ok = check_mode(path, status); !ok) return std::unexpected(std::move(ok.error()));
    if (status.st_size > k_most)
        return fail(ErrorCode::invalid_argument, "key file {} has {} bytes, at most {} are read", path, status.st_size,
                    k_most);
    SecretText text{std::string(static_cast<std::size_t>(status.st_size), '\0')};
    if (::pread(file.number, text.data(), static_cast<std::size_t>(status.st_size), 0) != status.st_size)
        return fail(ErrorCode::permission_denied, "cannot read key file {}", path);
    Keys keys;
    if (auto ok = parse_into(keys, text.view(), '\n'); !ok)
        return within(fmt::format("key file {}", path), std::move(ok.error()));
    if (keys.empty()) return fail(ErrorCode::invalid_argument, "key file {} has no key in it", path);
    constexpr mode_t k_others_read = 044;
    const bool has_secret = std::ranges::any_of(keys, &SigningKey::is_secret);
    if (has_secret && (status.st_mode & k_others_read) != 0)
        log().warn("key file {} has a secret that other users can read (mode {:o}): chmod go-r {}", path,
                   status.st_mode & 0777U, path);
    return keys;
}

Result<cachefmt::Trust> resolve_signing(const SigningSource& given, const EnvironmentReader& environment)
{
    const auto require = is_required(given, environment);
    if (!require) return std::unexpected(require.error());
    auto to_sign = keys_to_sign(given, environment);
    if (!to_sign) return std::unexpected(std::move(to_sign.error()));
    auto accepted = keys_to_accept(given, environment);
    if (!accepted) return std::unexpected(std::move(accepted.error()));
    if (to_sign->size() > 1)
        return fail(ErrorCode::invalid_argument, "{} keys are given to sign with, expected one", to_sign->size());
    cachefmt::Trust trust;
    trust.require = *require;
    if (!to_sign->empty()) {
        if (!to_sign->front().is_secret())
            return fail(ErrorCode::invalid_argument, "key '{}' is a public key, which cannot sign: give the secret key",
                        to_sign->front().id());
        trust.sign_with = std::make_shared<const SigningKey>(std::move(to_sign->front()));
    }
    for (SigningKey& key : *accepted)
        if (auto ok = add_accepted(trust, std::move(key)); !ok) return std::unexpected(std::move(ok.error()));
    if (trust.require && !trust.sign_with && trust.accepted.empty())
        return fail(ErrorCode::invalid_argument,
                    "a signature is required, and no key is accepted: give accepted keys (WARMGRAPH_ACCEPT_KEYS_FILE)");
    return trust;
}

} // namespace warmgraph::store
