// Copies of many parts of device memory, started by few calls of the driver. A call for each part
// would take longer than the copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::pool {

// A part of device memory that is to be copied. Addresses and size are multiples of 512 bytes. The
// copy does not overlap the original.
struct CopyPart {
  // Addresses that the part is copied to and from. The current context's device may access both.
  std::uint64_t to = 0, from = 0;
  // Size of the part in bytes; not 0.
  std::uint64_t bytes = 0;
};

// A kernel that copies parts of device memory, loaded into one context. The kernel takes no memory
// besides that of its code. Has no destructor, because the driver unloads the code when the context
// ends.
class CopyKernel {
 public:
  // Most parts that one launch of the kernel copies. The list of them is the kernel's parameter,
  // which has at most 4096 bytes.
  static constexpr std::size_t most_parts = 170;

  // Loads the kernel and its code into the current context, so that no launch has to load them.
  // Invalidates no stream capture. The driver translates the kernel for the device, which may take
  // some milliseconds, and may load a library for it: the caller holds no lock. Returns false, with
  // nothing loaded, if the driver refuses or lacks a function.
  //
  // `context`: the context that must be current. Returns false, too, if it is not.
  bool load(const driver::RealDriver&, ContextId context) noexcept;
  // True if the kernel is loaded into the current context.
  bool is_here(const driver::RealDriver&) const noexcept;
  // Starts copies of the first `most_parts` parts, in the legacy default stream. No part may be
  // read or written by the copy of another one, since the copies run at the same time. Returns the
  // number of parts whose copies were started. Returns 0, with no copy started, if there are no
  // parts, the kernel is not loaded into the current context, or the driver refuses the launch.
  std::size_t start(const driver::RealDriver&, std::span<const CopyPart>) const noexcept;

 private:
  // The context that the kernel is loaded into. Null before load(), or if the driver lacks
  // cuCtxGetCurrent.
  CUcontext context_ = nullptr;
  // The loaded kernel; null before load().
  CUfunction function_ = nullptr;
};

// Starts copies of all parts in the legacy default stream: by the kernel as long as the driver
// launches it, then by a copy of the driver's for each part that is left. If the kernel is in the
// current context, no part may be read or written by the copy of another one. Otherwise, the copies
// are made one after the other. Returns false if a copy could not be started; others may be under
// way then.
bool start_copies(const driver::RealDriver&, const CopyKernel&, std::span<const CopyPart>) noexcept;

}  // namespace cuwarden::pool
