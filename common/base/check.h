// CHECK: a mistake of our own. Prints what failed and its values, then aborts; the group restarts
// and the router reports it. Never for what a user or a peer can cause.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace levin::internal {

template <typename... Args>
[[noreturn]] void CheckFailed(const char* file, int line, const char* what, const Args&... args) {
  std::ostringstream out;
  out << "CHECK failed at " << file << ':' << line << ": " << what;
  ((out << ' ' << args), ...);
  std::fprintf(stderr, "%s\n", out.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace levin::internal

// CHECK(cond, value, value...): the values are printed behind the condition.
#define CHECK(cond, ...)                                                                    \
  do {                                                                                      \
    if (!(cond)) [[unlikely]]                                                               \
      ::levin::internal::CheckFailed(__FILE__, __LINE__, #cond __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
#define CHECK_EQ(a, b) CHECK((a) == (b), (a), "!=", (b))
#define CHECK_LT(a, b) CHECK((a) < (b), (a), ">=", (b))
#define CHECK_LE(a, b) CHECK((a) <= (b), (a), ">", (b))
