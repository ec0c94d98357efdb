// What the server of `glassgrad playground` sends. Lines count from 1, columns from 0.

export const PANES = ["values", "graph", "backward", "derivation", "check", "kernels", "cost", "doctor", "output"] as const;
export type PaneName = (typeof PANES)[number];

/** Numbers in nested lists; null for one that is not finite. */
export type Nested = number | null | Nested[];

export interface Heat {
  rows: number;
  columns: number;
  /** Float32, little endian, in base64. */
  data: string;
}

export interface ArrayData {
  shape: number[];
  min: number | null;
  max: number | null;
  mean: number | null;
  numbers?: Nested;
  /** The place of each number that is not finite, and "nan", "inf" or "-inf". */
  nonfinite?: (number | string)[][];
  heat?: Heat;
}

export interface Variable {
  name: string;
  line: number | null;
  kind: "tensor" | "number" | "module" | "other";
  shape?: number[] | null;
  dtype?: string | null;
  requires_grad?: boolean;
  value: ArrayData | null;
  grad: ArrayData | null;
  text: string;
}

export interface GraphNode {
  id: number | string;
  op: string;
  label: string;
  line: number | null;
  shape?: number[] | null;
  dtype?: string | null;
  saved?: string | null;
  formula?: string | null;
  group?: string | null;
  value?: ArrayData | null;
  grad?: ArrayData | null;
}

export interface GraphData {
  nodes: GraphNode[];
  edges: { from: number | string; to: number | string }[];
  order: (number | string)[];
  backward: (number | string)[];
  note?: string | null;
}

export interface BackwardData {
  program: string;
  lines: { line: number; source_line: number | null }[];
  note?: string | null;
}

export interface DerivationData {
  steps: { line: number | null; tex: string; text: string; name: string }[];
  note?: string | null;
}

export interface CheckedInput {
  name: string;
  passed: boolean;
  worst: number | null;
  where: number[] | null;
  numeric: number | null;
  analytic: number | null;
  text: string;
}

export interface CheckData {
  inputs: CheckedInput[];
  note?: string | null;
}

export interface KernelCode {
  name: string;
  ops: string[];
  lines: number[];
  nest: string;
  llvm: string | null;
  asm: string | null;
  c: string | null;
}

export interface KernelsData {
  kernels: KernelCode[];
  note?: string | null;
}

export interface KernelCost {
  name: string;
  flops: number;
  bytes: number;
  seconds: number | null;
  lines: number[];
}

export interface CostData {
  kernels: KernelCost[];
  peak_flops: number | null;
  peak_bandwidth: number | null;
  total_seconds: number | null;
  note?: string | null;
}

export interface DoctorFinding {
  name: string;
  severity: string;
  title: string;
  text: string;
  line: number | null;
  remedy: string | null;
  page: string | null;
}

export interface DoctorData {
  findings: DoctorFinding[];
  note?: string | null;
}

export interface PaneData {
  values: { variables: Variable[]; note?: string | null };
  graph: GraphData;
  backward: BackwardData;
  derivation: DerivationData;
  check: CheckData;
  kernels: KernelsData;
  cost: CostData;
  doctor: DoctorData;
}

export interface Grid {
  rows?: number;
  columns?: number;
  data?: string;
  low?: [number, number];
  high?: [number, number];
  points?: [number, number, number][];
  samples?: string[];
}

export interface LoopState {
  step: number;
  total?: number | null;
  loss: number | null;
  /** Steps and losses since the event before. */
  since?: [number, number][];
  values?: Record<string, number | null>;
  grid?: Grid | null;
}

export interface Failure {
  line: number | null;
  column: number | null;
  kind: string;
  message: string;
  traceback: string;
}

export interface PaneEvent {
  name: PaneName;
  data?: unknown;
  error?: { message: string; line: number | null };
}

export type RunEvent = { run?: number } & (
  | { event: "started" }
  | { event: "output"; text: string; stream: "stdout" | "stderr" }
  | ({ event: "error" } & Failure)
  | ({ event: "pane" } & PaneEvent)
  | { event: "progress"; loop: LoopState }
  | { event: "stopped"; reason: string; message: string }
  | { event: "done"; ms: number }
);

export interface ExampleEntry {
  name: string;
  title: string;
  about: string;
  lesson: boolean;
}

export interface ServerState {
  text: string;
  file: string | null;
  examples: ExampleEntry[];
  version: string;
}

export interface Example {
  name: string;
  title: string;
  text: string;
  questions: (string | { question: string; answer?: string })[];
}

export interface Completion {
  name: string;
  type: string;
  signature: string;
  doc: string;
}

export interface Signature {
  label: string;
  params: string[];
  index: number;
  doc: string;
}

/** What an exported page holds instead of a server. */
export interface Recording {
  text: string;
  events: RunEvent[];
  title?: string;
  version?: string;
}
