// One object {"name": ..., "arguments": ...} of M1's call block while it streams.
#pragma once

#include <cstdint>
#include <string>

#include "router/text/argument_scanner.h"

namespace levin {

class CallScanner final {
 public:
  // The first byte is the '{'. kDone: the object closed, with a call in it; kBroken: the byte was
  // not taken; what came is a call as far as it goes if committed(), else no call.
  Scan Step(char c);

  // A call exists: the name is complete and the arguments have begun, or the object has closed.
  bool committed() const { return committed_; }
  const std::string& name() const { return name_; }
  // What became known of the arguments since the last time. Empty before the commit.
  std::string TakeArguments();

 private:
  Scan StepKey(char c);
  Scan StepValue(char c);
  Scan BeginValue(char c);
  Scan Close();

  enum class State : uint8_t {
    kStart,
    kBeforeKey,
    kKey,
    kBeforeColon,
    kBeforeValue,
    kValue,
    kAfterValue
  };
  enum class Meaning : uint8_t { kName, kArguments, kOther };

  State state_ = State::kStart;
  Meaning meaning_ = Meaning::kOther;
  StringScanner string_;   // of a key or of the name
  ArgumentScanner value_;  // of the arguments or of an unknown key
  std::string key_, name_, arguments_, ignored_;
  bool comma_ = false;  // a key must follow
  bool named_ = false, has_arguments_ = false, committed_ = false;
};

}  // namespace levin
