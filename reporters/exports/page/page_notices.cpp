#include "reporters/exports/page/page_notices.hpp"

#include <algorithm>
#include <vector>

#include "reporters/exports/page/page_json.hpp"
#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/text/elements/process_ending.hpp"
#include "reporters/text/elements/ranked_leaks.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/headline/headline.hpp"
#include "reporters/text/text_history.hpp"
#include "reporters/text/text_incidents.hpp"
#include "reporters/text/text_leaks.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

// The leaks are passed over twice to see if they were only alive at the exit.
static_assert(passes_of_notices == passes_of_headline + 2 + passes_of_main_leaks);

namespace {

constexpr std::size_t most_incidents = 5, most_leaks = 3;

// Returns the lines of a text, without blanks around them and without empty lines.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (!line.empty()) lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// A notice about the report.
struct Notice {
  const char* tone;
  std::string title;
  std::vector<std::string> lines{};
  std::uint32_t stack = 0;
  model::MaybeId incident{};
};

Notice notice_of(const char* tone, std::vector<std::string> lines) {
  if (lines.empty()) return {tone, {}};
  std::string title = std::move(lines.front());
  lines.erase(lines.begin());
  return {tone, std::move(title), std::move(lines)};
}

// Adds the headline of the report.
void add_headline(const IndexedReport& report, const Headline& headline, StacksOfReport& stacks,
                  std::vector<Notice>& notices) {
  Notice notice{headline.gravity == Gravity::alarm     ? "bad"
                : headline.gravity == Gravity::caution ? "warning"
                                                       : "good",
                headline.line()};
  for (const std::string& line :
       {headline.advice.empty() ? "" : "To do: " + headline.advice, headline.cause})
    if (!line.empty()) notice.lines.push_back(line);
  notice.incident = headline.incident;
  for (const model::Incident& incident : report->incidents) {
    if (incident.id != headline.incident) continue;
    notice.stack = stacks.number_of(incident.stack);
    std::string text;
    add_incident_words(report, incident, true, Style(false), text);
    const std::vector<std::string> evidence = lines_of(text);
    notice.lines.insert(notice.lines.end(), evidence.begin() + 1, evidence.end());
  }
  notices.push_back(std::move(notice));
}

void add_end(const IndexedReport& report, std::vector<Notice>& notices) {
  const model::Process& process = report->process;
  const std::string program = text_or(process.program, "unknown program");
  notices.push_back({"plain", std::string(file_name(program)) + " (pid " +
                                  std::to_string(process.pid.value_or(0)) + " on " +
                                  text_or(process.host, "an unknown host") + ") " +
                                  words_about_end(report)});
}

void add_incidents(const IndexedReport& report, model::MaybeId of_headline, StacksOfReport& stacks,
                   std::vector<Notice>& notices) {
  std::size_t failed = 0, served = 0;
  for (const bool rescued : {false, true}) {
    for (const model::Incident& incident : report->incidents) {
      if ((incident.outcome == "rescued") != rescued || incident.outcome == "recovered_by_caller" ||
          incident.id == of_headline)
        continue;
      if ((rescued ? served : failed)++ >= most_incidents) continue;
      std::string text;
      add_incident_words(report, incident, false, Style(false), text);
      Notice notice = notice_of(rescued ? "warning" : "bad", lines_of(text));
      notice.stack = stacks.number_of(incident.stack);
      notice.incident = incident.id;
      notices.push_back(std::move(notice));
    }
  }
  const auto add_rest = [&](std::size_t count, const char* words) {
    if (count > most_incidents)
      notices.push_back({"plain", "Requests from " + human_count(count - most_incidents) +
                                      " more call stacks " + words + "; the timeline marks them"});
  };
  add_rest(failed, "failed");
  add_rest(served, "were rescued");
}

void add_leaks(const IndexedReport& report, const Headline& of_report, StacksOfReport& stacks,
               std::vector<Notice>& notices, RowDone done) {
  std::string headline;
  add_leaks_headline(report, Style(false), headline, done);
  const bool any = report->leaks.count.value_or(0) != 0;
  if (!any && of_report.line() == plain_headline(report).line()) return;
  const bool is_known = headline.starts_with("no leaks:");
  const bool is_alive = is_only_alive_at_exit(report, Style(false), done);
  Notice sum = notice_of(!any                              ? is_known ? "good" : "plain"
                         : was_running(report) || is_alive ? "plain"
                                                           : "warning",
                         lines_of(headline));
  // Scripts look for LEAKS in the text report. On the page, a heading says what the memory is.
  constexpr std::string_view in_text = "LEAKS";
  if (is_alive && sum.title.starts_with(in_text))
    sum.title.replace(0, in_text.size(), "ALIVE AT EXIT");
  notices.push_back(std::move(sum));
  const auto add = [&](const model::LeakGroup& group) {
    Notice notice{"leak", {}};
    add_leak_words(report, group, Style(false), notice.title);
    const std::string steps = words_of_steps(group.named_steps, group.count.value_or(0));
    if (!steps.empty()) notice.lines.push_back("made " + steps);
    notice.stack = stacks.number_of(group.stack);
    notices.push_back(std::move(notice));
  };
  const std::vector<model::LeakGroup> blocks = merged_blocks(report, Style(false));
  for (std::size_t i = 0; i < blocks.size() && i < most_leaks; ++i)
    if (blocks[i].growth == "growing") add(blocks[i]);
  // Small ones that are neither lost nor grow would only hide the others.
  const std::uint64_t worth_a_line = report->leaks.bytes.value_or(0) / 100;
  std::size_t shown = 0;
  for (const model::LeakGroup& group : main_leaks(report, Style(false), done)) {
    const bool is_sure = group.lost_count.value_or(0) != 0 || group.growth == "growing";
    if (!is_sure && group.bytes.value_or(0) < worth_a_line) continue;
    add(group);
    if (++shown == most_leaks) break;
  }
}

}  // namespace

std::string words_about_end(const IndexedReport& report) {
  const model::Process& process = report->process;
  return process_ending(process.end_reason, process.exit_status, process.signal) + " after " +
         human_time(process.end_ns.value_or(0));
}

std::string page_notices(const IndexedReport& report, StacksOfReport& stacks, RowDone done) {
  std::vector<Notice> notices;
  const Headline headline = headline_of(report, Style(false), done);
  add_headline(report, headline, stacks, notices);
  add_end(report, notices);
  add_incidents(report, headline.incident, stacks, notices);
  std::string text;
  add_forecasts(report, Style(false), text);
  // A further line about the same device names the line of the program's code.
  for (std::string& line : lines_of(text)) {
    if (line.starts_with("GPU "))
      notices.push_back({"warning", std::move(line)});
    else
      notices.back().lines.push_back(std::move(line));
  }
  add_leaks(report, headline, stacks, notices, done);
  PageJson list("[]");
  for (const Notice& notice : notices) {
    PageJson row("{}");
    row.set("tone", std::string(notice.tone)).set("title", notice.title);
    row.add("lines", page_column(notice.lines, [](const std::string& line) { return line; }));
    row.set("stack", notice.stack).set("incident", notice.incident);
    list.add(row.text());
  }
  return list.text();
}

}  // namespace cuwarden
