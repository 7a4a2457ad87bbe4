#include "dialect/functions.hpp"

#include <algorithm>
#include <array>

namespace holdfast::dsql {
namespace {

// clang-format off
constexpr auto accepted_by_topic = std::to_array<std::string_view>({
    // Numbers.
    "abs", "acos", "acosd", "acosh", "asin", "asind", "asinh", "atan", "atan2", "atan2d",
    "atand", "atanh", "cbrt", "ceil", "ceiling", "cos", "cosd", "cosh", "cot", "cotd",
    "degrees", "div", "exp", "factorial", "floor", "gcd", "lcm", "ln", "log", "log10",
    "min_scale", "mod", "pi", "pow", "power", "radians", "random", "random_normal", "round",
    "scale", "setseed", "sign", "sin", "sind", "sinh", "sqrt", "tan", "tand", "tanh",
    "to_hex", "trim_scale", "trunc", "width_bucket", "erf", "erfc", "to_bin", "to_oct",
    // Texts.
    "ascii", "bit_count", "bit_length", "btrim", "char_length", "character_length", "chr",
    "concat", "concat_ws", "convert", "convert_from", "convert_to", "decode", "encode",
    "format", "get_bit", "get_byte", "initcap", "is_normalized", "left", "length",
    "like_escape", "lower", "lpad", "ltrim", "md5", "normalize", "octet_length", "overlay",
    "parse_ident", "position", "quote_ident", "quote_literal", "quote_nullable",
    "regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_matches",
    "regexp_replace", "regexp_split_to_array", "regexp_split_to_table", "regexp_substr",
    "repeat", "replace", "reverse", "right", "rpad", "rtrim", "set_bit", "set_byte",
    "sha224", "sha256", "sha384", "sha512", "similar_escape", "similar_to_escape",
    "split_part", "starts_with", "string_to_array", "string_to_table", "strpos", "substr",
    "substring", "textlen", "to_ascii", "translate", "unistr", "upper", "casefold", "crc32",
    "crc32c",
    // Like operators.
    "like", "notlike", "textcat", "textlike", "texteq", "textne", "textregexeq", "hashtext",
    "hashtextextended", "hashint4", "hashint8", "int4eq", "int8eq", "uuid_eq",
    // Casts that are called by the name of a type.
    "bool", "bpchar", "char", "date", "float4", "float8", "int2", "int4", "int8", "interval",
    "name", "numeric", "oid", "regclass", "regtype", "text", "time", "timestamp",
    "timestamptz", "timetz", "varchar",
    // Dates and times.
    "age", "clock_timestamp", "date_add", "date_bin", "date_part", "date_subtract",
    "date_trunc", "extract", "isfinite", "justify_days", "justify_hours", "justify_interval",
    "make_date", "make_interval", "make_time", "make_timestamp", "make_timestamptz", "now",
    "overlaps", "statement_timestamp", "timeofday", "timezone", "to_char", "to_date",
    "to_number", "to_timestamp", "transaction_timestamp",
    // Identifiers and sequences.
    "currval", "gen_random_uuid", "lastval", "nextval", "setval", "uuid_extract_timestamp",
    "uuid_extract_version", "uuidv4", "uuidv7",
    // Arrays.
    "array_agg", "array_append", "array_cat", "array_dims", "array_fill", "array_length",
    "array_lower", "array_ndims", "array_position", "array_positions", "array_prepend",
    "array_remove", "array_replace", "array_sample", "array_shuffle", "array_to_json",
    "array_to_string", "array_upper", "cardinality", "generate_series",
    "generate_subscripts", "trim_array", "unnest",
    // Addresses.
    "abbrev", "broadcast", "family", "host", "hostmask", "inet_merge", "inet_same_family",
    "masklen", "netmask", "network", "set_masklen",
    // JSON.
    "json_agg", "json_array_elements", "json_array_elements_text", "json_array_length",
    "json_build_array", "json_build_object", "json_each", "json_each_text",
    "json_extract_path", "json_extract_path_text", "json_object", "json_object_agg",
    "json_object_keys", "json_populate_record", "json_populate_recordset",
    "json_strip_nulls", "json_to_record", "json_to_recordset", "json_typeof", "jsonb_agg",
    "jsonb_array_element", "jsonb_array_element_text", "jsonb_array_elements",
    "jsonb_array_elements_text", "jsonb_array_length", "jsonb_build_array",
    "jsonb_build_object", "jsonb_concat", "jsonb_contained", "jsonb_contains",
    "jsonb_delete", "jsonb_delete_path", "jsonb_each", "jsonb_each_text", "jsonb_exists",
    "jsonb_exists_all", "jsonb_exists_any", "jsonb_extract_path", "jsonb_extract_path_text",
    "jsonb_insert", "jsonb_object", "jsonb_object_agg", "jsonb_object_field",
    "jsonb_object_field_text", "jsonb_object_keys", "jsonb_path_exists",
    "jsonb_path_exists_tz", "jsonb_path_match", "jsonb_path_match_tz", "jsonb_path_query",
    "jsonb_path_query_array", "jsonb_path_query_array_tz", "jsonb_path_query_first",
    "jsonb_path_query_first_tz", "jsonb_path_query_tz", "jsonb_populate_record",
    "jsonb_populate_recordset", "jsonb_pretty", "jsonb_set", "jsonb_set_lax",
    "jsonb_strip_nulls", "jsonb_to_record", "jsonb_to_recordset", "jsonb_typeof",
    "row_to_json", "to_json", "to_jsonb",
    // Aggregates and windows.
    "any_value", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr",
    "count", "covar_pop", "covar_samp", "cume_dist", "dense_rank", "every", "first_value",
    "lag", "last_value", "lead", "max", "min", "mode", "nth_value", "ntile", "percent_rank",
    "percentile_cont", "percentile_disc", "rank", "regr_avgx", "regr_avgy", "regr_count",
    "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    "row_number", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "var_pop",
    "var_samp", "variance",
    // Of the session; set_config has rules of its own.
    "current_database", "current_query", "current_schema", "current_schemas",
    "current_setting", "current_user", "getdatabaseencoding", "getpgusername",
    "inet_client_addr", "inet_client_port", "inet_server_addr", "inet_server_port",
    "pg_backend_pid", "pg_client_encoding", "pg_sleep", "pg_sleep_for", "pg_sleep_until",
    "row_security_active", "session_user", "set_config", "version", "num_nonnulls",
    "num_nulls", "pg_column_compression", "pg_column_size", "pg_typeof", "pg_collation_for",
    "pg_size_bytes", "pg_size_pretty",
    // Of the catalogue, for tools that describe a database.
    "acldefault", "aclexplode", "col_description", "format_type", "has_any_column_privilege",
    "has_column_privilege", "has_database_privilege", "has_foreign_data_wrapper_privilege",
    "has_function_privilege", "has_language_privilege", "has_parameter_privilege",
    "has_schema_privilege", "has_sequence_privilege", "has_server_privilege",
    "has_table_privilege", "has_tablespace_privilege", "has_type_privilege",
    "obj_description", "oidvectortypes", "pg_char_to_encoding", "pg_collation_is_visible",
    "pg_conversion_is_visible", "pg_database_size", "pg_describe_object",
    "pg_encoding_max_length", "pg_encoding_to_char", "pg_function_is_visible",
    "pg_get_catalog_foreign_keys", "pg_get_constraintdef", "pg_get_expr",
    "pg_get_function_arg_default", "pg_get_function_arguments",
    "pg_get_function_identity_arguments", "pg_get_function_result",
    "pg_get_function_sqlbody", "pg_get_functiondef", "pg_get_indexdef", "pg_get_keywords",
    "pg_get_partition_constraintdef", "pg_get_partkeydef", "pg_get_replica_identity_index",
    "pg_get_ruledef", "pg_get_serial_sequence", "pg_get_statisticsobjdef",
    "pg_get_statisticsobjdef_columns", "pg_get_statisticsobjdef_expressions",
    "pg_get_triggerdef", "pg_get_userbyid", "pg_get_viewdef", "pg_has_role",
    "pg_identify_object", "pg_index_column_has_property", "pg_index_has_property",
    "pg_indexam_has_property", "pg_indexes_size", "pg_is_in_recovery",
    "pg_is_other_temp_schema", "pg_my_temp_schema", "pg_opclass_is_visible",
    "pg_operator_is_visible", "pg_opfamily_is_visible", "pg_options_to_table",
    "pg_partition_ancestors", "pg_partition_root", "pg_partition_tree",
    "pg_postmaster_start_time", "pg_column_is_updatable", "pg_relation_is_publishable",
    "pg_relation_is_updatable", "pg_relation_size", "pg_sequence_last_value",
    "pg_sequence_parameters", "pg_statistics_obj_is_visible", "pg_table_is_visible",
    "pg_table_size", "pg_tablespace_location", "pg_timezone_abbrevs", "pg_timezone_names",
    "pg_total_relation_size", "pg_ts_config_is_visible", "pg_ts_dict_is_visible",
    "pg_ts_parser_is_visible", "pg_ts_template_is_visible", "pg_type_is_visible",
    "shobj_description", "to_regclass", "to_regcollation", "to_regnamespace", "to_regoper",
    "to_regoperator", "to_regproc", "to_regprocedure", "to_regrole", "to_regtype",
});
// clang-format on

constexpr auto accepted = [] {
    auto names = accepted_by_topic;
    std::ranges::sort(names);
    return names;
}();

}  // namespace

bool is_accepted_function(std::string_view name) {
    return std::ranges::binary_search(accepted, name);
}

}  // namespace holdfast::dsql
