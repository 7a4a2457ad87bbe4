#include "rpc/test/certificates_fixture.hpp"

#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::rpc::tests {

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
using Memory = std::unique_ptr<BIO, Freed<BIO_free>>;

constexpr long a_day = 24 * 3600;

std::string text_in(BIO& memory) {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(&memory, &bytes);
    return {bytes, static_cast<std::size_t>(size)};
}

Memory memory_of(const std::string& text) {
    return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

void add_extension(X509& certificate, X509& issuer, int what, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, what, value));
    HOLDFAST_ASSERT(X509_add_ext(&certificate, extension.get(), -1) == 1);
}

Certificate blank(const std::string& name, long serial, EVP_PKEY& key) {
    Certificate certificate(X509_new());
    X509_set_version(certificate.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -a_day);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), a_day);
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

Certified signed_by(X509& certificate, EVP_PKEY& key, X509& issuer, EVP_PKEY& issuer_key) {
    X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer));
    HOLDFAST_ASSERT(X509_sign(&certificate, &issuer_key, EVP_sha256()) > 0);
    const Memory certificate_text(BIO_new(BIO_s_mem()));
    const Memory key_text(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(certificate_text.get(), &certificate);
    PEM_write_bio_PrivateKey(key_text.get(), &key, nullptr, nullptr, 0, nullptr, nullptr);
    return {.certificate = text_in(*certificate_text), .key = text_in(*key_text)};
}

}  // namespace

Authority::Authority() {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate = blank("an authority", 1, *key);
    add_extension(*certificate, *certificate, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(*certificate, *certificate, NID_key_usage, "critical,keyCertSign");
    own_ = signed_by(*certificate, *key, *certificate, *key);
}

Certified Authority::issue(const std::string& name) const {
    const Certificate issuer(
        PEM_read_bio_X509(memory_of(own_.certificate).get(), nullptr, nullptr, nullptr));
    const Key issuer_key(
        PEM_read_bio_PrivateKey(memory_of(own_.key).get(), nullptr, nullptr, nullptr));
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate = blank(name, 2, *key);
    add_extension(*certificate, *issuer, NID_subject_alt_name, "DNS:localhost");
    return signed_by(*certificate, *key, *issuer, *issuer_key);
}

}  // namespace holdfast::server::rpc::tests
