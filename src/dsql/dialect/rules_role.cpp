// CREATE, ALTER, DROP, GRANT and REVOKE of roles.
//
// PostgreSQL lets only a role with CREATEROLE do that, and such a role could make itself powerful.
// So no client has that right: the gateway does it for `admin`, with a text that is made here from
// what the statement means. A statement that cannot be expressed so is refused.
#include <array>

#include "dialect/name_list.hpp"
#include "dialect/rules_parts.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {
namespace {

constexpr std::string_view first_role = "admin";

void refuse_system_role(const Checking& checking) {
    checking.refuse("system-entity", not_supported, "feature not supported on system entity");
}

std::string in_quotes(std::string_view text, char quote) {
    std::string result(1, quote);
    for (const char c : text) {
        result += c;
        if (c == quote) {
            result += c;
        }
    }
    return result + quote;
}

class RoleText {
public:
    explicit RoleText(const Checking& checking) : checking_(checking) {}

    // The role, as SQL.
    std::string role(const std::string& name) {
        if (name.starts_with("pg_")) {
            refuse_system_role(checking_);
        }
        change_.roles.push_back(name);
        return in_quotes(name, '"');
    }

    // Of a RoleSpec. CURRENT_USER would mean another role where the text is run.
    std::string spec(const Json& node) {
        if (text_field(node, "roletype") != "ROLESPEC_CSTRING") {
            checking_.refuse("role", not_supported, "a role must be given by its name");
        }
        return role(text_field(node, "rolename"));
    }

    std::string specs(const Json& list) {
        std::string text;
        for (const Json& item : list) {
            text += fmt::format("{}{}", text.empty() ? "" : ", ", spec(field(item, "RoleSpec")));
        }
        return text;
    }

    // One option of CREATE ROLE and ALTER ROLE.
    std::string option(const Json& element) {
        const std::string name = text_field(element, "defname");
        const Json& arg = field(element, "arg");
        const bool on = flag_field(field(arg, "Boolean"), "boolval");
        if (name == "canlogin") {
            return on ? " LOGIN" : " NOLOGIN";
        }
        if (name == "inherit") {
            return on ? " INHERIT" : " NOINHERIT";
        }
        if (name == "connectionlimit") {
            return fmt::format(" CONNECTION LIMIT {}", field(arg, "Integer").value("ival", 0));
        }
        if (name == "addroleto" || name == "rolemembers" || name == "adminmembers") {
            return fmt::format(" {} {}",
                               name == "addroleto"     ? "IN ROLE"
                               : name == "rolemembers" ? "ROLE"
                                                       : "ADMIN",
                               specs(field(field(arg, "List"), "items")));
        }
        static constexpr std::array<std::string_view, 5> powers{
            "superuser", "createdb", "createrole", "isreplication", "bypassrls"};
        if (!lists(powers, name) || on) {  // A denied power is the default anyway.
            checking_.refuse("role-option",
                             not_supported,
                             fmt::format("role option {} not supported", name),
                             location_of(element));
        }
        return {};
    }

    void keep(std::string text, std::string_view tag) {
        change_.text = std::move(text);
        change_.tag = tag;
        checking_.out.role_change = std::move(change_);
    }

