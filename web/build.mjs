// Builds the pages: `npm ci && npm run build`. What comes out stands in the package, so that users need no Node.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL(".", import.meta.url));
const PACKAGE = join(WEB, "..", "src", "glassgrad");
// The page of runs, and that of a step: where they begin, what they are called, and which libraries they contain.
const PAGES = [
  { entry: "src/main.ts", name: "page", out: join(PACKAGE, "report", "page"), libraries: ["uplot"] },
  { entry: "src/step_main.ts", name: "step", out: join(PACKAGE, "base", "drawing", "step"), libraries: ["@dagrejs/dagre", "@dagrejs/graphlib"] },
];
const SOURCES = [
  ...readdirSync(join(WEB, "src")).map((name) => `src/${name}`),
  "build.mjs",
  "package-lock.json",
  "package.json",
  "tsconfig.json",
].sort();

/** One hash over names and contents, in the order of the names; tests/report/test_page_build.py computes the same. */
function digest() {
  const hash = createHash("sha256");
  for (const name of SOURCES) hash.update(`${name}\0`).update(readFileSync(join(WEB, name))).update("\0");
  return hash.digest("hex");
}

async function bundle({ entry, name, out }) {
  const result = await build({
    absWorkingDir: WEB,
    entryPoints: [entry],
    outdir: out,
    entryNames: name,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022"],
    charset: "ascii",
    legalComments: "none",
    write: false,
  });
  for (const file of result.outputFiles) {
    const text = file.text.trimEnd();
    if (/<\/(script|style)/i.test(text)) throw new Error(`${file.path} would end its own element`);
    const stamped = file.path.endsWith(".js") ? `/* built from web/, sha256 ${digest()}; see LICENSES.txt */\n${text}\n` : `${text}\n`;
    writeFileSync(file.path, stamped);
  }
}

function license(name) {
  const folder = join(WEB, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}

for (const page of PAGES) {
  await bundle(page);
  writeFileSync(join(page.out, "LICENSES.txt"), `The page contains these libraries.\n\n${page.libraries.map(license).join("\n\n")}`);
}
