// The time, size and memory that pages of small and large reports take. Each test prints its figures, which docs/page.md
// lists. The largest report is made with LARGE_COUNTS=1 only.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';

import { exported, sampleReport, start, stop, withPage, words } from './browser.mjs';
import { longTimeline, manyStacks } from './made_reports.mjs';

// Milliseconds in which an idle machine shows the first parts of a page of one call stack.
const idle = 150;
// Milliseconds after which a person should see the first parts of any page, on an idle machine.
const aim = 1000;

let from;
// Milliseconds in which this machine, as busy as it is, shows the first parts of the page of one call stack.
let least;

/** Returns the time to the first parts of the open page in milliseconds, and prints it with the page's size and memory. */
async function measure(page, file, context) {
  const painted = await page.evaluate(() => performance.getEntriesByName('first parts')[0]?.startTime);
  const memory = await page.evaluate(() => performance.memory?.usedJSHeapSize);
  context.diagnostic(`${words(fs.statSync(file).size)}, first parts after ${Math.round(painted)} ms, ${words(memory)} of JavaScript`);
  return painted;
}

/** Fails if the first parts of a page were shown late. A machine that shows the smallest page late has more time. */
function checkTime(painted) {
  const most = aim * Math.max(1, least / idle);
  assert.ok(painted <= most, `the first parts were shown after ${painted} ms, more than ${most} ms`);
}

before(async () => {
  await start();
  from = sampleReport('batch_of_one');
  await withPage(exported('smallest', manyStacks(from, 1)), {}, async (page) => {
    least = await page.evaluate(() => performance.getEntriesByName('first parts')[0].startTime);
  });
});
after(stop);

for (const count of [1, 100, 10_000]) {
  test(`the page of a report with ${count === 1 ? 'one call stack' : `${count.toLocaleString('en-US')} call stacks`} is shown soon`, async (context) => {
    const file = exported('some', manyStacks(from, count));
    await withPage(file, {}, async (page) => {
      checkTime(await measure(page, file, context));
      assert.match(await page.locator('#groups .status').innerText(), new RegExp(`${count.toLocaleString('en-US')} rows?$`));
    });
  });
}

const skip = process.env.LARGE_COUNTS ? false : 'LARGE_COUNTS is not set';
test('a hundred thousand stacks make a small page that can be searched', { skip }, async (context) => {
  const file = exported('many', manyStacks(from, 100_000));
  assert.ok(fs.statSync(file).size <= 3 * 2 ** 20, `${fs.statSync(file).size} bytes`);
  await withPage(file, {}, async (page) => {
    checkTime(await measure(page, file, context));
    assert.match(await page.locator('#groups .status').innerText(), /^25 of 100,000 rows/);
    await page.locator('#groups input').fill('work_1500');
    await page.waitForFunction(() => /of 100,000\)/.test(document.querySelector('#groups .status').textContent));
  });
});

test('the page of a report with the longest timeline is shown soon', async (context) => {
  // A report has at most 64 series: here those of eight kinds on each of eight devices.
  const kinds = ['device', 'stream_ordered', 'vmm', 'array', 'graph', 'imported', 'managed', 'framework_block'];
  const file = exported('timeline', longTimeline(from, 64, kinds));
  await withPage(file, {}, async (page) => {
    checkTime(await measure(page, file, context));
    assert.equal(await page.locator('#timeline canvas').count(), 9);
  });
});
