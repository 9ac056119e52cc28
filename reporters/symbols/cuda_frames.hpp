// Tells the frames of CUDA's own libraries from those of the program, and names the runtime call
// that they came from.
#pragma once

#include <string_view>

namespace cuwarden {

// By file name: libcuda, libcudart, libnvidia-*, the simulated ones, and the shim itself.
bool is_cuda_library(std::string_view module_path) noexcept;
bool is_shared_runtime(std::string_view module_path) noexcept;  // libcudart.so*

// A function of the runtime API that allocates, without the suffix that its variants carry
// (cudaMalloc_v3020, cudaMallocAsync_ptsz, …); empty when it is none. Plain C names only:
// templates of the same name are the program's.
std::string_view runtime_entry(std::string_view function) noexcept;

// A runtime linked statically lives in the program's own file and is known by its names.
bool is_runtime_internal(std::string_view function) noexcept;

// True for a file of the CUDA toolkit's include folder, or of CCCL (Thrust, CUB, libcu++) wherever
// it lies. Debug information names such files for code that the headers put into the program.
bool is_cuda_header(std::string_view source_file) noexcept;

// A frame of CUDA, and none of the program's. Each text is empty where it is unknown. A template of
// the runtime's headers, such as cudaMalloc<float>, is told by its file, and without one by name.
bool is_cuda_frame(std::string_view module_path, std::string_view function,
                   std::string_view source_file) noexcept;

bool is_driver_api(std::string_view name) noexcept;  // cuMemAlloc_v2, …

}  // namespace cuwarden
