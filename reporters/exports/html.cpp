// A page of HTML that needs no other file and no network: the page that was bundled when cuwarden
// was built, with the data of all reports in it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "reporters/comparison/difference.hpp"
#include "reporters/exports/exports.hpp"
#include "reporters/exports/page/packed_data.hpp"
#include "reporters/exports/page/page_json.hpp"
#include "reporters/exports/page/page_report.hpp"
#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/exports/page/page_template.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

// Leaks of the first and of the second report, for their difference.
struct ComparedLeaks {
  LeaksByFingerprint leaks;
  std::set<std::string> suppressed;
  std::unordered_map<std::string, std::uint32_t> stacks;  // fingerprint → number of a stack
};

void add_changes(const std::vector<ChangedLeak>& changes, const char* name,
                 const ComparedLeaks (&compared)[2], PageJson& rows) {
  for (const ChangedLeak& change : changes) {
    const FingerprintedLeak none;
    const FingerprintedLeak& before = change.before == nullptr ? none : *change.before;
    const FingerprintedLeak& now = change.now == nullptr ? none : *change.now;
    const FingerprintedLeak& shown = change.now == nullptr ? before : now;
    std::uint32_t stack = 0;
    for (const ComparedLeaks& side : compared)
      if (const auto known = side.stacks.find(*change.fingerprint); known != side.stacks.end())
        stack = known->second;
    PageJson row("{}");
    row.set("change", std::string(name))
        .set("fingerprint", *change.fingerprint)
        .set("kind", shown.kind)
        .set("api", shown.api)
        .set("stack", stack)
        .set("bytes_before", before.bytes)
        .set("bytes", now.bytes)
        .set("count_before", before.count)
        .set("count", now.count);
    rows.add(row.text());
  }
}

class PageFile : public CommonFile {
 public:
  void add(const IndexedReport& report, const std::string& path, Told told) override {
    StacksOfReport numbers(stacks_, report);
    reports_.add(page_report(report, path, numbers, told));
    if (++count_ > std::size(compared_)) return;
    ComparedLeaks& side = compared_[count_ - 1];
    add_suppressed_of(report, side.suppressed);
    each_leak(report, "", [&](const LeakRow& row) {
      const std::string fingerprint = printable(std::string(row.fingerprint));
      side.stacks.try_emplace(fingerprint, numbers.number_of(row.stack));
      // The page has the stack itself: texts about it are left out.
      FingerprintedLeak& leak = side.leaks[fingerprint];
      leak.kind = row.kind;
      leak.api = row.api;
      leak.count += row.count.value_or(0);
      leak.bytes += row.bytes.value_or(0);
    });
  }

  void write(Output& output, Told told) override {
    PageJson page("{}");
    page.set("version", std::string(CUWARDEN_VERSION));
    PageJson kinds("{}");
    for (std::uint8_t kind = 0; kind < kind_count; ++kind) {
      const std::string name(kind_name(Kind{kind}));
      kinds.set(name, memory_name(name, std::nullopt));
    }
    page.add("kinds", kinds.text());
    stacks_.add_to(page);
    page.add("reports", reports_.text());
    page.add("difference", count_ == std::size(compared_) ? difference() : "null");
    const std::string_view whole = page_template();
    const std::size_t mark = whole.find(page_data_mark);
    output.write(whole.substr(0, mark));
    output.write(packed_data(page.text(), told));
    output.write(whole.substr(mark + page_data_mark.size()));
  }

 private:
  std::string difference() const {
    const Difference difference =
        difference_of(compared_[0].leaks, compared_[1].leaks, compared_[1].suppressed);
    PageJson rows("[]");
    add_changes(difference.added, "new", compared_, rows);
    add_changes(difference.grown, "grown", compared_, rows);
    add_changes(difference.shrunk, "smaller", compared_, rows);
    add_changes(difference.gone, "gone", compared_, rows);
    PageJson object("{}");
    object.set("unchanged", difference.unchanged).set("suppressed", difference.suppressed);
    return object.add("rows", rows.text()).text();
  }

  PageStacks stacks_;
  PageJson reports_{"[]"};
  std::size_t count_ = 0;  // number of reports that were added
  ComparedLeaks compared_[2];
};

}  // namespace

std::unique_ptr<CommonFile> exports::html() {
  if (page_template().empty()) return nullptr;
  return std::make_unique<PageFile>();
}

}  // namespace cuwarden
