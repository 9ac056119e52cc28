// Kernels as PTX text, which a real driver and the simulated one load.
#pragma once

#include <cuda.h>

#include <string>

namespace cuwarden::kernels {

// Returns the PTX text of a kernel of this name, without the lines of `head`. `local_bytes`: size
// of an array that each thread has in local memory; 0: none. The kernel's parameters: `out`, the
// device address to which it stores a number, and `at`, an index in the array. The kernel writes
// the array at this index, which is known only when it runs, so that no compiler can do without the
// array.
inline std::string text_of(const std::string& name, int local_bytes) {
  std::string text = ".visible .entry " + name + "(.param .u64 out, .param .u32 at)\n{\n";
  if (local_bytes != 0)
    text += "  .local .align 16 .b8 scratch[" + std::to_string(local_bytes) + "];\n";
  text += R"(  .reg .b32 %r<4>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [out];
  ld.param.u32 %r1, [at];
  mov.u32 %r2, 7;
)";
  if (local_bytes != 0)
    text += R"(  mov.u64 %d2, scratch;
  cvt.u64.u32 %d3, %r1;
  add.s64 %d2, %d2, %d3;
  st.local.u32 [%d2], %r1;
  ld.local.u32 %r2, [%d2+4];
)";
  return text + R"(  cvta.to.global.u64 %d1, %d1;
  st.global.u32 [%d1], %r2;
  ret;
}
)";
}

// Returns the PTX text of a kernel that does nothing and has no parameters, without the lines of
// `head`. `name`: the kernel's.
inline std::string text_of_idle(const std::string& name) {
  return ".visible .entry " + name + "() { ret; }\n";
}

// Returns the PTX text of a kernel that calls malloc(), without the lines of `head`. `entry`: name
// and parameters of the kernel, such as "_Z4listv()". The text may stand only once in a module.
inline std::string text_with_malloc(const std::string& entry) {
  return ".extern .func (.param .b64 memory) malloc (.param .b64 bytes);\n.visible .entry " +
         entry +
         R"(
{
  .reg .b64 %d<3>;
  mov.u64 %d1, 256;
  {
    .param .b64 bytes;
    .param .b64 memory;
    st.param.b64 [bytes], %d1;
    call.uni (memory), malloc, (bytes);
    ld.param.b64 %d2, [memory];
  }
  ret;
}
)";
}

// Lines at the start of each PTX text: PTX version, oldest GPU on which it runs, size of addresses.
inline const std::string head = ".version 7.0\n.target sm_70\n.address_size 64\n";
// PTX text of a module with the kernel `plain`, which needs no local memory.
inline const std::string plain_code = head + text_of("plain", 0);
// PTX text of a module with the kernel `deep`, whose threads need 16 KiB of local memory each.
inline const std::string deep_code = head + text_of("deep", 16384);
// PTX text of a module with the kernel `plain` and the variable `big`, which takes 16 MiB of the
// device.
inline const std::string large_code =
    head + ".visible .global .align 16 .b8 big[16777216];\n" + text_of("plain", 0);

// Launches one thread of a kernel that text_of() describes, in the legacy default stream. `out`:
// device address to which the kernel stores its number. Returns the driver's result.
inline CUresult launch(CUfunction kernel, CUdeviceptr out) {
  unsigned at = 4;
  void* arguments[] = {&out, &at};
  return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
}

// Adds `count` launches of the kernel to the graph, one after the other. `out`: device address to
// which the kernel stores its number. Returns the driver's first error; CUDA_SUCCESS if there is
// none.
inline CUresult add_launches(CUgraph graph, CUfunction kernel, CUdeviceptr out, int count) {
  unsigned at = 4;
  void* arguments[] = {&out, &at};
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = kernel;
  node.gridDimX = node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = node.blockDimY = node.blockDimZ = 1;
  node.kernelParams = arguments;
  CUgraphNode last = nullptr;
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    const CUgraphNode before = last;
    result = cuGraphAddKernelNode(&last, graph, &before, i == 0 ? 0 : 1, &node);
  }
  return result;
}

// Adds two nodes to the graph: the first allocates `bytes` on the device, the second frees them.
// Returns the driver's first error; CUDA_SUCCESS if there is none.
inline CUresult add_memory(CUgraph graph, CUdevice device, std::size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  wanted.bytesize = bytes;
  CUgraphNode made = nullptr, freed = nullptr;
  const CUresult result = cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &wanted);
  return result != CUDA_SUCCESS ? result
                                : cuGraphAddMemFreeNode(&freed, graph, &made, 1, wanted.dptr);
}

}  // namespace cuwarden::kernels
