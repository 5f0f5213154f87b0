// The demo model's tokenizer, template and facts, as a router loads them. Loaded once.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/inference/served_model.h"
#include "router/text/chat_template.h"

namespace levin::testing {

inline std::string DemoDir() { return LEVIN_SOURCE_DIR "/models/levin-demo"; }

// A copy with the caller's changes to the facts.
template <typename Change>
std::unique_ptr<ServedModel> DemoModel(Change change) {
  RouterOptions options;
  options.model = DemoDir();
  options.served_model_names = {"levin-demo", "org/levin demo"};
  auto loaded = ServedModel::Load(options, 1750000000);
  EXPECT_TRUE(loaded) << loaded.error().message();
  if (!loaded) std::abort();
  ModelInfo info = (*loaded)->info();
  change(info);
  auto chat_template = ChatTemplate::Choose(info.architecture, (*loaded)->tokenizer(), "auto");
  return std::make_unique<ServedModel>(std::move(info), (*loaded)->tokenizer(),
                                       *std::move(chat_template));
}
inline std::unique_ptr<ServedModel> DemoModel() {
  return DemoModel([](ModelInfo&) {});
}

inline std::vector<TokenId> DemoIds(const ServedModel& model, std::string_view text) {
  return model.tokenizer().Encode(text, SpecialTokens::kRecognised);
}

// One token for each byte, so that every split of the text is tried at its worst.
inline std::vector<TokenId> ByteIds(const ServedModel& model, std::string_view text) {
  std::vector<TokenId> ids;
  for (char byte : text) {
    for (TokenId id = 0; id < model.tokenizer().vocab_size(); ++id) {
      if (model.tokenizer().Bytes(id) == std::string_view(&byte, 1)) {
        ids.push_back(id);
        break;
      }
    }
  }
  return ids;
}

}  // namespace levin::testing
