#include <holdfast/dsql/certificates.hpp>

#include <cstdio>
#include <memory>

#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <holdfast/base/error.hpp>

namespace holdfast::dsql {

namespace {

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

constexpr long ten_years = 10L * 365 * 24 * 3600;
constexpr long an_hour = 3600;

void check(bool worked) {
    if (!worked) {
        const char* reason = ERR_reason_error_string(ERR_get_error());
        throw Error(
            Code::internal,
            Outcome::not_applied,
            fmt::format("a certificate cannot be made: {}", reason == nullptr ? "" : reason));
    }
}

Key new_key() {
    Key key(EVP_EC_gen("P-256"));
    check(key != nullptr);
    return key;
}

void add_extension(X509& certificate, X509& issuer, int what, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
    check(extension && X509_add_ext(&certificate, extension.get(), -1) == 1);
}

// Without a signature.
Certificate blank(const std::string& name, EVP_PKEY& key) {
    Certificate certificate(X509_new());
    check(certificate != nullptr && X509_set_version(certificate.get(), 2) == 1);
    std::uint64_t serial = 0;
    check(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1U);
    // A little earlier than now: the other side's clock may be behind.
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -an_hour);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), ten_years);
    X509_set_pubkey(certificate.get(), &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()),
                               "CN",
                               MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()),
                               -1,
                               -1,
                               0);
    return certificate;
}

void sign(X509& certificate, X509& issuer, EVP_PKEY& key) {
    check(X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)) == 1 &&
          X509_sign(&certificate, &key, EVP_sha256()) > 0);
}

constexpr mode_t for_all = 0644;
constexpr mode_t for_owner = 0600;

// With its rights before anything is in it.
std::unique_ptr<std::FILE, Freed<std::fclose>> open_new(const std::filesystem::path& path,
                                                        mode_t rights) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, rights);
    check(fd >= 0);
    return std::unique_ptr<std::FILE, Freed<std::fclose>>(::fdopen(fd, "w"));
}

}  // namespace

Certificates make_certificates(const std::filesystem::path& folder,
                               const std::vector<std::string>& names) {
    Certificates paths{.authority = folder / "authority.pem",
                       .server = folder / "server.pem",
                       .key = folder / "server.key"};
    const Key authority_key = new_key();
    const Certificate authority = blank("Holdfast's local authority", *authority_key);
    add_extension(*authority, *authority, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(*authority, *authority, NID_key_usage, "critical,keyCertSign,cRLSign");
    sign(*authority, *authority, *authority_key);

    const Key key = new_key();
    const Certificate certificate = blank("a local cluster", *key);
    std::string alternatives;
    for (const std::string& name : names) {
        alternatives += (alternatives.empty() ? "DNS:" : ",DNS:") + name;
    }
    add_extension(*certificate, *authority, NID_subject_alt_name, alternatives);
    add_extension(*certificate, *authority, NID_ext_key_usage, "serverAuth");
    sign(*certificate, *authority, *authority_key);

    check(PEM_write_X509(open_new(paths.authority, for_all).get(), authority.get()) == 1);
    check(PEM_write_X509(open_new(paths.server, for_all).get(), certificate.get()) == 1);
    check(PEM_write_PrivateKey(open_new(paths.key, for_owner).get(),
                               key.get(),
                               nullptr,
                               nullptr,
                               0,
                               nullptr,
                               nullptr) == 1);
    return paths;
}

}  // namespace holdfast::dsql
