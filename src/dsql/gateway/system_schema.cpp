#include "gateway/system_schema.hpp"

namespace holdfast::dsql {

// The number is any: it only keeps two who prepare the same server from meeting.
std::string_view server_script() noexcept {
    return R"sql(
SELECT pg_advisory_lock(7305011);
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'admin') THEN
    CREATE ROLE admin LOGIN CREATEROLE;
  END IF;
END $$;
SELECT pg_advisory_unlock(7305011);
)sql";
}

// A job is built when it is ordered, and is said to be at work until `ready_at`.
std::string_view database_script() noexcept {
    return R"sql(
SELECT pg_advisory_lock(7305012);
GRANT CREATE, TEMPORARY ON DATABASE :database TO admin;
GRANT ALL ON SCHEMA public TO admin WITH GRANT OPTION;
CREATE SCHEMA IF NOT EXISTS sys;
CREATE SCHEMA IF NOT EXISTS holdfast_gateway;
GRANT USAGE ON SCHEMA sys, holdfast_gateway TO PUBLIC;
CREATE TABLE IF NOT EXISTS holdfast_gateway.jobs (
  job_id text PRIMARY KEY, job_type text NOT NULL, class_id oid, object_id oid, object_name text,
  details text, failed boolean NOT NULL, started_at timestamptz NOT NULL,
  ready_at timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS holdfast_gateway.iam_grants (
  arn text NOT NULL, role name NOT NULL, grantor name NOT NULL, iam_oid serial,
  PRIMARY KEY (arn, role));
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
GRANT SELECT ON sys.jobs, sys.iam_pg_role_mappings TO PUBLIC;
CREATE OR REPLACE PROCEDURE sys.wait_for_job(id text) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE ready timestamptz;
BEGIN
  IF id !~ '^[a-z2-7]{26}$' THEN
    RAISE EXCEPTION 'Unable to convert text to UUID' USING ERRCODE = '22P02';
  END IF;
  SELECT ready_at INTO ready FROM holdfast_gateway.jobs WHERE job_id = id;
  IF ready > clock_timestamp() THEN
    PERFORM pg_sleep_until(ready);
  END IF;
END $$;
CREATE OR REPLACE FUNCTION holdfast_gateway.add_job(
  id text, type text, class regclass, object text, note text, fails boolean, lasts_ms bigint)
RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  INSERT INTO holdfast_gateway.jobs VALUES (
    id, type, class, to_regclass(object), object, note, fails, clock_timestamp(),
    clock_timestamp() + lasts_ms * interval '1 millisecond') $$;
CREATE TABLE IF NOT EXISTS holdfast_gateway.scales (value bytea);
CREATE OR REPLACE FUNCTION holdfast_gateway.stored_size(weighed bytea)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE size bigint;
BEGIN
  INSERT INTO holdfast_gateway.scales VALUES (weighed);
  SELECT max(pg_column_size(value)) INTO size FROM holdfast_gateway.scales;
  DELETE FROM holdfast_gateway.scales;
  RETURN size;
END $$;
CREATE OR REPLACE FUNCTION holdfast_gateway.version() RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT 'PostgreSQL 16' $$;
CREATE OR REPLACE FUNCTION holdfast_gateway.invalidate(index text)
RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE pg_catalog.pg_index SET indisvalid = false WHERE indexrelid = to_regclass(index) $$;
CREATE OR REPLACE FUNCTION holdfast_gateway.iam_grant(to_arn text, to_role name, by name)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = to_role) THEN
    RAISE EXCEPTION 'role "%" does not exist', to_role USING ERRCODE = '42704';
  END IF;
  INSERT INTO holdfast_gateway.iam_grants (arn, role, grantor)
  VALUES (to_arn, to_role, by) ON CONFLICT DO NOTHING;
END $$;
CREATE OR REPLACE FUNCTION holdfast_gateway.iam_revoke(from_arn text, from_role name)
RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  DELETE FROM holdfast_gateway.iam_grants WHERE arn = from_arn AND role = from_role $$;
SELECT pg_advisory_unlock(7305012);
)sql";
}

}  // namespace holdfast::dsql
