// The interface of a third-party library that comes without sources and without debug info.
#pragma once

#include <cstddef>

extern "C" {
int vendor_filter_open();
int vendor_filter_apply(std::size_t bytes);
int vendor_filter_close();
}
