// Test results in JUnit's XML, as servers of continuous integration read them: a test for each
// leak, which fails unless the leak is known.
#include <algorithm>

#include "reporters/exports/exports.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/replace_all.hpp"

namespace cuwarden {
namespace {

// Returns the text as content of an XML element or attribute.
std::string escaped(std::string text) {
  replace_all(text, "&", "&amp;");
  replace_all(text, "<", "&lt;");
  replace_all(text, ">", "&gt;");
  replace_all(text, "\"", "&quot;");
  // The code points U+FFFE and U+FFFF are no characters of XML.
  replace_all(text, "\xef\xbf\xbe", "?");
  replace_all(text, "\xef\xbf\xbf", "?");
  return text;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + escaped(value) + "\"";
}

std::string test_of(const std::string& fingerprint, const FingerprintedLeak& leak,
                    const std::string& known) {
  const std::string size = human_bytes(leak.bytes) + " in " + counted(leak.count, leak.kind);
  std::string text = "    <testcase";
  text += attribute("classname", leak.kind + (leak.api.empty() ? "" : "." + leak.api));
  text += attribute("name", (leak.caller.empty() ? "" : leak.caller + " ") + fingerprint);
  if (!leak.file.empty()) text += attribute("file", leak.file);
  if (!leak.file.empty() && leak.line != 0) text += attribute("line", std::to_string(leak.line));
  text += ">\n";
  if (!known.empty()) {
    text += "      <skipped" + attribute("message", known + ": " + size) + "/>\n";
  } else {
    std::string steps = words_of_steps(leak.named_steps, leak.count);
    if (!steps.empty()) steps = "made " + steps + "\n";
    text += "      <failure type=\"leak\"" + attribute("message", size + " never freed") + ">" +
            escaped(leak.where + "\n" + steps + leak.stack) + "</failure>\n";
  }
  return text + "    </testcase>\n";
}

}  // namespace

std::string exports::junit(const ExportedLeaks& given) {
  std::string tests;
  std::size_t failures = 0, known = 0;
  for (const auto& [fingerprint, leak] : given.leaks) {
    const std::string words = words_about_known(given, fingerprint, leak);
    ++(words.empty() ? failures : known);
    tests += test_of(fingerprint, leak, words);
  }
  // Servers take results without a test for a run that went wrong.
  if (tests.empty()) tests = "    <testcase classname=\"cuwarden\" name=\"no leaks\"/>\n";
  const std::string numbers =
      attribute("tests", std::to_string(std::max<std::size_t>(given.leaks.size(), 1))) +
      attribute("failures", std::to_string(failures)) + attribute("skipped", std::to_string(known));
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
         "  <testsuite name=\"GPU memory leaks\"" +
         numbers + ">\n" + tests + "  </testsuite>\n</testsuites>\n";
}

}  // namespace cuwarden
