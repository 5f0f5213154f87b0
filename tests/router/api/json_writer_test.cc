#include "router/api/json_writer.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

TEST(JsonWriterTest, CommasStandBetweenValuesAndNowhereElse) {
  JsonWriter json;
  json.BeginObject().Field("a", int64_t{1}).Key("b").BeginArray();
  json.Integer(1).BeginObject().EndObject().BeginArray().EndArray().Null().Bool(true);
  json.EndArray().NullField("c").Field("d", "x").EndObject();
  EXPECT_EQ(json.Take(), R"({"a":1,"b":[1,{},[],null,true],"c":null,"d":"x"})");
}

TEST(JsonWriterTest, StringsAreEscapedAndStayUtf8) {
  JsonWriter json;
  json.String(std::string_view("\"\\\n\r\t\b\f\x01\0é😀/", 16));
  EXPECT_EQ(json.Take(), "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u0000é😀/\"");
}

TEST(JsonWriterTest, WhatIsNoUtf8IsRepaired) {
  JsonWriter json;
  json.String("a\xFF\xE2\x82");
  EXPECT_EQ(json.Take(), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriterTest, NumbersAreTheShortestThatReadBackEqualAndLookLikeDoubles) {
  JsonWriter json;
  json.BeginArray().Number(-0.1).Number(static_cast<double>(0.1f)).Number(-9999).Number(1e300);
  json.EndArray();
  EXPECT_EQ(json.Take(), "[-0.1,0.10000000149011612,-9999.0,1e+300]");
}

}  // namespace
}  // namespace levin
