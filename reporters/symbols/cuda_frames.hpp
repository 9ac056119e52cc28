// Tells the frames of CUDA's own libraries from those of the program, and names the runtime call
// that they came from.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the file name is that of libcuda, libcudart, libnvidia-*, a simulated one of them, or the
// shim itself.
bool is_cuda_library(std::string_view module_path) noexcept;
// true for libcudart.so, in any version
bool is_shared_runtime(std::string_view module_path) noexcept;

// Returns the name of the allocating function of the runtime API, without the suffix of a variant
// (cudaMalloc_v3020, cudaMallocAsync_ptsz); empty if `function` is none. C++ templates of the same
// name are the program's own functions.
std::string_view runtime_entry(std::string_view function) noexcept;

// True if the function is an internal one of libcudart. A libcudart that is linked statically lies
// in the program's own file, so that only names tell.
bool is_runtime_internal(std::string_view function) noexcept;

// True for a header of the CUDA Toolkit, or of CCCL (Thrust, CUB, libcu++) in any folder. Debug
// information gives such a path for code that headers put into the program.
bool is_cuda_header(std::string_view source_file) noexcept;

// True if the frame belongs to CUDA, and not to the program. Unknown texts are empty. A template of
// the runtime's headers, such as cudaMalloc<float>, is recognised by its source file; without one,
// by its name.
bool is_cuda_frame(std::string_view module_path, std::string_view function,
                   std::string_view source_file) noexcept;

bool is_driver_api(std::string_view name) noexcept;  // true for a name such as cuMemAlloc_v2

}  // namespace cuwarden
