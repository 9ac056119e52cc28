// The charts of each device's use over time, and what else rests on moments of the run: steps, peaks and the bytes that were
// ever allocated.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { checkLooks, exported, read, sampleReport, start, stop, withPage, words, write } from './browser.mjs';
import { crowdedDevice } from './made_reports.mjs';

let crowded, file;
before(async () => {
  await start();
  crowded = crowdedDevice(sampleReport('batch_of_one'));
  file = exported('crowded', crowded);
});
after(stop);

test('the charts can be read', async (all) => {
  await checkLooks(all, file);
});

const chartOf = (page) => page.locator('#timeline .device').first();

/** Points at a moment of the first chart. */
async function pointAt(page, ns) {
  const box = await chartOf(page).locator('.u-over').boundingBox();
  await page.mouse.move(box.x + (box.width * ns) / read(crowded).process.end_ns, box.y + box.height / 2);
}

/** Returns the values of the first chart's legend by name. */
async function legendOf(page) {
  const rows = await chartOf(page).locator('.legend li').all();
  return new Map(await Promise.all(rows.map(async (row) => [
    await row.locator('span:not(.swatch):not(.value)').innerText(), await row.locator('.value').innerText(),
  ])));
}

const sumOf = (rows, field) => rows.reduce((sum, row) => sum + row[field], 0);

test('at a refused request, the legend has each part by itself, and the parts add up to the device', async () => {
  const report = read(crowded);
  const [incident] = report.incidents;
  const parts = new Map(report.accounts.filter((part) => part.incident === incident.id).map((part) => [part.item, part.bytes]));
  await withPage(file, {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    await pointAt(page, incident.time_ns);
    const legend = await legendOf(page);
    assert.equal(legend.get('device memory (GPU 0)'), words(parts.get('live_device')));
    assert.equal(legend.get('stream-ordered memory (GPU 0)'), words(parts.get('live_stream_ordered')));
    assert.equal(legend.get('other processes'), words(parts.get('other_processes')));
    assert.equal(legend.get('contexts, code and the like'), words(parts.get('context')));
    assert.equal(legend.get('locked, lost to rounding, or idle in pools'), words(parts.get('slab_waste')));
    assert.equal(legend.get('free'), words(report.devices[0].total_bytes - [...parts.values()].reduce((sum, size) => sum + size)));
    assert.equal(legend.get('refused request'), words(incident.bytes));
    const [figures] = report.frameworks;
    assert.equal(legend.get('PyTorch: taken from CUDA'), words(figures.reserved_bytes));
    assert.equal(legend.get('PyTorch: handed out'), words(figures.allocated_bytes));
  });
});

test('between readings of the device, other processes are not known, and the timeline is', async () => {
  const report = read(crowded);
  const mostAt = (kind, ns) => report.timeline.find((span) => span.kind === kind && span.time_ns <= ns && ns < span.time_ns + span.width_ns).max_bytes;
  await withPage(file, {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    await pointAt(page, 2.05e9);
    const legend = await legendOf(page);
    assert.equal(legend.get('device memory (GPU 0)'), words(mostAt('device', 2.05e9)));
    assert.equal(legend.get('stream-ordered memory (GPU 0)'), words(mostAt('stream_ordered', 2.05e9)));
    assert.equal(legend.get('blocks of frameworks (GPU 0)'), words(mostAt('framework_block', 2.05e9)));
    assert.equal(legend.get('other processes'), 'not read then');
    assert.equal(legend.get('PyTorch: handed out'), 'not read then');
  });
});

/** Returns the report with that many incidents, and an account of the device at each. */
function manyIncidents(count) {
  const report = read(crowded);
  const [incident] = report.incidents;
  const [parts, last] = [true, false].map((isAt) => report.accounts.filter((part) => (part.incident === incident.id) === isAt));
  report.incidents = Array.from({ length: count }, (_, at) => ({ ...incident, id: at + 1, time_ns: 3e9 + at * 1e6 }));
  report.accounts = [...report.incidents.flatMap(({ id }) => parts.map((part) => ({ ...part, incident: id }))), ...last];
  report.frameworks = [];
  return exported(`incidents_${count}`, write(`incidents_${count}.json`, report));
}

