// Promise S1 in the store: required signatures, published entries, and keys from options, files and the environment.
#include <fcntl.h>
#include <sys/stat.h>

#include "lacking.hpp"
#include "log_lines.hpp"
#include "store_fixture.hpp"
#include "warmgraph/store/signing.hpp"

namespace warmgraph::test::signing_test {
namespace {

using store::resolve_signing;
using store::SigningSource;

const std::string k_secret(64, 'a');
const std::string k_other_secret(64, 'b');

cachefmt::Trust trust_of(const std::string& sign_with, const std::vector<std::string>& accept, bool require)
{
    SigningSource source;
    source.sign_with = sign_with;
    source.accept = accept;
    source.require = require;
    return resolve_signing(source, [](const char*) { return std::nullopt; }).value();
}

class Signing : public StoreTest {
protected:
    std::unique_ptr<LocalStore> opened(const std::string& sign_with, const std::vector<std::string>& accept,
                                       bool require, store::StoreMode access = store::StoreMode::read_write)
    {
        return open({.access = access, .trust = trust_of(sign_with, accept, require)});
    }
    const std::string old_key = "old:hmac-sha256:" + k_secret, new_key = "new:hmac-sha256:" + k_other_secret;
    const Entry entry = make_entry(k_decode);
    const EntryKey& key = entry.header.key;
};

TEST_F(Signing, WhatAProcessPublishesIsReadByThoseWhoAcceptItsKey)
{
    ASSERT_TRUE(succeeded(opened(old_key, {}, true)->publish(entry)));
    for (const auto& reader :
         {opened({}, {old_key}, true), opened(old_key, {}, true), opened(new_key, {old_key}, true)})
        EXPECT_EQ(reader->entry(key).value().value().header.signed_by, "old");
    EXPECT_EQ(open()->entry(key).value(), entry) << "who asks for nothing reads it too";
}

TEST_F(Signing, WhatIsNotAcceptedIsRefusedUnreadAndStays)
{
    ASSERT_TRUE(succeeded(open()->publish(entry)));
    const auto before = snapshot(m_root);
    const auto strict = opened({}, {old_key}, true);
    EXPECT_TRUE(failed_with(strict->header(key), ErrorCode::untrusted, "is not signed"));
    EXPECT_TRUE(failed_with(strict->entry(key), ErrorCode::untrusted, "is not signed"));
    EXPECT_TRUE(failed_with(strict->variants(k_decode).value().at(0).header, ErrorCode::untrusted));
    EXPECT_EQ(snapshot(m_root), before) << "somebody else may accept it";
    EXPECT_TRUE(strict->check().value().empty()) << "it is whole";

    // The payload is not read, so damage in it does not change the answer.
    flip(path_of(key), fs::file_size(path_of(key)) - 1);
    EXPECT_TRUE(failed_with(strict->entry(key), ErrorCode::untrusted));
    EXPECT_TRUE(fs::exists(path_of(key)));

    const auto signer = opened(old_key, {}, true);
    ASSERT_TRUE(succeeded(signer->publish(entry))) << "a new recording takes its place";
    EXPECT_TRUE(succeeded(strict->entry(key)));
}

/// The file stays, because another process may have the key with this id and accept the signature.
TEST_F(Signing, AForgedSignatureIsRefusedAndStaysAlsoWhereNoneIsRequired)
{
    const std::string forged = "old:hmac-sha256:" + k_other_secret;
    ASSERT_TRUE(succeeded(opened(forged, {}, false)->publish(entry)));
    const auto before = snapshot(m_root);
    const auto reader = opened({}, {old_key}, false);
    EXPECT_TRUE(failed_with(reader->header(key), ErrorCode::untrusted, "forged"));
    EXPECT_TRUE(failed_with(reader->entry(key), ErrorCode::untrusted, "forged"));
    EXPECT_EQ(snapshot(m_root), before);
    EXPECT_TRUE(succeeded(opened({}, {forged}, false)->entry(key)));
}

TEST_F(Signing, KeysAreRotatedByAcceptingBothForAWhile)
{
    ASSERT_TRUE(succeeded(opened(old_key, {}, true)->publish(entry)));
    const auto rotating = opened(new_key, {old_key}, true);
    const auto found = rotating->entry(key).value().value();
    EXPECT_EQ(found.header.signed_by, "old");
    ASSERT_TRUE(succeeded(rotating->publish(found))) << "as `warmgraph sign` does";
    EXPECT_EQ(opened(new_key, {}, true)->entry(key).value().value().header.signed_by, "new");
    EXPECT_TRUE(failed_with(opened({}, {old_key}, true)->entry(key), ErrorCode::untrusted, "signed with key 'new'"));
}

TEST_F(Signing, AnEntryUnderAnotherNameIsRefusedWithItsSignature)
{
    const auto signer = opened(old_key, {}, true);
    const Entry other = make_entry(k_decode, 1);
    ASSERT_TRUE(succeeded(signer->publish(entry)));
    ASSERT_TRUE(succeeded(signer->publish(other)));
    fs::copy_file(path_of(key), path_of(other.header.key), fs::copy_options::overwrite_existing);
    EXPECT_TRUE(failed_with(signer->entry(other.header.key), ErrorCode::stale, "another key"));
}

TEST_F(Signing, NoFileOfTheFolderHasASecret)
{
    ASSERT_TRUE(succeeded(opened(old_key, {new_key}, true)->publish(entry)));
    const std::string raw(32, '\xaa');
    for (const auto& [path, text] : snapshot(m_root)) {
        EXPECT_EQ(text.find(k_secret), std::string::npos) << path;
        EXPECT_EQ(text.find(raw), std::string::npos) << path;
    }
}

class Sources : public testing::Test {
protected:
    store::EnvironmentReader environment()
    {
        return [this](const char* name) -> std::optional<std::string> {
            const auto found = variables.find(name);
            return found == variables.end() ? std::nullopt : std::optional(found->second);
        };
    }
    std::string file(const std::string& name, const std::string& text, mode_t mode = 0600)
    {
        const auto path = dir.path() / name;
        std::ofstream(path) << text;
        EXPECT_EQ(::chmod(path.c_str(), mode), 0);
        return path.string();
    }
    const std::string secret = "one:hmac-sha256:" + k_secret, other = "two:hmac-sha256:" + k_other_secret;
    TempDir dir;
    std::map<std::string, std::string> variables;
    SigningSource source;
};

TEST_F(Sources, AreOptionsThenTheEnvironmentAndItsFiles)
{
    EXPECT_EQ(resolve_signing(source, environment()).value().sign_with, nullptr);
    variables = {{"WARMGRAPH_SIGN_KEY_FILE", file("sign", "# ours\n\n" + secret + "\r\n")},
                 {"WARMGRAPH_ACCEPT_KEYS", other + ", three:hmac-sha256:" + k_secret},
                 {"WARMGRAPH_REQUIRE_SIGNED", "1"}};
    auto trust = resolve_signing(source, environment()).value();
    EXPECT_EQ(trust.sign_with->id(), "one");
    EXPECT_TRUE(trust.require);
    for (const char* id : {"one", "two", "three"}) EXPECT_NE(trust.find(id), nullptr) << id;
    EXPECT_EQ(trust.find("four"), nullptr);
    source.sign_with = other;
    source.accept_file = file("accept", secret + "\n" + other + "\n"); // the own key must not count twice
    trust = resolve_signing(source, environment()).value();
    EXPECT_EQ(trust.sign_with->id(), "two");
    EXPECT_NE(trust.find("one"), nullptr);
    EXPECT_EQ(trust.find("three"), nullptr) << "the program's say replaces the environment's";
    variables["WARMGRAPH_REQUIRE_SIGNED"] = "0";
    EXPECT_FALSE(resolve_signing(source, environment()).value().require);
    source.require = true;
    EXPECT_TRUE(resolve_signing(source, environment()).value().require) << "the environment cannot take it back";
}

TEST_F(Sources, ThatAreWrongAreRefusedByNameAndWithoutTheirSecret)
{
    const auto refused = [&](ErrorCode code, const char* message) {
        const auto result = resolve_signing(source, environment());
        EXPECT_TRUE(failed_with(result, code, message));
        if (!result) {
            EXPECT_THAT(result.error().message, Not(HasSubstr(k_secret.substr(0, 8))));
        }
        source = {};
        variables.clear();
    };
    source.require = true;
    refused(ErrorCode::invalid_argument, "no key is accepted");
    variables["WARMGRAPH_REQUIRE_SIGNED"] = "yes";
    refused(ErrorCode::invalid_argument, "WARMGRAPH_REQUIRE_SIGNED is 'yes', expected 0 or 1");
    source.sign_with = k_secret;
    refused(ErrorCode::invalid_argument, "expected 'id:kind:hex'");
    source.sign_with = SigningKey::generate("k", SignatureKind::ed25519).value().public_line();
    refused(ErrorCode::invalid_argument, "public key");
    source.sign_with_file = file("two", secret + "\n" + other + "\n");
    refused(ErrorCode::invalid_argument, "2 keys are given to sign with");
    source.accept = {secret, "one:hmac-sha256:" + k_other_secret};
    refused(ErrorCode::invalid_argument, "two keys have the id 'one'");
    source.accept_file = "/nonexistent/keys";
    refused(ErrorCode::not_found, "/nonexistent/keys");
    source.accept_file = dir.path().string();
    refused(ErrorCode::invalid_argument, "not a regular file");
    source.accept_file = file("open", secret + "\n", 0622);
    refused(ErrorCode::permission_denied, "chmod go-w");
    source.accept_file = file("of_a_group", secret + "\n", 0620);
    refused(ErrorCode::permission_denied, "chmod go-w");
    source.accept_file = file("bad", "one:hmac-sha256:" + k_secret + "zz\n");
    refused(ErrorCode::invalid_argument, "bad: signing key 'one'");
    source.sign_with_file = file("empty", "# to be filled in\n\n");
    refused(ErrorCode::invalid_argument, "empty has no key in it");
    variables["WARMGRAPH_SIGN_KEY"] = " ";
    refused(ErrorCode::invalid_argument, "has no key in it");
    source.sign_with = secret;
    source.accept = {"one:hmac-sha256:" + k_other_secret};
    refused(ErrorCode::invalid_argument, "two keys have the id 'one'");
    source.accept_file = file("large", std::string(70'000, 'x'));
    refused(ErrorCode::invalid_argument, "70000 bytes");
}

TEST_F(Sources, AFileOfAnotherUserIsRefused)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("root, who can give files away");
    source.accept_file = file("theirs", secret + "\n");
    ASSERT_EQ(::chown(source.accept_file.c_str(), 12'345, 12'345), 0);
    EXPECT_TRUE(failed_with(resolve_signing(source, environment()), ErrorCode::permission_denied,
                            "belongs to another user (12345)"));
}

TEST_F(Sources, ASecretThatOthersMayReadIsWorthAWord)
{
    log().set_level(spdlog::level::warn);
    const auto warnings_of = [&](const std::string& line, mode_t mode) {
        const LogLines lines;
        source.accept_file = file("key", line + "\n", mode);
        EXPECT_TRUE(succeeded(resolve_signing(source, environment())));
        return lines.with("chmod go-r " + source.accept_file).size();
    };
    EXPECT_EQ(warnings_of(secret, 0600), 0U);
    EXPECT_EQ(warnings_of(secret, 0640), 1U);
    EXPECT_EQ(warnings_of(secret, 0604), 1U);
    const std::string half = SigningKey::generate("k", SignatureKind::ed25519).value().public_line();
    EXPECT_EQ(warnings_of(half, 0644), 0U) << "a public key is no secret";
}

TEST_F(Sources, APipeHoldsNobodyUp)
{
    source.accept_file = (dir.path() / "pipe").string();
    ASSERT_EQ(::mkfifo(source.accept_file.c_str(), 0600), 0);
    EXPECT_TRUE(failed_with(resolve_signing(source, environment()), ErrorCode::invalid_argument, "not a regular file"));
}

TEST_F(Sources, ForgetTheirKeys)
{
    source.sign_with = secret;
    source.accept = {other};
    source.forget();
    EXPECT_TRUE(source.sign_with.empty() && source.accept.empty());
}

} // namespace
} // namespace warmgraph::test::signing_test
