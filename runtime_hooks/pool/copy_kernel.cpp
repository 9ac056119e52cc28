#include "runtime_hooks/pool/copy_kernel.hpp"

#include <algorithm>

#include "runtime_hooks/driver/device_reading.hpp"

namespace cuwarden::pool {
namespace {

// The kernel's parameter.
struct CopyList {
  std::uint64_t count = 0;  // number of parts that are set
  CopyPart parts[CopyKernel::most_parts];
};
static_assert(sizeof(CopyPart) == 24 && sizeof(CopyList) == 4088);

// The kernel in the assembly language that the driver translates for each device. The block with
// the number (x, y) copies every height-th piece of 4096 bytes of part x, beginning with piece y,
// where `height` is the grid's. Each thread copies 16 bytes of a piece.
constexpr char source[] = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry cuwarden_copy_parts(.param .align 8 .b8 list[4088])
.maxntid 256, 1, 1
{
  .reg .pred %more;
  .reg .b32 %block, %thread, %threads, %height, %v<4>;
  .reg .b64 %row, %to, %from, %bytes, %at, %step, %read, %write;

  mov.u32 %block, %ctaid.x;
  mul.wide.u32 %row, %block, 24;
  mov.b64 %at, list;
  add.s64 %row, %at, %row;
  ld.param.u64 %to, [%row+8];
  ld.param.u64 %from, [%row+16];
  ld.param.u64 %bytes, [%row+24];
  cvta.to.global.u64 %to, %to;
  cvta.to.global.u64 %from, %from;

  mov.u32 %threads, %ntid.x;
  mov.u32 %block, %ctaid.y;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %thread, %block, %threads, %thread;
  mul.wide.u32 %at, %thread, 16;
  mov.u32 %height, %nctaid.y;
  mul.lo.u32 %height, %height, %threads;
  mul.wide.u32 %step, %height, 16;

  setp.ge.u64 %more, %at, %bytes;
  @%more bra done;
next:
  add.s64 %read, %from, %at;
  add.s64 %write, %to, %at;
  ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%read];
  st.global.v4.u32 [%write], {%v0, %v1, %v2, %v3};
  add.s64 %at, %at, %step;
  setp.lt.u64 %more, %at, %bytes;
  @%more bra next;
done:
  ret;
}
)";

constexpr unsigned threads = 256;
// Bytes that the threads of a block copy at once, and most blocks that copy one part.
constexpr std::uint64_t piece_bytes = threads * 16, most_height = 32;

// Has the driver load the kernel's code now. Drivers before CUDA 12.4 have no function for that,
// but load the code of a kernel whose attributes they tell.
bool load_code(const driver::RealDriver& real, CUfunction kernel) {
  if (real.cuFuncLoad != nullptr) return real.cuFuncLoad(kernel) == CUDA_SUCCESS;
  int registers = 0;
  return real.cuFuncGetAttribute != nullptr &&
         real.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel) == CUDA_SUCCESS;
}

// Returns the current context; null if there is none, or if the driver cannot tell.
CUcontext current_context(const driver::RealDriver& real) {
  CUcontext current = nullptr;
  return real.cuCtxGetCurrent != nullptr && real.cuCtxGetCurrent(&current) == CUDA_SUCCESS
             ? current
             : nullptr;
}

}  // namespace

bool CopyKernel::load(const driver::RealDriver& real, ContextId context) noexcept {
  // A green context may be current, which ends before the context that it belongs to.
  if ((real.cuCtxGetCurrent != nullptr &&
       reinterpret_cast<std::uint64_t>(current_context(real)) != context.value) ||
      real.cuModuleLoadData == nullptr || real.cuModuleGetFunction == nullptr ||
      real.cuModuleUnload == nullptr || real.cuLaunchKernel == nullptr)
    return false;
  const driver::RelaxedCaptures relaxed(real);
  CUmodule module = nullptr;
  CUfunction found = nullptr;
  if (!relaxed || real.cuModuleLoadData(&module, source) != CUDA_SUCCESS) return false;
  if (real.cuModuleGetFunction(&found, module, "cuwarden_copy_parts") != CUDA_SUCCESS ||
      !load_code(real, found)) {
    real.cuModuleUnload(module);
    return false;
  }
  context_ = current_context(real);
  function_ = found;
  return true;
}

bool CopyKernel::is_here(const driver::RealDriver& real) const noexcept {
  return function_ != nullptr && current_context(real) == context_;
}

std::size_t CopyKernel::start(const driver::RealDriver& real,
                              std::span<const CopyPart> parts) const noexcept {
  const auto copied = parts.first(std::min(parts.size(), most_parts));
  if (copied.empty() || !is_here(real)) return 0;
  CopyList list{.count = copied.size(), .parts = {}};
  std::ranges::copy(copied, list.parts);
  std::uint64_t most_bytes = 0;
  for (const CopyPart& part : copied) most_bytes = std::max(most_bytes, part.bytes);
  const std::uint64_t height = std::clamp<std::uint64_t>(most_bytes / piece_bytes, 1, most_height);
  void* parameters[] = {&list};
  return real.cuLaunchKernel(function_, static_cast<unsigned>(copied.size()),
                             static_cast<unsigned>(height), 1, threads, 1, 1, 0, nullptr,
                             parameters, nullptr) == CUDA_SUCCESS
             ? copied.size()
             : 0;
}

bool start_copies(const driver::RealDriver& real, const CopyKernel& kernel,
                  std::span<const CopyPart> parts) noexcept {
  for (std::size_t started = 0; !parts.empty(); parts = parts.subspan(started)) {
    started = kernel.start(real, parts);
    if (started == 0) break;
  }
  return std::ranges::all_of(parts, [&](const CopyPart& part) {
    return real.cuMemcpyDtoDAsync_v2(part.to, part.from, part.bytes, nullptr) == CUDA_SUCCESS;
  });
}

}  // namespace cuwarden::pool