    [[nodiscard]] const Checking& checking() const { return checking_; }

private:
    const Checking& checking_;
    RoleChange change_;
};

void change_admin(const Checking& checking, std::string_view role) {
    if (role == first_role) {
        refuse_system_role(checking);
    }
}

void check_create_role(RoleText& text, const Json& node) {
    const std::string type = text_field(node, "stmt_type");
    std::string made = fmt::format("CREATE {} {}",
                                   type == "ROLESTMT_USER"    ? "USER"
                                   : type == "ROLESTMT_GROUP" ? "GROUP"
                                                              : "ROLE",
                                   text.role(text_field(node, "role")));
    for (const Json& option : field(node, "options")) {
        made += text.option(field(option, "DefElem"));
    }
    text.keep(std::move(made), "CREATE ROLE");
}

void check_alter_role(RoleText& text, const Json& node) {
    const Json& role = field(node, "role");
    const std::string name = text.spec(role);
    change_admin(text.checking(), text_field(role, "rolename"));
    std::string made = fmt::format("ALTER ROLE {}", name);
    for (const Json& option : field(node, "options")) {
        const Json& element = field(option, "DefElem");
        if (text_field(element, "defname") == "rolemembers") {  // ALTER GROUP.
            const bool drop = node.value("action", 1) < 0;
            made = fmt::format("ALTER GROUP {} {} USER {}",
                               name,
                               drop ? "DROP" : "ADD",
                               text.specs(field(field(field(element, "arg"), "List"), "items")));
            break;
        }
        made += text.option(element);
    }
    text.keep(std::move(made), "ALTER ROLE");
}

void check_drop_role(RoleText& text, const Json& node) {
    for (const Json& role : field(node, "roles")) {
        change_admin(text.checking(), text_field(field(role, "RoleSpec"), "rolename"));
    }
    text.keep(fmt::format("DROP ROLE {}{}",
                          flag_field(node, "missing_ok") ? "IF EXISTS " : "",
                          text.specs(field(node, "roles"))),
              "DROP ROLE");
}

void check_grant_role(RoleText& text, const Json& node) {
    const bool grant = flag_field(node, "is_grant");
    const bool admin = flag_field(node, "admin_opt");
    if (node.contains("grantor")) {
        text.checking().refuse("role", not_supported, "GRANTED BY not supported");
    }
    std::string granted;
    for (const Json& role : field(node, "granted_roles")) {
        const std::string name = text_field(field(role, "AccessPriv"), "priv_name");
        granted += fmt::format("{}{}", granted.empty() ? "" : ", ", text.role(name));
    }
    const std::string to = text.specs(field(node, "grantee_roles"));
    text.keep(grant
                  ? fmt::format("GRANT {} TO {}{}", granted, to, admin ? " WITH ADMIN OPTION" : "")
                  : fmt::format("REVOKE {}{} FROM {}{}",
                                admin ? "ADMIN OPTION FOR " : "",
                                granted,
                                to,
                                text_field(node, "behavior") == "DROP_CASCADE" ? " CASCADE" : ""),
              grant ? "GRANT ROLE" : "REVOKE ROLE");
}

// ALTER ROLE ... SET and RESET: constants only, as the grammar has them.
void check_role_setting(RoleText& text, const Json& node) {
    const Json& set = field(node, "setstmt");
    const std::string kind = text_field(set, "kind");
    if (node.contains("database")) {
        text.checking().refuse("role", not_supported, "ALTER ROLE IN DATABASE not supported");
    }
    const std::string role = text.spec(field(node, "role"));
    std::string made;
    if (kind == "VAR_RESET_ALL") {
        made = fmt::format("ALTER ROLE {} RESET ALL", role);
    } else {
        check_setting(text.checking(), set);
        const std::string name = in_quotes(text_field(set, "name"), '"');
        std::string values;
        for (const Json& arg : field(set, "args")) {
            const Json& value = field(arg, "A_Const");
            const std::string word = value.contains("sval") ? text_field(value["sval"], "sval")
                                     : value.contains("fval")
                                         ? text_field(value["fval"], "fval")
                                         : fmt::format("{}", field(value, "ival").value("ival", 0));
            if (!value.is_object() || value.contains("boolval")) {
                text.checking().refuse("parameter", not_supported, "a setting must be a constant");
            }
            values += fmt::format("{}{}", values.empty() ? "" : ", ", in_quotes(word, '\''));
        }
        made = kind == "VAR_SET_VALUE" && !values.empty()
                   ? fmt::format("ALTER ROLE {} SET {} TO {}", role, name, values)
                   : fmt::format("ALTER ROLE {} RESET {}", role, name);
    }
    text.keep(std::move(made), "ALTER ROLE");
}

}  // namespace

bool check_role(const Checking& checking, std::string_view name, const Json& node) {
    RoleText text(checking);
    if (name == "CreateRoleStmt") {
        check_create_role(text, node);
    } else if (name == "AlterRoleStmt") {
        check_alter_role(text, node);
    } else if (name == "AlterRoleSetStmt") {
        check_role_setting(text, node);
    } else if (name == "DropRoleStmt") {
        check_drop_role(text, node);
    } else if (name == "GrantRoleStmt") {
        check_grant_role(text, node);
    } else if (name == "RenameStmt" && text_field(node, "renameType") == "OBJECT_ROLE") {
        change_admin(checking, text_field(node, "subname"));
        const std::string before = text.role(text_field(node, "subname"));
        text.keep(fmt::format(
                      "ALTER ROLE {} RENAME TO {}", before, text.role(text_field(node, "newname"))),
                  "ALTER ROLE");
    } else if (name == "CommentStmt" && text_field(node, "objtype") == "OBJECT_ROLE") {
        const std::string role = text.role(string_value(field(node, "object")));
        text.keep(
            fmt::format(
                "COMMENT ON ROLE {} IS {}",
                role,
                node.contains("comment") ? in_quotes(text_field(node, "comment"), '\'') : "NULL"),
            "COMMENT");
    } else {
        return false;
    }
    return true;
}

}  // namespace holdfast::dsql
