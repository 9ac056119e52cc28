// The interface of a library that brings a caching allocator of its own, as frameworks do.
#pragma once

#include <cstddef>

extern "C" {
// Returns the address of `bytes` bytes of device memory for a tensor; null if the device has too
// little memory even after the cache was emptied. The memory may be a block of the cache, which is
// up to twice as large.
void* tensor_cache_allocate(std::size_t bytes);
// Keeps a tensor's memory in the library's cache: the device does not get it back. `tensor`: an
// address that tensor_cache_allocate() has returned; other addresses are ignored.
void tensor_cache_release(void* tensor);
// Returns the bytes of device memory that the cache keeps for later tensors.
std::size_t tensor_cache_idle_bytes();
// Gives all memory that the cache keeps for later tensors back to the device.
void tensor_cache_empty();
}
