// One program's flags: each bound to a variable that holds its default. CLI11 hides behind it, its
// header costs half a minute of compile time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace levin {

class FlagSet final {
 public:
  struct Range {
    int least, most;
  };

  FlagSet(const std::string& name, const std::string& about);
  ~FlagSet();

  // `flag`: "--name" and further spellings behind commas; LEVIN_NAME is the environment's.
  void Add(const std::string& flag, std::string& value, const std::string& about);
  void AddInt(const std::string& flag, int& value, const std::string& about, Range range);
  void AddReal(const std::string& flag, double& value, const std::string& about);
  void AddPositive(const std::string& flag, float& value, const std::string& about);
  void AddList(const std::string& flag, std::vector<std::string>& values, const std::string& about);
  void AddCount(const std::string& flag, int64_t& value, const std::string& about);
  void AddBytes(const std::string& flag, int64_t& value, const std::string& about);
  void AddTime(const std::string& flag, int64_t& ms, const std::string& about);
  void AddChoice(const std::string& flag, std::string& value, std::vector<std::string> choices,
                 const std::string& about);
  void AddPositional(const std::string& name, std::string& value, const std::string& about);
  void AddFlag(const std::string& flag, bool& value, const std::string& about);
  // --name and --no-name; unset when neither is given.
  void AddSwitch(const std::string& flag, std::optional<bool>& value, const std::string& about);
  // Help does not show it.
  void AddTestHook(const std::string& flag, int& value, const std::string& about);
  // Flags that other engines' launch lines carry and that change nothing here.
  void AddIgnored();

  // Fills the variables. `help` is set when the answer is a text instead.
  Status Parse(int argc, const char* const* argv, std::string& help);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace levin
