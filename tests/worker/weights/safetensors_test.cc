#include "worker/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/worker/weights/model_folder.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RawFile;
using testing::ReadBytes;
using testing::WriteBytes;

class SafetensorsTest : public ::testing::Test {
 protected:
  // "" when the file opens; the message must name the file.
  std::string ErrorOf(std::string_view bytes) {
    WriteBytes(path(), bytes);
    const Result<SafetensorsFile> file = SafetensorsFile::Open(path());
    if (file) return "";
    EXPECT_THAT(file.error().message(), HasSubstr(path().string()));
    return file.error().message();
  }
  fs::path path() const { return folder_.path() / "x.safetensors"; }

  testing::TempFolder folder_;
};

std::string Entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) +
         "\",\"shape\":" + std::string(shape) + ",\"data_offsets\":" + std::string(offsets) + "}";
}
std::string Header(const std::string& a, const std::string& b = "") {
  return "{" + a + (b.empty() ? "" : "," + b) + "}";
}

TEST_F(SafetensorsTest, ReadsWhatItsHeaderSays) {
  WriteBytes(path(), RawFile(Header("\"__metadata__\":{\"format\":\"pt\"}",
                                    Entry("b", "U8", "[2,2]", "[2,6]") + "," +
                                        Entry("a", "I8", "[2]", "[0,2]")) +
                                 "   ",
                             "abcdef"));
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path());
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "a") << "in file order";
  const StoredTensor* b = file->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 2}));
  char text[4] = {};
  ASSERT_TRUE(file->Read(*b, 1, std::as_writable_bytes(std::span(text, 3))).ok());
  EXPECT_STREQ(text, "def");
  EXPECT_EQ(file->Find("c"), nullptr);
}

TEST_F(SafetensorsTest, ScalarsAndEmptyTensorsAreTensors) {
  EXPECT_EQ(
      ErrorOf(RawFile(Header(Entry("s", "F32", "[]", "[0,4]"), Entry("e", "F32", "[3,0]", "[4,4]")),
                      "abcd")),
      "");
  EXPECT_EQ(ErrorOf(RawFile("{}", "")), "");
}

// F01
TEST_F(SafetensorsTest, CutFilesSayWhatIsThereAndWhatWasExpected) {
  const std::string whole =
      RawFile(Header(Entry("a", "I8", "[64]", "[0,64]")), std::string(64, 'x'));
  const size_t header_end = whole.size() - 64;
  for (size_t size :
       {size_t{0}, size_t{4}, size_t{8}, 8 + (header_end - 8) / 2, header_end, whole.size() - 1}) {
    EXPECT_NE(ErrorOf(whole.substr(0, size)), "") << size;
  }
  EXPECT_THAT(ErrorOf(whole.substr(0, 4)), HasSubstr("has 4 bytes, expected at least the 8"));
  EXPECT_THAT(ErrorOf(whole.substr(0, header_end - 1)), HasSubstr("claims a header of"));
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() - 1)),
              AllOf(HasSubstr("[0, 64]"), HasSubstr("63 bytes of data")));
  EXPECT_THAT(ErrorOf(whole + "y"), HasSubstr("expected the " + std::to_string(whole.size())));
  EXPECT_EQ(ErrorOf(whole), "");
}

