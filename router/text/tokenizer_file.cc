#include "router/text/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "router/text/file_text.h"
#include "router/text/pre_tokenizer.h"
#include "router/text/utf8.h"

namespace levin {
namespace {

namespace json = boost::json;

constexpr size_t kFileBytesMax = size_t{256} << 20;
constexpr int64_t kIdMax = 1 << 24;
constexpr size_t kAddedMax = 65535;

std::string_view View(const json::string& text) { return {text.data(), text.size()}; }

// One rule of the file, with the words to complain about it.
class Rule final {
 public:
  Rule(std::string where, const json::value& value) : where_(std::move(where)), value_(value) {}

  Status Unknown(std::string_view expected) const {
    std::string shown = json::serialize(value_);
    if (shown.size() > 200) shown = shown.substr(0, 200) + "...";
    return InvalidArgument("tokenizer.json: " + where_ + " is " + shown + ", known is " +
                           std::string(expected));
  }
  bool is_null() const { return value_.is_null(); }
  bool has_type(std::string_view type) const {
    const json::object* object = value_.if_object();
    const json::value* found = object ? object->if_contains("type") : nullptr;
    return found && found->is_string() && View(found->get_string()) == type;
  }
  // A member, null when absent.
  Rule operator[](std::string_view key) const {
    static const json::value kNull;
    const json::object* object = value_.if_object();
    const json::value* found = object ? object->if_contains({key.data(), key.size()}) : nullptr;
    return {where_ + "." + std::string(key), found ? *found : kNull};
  }
  std::optional<bool> boolean() const {
    return value_.is_bool() ? std::optional(value_.get_bool()) : std::nullopt;
  }
  std::optional<std::string_view> text() const {
    return value_.is_string() ? std::optional(View(value_.get_string())) : std::nullopt;
  }
  std::optional<int64_t> id() const {
    if (!value_.is_int64() || value_.get_int64() < 0 || value_.get_int64() > kIdMax)
      return std::nullopt;
    return value_.get_int64();
  }
  const json::array* array() const { return value_.if_array(); }
  const json::object* object() const { return value_.if_object(); }

  Status KnowsOnly(std::initializer_list<std::string_view> keys) const {
    if (!object()) return Unknown("an object");
    for (const auto& member : *object()) {
      const std::string_view key(member.key().data(), member.key().size());
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        return (*this)[key].Unknown("no such key");
      }
    }
    return Status::Ok();
  }
  Status MustBe(bool wanted) const {
    return is_null() || boolean() == wanted ? Status::Ok() : Unknown(wanted ? "true" : "false");
  }
  Status MustBeEmpty() const {
    return is_null() || text() == "" ? Status::Ok() : Unknown("null or \"\"");
  }
  Status MustBeNull() const { return is_null() ? Status::Ok() : Unknown("null"); }

 private:
  std::string where_;
  const json::value& value_;
};

// GPT-2's printable stand-ins for bytes: 33..126, 161..172 and 174..255 stand for themselves, the
// others follow from U+0100 on in order.
std::array<int16_t, 0x180> BytesOfStandIns() {
  std::array<int16_t, 0x180> bytes;
  bytes.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    bytes[itself ? byte : next++] = static_cast<int16_t>(byte);
  }
  return bytes;
}

class ModelReader final {
 public:
  ModelReader(const Rule& model, TokenizerFile& file) : model_(model), file_(file) {}

  Status Read() {
    RETURN_IF_ERROR(CheckRules());
    RETURN_IF_ERROR(ReadVocabulary());
    return ReadMerges();
  }

