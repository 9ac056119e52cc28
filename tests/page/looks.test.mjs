// Every page can be read: at three sizes of the window, in light and dark colours, with a screen reader.
import { after, before, test } from 'node:test';

import { checkAccessibility, checkWidth, exported, sampleReport, start, stop, withPage } from './browser.mjs';
import { crowdedDevice, hostileReport, manyRanks } from './made_reports.mjs';

const looks = [{ width: 1440, colours: 'light' }, { width: 800, colours: 'dark' }, { width: 390, colours: 'light' }];
const pages = {};

before(async () => {
  await start();
  for (const sample of ['churn', 'lost_on_throw', 'streams'])
    pages[sample] = exported(sample, sampleReport(sample));
  const one = sampleReport('batch_of_one');
  const other = sampleReport('pinned_leak');
  pages.hostile = exported('hostile', hostileReport(one));
  pages.crowded = exported('crowded', crowdedDevice(one));
  pages.two_reports = exported('two', one, other);
  pages.ranks = exported('ranks', ...manyRanks(one, 12));
});
after(stop);

for (const name of ['churn', 'lost_on_throw', 'streams', 'crowded', 'hostile', 'two_reports', 'ranks']) {
  for (const look of looks) {
    test(`${name} can be read at ${look.width} pixels in ${look.colours} colours`, async () => {
      await withPage(pages[name], look, async (page) => {
        await checkWidth(page);
        // Opened rows and lists are read, too.
        for (const closed of await page.locator('button.open').all()) if (await closed.isVisible()) { await closed.click(); break; }
        await page.evaluate(() => { for (const details of document.querySelectorAll('details')) details.open = true; });
        await page.waitForFunction(() => [...document.querySelectorAll('.notice > details')].every((details) => details.childElementCount > 1));
        await checkAccessibility(page);
        await checkWidth(page);
      });
    });
  }
}
