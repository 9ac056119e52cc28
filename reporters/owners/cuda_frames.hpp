// Tells frames of CUDA's own libraries on a call stack from those of the program, and recognises
// functions of the runtime API (libcudart) by name.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the path is that of a shared library called `name`, such as "libcudart", in any version.
// Its file may be "libcudart.so", "libcudart.so.13", or "libcudart-d0da41ae.so.11.0", as Python
// wheels rename it.
bool is_shared_library(std::string_view module_path, std::string_view name) noexcept;
// True if the path is that of libcuda, libcudart, libnvidia-* or cuwarden's own shared object, in
// any version.
bool is_cuda_library(std::string_view module_path) noexcept;
// True if the path is that of the shared runtime library, libcudart.so, in any version.
bool is_shared_runtime(std::string_view module_path) noexcept;

// Returns the name of a function of the runtime API that allocates memory, without the suffix of
// its variant: "cudaMalloc" for "cudaMalloc_v3020", "cudaMallocAsync" for "cudaMallocAsync_ptsz".
// Empty for all other functions, and for C++ templates such as cudaMalloc<float>. The result points
// into `function`.
std::string_view runtime_entry(std::string_view function) noexcept;

// True if the name is that of an internal function of libcudart, or of a runtime function that
// allocates memory (runtime_entry()). The frames of a statically linked libcudart lie in the
// program's own file, and are recognised by these names only.
bool is_runtime_internal(std::string_view function) noexcept;

// True if the path looks like that of a header of the CUDA Toolkit or of CCCL (Thrust, CUB,
// libcu++): it lies in one of their usual folders, or is cuda.h, cuda_runtime.h or
// cuda_runtime_api.h. Such a path is a frame's source file if the header's code was compiled into
// the program.
bool is_cuda_header(std::string_view source_file) noexcept;

// True if a frame of a call stack belongs to CUDA or cuwarden, and not to the program.
// `module_path`: file with the frame's code. `function`: demangled name. Each parameter is empty if
// it is unknown. Code from headers of CUDA, also of Thrust, CUB and libcu++, is recognised by the
// source file. If that is unknown, only templates such as cudaMalloc<float> are recognised, by
// their name.
bool is_cuda_frame(std::string_view module_path, std::string_view function,
                   std::string_view source_file) noexcept;

// True if the name has the form of a function of the driver API, such as cuMemAlloc_v2: "cu" and a
// capital letter.
bool is_driver_api(std::string_view name) noexcept;

}  // namespace cuwarden
