// What the situations of the program `shortages` share.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

namespace shortages {

inline constexpr std::size_t MiB = 1 << 20, page = 2 * MiB;

// What the command line says.
std::string text(const char* name, const char* otherwise);
std::size_t number(const char* name, std::size_t otherwise);

struct Facts {
  std::size_t requested = 0, free = 0, figure = 0, failures = 0, served = 0;
  std::size_t held_beside = 0;  // by leave()
};
extern Facts facts;

// Of the current device, by the API that the command line names; null where it is refused.
void* allocate(std::size_t bytes);
std::size_t free_bytes();
// Leaves `room` bytes of the device, about.
void leave(std::size_t room);
// The one that is to fail.
void* request(std::size_t bytes);

// host_shortages.cpp: pinned, registered, managed.
void of_the_host(const std::string& situation);
// freeing_shortage.cpp: a stream (CUstream, or cudaStream_t) has something to do for so long.
void work_in(void* stream, std::size_t milliseconds);
void while_another_thread_frees(const std::string& situation);
// implicit_shortages.cpp: launch, stack, heap, module, streams, context. Calls that were not asked
// for memory.
void without_an_allocation(const std::string& situation);
// The same file: makes a context of the device, which is current then.
CUresult make_context();
// The same file: first_context. True where that was it.
bool before_any_context(const std::string& situation);

}  // namespace shortages
