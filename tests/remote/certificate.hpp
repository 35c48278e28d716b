// A certificate for a test's server, made at run time, so that no private key is in the repository.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace warmgraph::test {

/// Writes a certificate for 127.0.0.1, signed by itself and valid for a day, and its key.
inline void make_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key_file)
{
    const auto check = [](bool ok) {
        if (!ok) throw std::runtime_error("OpenSSL makes no certificate");
    };
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
    check(key && made);
    check(X509_set_version(made.get(), X509_VERSION_3) == 1 &&
          ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1) == 1);
    check(X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600) != nullptr);
    check(X509_gmtime_adj(X509_getm_notAfter(made.get()), 24L * 3600) != nullptr);
    X509_NAME* const name = X509_get_subject_name(made.get());
    check(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("a test"), -1, -1,
                                     0) == 1);
    check(X509_set_issuer_name(made.get(), name) == 1 && X509_set_pubkey(made.get(), key.get()) == 1);
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> address(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1"), &X509_EXTENSION_free);
    check(address && X509_add_ext(made.get(), address.get(), -1) == 1);
    check(X509_sign(made.get(), key.get(), EVP_sha256()) != 0);
    const auto write = [&](const std::filesystem::path& path, auto put) {
        const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "w"), &std::fclose);
        check(file && put(file.get()) == 1);
    };
    write(certificate, [&](std::FILE* file) { return PEM_write_X509(file, made.get()); });
    write(key_file, [&](std::FILE* file) {
        return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
}

} // namespace warmgraph::test
