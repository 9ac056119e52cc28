// Functions that the situations of the program `shortages` share.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

namespace shortages {

inline constexpr std::size_t MiB = 1 << 20, page = 2 * MiB;

// Return the value of an argument name=value; `otherwise` if it is missing.
std::string text(const char* name, const char* otherwise);
std::size_t number(const char* name, std::size_t otherwise);

struct Facts {
  std::size_t requested = 0, free = 0, figure = 0, failures = 0, served = 0;
  std::size_t held_beside = 0;  // bytes that leave() holds
};
extern Facts facts;

// Allocates memory of the current device by the API that the command line names; null if refused.
void* allocate(std::size_t bytes);
std::size_t free_bytes();
// Allocates device memory until about `room` bytes are free.
void leave(std::size_t room);
// Makes the request that is to fail, and notes the facts about it.
void* request(std::size_t bytes);

// In host_shortages.cpp: the situations pinned, registered and managed.
void of_the_host(const std::string& situation);
// In freeing_shortage.cpp: keeps a stream (CUstream, or cudaStream_t) busy for this time.
void work_in(void* stream, std::size_t milliseconds);
void while_another_thread_frees(const std::string& situation);
// In implicit_shortages.cpp: the situations launch, stack, heap, module, streams and context, in
// which a call fails that does not ask for memory.
void without_an_allocation(const std::string& situation);
// In implicit_shortages.cpp: makes a context of the device and makes it current.
CUresult make_context();
// In implicit_shortages.cpp: runs the situation first_context. Returns true if `situation` is that
// one.
bool before_any_context(const std::string& situation);

}  // namespace shortages
