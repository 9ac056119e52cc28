// The name and the owner of an allocation: the program's own call, outside CUDA's libraries.
#include <gtest/gtest.h>

#include "reporters/labels/group_label.hpp"
#include "reporters/owners/cuda_frames.hpp"
#include "reporters/owners/known_libraries.hpp"

namespace cuwarden {
namespace {

const char* const program_path = "/home/u/app";
const char* const runtime = "/usr/local/cuda/lib64/libcudart.so.13";
const char* const driver = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05";

GroupLabel label(std::string_view api, std::vector<NamedFrame> frames) {
  KnownLibraries libraries;
  for (NamedFrame& frame : frames) frame.library = libraries.library_of(frame);
  return label_group(api, frames);
}

TEST(Labels, a_runtime_call_that_was_hooked_keeps_its_name) {
  EXPECT_EQ(label("cudaMallocHost", {{1, program_path, "main"}}).api, "cudaMallocHost");
}

TEST(Labels, a_driver_call_inside_a_static_runtime_gets_the_outermost_runtime_name) {
  const GroupLabel result =
      label("cuMemAlloc_v2", {{1, program_path, "libcudart_static_0053c1d3"},
                              {1, program_path, "cudart::driverHelper(void**)"},
                              {1, program_path, "cudaMallocPitch"},
                              {1, program_path, "cudaMalloc"},
                              {1, program_path, "load(Mesh&)"},
                              {1, program_path, "main"}});
  EXPECT_EQ(result.api, "cudaMalloc");
  EXPECT_EQ(result.module, 1u);
}

TEST(Labels, a_driver_call_inside_a_shared_runtime_gets_the_runtime_name) {
  const GroupLabel result = label("cuMemAllocAsync_ptsz", {{3, driver, ""},
                                                           {2, runtime, ""},
                                                           {2, runtime, "cudaMallocAsync_ptsz"},
                                                           {1, program_path, "main"}});
  EXPECT_EQ(result.api, "cudaMallocAsync");
  EXPECT_EQ(result.module, 1u);
}

TEST(Labels, a_runtime_name_further_out_than_the_programs_frames_does_not_count) {
  EXPECT_EQ(
      label("cuMemAlloc_v2", {{1, program_path, "pool()"}, {1, program_path, "cudaMalloc"}}).api,
      "cuMemAlloc_v2");
}

constexpr const char* template_name = "cudaError cudaMalloc<float>(float**, unsigned long)";

TEST(Labels, a_template_of_the_programs_own_is_not_the_runtime) {
  const GroupLabel result =
      label("cuMemAlloc_v2", {{1, program_path, template_name, "/home/u/cudaMalloc.hpp"}});
  EXPECT_EQ(result.api, "cuMemAlloc_v2");
  EXPECT_EQ(result.module, 1u);
}

TEST(Labels, a_frame_of_cudas_headers_is_not_the_programs) {
  const GroupLabel result = label(
      "cudaMalloc", {{1, "/home/u/libwrapper.so", template_name, "/opt/x/include/cuda_runtime.h"},
                     {2, program_path, "main", "/home/u/main.cpp"}});
  EXPECT_EQ(result.module, 2u);
}

TEST(Labels, code_in_no_module_is_passed_over) {
  EXPECT_EQ(label("cuMemAlloc_v2", {{0, "", ""}, {1, program_path, "main"}}).module, 1u);
  EXPECT_EQ(label("cuMemAlloc_v2", {{0, "", ""}}).module, 0u);
}

TEST(CudaFrames, variants_of_an_entry_are_the_entry) {
  EXPECT_EQ(runtime_entry("cudaMalloc_v3020"), "cudaMalloc");
  EXPECT_EQ(runtime_entry("cudaMallocFromPoolAsync_ptsz"), "cudaMallocFromPoolAsync");
  EXPECT_EQ(runtime_entry("cudaMallocFancy"), "");
  EXPECT_EQ(runtime_entry("cudaMalloc_vendor"), "");
}

TEST(CudaFrames, headers_of_the_toolkit_are_told_from_those_of_the_program) {
  for (const char* const header :
       {"/usr/local/cuda/include/cuda_fp16.hpp", "/usr/local/cuda-12.4/include/crt/x.h",
        "/opt/cuda-13.0/include/crt/x.h", "/opt/sdk/include/thrust/device_vector.h",
        "/usr/local/cuda/targets/x86_64-linux/include/cccl/cub/device/device_scan.cuh",
        "/src/cccl/thrust/thrust/mr/new.h", "/x/lib/python3/site-packages/nvidia/cuda_runtime/a.h",
        "../vendored/cuda_runtime.h"}) {
    EXPECT_TRUE(is_cuda_header(header)) << header;
  }
  for (const char* const file :
       {"/home/u/cuda/include/alloc.h", "/home/u/cuda_utils.h", "/home/u/cuda-tools/include/x.h",
        "/home/u/thrust.cpp", "main.cu", "", "/opt/cuda-13.0/samples/x.cu"}) {
    EXPECT_FALSE(is_cuda_header(file)) << file;
  }
}

TEST(CudaFrames, without_a_file_a_template_is_known_by_the_name_of_an_entry) {
  EXPECT_TRUE(is_cuda_frame(program_path, template_name, ""));
  EXPECT_FALSE(is_cuda_frame(program_path, "cudaError cudaAllocateAll<float>(float**)", ""));
  EXPECT_FALSE(is_cuda_frame(program_path, "cudaError allocate(void**)", ""));
  EXPECT_TRUE(is_cuda_frame(program_path, "thrust::mr::allocate()", "/opt/include/thrust/mr.h"));
}

TEST(CudaFrames, libraries_are_known_by_their_file_names) {
  EXPECT_TRUE(is_cuda_library("/x/libcuda.so.1"));
  EXPECT_TRUE(is_cuda_library("/x/libnvidia-ptxjitcompiler.so.1"));
  EXPECT_TRUE(is_shared_runtime("/w/nvidia.libs/libcudart-d0da41ae.so.11.0"));
  EXPECT_FALSE(is_cuda_library("/x/libcudax.so"));
  EXPECT_FALSE(is_cuda_library("/x/libcufft.so.11"));
  EXPECT_FALSE(is_cuda_library("/libcuda.so/app"));
}

}  // namespace
}  // namespace cuwarden
