#include "common/config/defined_tokens.h"

#include <xxhash.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <exception>
#include <string>
#include <string_view>

#include "common/config/json_fields.h"
#include "common/config/regular_file.h"

namespace levin {
namespace {

namespace json = boost::json;

constexpr int64_t kTokenizerBytesMax = int64_t{256} << 20;

Status Define(std::string_view token, const json::value& id, std::vector<bool>& defined) {
  const int64_t* number = id.if_int64();
  if (number == nullptr || *number < 0 || *number >= static_cast<int64_t>(defined.size())) {
    return InvalidArgument("token " + ShortText(json::string(token)) + " has id " + ShortText(id) +
                           ", expected an integer from 0 to " + std::to_string(defined.size() - 1) +
                           " (vocab_size " + std::to_string(defined.size()) + ")");
  }
  defined[static_cast<size_t>(*number)] = true;
  return Status::Ok();
}

Status DefineAll(const json::value& file, std::vector<bool>& defined) {
  const json::object* root = file.if_object();
  if (root == nullptr) return InvalidArgument("is not a JSON object");
  const json::value* model = root->if_contains("model");
  const json::value* vocab =
      model != nullptr && model->is_object() ? model->get_object().if_contains("vocab") : nullptr;
  if (vocab == nullptr || !vocab->is_object()) {
    return MissingKey("model.vocab", "an object of tokens and ids");
  }
  for (const auto& [token, id] : vocab->get_object()) {
    RETURN_IF_ERROR(Define(token, id, defined));
  }
  const json::value* added = root->if_contains("added_tokens");
  if (added == nullptr || added->is_null()) return Status::Ok();
  if (!added->is_array()) return WrongValue("added_tokens", *added, "a list");
  for (const json::value& entry : added->get_array()) {
    const json::object* token = entry.if_object();
    const json::value* id = token != nullptr ? token->if_contains("id") : nullptr;
    if (id == nullptr) return WrongValue("added_tokens", entry, "objects with an id");
    const json::value* content = token->if_contains("content");
    const bool named = content != nullptr && content->is_string();
    RETURN_IF_ERROR(Define(named ? std::string_view(content->get_string()) : "", *id, defined));
  }
  return Status::Ok();
}

}  // namespace

Result<TokenizerFacts> ParseDefinedTokens(std::string_view text, int32_t vocab) {
  TokenizerFacts facts;
  facts.defined.assign(static_cast<size_t>(vocab), false);
  facts.hash = XXH3_64bits(text.data(), text.size());
  try {
    json::error_code error;
    const json::value file = json::parse(text, error);
    if (error) return Error(InvalidArgument("is not valid JSON: " + error.message()));
    RETURN_ERROR_IF(DefineAll(file, facts.defined));
  } catch (const std::exception& error) {  // memory, or a limit of the library
    return Error(InvalidArgument(std::string("cannot be parsed as JSON: ") + error.what()));
  }
  return facts;
}

Result<TokenizerFacts> DefinedTokens(const std::filesystem::path& model_dir, int32_t vocab) {
  const std::filesystem::path path = model_dir / "tokenizer.json";
  const Result<std::string> text = ReadSmallFile(path, kTokenizerBytesMax);
  if (!text && text.error().code() == Code::kNotFound) {
    TokenizerFacts all;
    all.defined.assign(static_cast<size_t>(vocab), true);
    return all;
  }
  if (!text) return Error(text.error());
  Result<TokenizerFacts> facts = ParseDefinedTokens(*text, vocab);
  if (!facts) return Error(std::move(facts).error().Annotate("'" + path.string() + "'"));
  return facts;
}

}  // namespace levin
