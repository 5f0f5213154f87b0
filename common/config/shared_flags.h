// Groups of flags that several programs share.
#pragma once

#include <string>

#include "common/config/flag_set.h"
#include "common/config/options.h"

namespace levin {

void AddLog(FlagSet& flags, LogOptions& log);
void AddTypes(FlagSet& flags, std::string& dtype, std::string& quantization);
void AddModelNumbers(FlagSet& flags, WorkerOptions& worker);
void AddCache(FlagSet& flags, WorkerOptions& worker);
void AddRouter(FlagSet& flags, RouterOptions& router);
// "off" or a port.
void AddGrpcPort(FlagSet& flags, std::string& text);

}  // namespace levin
