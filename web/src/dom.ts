// Elements are made only with textContent and attributes: no text of a run is ever read as HTML.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, string | number | boolean | undefined | ((event: Event) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined) element.setAttribute(key, String(value));
  }
  add(element, ...children);
  return element;
}

export function add(parent: Node, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function clear(element: Node): void {
  while (element.firstChild) element.removeChild(element.firstChild);
}

type Attributes = Record<string, string | number>;

/** An element of a picture. */
export function s(tag: string, attributes: Attributes, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

let count = 0;
export function freshId(stem: string): string {
  count += 1;
  return `${stem}-${count}`;
}

export function labelled(text: string, control: HTMLElement, ...after: Child[]): HTMLLabelElement {
  return h("label", { class: "control" }, h("span", {}, text), control, ...after);
}

export function select(options: string[], chosen: string, act: (value: string) => void): HTMLSelectElement {
  const element = h("select", { change: () => act(element.value) });
  for (const option of options) element.appendChild(h("option", { value: option, selected: option === chosen }, option));
  return element;
}

export function copyButton(text: string, what: string): HTMLButtonElement {
  const button = h("button", { type: "button", class: "small", "aria-label": `Copy ${what}` }, "copy");
  button.addEventListener("click", () => {
    const done = (): void => {
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    };
    // A page from a file has no clipboard in some browsers; the older way works there.
    navigator.clipboard?.writeText(text).then(done, () => older(text, done)) ?? older(text, done);
  });
  return button;
}

function older(text: string, done: () => void): void {
  const area = h("textarea", { class: "offscreen", "aria-hidden": "true" });
  area.value = text;
  document.body.appendChild(area);
  area.select();
  if (document.execCommand("copy")) done();
  area.remove();
}
