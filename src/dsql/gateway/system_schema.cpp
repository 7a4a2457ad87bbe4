#include "gateway/system_schema.hpp"

namespace holdfast::dsql {

// The number is arbitrary: the lock keeps two gateways from preparing the same server at once. It
// belongs to one database, so gateways in several databases may still collide.
std::string_view server_script() noexcept {
    return R"sql(
SELECT pg_advisory_xact_lock(7305011);
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'admin') THEN
    CREATE ROLE admin LOGIN;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
  NULL;  -- Another gateway does the same.
END $$;
DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'admin' AND (rolcreaterole OR rolcreatedb)) THEN
    ALTER ROLE admin NOCREATEROLE NOCREATEDB;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_gateway') THEN
    CREATE ROLE holdfast_gateway LOGIN CREATEROLE;
  END IF;
  IF NOT pg_has_role('holdfast_gateway', 'pg_signal_backend', 'MEMBER') THEN
    GRANT pg_signal_backend TO holdfast_gateway;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation OR internal_error THEN
  NULL;  -- Another gateway does the same.
END $$;
)sql";
}

std::string_view database_script() noexcept {
    return R"sql(
SELECT pg_advisory_xact_lock(7305012);
GRANT CONNECT, CREATE, TEMPORARY ON DATABASE :database TO admin;
GRANT CONNECT ON DATABASE :database TO holdfast_gateway;
GRANT ALL ON SCHEMA public TO admin WITH GRANT OPTION;
REVOKE UPDATE ON pg_catalog.pg_settings FROM PUBLIC;  -- It would set what SET may not.
CREATE SCHEMA IF NOT EXISTS sys AUTHORIZATION holdfast_gateway;
CREATE SCHEMA IF NOT EXISTS holdfast_gateway AUTHORIZATION holdfast_gateway;
REVOKE ALL ON SCHEMA holdfast_gateway FROM PUBLIC;
CREATE SCHEMA IF NOT EXISTS holdfast_gateway_owner;
REVOKE ALL ON SCHEMA holdfast_gateway_owner FROM PUBLIC;
GRANT USAGE ON SCHEMA holdfast_gateway_owner TO holdfast_gateway;
CREATE OR REPLACE FUNCTION holdfast_gateway_owner.invalidate(index oid)
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pg_catalog.pg_index SET indisvalid = false
  WHERE indexrelid = index AND NOT indisunique AND NOT indisprimary AND indexrelid >= 16384 $$;
REVOKE ALL ON FUNCTION holdfast_gateway_owner.invalidate(oid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION holdfast_gateway_owner.invalidate(oid) TO holdfast_gateway;
)sql";
}

// A job is done when it is requested, and is reported as running until `ready_at`.
std::string_view schema_script() noexcept {
    return R"sql(
SELECT pg_advisory_xact_lock(7305013);
CREATE TABLE IF NOT EXISTS holdfast_gateway.jobs (
  job_id text PRIMARY KEY, job_type text NOT NULL, class_id oid, object_id oid, object_name text,
  details text, failed boolean NOT NULL, started_at timestamptz NOT NULL,
  ready_at timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS holdfast_gateway.iam_grants (
  arn text NOT NULL, role name NOT NULL, grantor name NOT NULL, iam_oid serial,
  PRIMARY KEY (arn, role));
CREATE TABLE IF NOT EXISTS holdfast_gateway.scales (value bytea);
CREATE OR REPLACE VIEW sys.jobs AS
  SELECT job_id,
         CASE WHEN clock_timestamp() < ready_at THEN 'processing'
              WHEN failed THEN 'failed' ELSE 'completed' END AS status,
         CASE WHEN clock_timestamp() < ready_at THEN '' ELSE details END AS details,
         job_type, class_id, object_id, object_name, started_at AS start_time,
         CASE WHEN clock_timestamp() < ready_at THEN started_at ELSE ready_at END AS update_time
  FROM holdfast_gateway.jobs
  WHERE clock_timestamp() < ready_at + interval '30 minutes';
CREATE OR REPLACE VIEW sys.iam_pg_role_mappings AS
  SELECT iam_oid::oid AS iam_oid, arn, r.oid AS pg_role_oid, g.role AS pg_role_name,
         o.oid AS grantor_pg_role_oid, g.grantor AS grantor_pg_role_name
  FROM holdfast_gateway.iam_grants g JOIN pg_roles r ON r.rolname = g.role
  LEFT JOIN pg_roles o ON o.rolname = g.grantor;
GRANT USAGE ON SCHEMA sys TO PUBLIC;
GRANT SELECT ON sys.jobs, sys.iam_pg_role_mappings TO PUBLIC;
-- It runs with its caller's rights.
CREATE OR REPLACE PROCEDURE sys.wait_for_job(id text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF id !~ '^[a-z2-7]{26}$' THEN
    RAISE EXCEPTION 'Unable to convert text to UUID' USING ERRCODE = '22P02';
  END IF;
  WHILE EXISTS (SELECT FROM sys.jobs WHERE job_id = id AND status = 'processing') LOOP
    PERFORM pg_sleep(0.005);
  END LOOP;
END $$;
CREATE OR REPLACE FUNCTION sys.version() RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT 'PostgreSQL 16' $$;
)sql";
}

}  // namespace holdfast::dsql
