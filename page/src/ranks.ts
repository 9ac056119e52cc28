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
      { title: 'Not freed', number: true, text: (at) => { const report = reports[at]; return report ? bytes(leftOf(report)) : ''; }, order: (at) => { const report = reports[at]; return report ? leftOf(report) : 0; } },
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
