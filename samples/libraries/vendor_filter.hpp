// The interface of a third-party library that comes without sources and without debug info.
#pragma once

#include <cstddef>

extern "C" {
// Allocates 64 KiB of device memory for tables. Returns 0; -1 if that fails.
int vendor_filter_open();
// Allocates a work space of `bytes` bytes of device memory, and fills it with zeros. Forgets that
// of the last call without freeing it: a leak. Returns 0; -1 if that fails.
int vendor_filter_apply(std::size_t bytes);
// Frees the tables of vendor_filter_open(). Returns 0; -1 if that fails.
int vendor_filter_close();
}
