// What goes in comes out the same, on every database.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {

namespace {

constexpr Statement put_number{"put.number", "INSERT INTO numbers VALUES ($1) RETURNING v"};
constexpr Statement get_number{"get.number", "SELECT v FROM numbers"};
constexpr Statement put_real{"put.real", "INSERT INTO reals VALUES ($1) RETURNING v"};
constexpr Statement get_real{"get.real", "SELECT v FROM reals"};
constexpr Statement put_text{"put.text", "INSERT INTO texts VALUES ($1) RETURNING v"};
constexpr Statement get_text{"get.text", "SELECT v FROM texts"};
constexpr Statement put_bytes{"put.bytes", "INSERT INTO blobs VALUES ($1) RETURNING v"};
constexpr Statement get_bytes{"get.bytes", "SELECT v FROM blobs"};
constexpr Statement put_flag{"put.flag", "INSERT INTO flags VALUES ($1) RETURNING v"};
constexpr Statement get_flag{"get.flag", "SELECT v FROM flags"};
constexpr Statement put_id{"put.id", "INSERT INTO ids VALUES ($1) RETURNING v"};
constexpr Statement get_id{"get.id", "SELECT v FROM ids"};
constexpr Statement put_time{"put.time", "INSERT INTO times VALUES ($1) RETURNING v"};
constexpr Statement get_time{"get.time", "SELECT v FROM times"};
constexpr Statement put_json{"put.json", "INSERT INTO jsons VALUES ($1) RETURNING v"};
constexpr Statement get_json{"get.json", "SELECT v FROM jsons"};

constexpr Statement put_row{"put.row",
                            "INSERT INTO everything (n, r, t, b, f, u, at, j) "
                            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"};
constexpr Statement get_row{"get.row", "SELECT n, r, t, b, f, u, at, j FROM everything"};

class Values : public testing::TestWithParam<test::Backend> {
protected:
    Values() {
        db.execute(
            "CREATE TABLE numbers (v {bigint}) {strict};"
            "CREATE TABLE reals (v {real}) {strict};"
            "CREATE TABLE texts (v TEXT) {strict};"
            "CREATE TABLE blobs (v {bytes}) {strict};"
            "CREATE TABLE flags (v {bool}) {strict};"
            "CREATE TABLE ids (v {uuid}) {strict};"
            "CREATE TABLE times (v {timestamp}) {strict};"
            "CREATE TABLE jsons (v {json}) {strict};"
            "CREATE TABLE everything (n {bigint}, r {real}, t TEXT, b {bytes}, f {bool}, u {uuid},"
            "                         at {timestamp}, j {json}) {strict}");
    }

    // Each value in, by one statement, and all of them out again, in the order they came.
    template <class T>
    void expect_same(const Statement& put, const Statement& get, const std::vector<T>& values) {
        for (const T& value : values) {
            EXPECT_EQ(db->run("Put", {}, put, value).rows[0].template get<T>(0), value);
        }
        const Rows rows = db->run("Get", {}, get).rows;
        ASSERT_EQ(rows.size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            EXPECT_EQ(rows[i].template get<T>(0), values[i]) << "value number " << i;
        }
    }

    test::Database db{GetParam()};
};

Bytes all_bytes() {
    Bytes bytes;
    for (int i = 0; i < 256; ++i) {
        bytes.push_back(static_cast<std::byte>(i));
    }
    return bytes;
}

TEST_P(Values, IntegersUpToTheirLimits) {
    using Limits = std::numeric_limits<std::int64_t>;
    expect_same<std::optional<std::int64_t>>(
        put_number, get_number, {0, 1, -1, Limits::max(), Limits::min(), 1LL << 32, std::nullopt});
}

TEST_P(Values, NarrowIntegersAndTheirRange) {
    expect_same<std::int16_t>(put_number, get_number, {0, -32768, 32767});
    const Rows rows = db->run("Put", {}, put_number, 1 << 20).rows;
    EXPECT_EQ(rows[0].get<std::int32_t>(0), 1 << 20);
    EXPECT_EQ(test::code_of([&] { (void)rows[0].get<std::int16_t>(0); }), Code::internal);
    EXPECT_EQ(test::code_of([&] { (void)rows[0].get<std::string>(0); }), Code::internal);
    EXPECT_EQ(test::code_of([&] { (void)rows[0].get<Bytes>(0); }), Code::internal);
    EXPECT_EQ(test::code_of([&] { (void)rows[0].cell(1); }), Code::internal);
    EXPECT_EQ(test::code_of([&] { (void)rows[1]; }), Code::internal);
}

TEST_P(Values, RealNumbers) {
    using Limits = std::numeric_limits<double>;
    expect_same<std::optional<double>>(put_real,
                                       get_real,
                                       {0.0,
                                        1.5,
                                        -0.1,
                                        1e300,
                                        Limits::max(),
                                        Limits::lowest(),
                                        Limits::min(),
                                        Limits::denorm_min(),
                                        Limits::infinity(),
                                        -Limits::infinity(),
                                        std::nullopt});
}

// SQLite would store NULL in its place, and a later reader would never know.
TEST_P(Values, NotANumberIsKeptOrRefusedButNeverTurnedIntoNull) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (GetParam() == test::Backend::sqlite) {
        EXPECT_EQ(test::code_of([&] { db->run("Put", {}, put_real, nan); }),
                  Code::invalid_argument);
        EXPECT_EQ(db.number("SELECT count(*) FROM reals"), 0);
    } else {
        EXPECT_TRUE(std::isnan(db->run("Put", {}, put_real, nan).rows[0].get<double>(0)));
    }
}

TEST_P(Values, TextOfAnyKind) {
    expect_same<std::optional<std::string>>(put_text,
                                            get_text,
                                            {"",
                                             "plain",
                                             "it's \"quoted\" \\ and $1 {now_us} %s ?1",
                                             "two\nlines\r\n\tand a tab",
                                             "Grüße, 日本語, 🦀, \u0301combining",
                                             std::string(1 << 20, 'x'),
                                             "null",
                                             std::nullopt});
}

TEST_P(Values, TextWithAZeroByteIsRefusedAtTheDoor) {
    const std::string text("a\0b", 3);
    EXPECT_EQ(test::code_of([&] { db->run("Put", {}, put_text, text); }), Code::invalid_argument);
    EXPECT_EQ(db.number("SELECT count(*) FROM texts"), 0);
}

// SQLite would keep it, and hand it to programs that then fail on it.
TEST_P(Values, TextThatIsNotUtf8IsRefusedAtTheDoor) {
    for (const std::string text :
         {"\xFF", "a\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "gr\xFC\xDF"}) {
        EXPECT_EQ(test::code_of([&] { db->run("Put", {}, put_text, text); }),
                  Code::invalid_argument);
        EXPECT_EQ(test::code_of(
                      [&] { db->transact("Put", {}, [&](Tx& tx) { tx.exec(put_text, text); }); }),
                  Code::invalid_argument);
        EXPECT_EQ(test::code_of([&] { db->run("Put", {}, put_json, Json{"\"" + text + "\""}); }),
                  Code::invalid_argument);
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM texts"), 0);
    EXPECT_EQ(db.number("SELECT count(*) FROM jsons"), 0);
}

TEST_P(Values, BytesOfAnyValueAndNone) {
    expect_same<std::optional<Bytes>>(
        put_bytes,
        get_bytes,
        {Bytes{}, Bytes{std::byte{0}}, all_bytes(), Bytes(1 << 20, std::byte{0xfe}), std::nullopt});
}

TEST_P(Values, Booleans) {
    expect_same<std::optional<bool>>(put_flag, get_flag, {true, false, std::nullopt});
}

TEST_P(Values, Uuids) {
    expect_same<std::optional<Uuid>>(
        put_id,
        get_id,
        {Uuid{}, Uuid::parse("00112233-4455-6677-8899-aabbccddeeff"), Uuid::v4(), std::nullopt});
}

TEST_P(Values, TimesToTheMicrosecondAlsoBeforeTheEpoch) {
    using std::chrono::microseconds;
    expect_same<std::optional<Timestamp>>(
        put_time,
        get_time,
        {Timestamp{},
         Timestamp{microseconds{-1}},
         Timestamp{microseconds{1}},
         Timestamp{microseconds{1'700'000'000'123'456}},
         Timestamp{std::chrono::sys_days{std::chrono::year{1} / 1 / 1}},
         Timestamp::min(),
         Timestamp{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}} +
             microseconds{999'999},
         std::nullopt});
}

TEST_P(Values, JsonAsTheTextItWas) {
    expect_same<std::optional<Json>>(put_json,
                                     get_json,
                                     {Json{R"({"b": 1,  "a": [true, null, "é\n\"{now_us}"]})"},
                                      Json{"[]"},
                                      Json{"null"},
                                      std::nullopt});
}

// An argument list is bound as a whole: the types of its neighbours do not matter to any of them.
TEST_P(Values, ARowOfEveryTypeAndARowOfNulls) {
    const Bytes bytes = all_bytes();
    const Uuid id = Uuid::v4();
    const Timestamp at{std::chrono::microseconds{1'234'567'890'123'456}};
    const Json json{R"({"a":1})"};
    db->transact("Put", {}, [&](Tx& tx) {
        tx.exec(put_row, std::int64_t{7}, 2.5, "text", bytes, true, id, at, json);
        tx.exec(put_row, null, null, null, null, null, null, null, null);
        tx.exec(put_row,
                std::optional<std::int64_t>{},
                std::optional<double>{},
                std::optional<std::string>{},
                std::optional<Bytes>{},
                std::optional<bool>{},
                std::optional<Uuid>{},
                std::optional<Timestamp>{},
                std::optional<Json>{});
    });
    const Rows rows = db->run("Get", {}, get_row).rows;
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(
        (rows[0].as<std::int64_t, double, std::string, Bytes, bool, Uuid, Timestamp, Json>()),
        std::make_tuple(std::int64_t{7}, 2.5, std::string("text"), bytes, true, id, at, json));
    for (const std::size_t row : {1U, 2U}) {
        for (std::size_t column = 0; column < rows[row].columns(); ++column) {
            EXPECT_TRUE(std::holds_alternative<std::monostate>(rows[row].cell(column)));
        }
        EXPECT_EQ(test::code_of([&] { (void)rows[row].get<std::string>(2); }), Code::internal)
            << "NULL is not an empty text";
    }
}

TEST_P(Values, ASingleRowIsOneOrNone) {
    EXPECT_FALSE(db->run("Get", {}, get_number).rows.single());
    db->run("Put", {}, put_number, 1);
    EXPECT_EQ(db->run("Get", {}, get_number).rows.single()->get<int>(0), 1);
    db->run("Put", {}, put_number, 2);
    EXPECT_EQ(test::code_of([&] { (void)db->run("Get", {}, get_number).rows.single(); }),
              Code::internal);
}

INSTANTIATE_TEST_SUITE_P(Every, Values, test::every_backend(), test::backend_name);

}  // namespace

}  // namespace holdfast::sql
