// Takes the pictures of the documents from pages: node tools/pictures.mjs PAGES OUTPUT
import { createRequire } from 'node:module';
import path from 'node:path';

const [pages, output] = process.argv.slice(2);
const { PROGRAMS, CHROMIUM } = process.env;
const { chromium } = createRequire(path.join(PROGRAMS, 'package.json'))('playwright-core');

// A picture of a part of a page: name of the picture, page, part.
const pictures = [
  ['what_happened', 'torch_trainer', '#summary'],
  ['memory_over_time', 'torch_trainer', '#timeline'],
  ['call_stacks', 'torch_trainer', '#stacks'],
  ['the_device', 'gradient_buckets', '#device'],
];

const most_height = 560;

// Chromium's own sandbox needs rights that containers do not give.
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1000, height: 900 }, colorScheme: 'light', timezoneId: 'UTC' });
for (const [name, file, part] of pictures) {
  const page = await context.newPage();
  await page.goto(`file://${path.resolve(pages, `${file}.html`)}`);
  await page.waitForSelector('html[data-ready]');
  const box = await page.locator(part).boundingBox();
  // The head of the page stays at the top of the window. In a window that is as high as the page, it is elsewhere.
  await page.setViewportSize({ width: 1000, height: Math.ceil(box.y + box.height) + 100 });
  await page.evaluate(() => { scrollTo(0, 0); });
  await page.screenshot({ path: path.join(output, `${name}.png`), clip: { ...box, height: Math.min(box.height, most_height) } });
  await page.close();
}
await browser.close();
