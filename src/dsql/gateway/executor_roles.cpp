// Roles and their grants: what the gateway does for a client that cannot do it itself.
#include "gateway/executor.hpp"
#include <fmt/core.h>

#include <holdfast/dsql/token.hpp>

namespace holdfast::dsql {

// Only for `admin`. A statement of another role is passed on as it is, and the server decides what
// that role may do.
std::optional<Cluster::Work> Executor::work_of(const CheckedStatement& statement) const {
    if (!statement.role.empty()) {
        const std::string arn = quoted_text(statement.arn);
        const std::string role = quoted_text(statement.role);
        return Cluster::Work{
            .text = statement.iam_revoke
                        ? fmt::format("DELETE FROM holdfast_gateway.iam_grants"
                                      " WHERE arn = {} AND role = {}",
                                      arn,
                                      role)
                        : fmt::format("INSERT INTO holdfast_gateway.iam_grants (arn, role, grantor)"
                                      " SELECT {}, rolname, {} FROM pg_roles"
                                      " WHERE oid = {}::regrole ON CONFLICT DO NOTHING",
                                      arn,
                                      quoted_text(role_),
                                      quoted_text(quoted_name(statement.role))),
            .roles = {statement.role}};
    }
    if (statement.role_change && role_ == admin_user) {
        return Cluster::Work{.text = statement.role_change->text,
                             .roles = statement.role_change->roles};
    }
    return std::nullopt;
}

// The server's errors come at the statement, the change at COMMIT. No other change can be in the
// transaction, so the two cannot differ.
Ending Executor::administer(const Hold& hold,
                            const CheckedStatement& statement,
                            Cluster::Work work) {
    if (role_ != admin_user) {
        return refuse(
            hold,
            {.code = "42501",
             .message = fmt::format("permission denied: {} is for the role {}",
                                    statement.iam_revoke ? "AWS IAM REVOKE" : "AWS IAM GRANT",
                                    admin_user)});
    }
    if (std::string error = cluster_.administer(work, Cluster::Mode::rehearse); !error.empty()) {
        if (state_ == State::open) {
            rollback_to_snapshot();
            state_ = State::failed;
        }
        return {.completion = {}, .error = std::move(error)};
    }
    before_commit_.push_back(std::move(work));
    return Ending::done(statement.role_change  ? std::string_view(statement.role_change->tag)
                        : statement.iam_revoke ? "REVOKE"
                                               : "GRANT");
}

}  // namespace holdfast::dsql
