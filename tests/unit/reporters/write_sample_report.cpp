// Writes the report of the sample ledger, for tests that read reports with other programs.
// usage: write_sample_report PATH [times]
#include <cstdio>
#include <cstdlib>

#include "reporters/reports/report_file.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"

int main(int count, char** arguments) {
  if (count < 2) return 2;
  cuwarden::test::FakeLedger ledger;
  cuwarden::test::fill_sample(ledger);
  const auto reader = ledger.reader();
  cuwarden::ReportFile file(arguments[1]);
  const int times = count > 2 ? std::atoi(arguments[2]) : 1;
  for (int i = 0; i < times; ++i) {
    cuwarden::ReportOptions options;
    options.symbolise = i + 1 == times;
    options.end_ns = 100'000'000'000;
    if (!file.write(reader, options)) {
      std::fprintf(stderr, "%s\n", file.error().c_str());
      return 1;
    }
  }
  std::puts(file.path().c_str());
  return 0;
}