TEST_F(SafetensorsTest, HeaderLengthsBeyondTheFileAreNotAllocated) {
  const std::string huge = {0, 0, 0, 0, 0, 0, 0, '\x80'};
  EXPECT_THAT(ErrorOf(huge + "{}"), HasSubstr("9223372036854775808"));
  EXPECT_THAT(ErrorOf("\xff\xff\xff\xff\xff\xff\xff\xff{}"), HasSubstr("18446744073709551615"));
  EXPECT_THAT(ErrorOf("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("git-lfs"));
  EXPECT_THAT(ErrorOf("<!DOCTYPE html><html></html>"), HasSubstr("web page"));
}

// F03, F04
TEST_F(SafetensorsTest, RangesAreCheckedBeforeTypes) {
  const auto error = [&](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return ErrorOf(RawFile(Header(Entry("t", dtype, shape, offsets)), "12345678"));
  };
  EXPECT_EQ(error("F32", "[2]", "[0,8]"), "");
  for (const char* dtype : {"F32", "XYZ"}) {
    EXPECT_THAT(error(dtype, "[2]", "[0,16]"), AllOf(HasSubstr("\"t\""), HasSubstr("[0, 16]")));
    EXPECT_THAT(error(dtype, "[2]", "[8,0]"), HasSubstr("[8, 0]"));
    EXPECT_THAT(error(dtype, "[2]", "[9223372036854775800,9223372036854775807]"),
                HasSubstr("\"t\" has data_offsets"));
  }
  EXPECT_THAT(error("F32", "[2]", "[-8,0]"), HasSubstr("two integers from 0 on"));
  EXPECT_THAT(error("F32", "[2]", "[0,18446744073709551615]"), HasSubstr("two integers"));
  EXPECT_THAT(error("F32", "[2]", "[0,8.0]"), HasSubstr("two integers"));
  EXPECT_THAT(error("F32", "[2]", "[0]"), HasSubstr("two integers"));
  EXPECT_THAT(error("F32", "[2]", "[0,8,8]"), HasSubstr("two integers"));
  EXPECT_THAT(error("XYZ", "[2]", "[0,8]"),
              AllOf(HasSubstr("\"t\""), HasSubstr("\"XYZ\""), HasSubstr("BF16")));
  EXPECT_THAT(error("F32", "[3]", "[0,8]"), HasSubstr("has 8 bytes, expected 12 for shape [3]"));
  EXPECT_THAT(error("F32", "[]", "[0,8]"), HasSubstr("expected 4 for shape []"));
  EXPECT_THAT(error("F32", "[-2]", "[0,8]"), HasSubstr("'shape'"));
  EXPECT_THAT(error("F32", "[4294967296,4294967296]", "[0,8]"), HasSubstr("more than 2^63"));
  EXPECT_THAT(error("F32", "[4611686018427387904,4,0]", "[0,0]"), HasSubstr("more than 2^63"));
  EXPECT_THAT(error("F32", "[0]", "[0,8]"), HasSubstr("expected 0 for shape [0]"));
}

TEST_F(SafetensorsTest, EveryByteBelongsToOneTensor) {
  const auto error = [&](std::string_view first, std::string_view second) {
    return ErrorOf(RawFile(Header(Entry("a", "I8", "[4]", first), Entry("b", "I8", "[4]", second)),
                           "123456789"));
  };
  EXPECT_THAT(error("[0,4]", "[2,6]"), AllOf(HasSubstr("\"b\""), HasSubstr("overlap")));
  EXPECT_THAT(error("[0,4]", "[0,4]"), HasSubstr("overlap"));
  EXPECT_THAT(error("[0,4]", "[5,9]"), HasSubstr("gaps"));
  EXPECT_THAT(error("[1,5]", "[5,9]"), HasSubstr("begins at byte 1 of the data, expected 0"));
  EXPECT_THAT(error("[0,4]", "[4,8]"), HasSubstr("that its header describes"));
}

TEST_F(SafetensorsTest, HeadersThatAreNoHeadersAreRefused) {
  for (const char* header : {"", "x", "[]", "3", "null", "{", "{\"a\":1}", "{\"a\":{}}",
                             "{\"a\":{\"shape\":[1]}}", "{\"a\":{\"dtype\":\"I8\",\"shape\":[1]}}",
                             "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}",
                             "{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}",
                             "{\"a\":{\"dtype\":\"I8\",\"shape\":1,\"data_offsets\":[0,1]}}",
                             "{\"__metadata__\":3}", "{\"\xff\":{}}"}) {
    EXPECT_NE(ErrorOf(RawFile(header, "1")), "") << header;
  }
  EXPECT_NE(ErrorOf(RawFile(std::string(1000000, '['), "")), "");
  EXPECT_NE(ErrorOf(RawFile("{\"a\":" + std::string(1000000, '{'), "")), "");
}

TEST_F(SafetensorsTest, ANameMayOccurOnce) {
  const std::string one = Entry("same", "I8", "[1]", "[0,1]");
  const std::string two = Entry("same", "I8", "[1]", "[1,2]");
  EXPECT_THAT(ErrorOf(RawFile(Header(one, two), "12")), HasSubstr("'same' occurs twice"));
}

TEST_F(SafetensorsTest, OnlyRegularFilesAreOpened) {
  EXPECT_EQ(SafetensorsFile::Open(path()).error().code(), Code::kNotFound);
  fs::create_directory(path());
  EXPECT_THAT(SafetensorsFile::Open(path()).error().message(), HasSubstr("not a regular file"));
  fs::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(SafetensorsFile::Open(path()).error().message(), HasSubstr("not a regular file"));
  fs::remove(path());
  fs::create_symlink(path(), path());
  EXPECT_FALSE(SafetensorsFile::Open(path()));
  fs::remove(path());
  WriteBytes(folder_.path() / "target", RawFile("{}", ""));
  fs::create_symlink(folder_.path() / "target", path());
  EXPECT_TRUE(SafetensorsFile::Open(path())) << "a link to a file is fine";
  EXPECT_FALSE(SafetensorsFile::Open("/dev/zero"));
}

// F14
TEST_F(SafetensorsTest, AFileThatShrinksIsAnErrorWithItsOffset) {
  WriteBytes(path(), RawFile(Header(Entry("a", "I8", "[64]", "[0,64]")), std::string(64, 'x')));
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path());
  ASSERT_TRUE(file);
  const int64_t begin = file->tensors()[0].data_begin;
  const Result<RegularFile> data = file->OpenData();
  ASSERT_TRUE(data);
  fs::resize_file(path(), static_cast<uintmax_t>(begin + 10));
  std::byte bytes[64];
  const Status status = SafetensorsFile::ReadFrom(*data, file->tensors()[0], 0, bytes);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("x.safetensors"), HasSubstr("tensor 'a'"),
                                      HasSubstr("at byte " + std::to_string(begin + 10))));
}

