// PostgreSQL's client library. It is loaded when the first server is opened, so that a program with
// a file for a database does without it, and without the thirty libraries behind it.
#pragma once

#include <libpq-fe.h>

namespace holdfast::sql::postgres {

// What we call, under its own name.
// NOLINTBEGIN(readability-identifier-naming): the library's names.
struct Libpq {
    decltype(&::PQbackendPID) PQbackendPID;
    decltype(&::PQcancel) PQcancel;
    decltype(&::PQclear) PQclear;
    decltype(&::PQcmdStatus) PQcmdStatus;
    decltype(&::PQcmdTuples) PQcmdTuples;
    decltype(&::PQconnectPoll) PQconnectPoll;
    decltype(&::PQconnectStartParams) PQconnectStartParams;
    decltype(&::PQconninfoFree) PQconninfoFree;
    decltype(&::PQconninfoParse) PQconninfoParse;
    decltype(&::PQconsumeInput) PQconsumeInput;
    decltype(&::PQenterPipelineMode) PQenterPipelineMode;
    decltype(&::PQerrorMessage) PQerrorMessage;
    decltype(&::PQfinish) PQfinish;
    decltype(&::PQflush) PQflush;
    decltype(&::PQfreeCancel) PQfreeCancel;
    decltype(&::PQfreemem) PQfreemem;
    decltype(&::PQftype) PQftype;
    decltype(&::PQgetCancel) PQgetCancel;
    decltype(&::PQgetResult) PQgetResult;
    decltype(&::PQgetisnull) PQgetisnull;
    decltype(&::PQgetlength) PQgetlength;
    decltype(&::PQgetvalue) PQgetvalue;
    decltype(&::PQisBusy) PQisBusy;
    decltype(&::PQnfields) PQnfields;
    decltype(&::PQnotifies) PQnotifies;
    decltype(&::PQntuples) PQntuples;
    decltype(&::PQoptions) PQoptions;
    decltype(&::PQpipelineSync) PQpipelineSync;
    decltype(&::PQresultErrorField) PQresultErrorField;
    decltype(&::PQresultErrorMessage) PQresultErrorMessage;
    decltype(&::PQresultStatus) PQresultStatus;
    decltype(&::PQsendPrepare) PQsendPrepare;
    decltype(&::PQsendQuery) PQsendQuery;
    decltype(&::PQsendQueryParams) PQsendQueryParams;
    decltype(&::PQsendQueryPrepared) PQsendQueryPrepared;
    decltype(&::PQsetErrorVerbosity) PQsetErrorVerbosity;
    decltype(&::PQsetNoticeProcessor) PQsetNoticeProcessor;
    decltype(&::PQsetnonblocking) PQsetnonblocking;
    decltype(&::PQsocket) PQsocket;
    decltype(&::PQstatus) PQstatus;
    decltype(&::PQtransactionStatus) PQtransactionStatus;
};
// NOLINTEND(readability-identifier-naming)

// Throws unavailable if this machine does not have the library. After the first success it only
// returns.
[[nodiscard]] const Libpq& libpq();

}  // namespace holdfast::sql::postgres
