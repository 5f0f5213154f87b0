// The figures for people, and for programs.
#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

#include "worker/bench/kernel_bench.h"

namespace levin {
namespace {

namespace json = boost::json;

const char* NameOf(RoofKind kind) {
  switch (kind) {
    case RoofKind::kRead:
      return "read";
    case RoofKind::kRewrite:
      return "rewrite";
    case RoofKind::kArithmetic:
      return "multiply-add";
  }
  return "?";
}

template <typename... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

bool SameRow(const KernelCase& a, const KernelCase& b) {
  return a.kernel == b.kernel && a.shape == b.shape && a.weights == b.weights &&
         a.activations == b.activations;
}

std::string Cell(const KernelResult& result) {
  return Format("%lld: %.0f%% (%.1f%s)", static_cast<long long>(result.what.tokens),
                result.share() * 100, result.rate / 1e9,
                result.limit == RoofKind::kArithmetic ? " GFLOP/s" : "");
}

// A kernel's results in one row: neighbours that differ in their tokens only.
std::string Rows(const std::vector<KernelResult>& all) {
  std::string text;
  for (size_t i = 0; i < all.size();) {
    const KernelCase& what = all[i].what;
    text += "| " + what.kernel + " | " + what.shape + " | " + what.weights + " | " +
            what.activations + " | ";
    for (; i < all.size() && SameRow(what, all[i].what); ++i) {
      const bool last = i + 1 == all.size() || !SameRow(what, all[i + 1].what);
      text += last ? Cell(all[i]) : Cell(all[i]) + ", ";
    }
    text += " |\n";
  }
  return text;
}

}  // namespace

std::string KernelTable(const KernelBenchResult& result) {
  std::string text = Format("%s, %d threads, best of %d rounds\n\n",
                            std::string(Name(result.options.path)).c_str(), result.options.threads,
                            result.options.rounds);
  text += "| roof | G/s |\n|---|---|\n";
  for (const MachineRoof& roof : result.roofs) {
    text += Format("| %s | %.1f %s |\n", roof.what.c_str(), roof.rate / 1e9,
                   roof.arithmetic ? "GFLOP/s" : "GB/s");
  }
  text +=
      "\n| kernel | shape | weights | activations | tokens: share of the nearer roof (GB/s, or "
      "GFLOP/s) |\n|---|---|---|---|---|\n";
  text += Rows(result.kernels);
  return text;
}

std::string KernelJson(const KernelBenchResult& result) {
  json::array roofs, kernels;
  for (const MachineRoof& roof : result.roofs) {
    roofs.push_back(json::object{{"what", roof.what}, {"per_s", roof.rate}});
  }
  for (const KernelResult& one : result.kernels) {
    kernels.push_back(json::object{{"kernel", one.what.kernel},
                                   {"shape", one.what.shape},
                                   {"weights", one.what.weights},
                                   {"activations", one.what.activations},
                                   {"tokens", one.what.tokens},
                                   {"roof", NameOf(one.limit)},
                                   {"per_s", one.rate},
                                   {"roof_per_s", one.roof},
                                   {"share", one.share()}});
  }
  return json::serialize(json::object{{"path", Name(result.options.path)},
                                      {"threads", result.options.threads},
                                      {"rounds", result.options.rounds},
                                      {"roofs", std::move(roofs)},
                                      {"kernels", std::move(kernels)}});
}

}  // namespace levin
