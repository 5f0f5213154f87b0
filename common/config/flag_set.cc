#include "common/config/flag_set.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "common/base/version.h"
#include "common/config/flag_names.h"
#include "common/config/ignored_flags.h"
#include "common/config/option_files.h"
#include "common/config/option_units.h"

namespace levin {

struct FlagSet::Parser {
  Parser(const std::string& name, const std::string& about) : app(about, name) {
    app.allow_extras();
    app.set_help_flag("--help,-h", "Print this help and exit");
    app.add_flag("--version", version, "Print the version and exit");
    app.option_defaults()->always_capture_default();
  }

  template <typename Value>
  CLI::Option* Add(const std::string& flag, Value& value, const std::string& about) {
    return app.add_option(flag, value, about)->envname(EnvironmentName(flag));
  }

  void AddParsed(const std::string& flag, int64_t& value, const std::string& about,
                 Result<int64_t> (*parse)(const std::string&)) {
    auto assign = [&value, parse, name = flag.substr(0, flag.find(','))](const std::string& text) {
      Result<int64_t> parsed = parse(text);
      if (!parsed) throw CLI::ValidationError(name + ": " + parsed.error().message());
      value = *parsed;
    };
    app.add_option_function<std::string>(flag, assign, about)->envname(EnvironmentName(flag));
  }

  Status Unknown(const std::string& argument) const {
    if (argument.empty() || argument[0] != '-') {
      return InvalidArgument("unexpected argument '" + argument + "'");
    }
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const std::string name = argument.substr(0, argument.find('='));
    return InvalidArgument("unknown flag '" + name + "', the nearest known one is '" +
                           NearestName(name, known) + "'");
  }

  CLI::App app;
  bool version = false;
  bool ignored = false;
  std::string ignored_value;
};

FlagSet::FlagSet(const std::string& name, const std::string& about)
    : parser_(std::make_unique<Parser>(name, about)) {}
FlagSet::~FlagSet() = default;

void FlagSet::Add(const std::string& flag, std::string& value, const std::string& about) {
  parser_->Add(flag, value, about);
}
void FlagSet::AddInt(const std::string& flag, int& value, const std::string& about, Range range) {
  parser_->Add(flag, value, about)->check(CLI::Range(range.least, range.most));
}
void FlagSet::AddReal(const std::string& flag, double& value, const std::string& about) {
  parser_->Add(flag, value, about);
}
void FlagSet::AddPositive(const std::string& flag, float& value, const std::string& about) {
  parser_->Add(flag, value, about)->check(CLI::PositiveNumber);
}
void FlagSet::AddList(const std::string& flag, std::vector<std::string>& values,
                      const std::string& about) {
  parser_->Add(flag, values, about)->delimiter(',');
}
void FlagSet::AddCount(const std::string& flag, int64_t& value, const std::string& about) {
  parser_->AddParsed(flag, value, about, &ParseCount);
}
void FlagSet::AddBytes(const std::string& flag, int64_t& value, const std::string& about) {
  parser_->AddParsed(flag, value, about, &ParseBytes);
}
void FlagSet::AddTime(const std::string& flag, int64_t& ms, const std::string& about) {
  parser_->AddParsed(flag, ms, about, &ParseTimeMs);
}
void FlagSet::AddChoice(const std::string& flag, std::string& value,
                        std::vector<std::string> choices, const std::string& about) {
  parser_->Add(flag, value, about)->check(CLI::IsMember(std::move(choices)));
}
void FlagSet::AddPositional(const std::string& name, std::string& value, const std::string& about) {
  parser_->app.add_option(name, value, about);
}
void FlagSet::AddFlag(const std::string& flag, bool& value, const std::string& about) {
  parser_->app.add_flag(flag, value, about)->envname(EnvironmentName(flag));
}
void FlagSet::AddSwitch(const std::string& flag, std::optional<bool>& value,
                        const std::string& about) {
  const std::string off = "--no-" + flag.substr(2);
  const auto assign = [&value, flag, off](int64_t balance) {
    if (balance == 0) throw CLI::ValidationError(flag + " and " + off + " are both given");
    value = balance > 0;
  };
  parser_->app.add_flag_function(flag + ",!" + off, assign, about)->envname(EnvironmentName(flag));
}
void FlagSet::AddTestHook(const std::string& flag, int& value, const std::string& about) {
  parser_->Add(flag, value, about)->group("");
}
void FlagSet::AddIgnored() {
  for (const char* flag : kIgnoredFlags) parser_->app.add_flag(flag, parser_->ignored)->group("");
  for (const char* flag : kIgnoredValues)
    parser_->app.add_option(flag, parser_->ignored_value)->group("");
}

Status FlagSet::Parse(int argc, const char* const* argv, std::string& help) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) arguments.push_back(CanonicalFlag(argv[i]));
  RETURN_IF_ERROR(ExpandOptionsFiles(arguments));
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    parser_->app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    help = parser_->app.help();
    return Status::Ok();
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(error.what());
  }
  if (parser_->version) help = std::string("levin ") + kVersion + "\n";
  for (const std::string& extra : parser_->app.remaining()) {
    RETURN_IF_ERROR(parser_->Unknown(extra));
  }
  return Status::Ok();
}

}  // namespace levin
