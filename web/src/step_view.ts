// The picture of a step: boxes and wires as SVG, moved and zoomed with wheel, fingers and keys.

import { clear, s } from "./dom";
import type { Box, Layouts, Level } from "./step_layout";
import type { Node, Step } from "./step_data";

const SVG = "http://www.w3.org/2000/svg";

/** Text is not drawn below this share of its size: nobody could read it, and it takes longest to draw. */
const READABLE = 0.3;

/** The look of a box, besides its kind. */
export interface Paint {
  /** The colour of its left edge. */
  stripe?: (nodes: number[]) => string | null;
}

export interface Acts {
  select: (node: Node) => void;
  toggle: (path: string[]) => void;
}

export class View {
  readonly root: SVGSVGElement;
  paint: Paint = {};
  private readonly scene: SVGElement;
  private readonly drawn = new Map<string, SVGElement>();
  private scale = 1;
  private x = 0;
  private y = 0;
  private readonly fingers = new Map<number, { x: number; y: number }>();
  private moved = 0;

  constructor(
    private readonly step: Step,
    private readonly layouts: Layouts,
    private readonly acts: Acts,
  ) {
    this.root = document.createElementNS(SVG, "svg");
    this.root.setAttribute("class", "graph");
    this.root.setAttribute("role", "img");
    this.scene = s("g", {});
    const arrow = (id: string): SVGElement =>
      s("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { d: "M0 0L8 4L0 8z", class: id }));
    this.root.append(s("defs", {}, arrow("arrow"), arrow("arrow-back")), this.scene);
    this.root.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.root.addEventListener("pointerdown", (event) => this.down(event));
    this.root.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel", "pointerleave"] as const) {
      this.root.addEventListener(name, (event) => this.fingers.delete((event as PointerEvent).pointerId));
    }
  }

  draw(): void {
    clear(this.scene);
    this.drawn.clear();
    const top = this.layouts.level([]);
    this.root.setAttribute("aria-label", `The graph: ${this.step.nodes.length} values, ${top.boxes.length} boxes at the top.`);
    this.scene.append(this.level(top, 0, 0));
  }

  /** The element and the place of the box that shows a node, itself or the shut module around it. */
  boxOf(node: Node): SVGElement | undefined {
    const { level, id } = this.layouts.seenAt(node);
    return this.drawn.get(`${level.join("\u001f")}\u001e${id}`) ?? this.anywhere(id);
  }

  /** Every box that shows a node: a parameter stands wherever it is read. */
  boxesOf(node: Node): SVGElement[] {
    const found = this.boxOf(node);
    if (node.to.length < 2 && found) return [found];
    const all = [...this.drawn].filter(([at]) => shows(at, `n${node.id}`)).map(([, element]) => element);
    return all.length ? all : found ? [found] : [];
  }

  private anywhere(id: string): SVGElement | undefined {
    for (const [at, element] of this.drawn) if (shows(at, id)) return element;
    return undefined;
  }

  elements(): Iterable<SVGElement> {
    return this.drawn.values();
  }

  wires(): NodeListOf<SVGElement> {
    return this.scene.querySelectorAll<SVGElement>("path.wire");
  }

  // --- drawing ----------------------------------------------------------------------------------------------

  private level(level: Level, x: number, y: number): SVGElement {
    const group = s("g", { transform: `translate(${x} ${y})` });
    for (const box of level.boxes) group.append(this.box(box, level));
    for (const wire of level.wires) {
      const back = wire.edges.every((edge) => edge.gradient);
      const path = s("path", { d: curve(wire.points), class: back ? "wire back" : "wire" });
      path.dataset["edges"] = wire.edges.map((edge) => `${edge.tail}-${edge.head}`).join(" ");
      const last = level.boxes.find((box) => box.inside && wire.edges.some((edge) => box.inside?.ins.has(edge.tail)));
      if (!last && wire.points.at(-1)?.[1] !== level.height) path.setAttribute("marker-end", `url(#${back ? "arrow-back" : "arrow"})`);
      group.append(path);
    }
    return group;
  }

  private box(box: Box, level: Level): SVGElement {
    const kind = box.path ? "module" : (box.node?.kind ?? "op");
    const classes = ["box", kind, box.inside ? "open" : "", box.node?.root ? "root" : "", box.node?.late ? "late" : ""].filter(Boolean).join(" ");
    const group = s("g", { class: classes, transform: `translate(${box.x} ${box.y})` });
    group.append(s("rect", { width: box.width, height: box.height, rx: kind === "op" || box.path ? 4 : 12 }));
    const nodes = box.node ? [box.node.id] : this.layouts.nodesIn(box.path ?? []);
    const stripe = box.inside ? null : (this.paint.stripe?.(nodes) ?? null);
    if (stripe) group.append(s("rect", { class: "stripe", width: 6, height: box.height, rx: 2, fill: stripe }));
    group.append(s("text", { x: box.path ? 28 : 11, y: 18, class: "title" }, box.title));
    box.lines.forEach((line, at) => group.append(s("text", { x: box.path ? 28 : 11, y: 34 + 16 * at, class: "small" }, line)));
    if (box.path) {
      const path = box.path;
      group.append(s("text", { x: 11, y: 18, class: "sign" }, box.inside ? "−" : "+"));
      group.addEventListener("click", (event) => {
        event.stopPropagation();
        if (this.moved < 5 && (!box.inside || this.inHead(event, group))) this.acts.toggle(path);
      });
    } else if (box.node) {
      const node = box.node;
      group.addEventListener("click", (event) => {
        event.stopPropagation();
        if (this.moved < 5) this.acts.select(node);
      });
    }
    if (box.inside) group.append(this.level(box.inside, (box.width - box.inside.width) / 2, 26));
    this.drawn.set(`${level.path.join("\u001f")}\u001e${box.id}`, group);
    return group;
  }

