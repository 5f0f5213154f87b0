#include "cli/eval_compare.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string_view>

namespace levin {
namespace {

// In the order of the network within a layer, then what comes behind the last layer.
constexpr std::array<std::string_view, 8> kOrder = {
    "after_attention", "router_logits", "experts", "after_mlp",
    "state",           "final_norm",    "logits",  "greedy"};

size_t Rank(std::string_view what) {
  return static_cast<size_t>(std::find(kOrder.begin(), kOrder.end(), what) - kOrder.begin());
}

// Numbers and ids alike as doubles: ids are far below 2^53.
Result<std::vector<double>> ReadValues(const SafetensorsFile& file, const StoredTensor& tensor) {
  const auto as_doubles = [&]<typename T>(T) -> Result<std::vector<double>> {
    std::vector<T> values(static_cast<size_t>(tensor.bytes) / sizeof(T));
    RETURN_ERROR_IF(file.Read(tensor, 0, std::as_writable_bytes(std::span(values))));
    return std::vector<double>(values.begin(), values.end());
  };
  if (tensor.dtype == "F32") return as_doubles(float{});
  if (tensor.dtype == "F64") return as_doubles(double{});
  if (tensor.dtype == "I64") return as_doubles(int64_t{});
  if (tensor.dtype == "I32") return as_doubles(int32_t{});
  return Error(InvalidArgument("'" + file.path().string() + "': tensor '" + tensor.name + "' is " +
                               tensor.dtype + ", expected F32, F64, I32 or I64"));
}

// A tensor of the reference, taken apart: NAME.logits, NAME.greedy, NAME.state.LAYER,
// NAME.trace.WHAT with layers in the second dimension.
struct Part {
  std::string what;
  int32_t layer = -1;
  bool layered = false;
};

std::optional<Part> PartOf(std::string_view rest) {
  if (rest == "logits" || rest == "greedy") return Part{std::string(rest)};
  constexpr std::string_view kState = "state.", kTrace = "trace.";
  if (rest.starts_with(kState)) {
    rest.remove_prefix(kState.size());
    Part part{"state"};
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), part.layer);
    if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
    return part;
  }
  if (!rest.starts_with(kTrace)) return std::nullopt;
  rest.remove_prefix(kTrace.size());
  if (rest == "final_norm") return Part{std::string(rest)};
  if (Rank(rest) > Rank("after_mlp")) return std::nullopt;
  return Part{std::string(rest), -1, true};
}

// Rows [positions or heads], each of `width` values of one layer.
struct Values {
  std::vector<double> all;
  int64_t rows = 0, layers = 1, width = 0;

  double at(int64_t row, int64_t layer, int64_t i) const {
    return all[static_cast<size_t>((row * layers + layer) * width + i)];
  }
};

Result<Values> Load(const SafetensorsFile& file, const StoredTensor& tensor, const Part& part) {
  Values values;
  ASSIGN_OR_RETURN(values.all, ReadValues(file, tensor));
  values.rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  if (part.layered && tensor.shape.size() != 3)
    return Error(InvalidArgument("'" + file.path().string() + "': tensor '" + tensor.name +
                                 "' has shape " + ShapeText(tensor.shape) +
                                 ", expected [positions, layers, width]"));
  if (part.layered) values.layers = tensor.shape[1];
  const int64_t rows = std::max<int64_t>(values.rows * values.layers, 1);
  values.width = static_cast<int64_t>(values.all.size()) / rows;
  return values;
}

bool AreIds(std::string_view what) { return what == "experts" || what == "greedy"; }

ValueDifference Differ(const Values& run, const Values& reference, int64_t layer, bool ids,
                       double tolerance) {
  ValueDifference out;
  double largest = 0;
  for (int64_t row = 0; row < reference.rows; ++row)
    for (int64_t i = 0; i < reference.width; ++i)
      largest = std::max(largest, std::abs(reference.at(row, layer, i)));
  if (largest == 0) largest = 1;
  out.first_row = -1;
  const int64_t skipped = run.rows - reference.rows;
  for (int64_t row = 0; row < reference.rows; ++row) {
    double worst = 0;
    for (int64_t i = 0; i < reference.width; ++i) {
      const double difference =
          std::abs(run.at(row + skipped, layer, i) - reference.at(row, layer, i));
      if (ids) {
        worst += difference != 0 ? 1 : 0;
      } else if (!(difference <= worst)) {  // a NaN is the worst of all
        worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
      }
    }
    out.absolute = ids ? out.absolute + worst : std::max(out.absolute, worst);
    const bool outside = ids ? worst > 0 : !(worst / largest <= tolerance);
    if (outside && out.first_row < 0) out.first_row = row;
  }
  out.relative = ids ? out.absolute : out.absolute / largest;
  return out;
}