 private:
  Status CheckRules() {
    if (!model_.has_type("BPE")) return model_["type"].Unknown("\"BPE\"");
    RETURN_IF_ERROR(model_.KnowsOnly({"type", "dropout", "unk_token", "continuing_subword_prefix",
                                      "end_of_word_suffix", "fuse_unk", "byte_fallback",
                                      "ignore_merges", "vocab", "merges"}));
    RETURN_IF_ERROR(model_["dropout"].MustBeNull());
    RETURN_IF_ERROR(model_["unk_token"].MustBeNull());
    RETURN_IF_ERROR(model_["continuing_subword_prefix"].MustBeEmpty());
    RETURN_IF_ERROR(model_["end_of_word_suffix"].MustBeEmpty());
    RETURN_IF_ERROR(model_["fuse_unk"].MustBe(false));
    RETURN_IF_ERROR(model_["byte_fallback"].MustBe(false));
    const Rule ignore = model_["ignore_merges"];
    if (!ignore.is_null() && !ignore.boolean()) return ignore.Unknown("true or false");
    file_.ignore_merges = ignore.boolean().value_or(false);
    return Status::Ok();
  }

  Status ReadVocabulary() {
    const json::object* vocab = model_["vocab"].object();
    if (!vocab) return model_["vocab"].Unknown("an object");
    file_.vocabulary.reserve(vocab->size());
    ids_.reserve(vocab->size());
    std::vector<bool> taken;
    for (const auto& member : *vocab) {
      const std::string_view key(member.key().data(), member.key().size());
      const Rule rule("model.vocab[\"" + std::string(key) + "\"]", member.value());
      const auto id = rule.id();
      std::string bytes;
      if (!id) return rule.Unknown("an id of 0.." + std::to_string(kIdMax));
      if (key.empty() || !Decode(key, bytes)) return rule.Unknown("a key of byte stand-ins");
      if (taken.size() <= static_cast<size_t>(*id)) taken.resize(*id + 1);
      if (taken[*id]) return rule.Unknown("each id once");
      taken[*id] = true;
      ids_.emplace(key, static_cast<TokenId>(*id));
      file_.vocabulary.push_back({static_cast<TokenId>(*id), std::move(bytes)});
    }
    size_t bytes_seen = 0;
    for (const auto& entry : file_.vocabulary) bytes_seen += entry.bytes.size() == 1;
    if (bytes_seen != 256) {
      return InvalidArgument("tokenizer.json: model.vocab has " + std::to_string(bytes_seen) +
                             " single bytes, expected 256");
    }
    return Status::Ok();
  }

  Status ReadMerges() {
    const json::array* merges = model_["merges"].array();
    if (!merges) return model_["merges"].Unknown("an array");
    file_.merges.reserve(merges->size());
    std::string joined;
    for (size_t i = 0; i < merges->size(); ++i) {
      const Rule rule("model.merges[" + std::to_string(i) + "]", (*merges)[i]);
      std::string_view left, right;
      if (!Halves(rule, left, right)) return rule.Unknown("two tokens");
      joined.assign(left).append(right);
      const auto l = ids_.find(left), r = ids_.find(right), both = ids_.find(joined);
      if (l == ids_.end() || r == ids_.end() || both == ids_.end()) {
        return rule.Unknown("tokens that are in model.vocab, joined too");
      }
      file_.merges.push_back({l->second, r->second, both->second});
    }
    return Status::Ok();
  }

  // "a b" or ["a", "b"].
  static bool Halves(const Rule& rule, std::string_view& left, std::string_view& right) {
    if (const auto text = rule.text()) {
      const size_t blank = text->find(' ');
      if (blank == std::string_view::npos) return false;
      left = text->substr(0, blank);
      right = text->substr(blank + 1);
      return true;
    }
    const json::array* pair = rule.array();
    if (!pair || pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_string())
      return false;
    left = View((*pair)[0].get_string());
    right = View((*pair)[1].get_string());
    return true;
  }

  bool Decode(std::string_view key, std::string& bytes) const {
    while (!key.empty()) {
      const CodePoint code = DecodeUtf8(key);
      if (code.value >= stand_ins_.size() || stand_ins_[code.value] < 0) return false;
      bytes.push_back(static_cast<char>(stand_ins_[code.value]));
      key.remove_prefix(code.bytes);
    }
    return true;
  }

  const Rule& model_;
  TokenizerFile& file_;
  const std::array<int16_t, 0x180> stand_ins_ = BytesOfStandIns();
  std::unordered_map<std::string_view, TokenId> ids_;  // keys lie in the parsed file
};