  private inHead(event: MouseEvent, group: SVGElement): boolean {
    return (event.clientY - group.getBoundingClientRect().top) / this.scale < 28;
  }

  // --- moving -----------------------------------------------------------------------------------------------

  private apply(): void {
    this.scene.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
    this.root.classList.toggle("far", this.scale < READABLE);
  }

  zoom(factor: number, at?: { x: number; y: number }): void {
    const middle = at ?? { x: this.root.clientWidth / 2, y: this.root.clientHeight / 2 };
    const scale = Math.min(Math.max(this.scale * factor, 0.02), 4);
    this.x = middle.x - (middle.x - this.x) * (scale / this.scale);
    this.y = middle.y - (middle.y - this.y) * (scale / this.scale);
    this.scale = scale;
    this.apply();
  }

  pan(x: number, y: number): void {
    this.x += x;
    this.y += y;
    this.apply();
  }

  /** The position and the scale, for a view that replaces this one. */
  get place(): { x: number; y: number; scale: number } {
    return { x: this.x, y: this.y, scale: this.scale };
  }

  put(place: { x: number; y: number; scale: number }): void {
    Object.assign(this, place);
    this.apply();
  }

  /** Show the whole graph. */
  fit(least = 0.02): void {
    const { width, height } = this.layouts.level([]);
    const [wide, tall] = [this.root.clientWidth || 600, this.root.clientHeight || 400];
    this.scale = Math.min(Math.max(Math.min(wide / width, tall / height), least), 1.2);
    this.x = (wide - width * this.scale) / 2;
    this.y = Math.max((tall - height * this.scale) / 2, 0);
    const rest = wide - width * this.scale; // below zero if it is cut; no side is left empty then
    if (rest < -1) this.x = Math.min(Math.max(wide / 2 - this.beginning() * this.scale, rest), 0);
    this.apply();
  }

  /** Show the whole graph, or its beginning if the whole would be unreadable. */
  begin(): void {
    this.fit(0.6);
  }

  /** The middle of the uppermost box that is not open; of a row of inputs, the box that they lead to counts. */
  private beginning(): number {
    let level: Level | null = this.layouts.level([]);
    let x = 0;
    while (level?.boxes.length) {
      const given = (box: Box): boolean => box.node?.kind === "input" || box.node?.kind === "parameter";
      const made = level.boxes.filter((box) => !given(box));
      const first: Box = (made.length ? made : level.boxes).reduce((best, box) => (box.y < best.y ? box : best));
      if (!first.inside) return x + first.x + first.width / 2;
      x += first.x + (first.width - first.inside.width) / 2;
      level = first.inside;
    }
    return x;
  }

  /** Bring a box into view; a distant one comes into the middle. */
  reveal(element: SVGElement, readable = false): void {
    if (readable && this.scale < 0.8) this.zoom(0.9 / this.scale);
    const frame = this.root.getBoundingClientRect();
    const box = element.getBoundingClientRect();
    const [width, height] = [Math.min(box.width, frame.width), Math.min(box.height, frame.height)];
    const outside = box.left < frame.left || box.left + width > frame.right || box.top < frame.top || box.top + height > frame.bottom;
    if (outside) this.pan(frame.left + frame.width / 2 - box.left - width / 2, frame.top + frame.height / 2 - box.top - height / 2);
  }

  /** Keep a box where it is on the screen during a new layout. */
  holding(find: () => SVGElement | undefined, change: () => void): void {
    const before = find()?.getBoundingClientRect();
    change();
    const after = find()?.getBoundingClientRect();
    if (before && after) this.pan(before.left - after.left, before.top - after.top);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const frame = this.root.getBoundingClientRect();
    if (event.shiftKey) this.pan(-event.deltaY - event.deltaX, 0);
    else this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), { x: event.clientX - frame.left, y: event.clientY - frame.top });
  }

  private down(event: PointerEvent): void {
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.moved = 0;
  }

  private move(event: PointerEvent): void {
    const before = this.fingers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const frame = this.root.getBoundingClientRect();
      const span = (a: { x: number; y: number }): number => Math.max(Math.hypot(a.x - other.x, a.y - other.y), 1);
      this.zoom(span(now) / span(before), { x: (now.x + other.x) / 2 - frame.left, y: (now.y + other.y) / 2 - frame.top });
      this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    } else this.pan(now.x - before.x, now.y - before.y);
    this.moved += Math.hypot(now.x - before.x, now.y - before.y);
    this.fingers.set(event.pointerId, now);
  }
}

/** Whether the key of something drawn is that of a box, or of a copy of it beside one of its readers. */
function shows(at: string, id: string): boolean {
  return at.endsWith(`\u001e${id}`) || at.includes(`\u001e${id}/`);
}

function curve(points: [number, number][]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let text = `M${round(first)}`;
  let before = first;
  for (const next of rest) {
    const middle = (before[1] + next[1]) / 2;
    text += `C${round([before[0], middle])} ${round([next[0], middle])} ${round(next)}`;
    before = next;
  }
  return text;
}

function round([x, y]: [number, number]): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