Status Compare(const SafetensorsFile& run, const SafetensorsFile& reference,
               const StoredTensor& wanted, const std::string& prompt, const Part& part,
               double tolerance, EvalComparison& out) {
  const StoredTensor* got = run.Find(wanted.name);
  if (got == nullptr) {
    out.unmatched.push_back(wanted.name);
    return Status::Ok();
  }
  ASSIGN_OR_RETURN_STATUS(const Values values, Load(run, *got, part));
  ASSIGN_OR_RETURN_STATUS(const Values known, Load(reference, wanted, part));
  const bool rows_fit =
      part.what == "logits" ? known.rows <= values.rows : known.rows == values.rows;
  if (!rows_fit || known.layers != values.layers || known.width != values.width)
    return InvalidArgument("'" + wanted.name + "' has shape " + ShapeText(got->shape) +
                           ", the reference's is " + ShapeText(wanted.shape));
  for (int64_t layer = 0; layer < known.layers; ++layer) {
    ValueDifference value = Differ(values, known, layer, AreIds(part.what), tolerance);
    value.prompt = prompt;
    value.what = part.what;
    value.layer = part.layered ? static_cast<int32_t>(layer) : part.layer;
    out.values.push_back(std::move(value));
  }
  return Status::Ok();
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

std::string Cell(const ValueDifference& value) {
  if (AreIds(value.what)) return value.what + " " + Number(value.absolute) + " differ";
  return value.what + " " + Number(value.absolute) + " (" + Number(value.relative) + ")";
}

std::string Place(const ValueDifference& value) {
  return "prompt '" + value.prompt + "', " +
         (value.layer >= 0 ? "layer " + std::to_string(value.layer) + ", " : std::string()) +
         value.what;
}

}  // namespace

bool Within(const ValueDifference& value, double tolerance) {
  return AreIds(value.what) ? value.absolute == 0 : value.relative <= tolerance;
}

Result<EvalComparison> CompareEval(const SafetensorsFile& run, const SafetensorsFile& reference,
                                   std::span<const std::string> prompts, double tolerance) {
  EvalComparison out;
  for (const std::string& prompt : prompts) {
    const size_t first = out.values.size();
    for (const StoredTensor& tensor : reference.tensors()) {
      if (!tensor.name.starts_with(prompt + ".")) continue;
      const std::string rest = tensor.name.substr(prompt.size() + 1);
      const std::optional<Part> part = PartOf(rest);
      if (part) {
        RETURN_ERROR_IF(Compare(run, reference, tensor, prompt, *part, tolerance, out));
      } else if (rest != "ids") {
        out.unmatched.push_back(tensor.name);
      }
    }
    // What belongs to no layer comes behind all layers.
    const auto place = [](const ValueDifference& value) {
      return std::pair(static_cast<uint32_t>(value.layer), Rank(value.what));
    };
    std::sort(out.values.begin() + static_cast<ptrdiff_t>(first), out.values.end(),
              [&](const auto& a, const auto& b) { return place(a) < place(b); });
  }
  if (out.values.empty())
    return Error(
        InvalidArgument("'" + reference.path().string() +
                        "' has no known values of the prompts: expected tensors such as '" +
                        (prompts.empty() ? std::string("NAME") : prompts[0]) + ".logits'"));
  return out;
}

std::string ComparisonText(const EvalComparison& comparison, double tolerance) {
  std::string text = "largest absolute difference (and relative to the layer's largest value)\n";
  const ValueDifference* outside = nullptr;
  const ValueDifference* before = nullptr;
  for (const ValueDifference& value : comparison.values) {
    const bool same_line =
        before != nullptr && before->prompt == value.prompt && before->layer == value.layer;
    if (!same_line) {
      if (before != nullptr) text += '\n';
      text += value.prompt;
      text += value.layer >= 0 ? " layer " + std::to_string(value.layer) + ": " : " end: ";
    } else {
      text += ", ";
    }
    text += Cell(value);
    if (outside == nullptr && !Within(value, tolerance)) outside = &value;
    before = &value;
  }
  text += '\n';
  if (!comparison.unmatched.empty())
    text += std::to_string(comparison.unmatched.size()) +
            " tensors of the reference have no counterpart, the first is '" +
            comparison.unmatched.front() + "'\n";
  if (outside == nullptr) return text + "all within " + Number(tolerance) + "\n";
  return text + "first outside " + Number(tolerance) + ": " + Place(*outside) + ", row " +
         std::to_string(outside->first_row) + "\n";
}

}  // namespace levin
