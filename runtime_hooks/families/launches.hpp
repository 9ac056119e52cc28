// Launches of kernels. The first of each brings its code to the device, and where its threads need
// more local memory than any before, that for as many threads as the device can hold at once.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/families/hooked_call.hpp"
#include "runtime_hooks/families/launched_kernels.hpp"

namespace cuwarden::families {

// The kernel among a launch's arguments.
template <class... Rest>
constexpr CUfunction kernel_among(CUfunction kernel, Rest...) {
  return kernel;
}
template <class First, class... Rest>
constexpr CUfunction kernel_among(First, CUfunction kernel, Rest...) {
  return kernel;
}

class FirstLaunch {
 public:
  FirstLaunch(HookedCall&, CUfunction) noexcept;
  void done(CUresult) noexcept;

 private:
  std::uint64_t local_bytes() const noexcept;
  bool was_captured(std::optional<std::int64_t> taken) const noexcept;
  void failed(std::int64_t taken) noexcept;
  std::uint64_t bytes_that_lacked(CUresult) const noexcept;
  void succeeded(std::optional<std::int64_t> taken) noexcept;
  HookedCall& call_;
  const CUfunction kernel_;
  ImplicitSpan span_;
  Place here_;
  std::uint64_t local_needed_ = 0;  // for a thread; 0: not known, or none
};

// Around the instantiation of a graph, which takes what its kernels need, where one was captured
// that needs more local memory than any before.
class GraphInstantiation {
 public:
  explicit GraphInstantiation(HookedCall&) noexcept;
  void done() noexcept;

 private:
  HookedCall& call_;
  ImplicitSpan span_;
  Place here_;
};

template <class Launch>
CUresult first_launch(HookedCall& call, CUfunction kernel, Launch launch) {
  FirstLaunch first(call, kernel);
  const CUresult result = launch();
  first.done(result);
  return result;
}

}  // namespace cuwarden::families
