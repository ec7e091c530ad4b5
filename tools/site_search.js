// Runs the search of a built site, by Sphinx's own script, without a browser: node site_search.js SITE < queries (JSON)
// Prints for each query the pages in order, best first, as JSON: {query: [[page, title, score], ...]}.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const site = process.argv[2];
// What the scripts expect of a browser.
const page = { document: { getElementById: () => null }, _ready: () => {}, _: (text) => text, SPHINX_HIGHLIGHT_ENABLED: false };
page.window = page;
vm.createContext(page);
const scripts = ["_static/language_data.js", "_static/searchtools.js"];
for (const script of [...scripts, "searchindex.js"])
  vm.runInContext(fs.readFileSync(path.join(site, script), "utf8"), page, { filename: script });
const find = vm.runInContext("(query) => Search._performSearch(...Search._parseQuery(query)).reverse()", page);
const found = {};
for (const query of JSON.parse(fs.readFileSync(0, "utf8")))
  found[query] = find(query).map(([name, title, , , score]) => [name, title, score]);
console.log(JSON.stringify(found));
