// Bundles the page into one HTML file, and writes it as a source of C++, too.
//
//     node build.mjs LIBRARIES PAGE.html TEMPLATE.cpp
//
// LIBRARIES: the folder into which tools/npm_packages has put the libraries.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const [libraries, pageFile, templateFile] = process.argv.slice(2).map((name) => path.resolve(name));
const modules = path.join(libraries, 'node_modules');
// The package of the one platform on which cuwarden is built has the program alone.
const esbuild = path.join(modules, '@esbuild', 'linux-x64', 'bin', 'esbuild');

// Most bytes that the page may have without data.
const mostBytes = 150 * 1024;

function bundled(entry) {
  const options = [
    '--bundle',
    '--minify',
    '--charset=utf8',
    '--format=iife',
    '--target=chrome103,firefox113,safari16.4',
    '--legal-comments=inline',
    '--log-level=error',
  ];
  const environment = { ...process.env, NODE_PATH: modules };
  const file = path.join(here, 'src', entry);
  return execFileSync(esbuild, [file, ...options], { env: environment, encoding: 'utf8' }).trim();
}

const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

const script = bundled('main.ts');
const style = bundled('style.css');
if (/<\/(script|style)/i.test(script + style)) throw new Error('the bundle ends its own element');
const licence = fs.readFileSync(path.join(modules, 'uplot', 'LICENSE'), 'utf8').trim();
const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; base-uri 'none'; form-action 'none'`;

// A function as replacement, because `$` has a meaning in texts.
const fill = (text, mark, value) => {
  if (text.split(mark).length !== 2) throw new Error(`${mark} must occur once in the page`);
  return text.replace(mark, () => value);
};
let page = fs.readFileSync(path.join(here, 'src', 'page.html'), 'utf8');
page = fill(page, '@POLICY@', policy);
page = fill(page, '@STYLE@', style);
page = fill(page, '@SCRIPT@', script);
page = fill(page, '@LICENCE@', escaped(licence));
if (page.split('@CUWARDEN_DATA@').length !== 2) throw new Error('the page needs one mark for its data');

const bytes = Buffer.from(page, 'utf8');
if (bytes.length > mostBytes) throw new Error(`the page has ${bytes.length} bytes, at most ${mostBytes} are allowed`);
fs.writeFileSync(pageFile, bytes);

const numbers = [];
for (let at = 0; at < bytes.length; at += 24) numbers.push([...bytes.subarray(at, at + 24)].join(','));
fs.writeFileSync(
  templateFile,
  `// Made by page/build.mjs.
#include "reporters/exports/page/page_template.hpp"

namespace cuwarden {

std::string_view page_template() {
  static constexpr unsigned char page[] = {
${numbers.join(',\n')}};
  return {reinterpret_cast<const char*>(page), sizeof page};
}

}  // namespace cuwarden
`,
);
