#include <holdfast/testing/conflicts.hpp>

#include <fmt/core.h>

namespace holdfast::test {
namespace {

// A sequence keeps counting when its transaction is rolled back, so a trigger can refuse a commit
// and let the repeat pass.
constexpr std::string_view conflict_script = R"(
CREATE SEQUENCE conflicts;
CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF current_setting('story.decided', true) IS DISTINCT FROM txid_current()::text THEN
    PERFORM set_config('story.decided', txid_current()::text, true);
    IF nextval('conflicts') % {0} = 1 THEN
      RAISE EXCEPTION 'a conflict on purpose' USING ERRCODE = '40001';
    END IF;
  END IF;
  RETURN NULL;
END $$;
DO $$ DECLARE t text; BEGIN
  FOR t IN SELECT tablename FROM pg_tables
    WHERE schemaname = current_schema() AND starts_with(tablename, '{1}')
    AND tablename NOT LIKE '%schema%' LOOP
    EXECUTE 'CREATE CONSTRAINT TRIGGER conflict AFTER INSERT OR UPDATE OR DELETE ON ' || t
      || ' DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION conflict()';
  END LOOP;
END $$)";

}  // namespace

void refuse_commits(const Database& db, int every, std::string_view prefix) {
    db.execute(fmt::format(conflict_script, every, prefix));
}

}  // namespace holdfast::test