/**
 * Returns how often functions of the page are called until all of it is shown. With block counts (`detailed`), Chromium would
 * not count the calls of functions that it has optimized.
 */
async function workOf(file) {
  let work = 0;
  await withPage(file, {}, async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send('Profiler.enable');
    await session.send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await page.reload();
    await page.waitForSelector('html[data-ready]');
    const { result } = await session.send('Profiler.takePreciseCoverage');
    work = result.flatMap((script) => script.functions).flatMap((one) => one.ranges).reduce((sum, range) => sum + range.count, 0);
  });
  return work;
}

test('twice as many incidents take about twice the work', async () => {
  const [few, many] = [await workOf(manyIncidents(300)), await workOf(manyIncidents(600))];
  assert.ok(few > 300 && many < 2.5 * few, `${few} calls, and then ${many}`);
});

test('behind its last span, memory without a total is as it was at the end of that span', async () => {
  const report = read(crowded);
  const gib = 2 ** 30;
  for (const span of report.timeline.filter((one) => one.kind === 'framework_block')) if (span.time_ns === 2e9) span.last_bytes = gib;
  report.timeline = report.timeline.filter((one) => one.kind !== 'framework_block' || one.time_ns < 3e9);
  await withPage(exported('shrunk', write('shrunk.json', report)), {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    await pointAt(page, 2.05e9);
    assert.equal((await legendOf(page)).get('blocks of frameworks (GPU 0)'), words(2 * gib));
    await pointAt(page, 3.5e9);
    assert.equal((await legendOf(page)).get('blocks of frameworks (GPU 0)'), words(gib));
  });
});

/** Returns the colours of the pixels at a moment in the first chart's canvas, from its top, and the top of its frame. */
function pixelsAt(page, ns) {
  return chartOf(page).locator('canvas').evaluate((canvas, share) => {
    const over = canvas.parentElement.querySelector('.u-over').getBoundingClientRect();
    const box = canvas.getBoundingClientRect();
    const x = Math.round((over.left - box.left + over.width * share) * devicePixelRatio);
    // A copy is read: Chromium complains about canvases that are drawn and read by turns.
    const copy = Object.assign(document.createElement('canvas'), { width: 1, height: canvas.height });
    const context = copy.getContext('2d', { willReadFrequently: true });
    context.drawImage(canvas, -x, 0);
    const { data } = context.getImageData(0, 0, 1, canvas.height);
    const colours = Array.from({ length: canvas.height }, (_, y) => (data[y * 4 + 3] === 0 ? null
      : `#${[0, 1, 2].map((at) => data[y * 4 + at].toString(16).padStart(2, '0')).join('')}`));
    return { colours, top: Math.round((over.top - box.top) * devicePixelRatio) };
  }, ns / read(crowded).process.end_ns);
}

/** Returns the number of pixels of each of the colours at a moment. */
async function heightsAt(page, ns, wanted) {
  const { colours } = await pixelsAt(page, ns);
  return wanted.map((one) => colours.filter((colour) => colour === one).length);
}

test('areas lie one on the other, as high as their bytes', async () => {
  await withPage(file, {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    // Blocks of frameworks and figures of PyTorch would cover a part of the areas.
    for (const button of await chartOf(page).locator('.legend button', { hasText: /framework|PyTorch/ }).all()) await button.click();
    const [device, ordered] = await heightsAt(page, 2.5e9, ['#3f7fd9', '#8b62d6']);
    assert.ok(device > 60, `${device} pixels`);
    assert.ok(Math.abs(ordered / device - 3 / 7) < 0.05, `${ordered} pixels of 3 GiB, ${device} of 7 GiB`);
    // A reading of the device is drawn as a column, and changes no area beside it.
    const [, before] = await heightsAt(page, 3.25e9, ['#3f7fd9', '#8b62d6']);
    const [, after] = await heightsAt(page, 3.625e9, ['#3f7fd9', '#8b62d6']);
    assert.equal(after, before);
    // Without the lower area, the upper one lies on the ground, and is as high as before.
    await chartOf(page).locator('.legend button', { hasText: 'device memory (GPU 0)' }).first().click();
    const [none, alone] = await heightsAt(page, 2.5e9, ['#3f7fd9', '#8b62d6']);
    assert.equal(none, 0);
    assert.ok(Math.abs(alone - ordered) <= 3, `${alone} pixels, before ${ordered}`);
  });
});

