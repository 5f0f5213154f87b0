// Without vector instructions of our own: what the compiler makes of it.
#include "worker/bench/roof_loops.h"

namespace levin {
namespace {

struct V {
  static constexpr int kLanes = 1;
  float v;
  static V Set(float x) { return {x}; }
  static V Load(const float* p) { return {*p}; }
  void Store(float* p) const { *p = v; }
  static V Add(V a, V b) { return {a.v + b.v}; }
  static V Multiply(V a, V b) { return {a.v * b.v}; }
  static V MultiplyAdd(V a, V b, V c) { return {a.v * b.v + c.v}; }
  float First() const { return v; }
};
constexpr int kSums = 32;

#include "worker/bench/roof_loops.inc"

}  // namespace

namespace plain {
RoofLoops Loops() { return {Read, Rewrite, {"multiply and add", 2.0 * kSums, MultiplyAddLoop}}; }
}  // namespace plain

}  // namespace levin
