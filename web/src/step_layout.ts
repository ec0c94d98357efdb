// The places of boxes: dagre lays out each level of modules by itself, when it is first shown.
//
// An open module is one large box to the level around it. Values enter and leave it through ports, points of its
// upper or lower edge, so that lines join. Parameters and constants stand in each level that reads them.

import dagre from "@dagrejs/dagre";
import { brief, isLeaf, key, named, typed, type Edge, type Node, type Step } from "./step_data";

export interface Box {
  id: string;
  path: string[] | null;
  node: Node | null;
  title: string;
  lines: string[];
  x: number;
  y: number;
  width: number;
  height: number;
  inside: Level | null;
  count: number;
}

export interface Wire {
  points: [number, number][];
  edges: Edge[];
}

export interface Level {
  path: string[];
  boxes: Box[];
  wires: Wire[];
  width: number;
  height: number;
  /** Where a value enters at the top or leaves at the bottom, by the node that made it. */
  ins: Map<number, number>;
  outs: Map<number, number>;
}

type Graph = InstanceType<typeof dagre.graphlib.Graph>;

const MARGIN = 16;
const HEAD = 26;
const PORTS = 10;
/** A parameter that several ops of a level read is drawn beside each of them: lines to all would cross everything. */
const READERS = 3;
const CHARACTER = 6.7;
const LONGEST = 34;

interface Content {
  boxes: Map<string, { path: string[] | null; node: Node | null; nodes: number[] }>;
}

export class Layouts {
  readonly open = new Set<string>();
  private readonly contents = new Map<string, Content>();
  private readonly levels = new Map<string, Level>();
  private readonly below = new Map<string, number[]>();

  constructor(private readonly step: Step) {
    for (const node of step.nodes) {
      if (isLeaf(node)) continue;
      for (let length = 0; length <= node.module.length; length++) {
        const at = key(node.module.slice(0, length));
        const list = this.below.get(at);
        if (list) list.push(node.id);
        else this.below.set(at, [node.id]);
      }
    }
  }

  isOpen(path: string[]): boolean {
    return this.open.has(key(path));
  }

  /** Open or shut a module; the levels around it need a new layout. */
  set(path: string[], open: boolean): void {
    if (open) this.open.add(key(path));
    else this.open.delete(key(path));
    this.forget(path);
  }

  forget(path: string[]): void {
    for (let length = path.length; length >= 0; length--) this.levels.delete(key(path.slice(0, length)));
  }

  modules(): string[][] {
    const found = new Map<string, string[]>();
    for (const node of this.step.nodes) {
      for (let length = 1; length <= node.module.length && !isLeaf(node); length++) {
        const path = node.module.slice(0, length);
        found.set(key(path), path);
      }
    }
    return [...found.values()];
  }

  nodesIn(path: string[]): number[] {
    return this.below.get(key(path)) ?? [];
  }

  /** The path of the innermost open level that a node is seen in, and the box that shows it there. */
  seenAt(node: Node): { level: string[]; id: string } {
    for (let length = 1; length <= node.module.length; length++) {
      const path = node.module.slice(0, length);
      if (!this.isOpen(path)) return { level: node.module.slice(0, length - 1), id: boxId(path) };
    }
    return { level: node.module, id: `n${node.id}` };
  }

  level(path: string[]): Level {
    const at = key(path);
    let found = this.levels.get(at);
    if (!found) {
      found = this.laidOut(path);
      this.levels.set(at, found);
    }
    return found;
  }

  private content(path: string[]): Content {
    const at = key(path);
    const known = this.contents.get(at);
    if (known) return known;
    const boxes: Content["boxes"] = new Map();
    const leaves = new Map<Node, number[]>();
    for (const id of this.nodesIn(path)) {
      const node = this.step.node(id);
      const inner = node.module.length > path.length ? node.module.slice(0, path.length + 1) : null;
      const box = inner ? boxId(inner) : `n${id}`;
      const entry = boxes.get(box);
      if (entry) entry.nodes.push(id);
      else boxes.set(box, { path: inner, node: inner ? null : node, nodes: [id] });
      for (const edge of node.from) {
        const tail = this.step.node(edge.tail);
        if (!isLeaf(tail) || !this.standsIn(tail, path, node)) continue;
        const readers = leaves.get(tail);
        if (!readers) leaves.set(tail, [id]);
        else if (readers.at(-1) !== id) readers.push(id);
      }
    }
    for (const [node, readers] of leaves) {
      const copied = node.kind !== "input" && readers.length > READERS;
      const ids = copied ? readers.map((reader) => copyId(node.id, reader)) : [`n${node.id}`];
      for (const id of ids) boxes.set(id, { path: null, node, nodes: [node.id] });
    }
    const made = { boxes };
    this.contents.set(at, made);
    return made;
  }