test('the column at a refused request has other processes on top of the process', async () => {
  await withPage(file, {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    for (const button of await chartOf(page).locator('.legend button', { hasText: /framework|PyTorch/ }).all()) await button.click();
    // Beside the dashed line of the incident, within the column.
    const box = await chartOf(page).locator('.u-over').boundingBox();
    const ns = read(crowded).incidents[0].time_ns + (4 * read(crowded).process.end_ns) / box.width;
    const [device, ordered, others] = await heightsAt(page, ns, ['#3f7fd9', '#8b62d6', '#5b4a3f']);
    assert.ok(Math.abs(ordered / device - 3 / 6) < 0.05, `${ordered} pixels of 3 GiB, ${device} of 6 GiB`);
    assert.ok(Math.abs(others / device - 5 / 6) < 0.05, `${others} pixels of 5 GiB, ${device} of 6 GiB`);
  });
});

test('a device that is nearly empty is shown up to its size by a button', async () => {
  const report = read(crowded);
  report.devices[0].total_bytes *= 64;
  const large = exported('large', write('large.json', report));
  await withPage(large, {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    const whole = page.locator('#timeline button', { hasText: 'Up to the size of the device' });
    assert.equal(await whole.getAttribute('aria-pressed'), 'false');
    const [before] = await heightsAt(page, 0.5e9, ['#3f7fd9']);
    await whole.click();
    assert.equal(await whole.getAttribute('aria-pressed'), 'true');
    const [after] = await heightsAt(page, 0.5e9, ['#3f7fd9']);
    assert.ok(after < before / 4, `${after} pixels, before ${before}`);
  });
});

test('steps have their times in a table, and a moment names its step', async () => {
  const report = read(crowded);
  await withPage(file, {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    await pointAt(page, 2.05e9);
    assert.match(await chartOf(page).locator('.clock').innerText(), /, step 2, validate$/);
    await page.locator('#timeline summary', { hasText: 'When 3 steps began' }).click();
    const rows = page.locator('#timeline details[open] tbody tr');
    assert.equal(await rows.count(), report.steps.length);
    for (const [at, step] of report.steps.entries()) {
      const text = await rows.nth(at).innerText();
      assert.ok(text.startsWith(String(step.number)) && text.includes(`${step.time_ns < 1e9 ? `${(step.time_ns / 1e6).toFixed(1)} ms` : `${(step.time_ns / 1e9).toFixed(1)} s`} into the run`), text);
      assert.ok(text.includes(step.name ?? ''), text);
    }
  });
});

test('a moment has the name of a step until the name ends, also in later steps without a name', async () => {
  const report = read(crowded);
  report.steps = [
    { number: 1, time_ns: 0.5e9, name: 'load', name_end_ns: 1.5e9 },
    { number: 2, time_ns: 2.5e9, name: 'validate', name_end_ns: 3.25e9 },
    { number: 3, time_ns: 2.75e9, name: null, name_end_ns: null },
  ];
  await withPage(exported('named', write('named.json', report)), {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    for (const [second, words] of [[1, /, step 1, load$/], [2, /, step 1$/], [3, /, step 3, validate$/], [3.5, /, step 3$/]]) {
      await pointAt(page, second * 1e9);
      assert.match(await chartOf(page).locator('.clock').innerText(), words);
    }
  });
});