TEST_F(SafetensorsTest, AFileThatIsNoLongerTheCheckedOneIsNotRead) {
  const std::string good =
      RawFile(Header(Entry("a", "I8", "[64]", "[0,64]")), std::string(64, 'x'));
  for (bool exchanged : {false, true}) {
    WriteBytes(path(), good);
    const Result<SafetensorsFile> file = SafetensorsFile::Open(path());
    ASSERT_TRUE(file && file->OpenData());
    if (exchanged) {
      WriteBytes(folder_.path() / "other", good);
      fs::rename(folder_.path() / "other", path());
    } else {
      fs::resize_file(path(), good.size() - 1);
    }
    const Result<RegularFile> data = file->OpenData();
    ASSERT_FALSE(data);
    EXPECT_EQ(data.error().code(), Code::kDataLoss);
    EXPECT_THAT(data.error().message(), AllOf(HasSubstr("x.safetensors"),
                                              HasSubstr("changed after its header was checked")));
  }
}

TEST(SafetensorsIndex, NamesFilesOfItsOwnFolderOnly) {
  const auto index = ParseSafetensorsIndex(R"({"metadata":{},"weight_map":{"a":"x.safetensors"}})");
  ASSERT_TRUE(index);
  EXPECT_EQ(index->shards.at("a"), "x.safetensors");
  for (const char* file : {"\"../x\"", "\"/etc/passwd\"", "\"a/b\"", "\"..\"", "\".\"", "\"\"", "3",
                           "null", "\"x\\u0000y\""}) {
    const std::string text = "{\"weight_map\":{\"a\":" + std::string(file) + "}}";
    EXPECT_THAT(ParseSafetensorsIndex(text).error().message(), HasSubstr("weight_map.a")) << file;
  }
  for (const char* text : {"", "{}", "[]", "{\"weight_map\":{}}", "{\"weight_map\":[]}",
                           "{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}"}) {
    EXPECT_FALSE(ParseSafetensorsIndex(text)) << text;
  }
}

