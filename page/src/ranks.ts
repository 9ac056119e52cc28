// The section about several reports, such as those of the ranks of a job: a row for each.
import type { Page, RawReport } from './data';
import { h, section } from './dom';
import { DataTable } from './table';
import { bytes, processName } from './words';

function peakOf(report: RawReport): number {
  return report.totals.peak_bytes.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}
function leftOf(report: RawReport): number {
  return report.groups.bytes.reduce<number>((sum, value, at) => sum + (report.groups.set_aside[at] === 0 ? (value ?? 0) : 0), 0);
}
function verdictOf(report: RawReport): string {
  const { incidents } = report;
  const failed = incidents.outcome.indexOf('failed');
  if (failed >= 0) return incidents.verdict[failed] ?? '';
  return incidents.outcome.includes('rescued') ? 'rescued' : '';
}

/** Returns the reports in the order of their ranks. Reports without a rank follow, in the order in which they were given. */
export function byRank(reports: RawReport[]): RawReport[] {
  const rankOf = (report: RawReport): number => report.process.rank ?? Number.MAX_SAFE_INTEGER;
  return [...reports].sort((one, other) => rankOf(one) - rankOf(other));
}

/**
 * Returns the time of the report's first failed request, in milliseconds since 1970; null: no request failed. A time
 * that is unknown is later than all others.
 */
function failedAt(report: RawReport): number | null {
  const { incidents, process } = report;
  const times = incidents.outcome.flatMap((outcome, at) => {
    const time = incidents.time[at] ?? null;
    return outcome !== 'failed' ? [] : [process.epoch === null || time === null ? Number.MAX_SAFE_INTEGER : process.epoch + time / 1000];
  });
  return times.length === 0 ? null : Math.min(...times);
}

/** Returns the index of the report whose request failed before those of all others; 0: no request failed. */
export function failedFirst(reports: RawReport[]): number {
  let first: { at: number; time: number } | null = null;
  for (const [at, report] of reports.entries()) {
    const time = failedAt(report);
    if (time !== null && (first === null || time < first.time)) first = { at, time };
  }
  return first?.at ?? 0;
}

/**
 * Returns the section with a row for each report. `open`: is called with the index of the report that the user chooses.
 */
export function ranksSection(page: Page, open: (at: number) => void): HTMLElement {
  const { reports } = page.raw;
  const most = Math.max(1, ...reports.map(peakOf));
  const table = new DataTable<number>({
    caption: 'All reports',
    empty: 'There are no reports.',
    most: 64,
    columns: [
      { title: 'Process', text: (at) => { const report = reports[at]; return report ? processName(report.process) : ''; },
        order: (at) => reports[at]?.process.rank ?? at,
        shown: (at) => { const report = reports[at]; return h('button', { type: 'button', class: 'quiet', onclick: () => { open(at); } }, report ? processName(report.process) : ''); } },
      { title: 'Host', text: (at) => reports[at]?.process.host ?? '' },
      { title: 'Largest peak of a kind', number: true, order: (at) => { const report = reports[at]; return report ? peakOf(report) : 0; },
        text: (at) => { const report = reports[at]; return report ? bytes(peakOf(report)) : ''; },
        shown: (at) => {
          const report = reports[at];
          const peak = report ? peakOf(report) : 0;
          const bar = h('span', { class: 'minibar', 'aria-hidden': 'true' });
          bar.style.width = `${(peak / most) * 70}px`;
          return h('span', { class: 'withbar' }, bar, bytes(peak));
        } },
      { title: 'Live at the end', number: true, text: (at) => { const report = reports[at]; return report ? bytes(leftOf(report)) : ''; }, order: (at) => { const report = reports[at]; return report ? leftOf(report) : 0; } },
      { title: 'End', long: true, text: (at) => reports[at]?.process.ending ?? '' },
      { title: 'Verdict', text: (at) => { const report = reports[at]; return report ? verdictOf(report) : ''; },
        shown: (at) => { const report = reports[at]; const verdict = report ? verdictOf(report) : ''; return h('span', { class: verdict === '' ? '' : verdict === 'rescued' ? 'chip good' : 'chip bad' }, verdict || 'none'); } },
    ],
    filter: (text) => (at) => {
      const report = reports[at];
      return report !== undefined && `${processName(report.process)} ${report.process.host ?? ''} ${report.process.path} ${verdictOf(report)} ${report.process.ending}`.toLowerCase().includes(text.toLowerCase());
    },
  });
  table.show(reports.map((_, at) => at));
  return section('ranks', `${reports.length} reports`, 'Choose a process to see its report below.', table.element);
}
