#include <gtest/gtest.h>

#include "router/text/json_print.h"
#include "router/text/json_value.h"

namespace levin {
namespace {

// Parsed and printed again, or what is wrong.
std::string Again(std::string_view text) {
  JsonValue value;
  if (const JsonFault fault = ParseJson(text, value); !fault.ok()) {
    return "fault at " + std::to_string(fault.at);
  }
  std::string out;
  const JsonPrintFault fault = AppendJson(value, out);
  return fault.ok() ? out : "cannot print " + fault.path;
}

TEST(Json, PrintsNumbersAsPythonDoes) {
  EXPECT_EQ(Again("[0, -0, 7, -12345678901234567890123]"), "[0, 0, 7, -12345678901234567890123]");
  EXPECT_EQ(Again("[1.0, 1e0, 100000.0, 1E5, 1.10]"), "[1.0, 1.0, 100000.0, 100000.0, 1.1]");
  EXPECT_EQ(Again("[1e-4, 0.00001, 123e-7]"), "[0.0001, 1e-05, 1.23e-05]");
  EXPECT_EQ(Again("[1e15, 1e16, 123456789012345680.0]"),
            "[1000000000000000.0, 1e+16, 1.2345678901234568e+17]");
  EXPECT_EQ(Again("[0.1, -2.5, -0.0, 0.0, 5e-324, 1e-400]"), "[0.1, -2.5, -0.0, 0.0, 5e-324, 0.0]");
  EXPECT_EQ(Again("[1.7976931348623157e308, 1e100, 1.5e-9]"),
            "[1.7976931348623157e+308, 1e+100, 1.5e-09]");
  EXPECT_EQ(Again("{\"a\": [1, {\"b\": 1e309}]}"), "cannot print .a[1].b");
}

TEST(Json, KeepsKeysInOrderAndTheLastOfRepeatedOnes) {
  EXPECT_EQ(Again(R"({"b":1,"a":2,"b":{"x":[]},"c":{}})"), R"({"b": {"x": []}, "a": 2, "c": {}})");
}

TEST(Json, EscapesOnlyWhatItMust) {
  EXPECT_EQ(Again(R"("\u003c\/\u00e9\ud83d\ude00\u007f\u2028")"),
            "\"</\xC3\xA9\xF0\x9F\x98\x80\x7F\xE2\x80\xA8\"");
  EXPECT_EQ(Again(R"("\"\\\b\f\n\r\t\u0000\u001f")"), R"("\"\\\b\f\n\r\t\u0000\u001f")");
  EXPECT_EQ(Again(R"(["\ud800"])"), "cannot print [0]");
  EXPECT_EQ(Again(R"({"\udc00x": 1})"), "cannot print ");
  EXPECT_EQ(Again(R"("\ud800\u0041")"), "cannot print ");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* bad : {"",         "  ",      "01",          "+1",   "1.",    ".5",
                          "1e",       "-",       "NaN",         "nul",  "tru",   "'a'",
                          "\"a",      "\"\\x\"", "\"\\u12g4\"", "[1,]", "[1 2]", "{\"a\"}",
                          "{\"a\":}", "{a:1}",   "{\"a\":1,}",  "1 2",  "[",     "\"\n\""}) {
    EXPECT_EQ(Again(bad).substr(0, 5), "fault") << bad;
  }
}

TEST(Json, RefusesDepthWithoutEndingTheProcess) {
  EXPECT_EQ(Again(std::string(200, '[') + std::string(200, ']')).substr(0, 3), "[[[");
  EXPECT_EQ(Again(std::string(1000000, '[')).substr(0, 5), "fault");
}

TEST(Json, FindTakesNullForAbsent) {
  JsonValue value;
  ASSERT_TRUE(ParseJson(R"({"a": null, "b": false})", value).ok());
  EXPECT_EQ(value.Find("a"), nullptr);
  EXPECT_EQ(value.Find("c"), nullptr);
  ASSERT_NE(value.Find("b"), nullptr);
}

}  // namespace
}  // namespace levin