Status ReadAdded(const Rule& added, std::vector<AddedToken>& out) {
  if (added.is_null()) return Status::Ok();
  if (!added.array()) return added.Unknown("an array");
  std::unordered_set<std::string> contents;
  std::unordered_set<int64_t> ids;
  if (added.array()->size() > kAddedMax) {
    return InvalidArgument("tokenizer.json: added_tokens has " +
                           std::to_string(added.array()->size()) + " entries, expected at most " +
                           std::to_string(kAddedMax));
  }
  for (size_t i = 0; i < added.array()->size(); ++i) {
    const Rule rule("added_tokens[" + std::to_string(i) + "]", (*added.array())[i]);
    RETURN_IF_ERROR(rule.KnowsOnly(
        {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
    const auto id = rule["id"].id();
    const auto content = rule["content"].text();
    if (!id) return rule["id"].Unknown("an id of 0.." + std::to_string(kIdMax));
    if (!content || content->empty()) return rule["content"].Unknown("a string that is not empty");
    if (!ids.insert(*id).second) return rule["id"].Unknown("each id once");
    if (!contents.emplace(*content).second) return rule["content"].Unknown("each content once");
    AddedToken token{static_cast<TokenId>(*id), std::string(*content)};
    const std::pair<std::string_view, bool*> flags[] = {{"single_word", &token.single_word},
                                                        {"lstrip", &token.lstrip},
                                                        {"rstrip", &token.rstrip},
                                                        {"normalized", &token.normalized},
                                                        {"special", &token.special}};
    for (const auto& [name, flag] : flags) {
      const Rule value = rule[name];
      if (!value.is_null() && !value.boolean()) return value.Unknown("true or false");
      *flag = value.boolean().value_or(false);
    }
    out.push_back(std::move(token));
  }
  return Status::Ok();
}

// An id that stood for two texts could not be decoded. Both lists may name the same token.
Status CheckIds(const TokenizerFile& file) {
  std::unordered_map<TokenId, const std::string*> bytes;
  for (const auto& entry : file.vocabulary) bytes.emplace(entry.id, &entry.bytes);
  for (const AddedToken& token : file.added) {
    const auto found = bytes.find(token.id);
    if (found == bytes.end() || *found->second == token.content) continue;
    return InvalidArgument("tokenizer.json: added_tokens gives id " + std::to_string(token.id) +
                           " to " + json::serialize(json::string(token.content)) +
                           ", but model.vocab has another token there");
  }
  return Status::Ok();
}

Status ReadNormalizer(const Rule& normalizer, bool& nfc) {
  if (normalizer.is_null()) return Status::Ok();
  if (!normalizer.has_type("NFC")) return normalizer.Unknown("null or NFC");
  nfc = true;
  return Status::Ok();
}

// Sequence of Split by the known pattern (matches kept: they cover every text) and ByteLevel.
Status CheckPreTokenizer(const Rule& pre) {
  const Rule list = pre["pretokenizers"];
  if (!pre.has_type("Sequence") || !list.array() || list.array()->size() != 2) {
    return pre.Unknown("a Sequence of Split and ByteLevel");
  }
  const Rule split("pre_tokenizer.pretokenizers[0]", (*list.array())[0]);
  const Rule bytes("pre_tokenizer.pretokenizers[1]", (*list.array())[1]);
  RETURN_IF_ERROR(split.KnowsOnly({"type", "pattern", "behavior", "invert"}));
  if (!split.has_type("Split")) return split["type"].Unknown("\"Split\"");
  RETURN_IF_ERROR(split["pattern"].KnowsOnly({"Regex"}));
  if (split["pattern"]["Regex"].text() != kSplitPattern) {
    return split["pattern"].Unknown("the o200k pattern");
  }
  const auto behavior = split["behavior"].text();
  const bool kept = (behavior == "Removed" && split["invert"].boolean() == true) ||
                    (behavior == "Isolated" && split["invert"].boolean().has_value());
  if (!kept) return split.Unknown("behavior Removed with invert true, or Isolated");
  RETURN_IF_ERROR(bytes.KnowsOnly({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  if (!bytes.has_type("ByteLevel")) return bytes["type"].Unknown("\"ByteLevel\"");
  if (bytes["add_prefix_space"].boolean() != false)
    return bytes["add_prefix_space"].Unknown("false");
  if (bytes["use_regex"].boolean() != false) return bytes["use_regex"].Unknown("false");
  return Status::Ok();
}

Status ReadRules(const Rule& root, TokenizerFile& file) {
  RETURN_IF_ERROR(root.KnowsOnly({"version", "truncation", "padding", "added_tokens", "normalizer",
                                  "pre_tokenizer", "post_processor", "decoder", "model"}));
  RETURN_IF_ERROR(root["truncation"].MustBeNull());
  RETURN_IF_ERROR(root["padding"].MustBeNull());
  RETURN_IF_ERROR(ReadNormalizer(root["normalizer"], file.nfc));
  RETURN_IF_ERROR(CheckPreTokenizer(root["pre_tokenizer"]));
  const Rule post = root["post_processor"];  // ByteLevel only moves offsets
  if (!post.is_null() && !post.has_type("ByteLevel")) return post.Unknown("null or ByteLevel");
  if (!root["decoder"].has_type("ByteLevel")) return root["decoder"].Unknown("ByteLevel");
  RETURN_IF_ERROR(ReadAdded(root["added_tokens"], file.added));
  const Rule model = root["model"];
  RETURN_IF_ERROR(ModelReader(model, file).Read());
  return CheckIds(file);
}

Result<json::value> ParseFile(const std::filesystem::path& path, std::string_view text,
                              json::monotonic_resource& memory) {
  boost::system::error_code failed;
  json::value root = json::parse({text.data(), text.size()}, failed, &memory);
  if (failed) return Error(InvalidArgument(path.string() + " is not JSON: " + failed.message()));
  return root;
}

// A token is named by its string or by an object {"content": ...}.
std::string TokenName(const json::object& config, std::string_view key) {
  const json::value* value = config.if_contains({key.data(), key.size()});
  if (value && value->is_object()) value = value->get_object().if_contains("content");
  return value && value->is_string() ? std::string(View(value->get_string())) : "";
}

// A string, or a list of {"name", "template"} of which "default" counts.
std::string TemplateOf(const json::object& config) {
  const json::value* value = config.if_contains("chat_template");
  if (!value) return "";
  if (value->is_string()) return std::string(View(value->get_string()));
  if (!value->is_array()) return "";
  for (const json::value& item : value->get_array()) {
    if (!item.is_object() || TokenName(item.get_object(), "name") != "default") continue;
    return TokenName(item.get_object(), "template");
  }
  return "";
}

}  // namespace

Result<TokenizerFile> ReadTokenizerFile(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFileText(path, kFileBytesMax));
  json::monotonic_resource memory;
  ASSIGN_OR_RETURN(const json::value root, ParseFile(path, text, memory));
  TokenizerFile file;
  RETURN_ERROR_IF(ReadRules(Rule("file", root), file));
  return file;
}

Result<TokenizerConfig> ReadTokenizerConfig(const std::filesystem::path& model_dir) {
  TokenizerConfig config;
  const auto path = model_dir / "tokenizer_config.json";
  Result<std::string> text = ReadFileText(path, kFileBytesMax);
  if (text) {
    json::monotonic_resource memory;
    ASSIGN_OR_RETURN(const json::value root, ParseFile(path, *text, memory));
    if (!root.is_object()) return Error(InvalidArgument(path.string() + " is not a JSON object"));
    config.eos_token = TokenName(root.get_object(), "eos_token");
    config.chat_template = TemplateOf(root.get_object());
    config.json = *std::move(text);
  } else if (text.error().code() != Code::kNotFound) {
    return Error(std::move(text).error());
  }
  Result<std::string> jinja = ReadFileText(model_dir / "chat_template.jinja", kFileBytesMax);
  if (jinja) {
    config.chat_template = *std::move(jinja);
  } else if (jinja.error().code() != Code::kNotFound) {
    return Error(std::move(jinja).error());
  }
  return config;
}

}  // namespace levin