TEST(SafetensorsIndex, TheTotalSizeIsAHintThatMayBeAbsentOrNonsense) {
  const auto total = [](const std::string& metadata) {
    const auto index =
        ParseSafetensorsIndex("{" + metadata + "\"weight_map\":{\"a\":\"x.safetensors\"}}");
    EXPECT_TRUE(index) << metadata;
    return index ? index->total_size : std::nullopt;
  };
  EXPECT_EQ(total("\"metadata\":{\"total_size\":912210767872},"), 912'210'767'872);
  EXPECT_EQ(total("\"metadata\":{\"total_size\":0},"), 0);
  for (const char* none :
       {"", "\"metadata\":null,", "\"metadata\":{},", "\"metadata\":[3],",
        "\"metadata\":{\"total_size\":-1},", "\"metadata\":{\"total_size\":\"5\"},",
        "\"metadata\":{\"total_size\":1e30},"}) {
    EXPECT_EQ(total(none), std::nullopt) << none;
  }
}

TEST_F(SafetensorsTest, WhatIsWrittenIsReadBack) {
  Buffer floats(DType::kF32, {2, 3});
  for (int i = 0; i < 6; ++i) floats.View(DType::kF32, {6}).as<float>()[i] = static_cast<float>(i);
  Buffer ids(DType::kI64, {2});
  ids.View(DType::kI64, {2}).as<int64_t>()[1] = -7;
  const NamedTensor tensors[] = {{"x.\"logits\"", floats.View(DType::kF32, {2, 3})},
                                 {"ids", ids.View(DType::kI64, {2})},
                                 {"none", ids.View(DType::kI64, {0})}};
  ASSERT_TRUE(WriteSafetensors(path(), tensors).ok());
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path());
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->tensors()[0].data_begin % 8, 0);
  for (const NamedTensor& written : tensors) {
    const StoredTensor* stored = file->Find(written.name);
    ASSERT_NE(stored, nullptr) << written.name;
    EXPECT_EQ(stored->dtype, Name(written.tensor.dtype));
    EXPECT_EQ(ShapeText(stored->shape), ToString(written.tensor.shape));
    std::vector<std::byte> bytes(static_cast<size_t>(stored->bytes));
    ASSERT_TRUE(file->Read(*stored, 0, bytes).ok());
    EXPECT_TRUE(std::ranges::equal(bytes, written.tensor.span()));
  }
}

TEST_F(SafetensorsTest, WritingReplacesTheFileWholeOrNotAtAll) {
  Buffer buffer(DType::kU8, {3});
  const NamedTensor once[] = {{"a", buffer.View(DType::kU8, {3})}};
  WriteBytes(path(), "old");
  const NamedTensor twice[] = {once[0], once[0]};
  EXPECT_FALSE(WriteSafetensors(path(), twice).ok());
  EXPECT_EQ(ReadBytes(path()), "old");
  EXPECT_TRUE(WriteSafetensors(path(), once).ok());
  EXPECT_TRUE(SafetensorsFile::Open(path()));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "no draft is left";
  const Status status = WriteSafetensors(folder_.path() / "absent/x", once);
  EXPECT_THAT(status.message(), HasSubstr("absent/x"));
  // A folder in the way: the rename fails, the draft goes.
  fs::create_directories(folder_.path() / "dir/full");
  EXPECT_FALSE(WriteSafetensors(folder_.path() / "dir", once).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2);
}

}  // namespace
}  // namespace levin
