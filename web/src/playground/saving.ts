// Saving the program as a file: as Python, as a notebook, or as one page that shows the same without Python.

import { add, h } from "../dom";
import type { Server } from "./server";

const FORMATS: [string, string][] = [
  ["py", "Python program (.py)"],
  ["ipynb", "Notebook (.ipynb)"],
  ["html", "Page that needs no Python (.html)"],
];

export function saveMenu(server: Server, text: () => string, name: () => string, keep: [string, () => void], said: (text: string) => void): HTMLElement {
  const menu = h("details", { class: "menu" }, h("summary", { class: "button" }, "Save"));
  const save = async (format: string): Promise<void> => {
    menu.open = false;
    said(format === "html" ? "making the page …" : "saving …");
    try {
      download(await server.exported(text(), format), `${name()}.${format}`);
      said(`saved ${name()}.${format}`);
    } catch (error) {
      said(`not saved: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  const [file, act] = keep;
  const first = h("button", { type: "button", class: "item", title: "Ctrl+S", click: () => {
    menu.open = false;
    act();
  } }, file);
  const items = FORMATS.map(([format, title]) => h("button", { type: "button", class: "item", click: () => void save(format) }, title));
  add(menu, h("div", { class: "items" }, first, ...items));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target as Node)) menu.open = false;
  });
  return menu;
}

function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
