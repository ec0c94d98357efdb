// Typesetting as a file of its own: it is a third of the page's program, and most readers look at values first.

import katex from "katex";

/** Typeset a formula as MathML, which browsers draw with the fonts that they have. */
function typeset(tex: string, host: HTMLElement): void {
  try {
    katex.render(tex.replaceAll("\\mathit", "\\mathrm"), host, { output: "mathml", displayMode: true, throwOnError: true, strict: "ignore", trust: false });
    host.querySelector("annotation")?.remove(); // a search of the page would find the source beside the formula
  } catch {
    host.textContent = tex;
  }
}

window.typeset = typeset;