  private laidOut(path: string[]): Level {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 16, ranksep: 24, edgesep: 8, marginx: MARGIN, marginy: MARGIN });
    graph.setDefaultEdgeLabel(() => ({}));
    const { boxes } = this.content(path);
    const made = new Map<string, Box>();
    const boxOf = new Map<number, string>();
    for (const [id, { path: inner, node, nodes }] of boxes) {
      const box = this.box(id, inner, node, nodes.length);
      made.set(id, box);
      graph.setNode(id, { width: box.width, height: box.height });
      for (const one of nodes) boxOf.set(one, id);
    }
    const joined = this.join(path, boxOf, made);
    const ports = new Ports(graph);
    for (const [pair, edges] of joined) {
      const [tail, head] = pair.split("\n") as [string, string];
      if (tail !== "" && head !== "") graph.setEdge(tail, head, { weight: edges.length > 3 ? 3 : edges.length });
      else if (tail === "") for (const edge of edges) ports.enter(edge.tail, head);
      else for (const edge of edges) ports.leave(edge.tail, tail);
    }
    this.putUpdatesLast(graph, made, boxOf);
    dagre.layout(graph);
    return this.finished(path, graph, made, joined, ports);
  }

  /** The work of an optimizer stands below the result, though no value of the level leads there. */
  private putUpdatesLast(graph: Graph, made: Map<string, Box>, boxOf: Map<number, string>): void {
    const root = boxOf.get(this.step.nodes.findIndex((node) => node.root));
    if (root === undefined) return;
    for (const box of made.values()) {
      const late = box.node ? box.node.late : box.path && this.step.node(this.nodesIn(box.path)[0] ?? 0).late;
      if (late && box.id !== root && !graph.predecessors(box.id)?.length) graph.setEdge(root, box.id, { weight: 0 });
    }
  }

  /** The edges of a level by the boxes that they join; the empty box is everything outside. */
  private join(path: string[], boxOf: Map<number, string>, made: Map<string, Box>): Map<string, Edge[]> {
    const joined = new Map<string, Edge[]>();
    const note = (tail: string, head: string, edge: Edge): void => {
      if (tail === head) return;
      const pair = `${tail}\n${head}`;
      const list = joined.get(pair);
      if (list) list.push(edge);
      else joined.set(pair, [edge]);
    };
    for (const id of this.nodesIn(path)) {
      const head = boxOf.get(id) ?? "";
      const node = this.step.node(id);
      for (const edge of node.from) {
        const tail = this.step.node(edge.tail);
        const copy = copyId(edge.tail, id);
        const box = made.has(copy) ? copy : boxOf.get(edge.tail);
        if (box !== undefined && (!isLeaf(tail) || this.standsIn(tail, path, node))) note(box, head, edge);
        else if (box === undefined && (!isLeaf(tail) || tail.kind === "input")) note("", head, edge);
      }
      for (const edge of node.to) if (!boxOf.has(edge.head)) note(head, "", edge);
    }
    return joined;
  }

  /** Whether a leaf is drawn in a level for one of its readers: arguments at the very top, others beside the reader. */
  private standsIn(leaf: Node, path: string[], reader: Node): boolean {
    return leaf.kind === "input" ? path.length === 0 : reader.module.length === path.length;
  }

  private box(id: string, path: string[] | null, node: Node | null, count: number): Box {
    if (path && this.isOpen(path)) {
      const inside = this.level(path);
      const title = moduleTitle(this.step, path);
      const width = Math.max(inside.width, title.length * CHARACTER + 50);
      return { id, path, node, title, lines: [], x: 0, y: 0, width, height: inside.height + HEAD, inside, count };
    }
    const [title, lines] = path
      ? [moduleTitle(this.step, path), [count === 1 ? "1 op" : `${count} ops`]]
      : node
        ? labels(node)
        : ["", []];
    const longest = Math.max(title.length * 1.08, ...lines.map((line) => line.length));
    const width = Math.max(longest * CHARACTER + (path ? 44 : 22), 60);
    return { id, path, node, title, lines, x: 0, y: 0, width, height: 10 + 16 * (1 + lines.length), inside: null, count };
  }

  private finished(
    path: string[], graph: Graph, made: Map<string, Box>, joined: Map<string, Edge[]>, ports: Ports,
  ): Level {
    for (const box of made.values()) {
      const { x, y } = graph.node(box.id) as { x: number; y: number };
      box.x = x - box.width / 2;
      box.y = y - box.height / 2;
    }
    const size = graph.graph() as { width?: number; height?: number };
    const [highest, lowest] = ports.rows(size.height ?? 40);
    const top = Math.min(highest, ...[...made.values()].map((box) => box.y - MARGIN / 2));
    const bottom = Math.max(lowest, ...[...made.values()].map((box) => box.y + box.height + MARGIN / 2));
    for (const box of made.values()) box.y -= top;
    const level: Level = {
      path, boxes: [...made.values()], wires: [], width: size.width ?? 60, height: bottom - top, ins: new Map(), outs: new Map(),
    };
    ports.place(level);
    for (const [pair, edges] of joined) {
      const [tail, head] = pair.split("\n") as [string, string];
      const from = made.get(tail);
      const to = made.get(head);
      const groups = new Map<string, Edge[]>();
      for (const edge of edges) {
        const split = !from || !to || from.inside || to.inside;
        const at = split ? String(edge.tail) : "";
        groups.set(at, [...(groups.get(at) ?? []), edge]);
      }
      for (const group of groups.values()) level.wires.push({ points: this.route(graph, level, from, to, group, ports, top), edges: group });
    }
    return level;
  }

  private route(
    graph: Graph, level: Level, from: Box | undefined, to: Box | undefined, edges: Edge[], ports: Ports, top: number,
  ): [number, number][] {
    const tail = edges[0]?.tail ?? 0;
    const [a, b] = [from?.id ?? ports.idOf("in", tail), to?.id ?? ports.idOf("out", tail)];
    const found = graph.edge(a, b) as { points?: { x: number; y: number }[] } | undefined;
    const middle = (found?.points ?? []).slice(1, -1).map(({ x, y }): [number, number] => [x, y - top]);
    const begin: [number, number] = from ? outOf(from, tail, middle[0]) : [level.ins.get(tail) ?? MARGIN, 0];
    const end: [number, number] = to ? into(to, tail, middle.at(-1)) : [level.outs.get(tail) ?? MARGIN, level.height];
    return [begin, ...middle, end];
  }
}

