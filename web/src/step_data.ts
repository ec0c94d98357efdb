// The data of the page of a step, as src/glassgrad/base/drawing/step_page.py writes them, and the links of its nodes.

export interface Numbers {
  text?: string;
  norm?: number;
  mean?: number;
  std?: number;
  low?: number;
  high?: number;
  nonfinite?: number;
  whole?: boolean;
  bins?: number[];
}

export interface PlainNode {
  kind: string;
  op?: string;
  name?: string;
  formula?: string;
  shape?: number[];
  dtype?: string;
  value?: Numbers;
  gradient?: Numbers;
  place?: number;
  path?: number;
  root?: boolean;
  late?: boolean;
}

export interface Edge {
  tail: number;
  head: number;
  local?: string;
  number?: number;
  sent?: Numbers;
  gradient?: boolean;
}

export interface Line {
  text: string;
  nodes?: number[];
  backward?: boolean;
}

export interface Kernel {
  kind: string;
  ops: string[];
  result: string;
  flops: number;
  bytes: number;
  nodes?: number[];
  gradients?: number[];
  seconds?: number;
}

export interface Table {
  title: string;
  heads: string[];
  rows: string[][];
}

export interface StepData {
  title: string;
  version: string;
  made: string;
  nodes: PlainNode[];
  edges: Edge[];
  places: [string, string][];
  paths: string[][];
  modules: [string[], string][];
  lines?: Line[];
  kernels?: Kernel[];
  measured?: string;
  notes?: string[];
  tables?: Table[];
  cost?: string;
  /** The order of the backward pass; where nothing is given, that of the nodes turned round. */
  backward?: number[];
}

export interface Node extends PlainNode {
  id: number;
  where: string;
  source: string;
  module: string[];
  /** Edges from its arguments, and to its readers. */
  from: Edge[];
  to: Edge[];
  lines: number[];
  kernels: number[];
  backKernels: number[];
}

const LEAVES = new Set(["input", "parameter", "constant", "state"]);

export function isLeaf(node: PlainNode): boolean {
  return LEAVES.has(node.kind);
}

export class Step {
  readonly nodes: Node[];
  readonly kinds: Map<string, string>;
  /** The moments to play: nodes forward, then those with a gradient backward, then the writes of the optimizer. */
  readonly moments: { node: number; phase: "forward" | "backward" | "update" }[];

  constructor(readonly data: StepData) {
    this.nodes = data.nodes.map((plain, id) => ({
      ...plain,
      id,
      where: data.places[plain.place ?? 0]?.[0] ?? "",
      source: data.places[plain.place ?? 0]?.[1] ?? "",
      module: data.paths[plain.path ?? 0] ?? [],
      from: [],
      to: [],
      lines: [],
      kernels: [],
      backKernels: [],
    }));
    this.kinds = new Map(data.modules.map(([path, kind]) => [key(path), kind]));
    for (const edge of data.edges) {
      this.nodes[edge.head]?.from.push(edge);
      this.nodes[edge.tail]?.to.push(edge);
    }
    data.lines?.forEach((line, at) => line.nodes?.forEach((id) => this.nodes[id]?.lines.push(at)));
    data.kernels?.forEach((kernel, at) => {
      kernel.nodes?.forEach((id) => this.nodes[id]?.kernels.push(at));
      kernel.gradients?.forEach((id) => this.nodes[id]?.backKernels.push(at));
    });
    const ops = this.nodes.filter((node) => !isLeaf(node));
    const early = ops.filter((node) => !node.late).map((node) => node.id);
    const graded = data.backward ?? early.filter((id) => this.nodes[id]?.gradient).reverse();
    const late = ops.filter((node) => node.late).map((node) => node.id);
    this.moments = [
      ...early.map((node) => ({ node, phase: "forward" as const })),
      ...graded.map((node) => ({ node, phase: "backward" as const })),
      ...late.map((node) => ({ node, phase: "update" as const })),
    ];
  }

  node(id: number): Node {
    const found = this.nodes[id];
    if (!found) throw new Error(`no node ${id}`);
    return found;
  }
}

/** A path as one text; no name has a unit separator in it. */
export function key(path: string[]): string {
  return path.join("\u001f");
}

/** The numbers, or their norm; for integers, the range. */
export function brief(numbers: Numbers | undefined): string {
  if (!numbers) return "";
  if (numbers.text) return numbers.text;
  if (numbers.whole) return `${numbers.low ?? 0} to ${numbers.high ?? 0}`;
  const bad = numbers.nonfinite ? `, ${numbers.nonfinite.toLocaleString("en-US")} NaN or inf` : "";
  return `norm ${numbers.norm ?? 0}${bad}`;
}

export function named(node: Node): string {
  return node.name || node.op || node.kind;
}

export function typed(node: PlainNode): string {
  return `${node.dtype ?? ""}[${(node.shape ?? []).join(", ")}]`;
}
