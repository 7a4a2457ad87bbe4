#include "postgres/libpq.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sql::postgres {

namespace {

constexpr const char* library = "libpq.so.5";

[[noreturn]] void fail() {
    throw Error(
        Code::unavailable,
        Outcome::not_applied,
        fmt::format("PostgreSQL's client library cannot be loaded ({}); install {}, on Debian "
                    "the package libpq5",
                    ::dlerror(),  // NOLINT(concurrency-mt-unsafe): each thread has its own.
                    library));
}

// Stays loaded: its own libraries do not all survive being taken out of a running program.
[[nodiscard]] void* loaded() {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        fail();
    }
    return handle;
}

template <class Function>
void find(void* handle, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(handle, name));
    if (function == nullptr) {
        fail();
    }
}

[[nodiscard]] Libpq found() {
    void* const handle = loaded();
    Libpq all{};
    find(handle, "PQbackendPID", all.PQbackendPID);
    find(handle, "PQcancel", all.PQcancel);
    find(handle, "PQclear", all.PQclear);
    find(handle, "PQcmdStatus", all.PQcmdStatus);
    find(handle, "PQcmdTuples", all.PQcmdTuples);
    find(handle, "PQconnectPoll", all.PQconnectPoll);
    find(handle, "PQconnectStartParams", all.PQconnectStartParams);
    find(handle, "PQconninfoFree", all.PQconninfoFree);
    find(handle, "PQconninfoParse", all.PQconninfoParse);
    find(handle, "PQconsumeInput", all.PQconsumeInput);
    find(handle, "PQenterPipelineMode", all.PQenterPipelineMode);
    find(handle, "PQerrorMessage", all.PQerrorMessage);
    find(handle, "PQfinish", all.PQfinish);
    find(handle, "PQflush", all.PQflush);
    find(handle, "PQfreeCancel", all.PQfreeCancel);
    find(handle, "PQfreemem", all.PQfreemem);
    find(handle, "PQftype", all.PQftype);
    find(handle, "PQgetCancel", all.PQgetCancel);
    find(handle, "PQgetResult", all.PQgetResult);
    find(handle, "PQgetisnull", all.PQgetisnull);
    find(handle, "PQgetlength", all.PQgetlength);
    find(handle, "PQgetvalue", all.PQgetvalue);
    find(handle, "PQisBusy", all.PQisBusy);
    find(handle, "PQnfields", all.PQnfields);
    find(handle, "PQnotifies", all.PQnotifies);
    find(handle, "PQntuples", all.PQntuples);
    find(handle, "PQoptions", all.PQoptions);
    find(handle, "PQpipelineSync", all.PQpipelineSync);
    find(handle, "PQresultErrorField", all.PQresultErrorField);
    find(handle, "PQresultErrorMessage", all.PQresultErrorMessage);
    find(handle, "PQresultStatus", all.PQresultStatus);
    find(handle, "PQsendPrepare", all.PQsendPrepare);
    find(handle, "PQsendQuery", all.PQsendQuery);
    find(handle, "PQsendQueryParams", all.PQsendQueryParams);
    find(handle, "PQsendQueryPrepared", all.PQsendQueryPrepared);
    find(handle, "PQsetErrorVerbosity", all.PQsetErrorVerbosity);
    find(handle, "PQsetNoticeProcessor", all.PQsetNoticeProcessor);
    find(handle, "PQsetnonblocking", all.PQsetnonblocking);
    find(handle, "PQsocket", all.PQsocket);
    find(handle, "PQstatus", all.PQstatus);
    find(handle, "PQtransactionStatus", all.PQtransactionStatus);
    return all;
}

}  // namespace

const Libpq& libpq() {
    static const Libpq functions = found();
    return functions;
}

}  // namespace holdfast::sql::postgres
