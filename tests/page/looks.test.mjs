// Every page can be read: at three sizes of the window, in light and dark colours, with a screen reader.
import { after, before, test } from 'node:test';

import { checkLooks, exported, sampleReport, start, stop } from './browser.mjs';
import { hostileReport, manyRanks } from './made_reports.mjs';

const pages = {};

before(async () => {
  await start();
  for (const sample of ['churn', 'lost_on_throw', 'streams'])
    pages[sample] = exported(sample, sampleReport(sample));
  const one = sampleReport('batch_of_one');
  const other = sampleReport('pinned_leak');
  pages.hostile = exported('hostile', hostileReport(one));
  pages.two_reports = exported('two', one, other);
  pages.ranks = exported('ranks', ...manyRanks(one, 12));
});
after(stop);

for (const name of ['churn', 'lost_on_throw', 'streams', 'hostile', 'two_reports', 'ranks']) {
  test(`${name} can be read`, async (all) => {
    await checkLooks(all, pages[name]);
  });
}
