// Functions that the situations of the program `shortages` share.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

namespace shortages {

// Numbers of bytes: of a mebibyte, and of a page of the driver (2 MiB).
inline constexpr std::size_t MiB = 1 << 20, page = 2 * MiB;

// Returns the value of the command line's argument `name`=VALUE; `otherwise` if it is missing.
std::string text(const char* name, const char* otherwise);
// Returns the value of the command line's argument `name`=VALUE as a number; `otherwise` if it is
// missing.
std::size_t number(const char* name, std::size_t otherwise);

// Facts that the program itself knows about its request that is to fail. It prints them as its last
// line of output.
struct Facts {
  // requested: bytes of the request; 0 if it names none. free: free bytes of the device right
  // before it; 0 for host memory. figure: bytes that the program holds or cannot use, by its own
  // count; for host memory, those of the machine or of the limit. For calls that do not ask for
  // memory, figure is their CUresult. failures, served: numbers of requests that failed and that
  // were served.
  std::size_t requested = 0, free = 0, figure = 0, failures = 0, served = 0;
  // Bytes that leave() has allocated so that little of the device is free.
  std::size_t held_beside = 0;
};
// The facts that the program prints at its end.
extern Facts facts;

// Allocates `bytes` of the current device, by the API that the command line names (runtime or
// driver). Returns null if the request is refused.
void* allocate(std::size_t bytes);
// Returns the free bytes of the current device, as cudaMemGetInfo tells. Returns 0 if that call
// fails, as tests have it do: the program goes on then.
std::size_t free_bytes();
// Allocates device memory until about `room` bytes of the device are free. Does nothing if at most
// `room` bytes and a page are free already, or if the driver refuses.
void leave(std::size_t room);
// Makes the request that is to fail, and notes the facts about it. Returns its memory; null if it
// was refused.
void* request(std::size_t bytes);

// Runs the situation pinned, registered or managed, in which a request for host memory fails. Does
// nothing for other situations. In host_shortages.cpp.
void of_the_host(const std::string& situation);
// Keeps a stream (CUstream or cudaStream_t) busy for so many milliseconds, by a kernel. In
// freeing_shortage.cpp.
void work_in(void* stream, std::size_t milliseconds);
// Runs the situation freeing, in which another thread frees the memory that a request needs. Does
// nothing for other situations. In freeing_shortage.cpp.
void while_another_thread_frees(const std::string& situation);
// Runs the situation launch, stack, heap, module, streams or context, in which a call fails that
// does not ask for memory. Does nothing for other situations. In implicit_shortages.cpp.
void without_an_allocation(const std::string& situation);
// Makes a context of the device and makes it current. Returns the driver's result. In
// implicit_shortages.cpp.
CUresult make_context();
// Runs the situation first_context, in which the process's first context fails. Returns true if
// `situation` is that one; does nothing for others. In implicit_shortages.cpp.
bool before_any_context(const std::string& situation);

}  // namespace shortages
