#include "server/settings.hpp"

namespace holdfast::app {

Settings server_settings() {
    using std::chrono::hours;
    using std::chrono::seconds;
    return {
        {.key = "server.address",
         .kind = TextKind{},
         .fallback = "127.0.0.1:7233",
         .description = "the address and the port of gRPC; :7233 is every interface",
         .environment = "HOLDFAST_SERVER_ADDRESS"},
        {.key = "server.http_address",
         .kind = TextKind{},
         .description = "the address and the port of the API in JSON; not served if empty",
         .environment = "HOLDFAST_SERVER_HTTP_ADDRESS"},
        {.key = "server.http_hosts",
         .kind = TextKind{},
         .description = "the names, with commas, by which the HTTP port is called besides "
                        "localhost and addresses; * for any"},
        {.key = "server.tls.certificate_file",
         .kind = TextKind{},
         .description = "the server's certificate, PEM; without it there is no TLS"},
        {.key = "server.tls.key_file",
         .kind = TextKind{},
         .description = "the key of the certificate, PEM"},
        {.key = "server.tls.client_authorities_file",
         .kind = TextKind{},
         .description = "the authorities, PEM, of which every client must show a certificate"},
        {.key = "server.namespaces.*.retention",
         .kind = DurationKind{hours{1}, hours{24 * 365 * 10}},
         .description = "a namespace that is created at start, and how long it keeps closed runs"},
        {.key = "server.search_attributes.*.type",
         .kind =
             ChoiceKind{{"Text", "Keyword", "Int", "Double", "Bool", "Datetime", "KeywordList"}},
         .description = "a search attribute that is created at start, in all of these namespaces"},
        {.key = "server.threads",
         .kind = IntegerKind{0, 1024},
         .fallback = "0",
         .description = "the number of threads that run transitions; 0 is as the database suits"},
        {.key = "server.drain",
         .kind = DurationKind{seconds{0}, hours{1}},
         .fallback = "1s",
         .description = "how long calls may take to end when the server stops"},
    };
}

}  // namespace holdfast::app
