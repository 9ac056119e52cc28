// Stands in for PyTorch's libc10.so: counts the reports that reach it.
#include "tests/end_to_end/programs/frameworks/c10_report.hpp"

namespace c10 {
namespace {

std::int64_t count = 0, last = 0;

}  // namespace

void reportMemoryUsageToProfiler(void*, std::int64_t bytes, ReportedSize, ReportedSize, Device) {
  ++count;
  last = bytes;
}
std::int64_t report_count() { return count; }
std::int64_t last_report() { return last; }

}  // namespace c10