test('a moment behind the last step of the table is near that step if the program marked more', async () => {
  const report = read(crowded);
  report.process.steps = 4;
  await withPage(exported('more_steps', write('more_steps.json', report)), {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    await pointAt(page, 2.05e9);
    assert.match(await chartOf(page).locator('.clock').innerText(), /, step 2, validate$/);
    await pointAt(page, 3.05e9);
    assert.match(await chartOf(page).locator('.clock').innerText(), /, about step 3$/);
  });
});

test('ticks of steps are drawn at their times', async () => {
  const report = read(crowded);
  const isInked = async (page, ns) => {
    // A tick is as wide as a pixel, and may lie beside the nearest one.
    for (const beside of [-1, 0, 1]) {
      const { colours, top } = await pixelsAt(page, ns + beside * 3e6);
      if (colours[top - 5] !== null) return true;
    }
    return false;
  };
  await withPage(file, {}, async (page) => {
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    for (const step of report.steps) assert.ok(await isInked(page, step.time_ns), `step ${step.number}`);
    assert.ok(!(await isInked(page, 2.25e9)), 'there is no step');
  });
});

test('a report with a number of steps, but without their times, says so', async () => {
  const report = read(crowded);
  delete report.steps;
  await withPage(exported('no_times', write('no_times.json', report)), {}, async (page) => {
    assert.match(await page.locator('#timeline > .hint').innerText(), /marked 3 steps\. The report is older/);
  });
});

test("an incident's button shows the chart that has its mark, and opens the host's", async () => {
  const report = read(crowded);
  const [incident] = report.incidents;
  report.devices.push({ ...report.devices[0], device: 1 });
  report.timeline.push(...report.timeline.filter((span) => span.kind === 'device').map((span) => ({ ...span, device: 1 })));
  report.incidents.push({ ...incident, id: incident.id + 1, device: 1 }, { ...incident, id: incident.id + 2, device: null });
  const jumps = exported('jumps', write('jumps.json', report));
  const distance = (plot) => plot.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return Math.abs((top + bottom) / 2 - innerHeight / 2);
  });
  await withPage(jumps, {}, async (page) => {
    const plots = page.locator('#timeline .plot');
    assert.equal(await plots.count(), 3);
    const host = page.locator('#timeline details', { has: page.locator('.plot') });
    assert.equal(await host.getAttribute('open'), null);
    for (const [at, { id }] of report.incidents.entries()) {
      await page.locator('#timeline .jumps button', { hasText: `Incident ${id} ` }).click();
      const distances = await Promise.all([0, 1, 2].map((chart) => distance(plots.nth(chart))));
      assert.ok(distances[at] < 60, `incident ${id}: the centres of the charts are ${distances} pixels off`);
    }
    assert.notEqual(await host.getAttribute('open'), null);
  });
});

test('at the peak, the device has its live memory and a rest that is not known', async () => {
  const report = read(crowded);
  const [device, ordered] = report.totals;
  // At the peak of stream-ordered memory, the timeline has most bytes of all kinds together.
  const during = report.timeline.find((span) => span.kind === 'device' && span.time_ns <= ordered.peak_time_ns && ordered.peak_time_ns < span.time_ns + span.width_ns);
  assert.equal(during.max_bytes, device.peak_bytes);
  await withPage(file, {}, async (page) => {
    await page.locator('#device select').selectOption('peak');
    const sizes = await page.locator('#device tbody td:nth-child(2)').allInnerTexts();
    const live = [during.max_bytes, ordered.peak_bytes];
    const rest = report.devices[0].total_bytes - live[0] - live[1];
    assert.deepEqual([...sizes].sort(), [...live, rest].map(words).sort());
    assert.ok((await page.locator('#device tbody').innerText()).includes('the device was not read then'));
    assert.equal((await page.locator('#device tbody tr', { hasText: 'free' }).locator('th').allInnerTexts()).includes('free'), false);
  });
});