function outOf(box: Box, tail: number, next: [number, number] | undefined): [number, number] {
  const port = box.inside?.outs.get(tail);
  const x = port !== undefined ? box.x + (box.width - (box.inside?.width ?? 0)) / 2 + port : spread(box, next?.[0]);
  return [x, box.y + box.height];
}

function into(box: Box, tail: number, before: [number, number] | undefined): [number, number] {
  const port = box.inside?.ins.get(tail);
  const x = port !== undefined ? box.x + (box.width - (box.inside?.width ?? 0)) / 2 + port : spread(box, before?.[0]);
  return [x, box.y];
}

/** A point of a box's edge near where a line comes from. */
function spread(box: Box, x: number | undefined): number {
  const middle = box.x + box.width / 2;
  return x === undefined ? middle : Math.min(Math.max(x, middle - box.width / 3), middle + box.width / 3);
}

/** The points at which values enter and leave a level; very many values share one. */
class Ports {
  private readonly found = new Map<string, { side: "in" | "out"; tails: Set<number>; boxes: Set<string> }>();

  constructor(private readonly graph: Graph) {}

  enter(tail: number, box: string): void {
    this.note("in", tail, box);
  }

  leave(tail: number, box: string): void {
    this.note("out", tail, box);
  }

  idOf(side: "in" | "out", tail: number): string {
    const own = `${side} ${tail}`;
    return this.found.get(own)?.tails.has(tail) ? own : `${side} rest`;
  }

  private note(side: "in" | "out", tail: number, box: string): void {
    let id = `${side} ${tail}`;
    if (!this.found.has(id) && [...this.found.values()].filter((one) => one.side === side).length >= PORTS) id = `${side} rest`;
    let port = this.found.get(id);
    if (!port) {
      port = { side, tails: new Set(), boxes: new Set() };
      this.found.set(id, port);
      this.graph.setNode(id, { width: 2, height: 2 });
      // All ports of a side stand in one row: at the top as high as possible, at the bottom as low.
      if (!this.graph.hasNode(side)) this.graph.setNode(side, { width: 1, height: 1 });
      if (side === "in") this.graph.setEdge(side, id, { weight: 20 });
      else this.graph.setEdge(id, side, { weight: 20 });
    }
    port.tails.add(tail);
    if (!port.boxes.has(box)) {
      port.boxes.add(box);
      if (side === "in") this.graph.setEdge(id, box, { weight: 1 });
      else this.graph.setEdge(box, id, { weight: 1 });
    }
  }

  /** Where the rows of ports stand: the level begins and ends there. */
  rows(height: number): [number, number] {
    const of = (side: string): number[] =>
      [...this.found].filter(([, port]) => port.side === side).map(([id]) => (this.graph.node(id) as { y: number }).y);
    const [ins, outs] = [of("in"), of("out")];
    return [ins.length ? Math.min(...ins) : 0, outs.length ? Math.max(...outs) : height];
  }

  place(level: Level): void {
    for (const [id, port] of this.found) {
      const { x } = this.graph.node(id) as { x: number };
      for (const tail of port.tails) (port.side === "in" ? level.ins : level.outs).set(tail, x);
    }
  }
}

function copyId(leaf: number, reader: number): string {
  return `n${leaf}/${reader}`;
}

export function boxId(path: string[]): string {
  return `m${key(path)}`;
}

function moduleTitle(step: Step, path: string[]): string {
  const name = path.at(-1) ?? "";
  const kind = step.kinds.get(key(path)) ?? "";
  return cut(kind ? `${name} · ${kind}` : name, LONGEST + 10);
}

function labels(node: Node): [string, string[]] {
  const title = isLeaf(node) ? named(node) : node.kind === "update" ? `${named(node)} ←` : `${node.name} = ${node.op}`;
  const value = brief(node.value);
  const lines = [cut(`${typed(node)}  ${value}`.trim(), LONGEST)];
  if (node.gradient) lines.push(cut(`gradient ${brief(node.gradient)}`, LONGEST));
  return [cut(title, LONGEST), lines];
}

function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}
