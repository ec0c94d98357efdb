// Typesetting as a file of its own: it is a third of the page's program, and most readers look at values first.

import katex from "katex";

/** A formula in pieces that begin with a sign, between which a narrow page can break it; none within brackets. */
function pieces(tex: string): string[] {
  const found = [""];
  let depth = 0;
  for (let at = 0; at < tex.length; at++) {
    const letter = tex[at] ?? "";
    if (depth === 0 && /^ (?:[=+-]|\\text\{ (?:\+=|through) \}) /.test(tex.slice(at, at + 20))) found.push("");
    depth += "{([".includes(letter) ? 1 : "})]".includes(letter) ? -1 : 0;
    found.push((found.pop() ?? "") + letter);
  }
  return found.filter((piece) => piece.trim());
}

/** Typeset a formula as MathML, which browsers draw with the fonts that they have; words stay text, which breaks. */
function typeset(tex: string, host: HTMLElement): void {
  for (const piece of pieces(tex)) {
    const part = document.createElement("span");
    const words = /^( = |)\\text\{([^{}]*)\}$/.exec(piece);
    if (words) part.textContent = `${words[1]}${words[2]?.replaceAll("\\_", "_")}`.trim();
    else try {
      const spaced = piece.replace(/^ (?=[+-] )/, "{} ").replaceAll("\\mathit", "\\mathrm").replaceAll("\\,", "\\enspace ");
      katex.render(spaced, part, { output: "mathml", displayMode: true, throwOnError: true, strict: "ignore", trust: false });
      part.querySelector("annotation")?.remove(); // a search of the page would find the source beside the formula
    } catch {
      part.textContent = piece;
    }
    host.append(part);
  }
}

window.typeset = typeset;
