// Builds the pages: `npm ci && npm run build`. What comes out stands in the package, so that users need no Node.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL(".", import.meta.url));
const PACKAGE = join(WEB, "..", "src", "glassgrad");
// The pages: where they begin, what they are called, what they load later, and a frame if the page is more than one file.
const PAGES = [
  { entry: "src/main.ts", name: "page", out: join(PACKAGE, "report", "page") },
  { entry: "src/step_main.ts", name: "step", out: join(PACKAGE, "base", "drawing", "step") },
  {
    entry: "src/playground/main.ts",
    name: "playground",
    later: { formulas: "src/playground/formulas.ts" },
    out: join(PACKAGE, "lessons", "playground", "page"),
    frame: "src/playground/playground.html",
  },
];
const SOURCES = [
  ...readdirSync(join(WEB, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(WEB, join(entry.parentPath, entry.name)).split(sep).join("/")),
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

async function bundle({ entry, name, later, out }) {
  const result = await build({
    absWorkingDir: WEB,
    entryPoints: { [name]: entry, ...later },
    outdir: out,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022"],
    charset: "ascii",
    legalComments: "none",
    write: false,
    metafile: true,
  });
  for (const file of result.outputFiles) {
    const text = file.text.trimEnd();
    if (/<\/(script|style)/i.test(text)) throw new Error(`${file.path} would end its own element`);
    const stamped = file.path.endsWith(".js") ? `/* built from web/, sha256 ${digest()}; see LICENSES.txt */\n${text}\n` : `${text}\n`;
    writeFileSync(file.path, stamped);
  }
  return librariesOf(result.metafile);
}

/** Packages that are published with another inside. */
const INSIDE = { "@dagrejs/dagre": ["@dagrejs/graphlib"] };

/** The packages whose code is in a bundle. */
function librariesOf({ outputs }) {
  const used = Object.values(outputs).flatMap(({ inputs }) => Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput));
  const names = used.map(([path]) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  return [...new Set(names.filter(Boolean).flatMap((name) => [name, ...(INSIDE[name] ?? [])]))].sort();
}

function license(name) {
  const folder = join(WEB, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}

for (const page of PAGES) {
  mkdirSync(page.out, { recursive: true });
  const libraries = await bundle(page);
  if (page.frame) copyFileSync(join(WEB, page.frame), join(page.out, `${page.name}.html`));
  writeFileSync(join(page.out, "LICENSES.txt"), `The page contains these libraries.\n\n${libraries.map(license).join("\n\n")}`);
}