test('the icicle has all bytes that were ever allocated', async () => {
  const report = read(crowded);
  const all = sumOf(report.totals, 'allocated_bytes');
  await withPage(file, {}, async (page) => {
    await page.locator('#stacks .choice select').first().selectOption('allocated');
    const status = await page.locator('#stacks canvas + .status').innerText();
    assert.ok(status.includes(words(all)), `${status} does not say ${words(all)}`);
    const rows = await page.locator('#stacks tbody tr td:nth-child(2)').allInnerTexts();
    const unlisted = report.totals.map((total) => total.allocated_bytes
      - sumOf(report.allocation_sites.filter((site) => site.kind === total.kind && site.device === total.device), 'allocated_bytes'));
    const expected = [...report.allocation_sites.map((site) => site.allocated_bytes), ...unlisted].sort((one, other) => other - one);
    assert.deepEqual(rows, expected.map(words));
    assert.equal(await page.locator('#stacks tbody tr', { hasText: 'call stacks that the report does not list' }).count(), unlisted.length);
  });
});

for (const part of ['groups', 'incidents .holders']) {
  test(`rows of #${part} that look equal are told apart`, async () => {
    await withPage(file, {}, async (page) => {
      const rows = await page.locator(`#${part} tbody tr th`).allInnerTexts();
      assert.equal(rows.length, read(crowded).stacks.length);
      assert.ok(rows.every((text) => text.startsWith('train.cpp:10 in grow')), rows.join('; '));
      assert.equal(new Set(rows).size, rows.length, rows.join('; '));
      assert.ok(rows.some((text) => text.includes('called from train.cpp:20 in load')), rows.join('; '));
      assert.ok(rows.some((text) => text.includes('called from train.cpp:30 in evaluate')), rows.join('; '));
      assert.ok(rows.some((text) => text.includes('1 of 2 with these frames')), rows.join('; '));
    });
  });
}

test('leaks at one line are told apart in the first part of the page', async () => {
  await withPage(file, {}, async (page) => {
    const lines = await page.locator('#summary .notice.leak .where').allInnerTexts();
    assert.equal(lines.length, 3);
    assert.ok(lines.every((line) => line.startsWith('at train.cpp:10 in grow, ')), lines.join('; '));
    assert.equal(new Set(lines).size, lines.length, lines.join('; '));
  });
});

test('memory that is neither lost nor grows is headed as alive at the exit, and lost memory as leaks', async () => {
  const report = read(crowded);
  report.process.end_reason = 'exit';
  report.process.exit_status = 0;
  report.process.signal = null;
  const titles = async (name) => {
    let found = [];
    await withPage(exported(name, write(`${name}.json`, report)), {}, async (page) => {
      // Words for screen readers stand before some of them.
      found = (await page.locator('#summary .notice:not(.leak) > .title').allInnerTexts()).map((title) => title.replace(/^(Look here|Note):\s*/, ''));
    });
    return found;
  };
  assert.ok((await titles('alive')).some((title) => title.startsWith('ALIVE AT EXIT: ')), 'nothing is lost');
  Object.assign(report.leak_groups[0], { reachability: 'lost', lost_count: 1, lost_bytes: 2 ** 30 });
  const lost = await titles('lost');
  assert.ok(lost.some((title) => title.startsWith('LEAKS: ')) && !lost.some((title) => title.startsWith('ALIVE')), lost.join('; '));
});

test('memory of a process that was killed is called live, not left behind', async () => {
  const report = read(crowded);
  Object.assign(report.process, { end_reason: 'signal', exit_status: null, signal: 9 });
  await withPage(exported('killed', write('killed.json', report)), {}, async (page) => {
    assert.ok((await page.locator('#summary .figures dt').allInnerTexts()).includes('Live'));
    assert.equal(await page.locator('#groups h2').innerText(), 'Live memory');
    assert.ok((await page.locator('#summary .title').allInnerTexts()).some((title) => title.includes('STILL ALLOCATED: ')));
  });
});
