// The data of the page, as src/glassgrad/train/show/run_data.py writes them.

export interface Packed {
  /** Later numbers, joined with the earlier ones. */
  raw?: Float32Array | Float64Array | Uint16Array;
  f4?: string;
  f8?: string;
  u2?: string;
}

export type Num = number | string | null;

export interface Finding {
  rule: string;
  severity: string;
  what: string;
  advice: string;
  where: string;
  value: Num;
  threshold: Num;
  source: string;
  evidence: [number, Num][];
  remedy: string;
}

export interface PackedCurve {
  event: string;
  name: string;
  steps: Packed;
  seconds: Packed;
  values: Packed;
  points: number;
}

export interface Quantity {
  name: string;
  what: string;
  of: "parameter" | "activation";
  values: Packed;
}

export interface Layers {
  steps: Packed;
  parameters: string[];
  sizes: number[];
  activations: string[];
  quantities: Quantity[];
  left_out: number;
}

export interface HistogramKind {
  reach: Packed;
  shares: Packed;
}

export interface Histograms {
  steps: Packed;
  parameters: string[];
  bins: number;
  gradient?: HistogramKind;
  parameter?: HistogramKind;
}

export interface SampleImage {
  pixels: string;
  target: number | string;
  predicted: number | string;
  probability: number;
}

export interface Samples {
  title: string;
  texts?: string[];
  size?: [number, number];
  images?: SampleImage[];
}

export interface Session {
  began?: string;
  until?: string;
  ended?: string;
  reason?: string;
  from_step?: number;
  step?: number;
  command?: string[];
  versions?: Record<string, string>;
  machine?: Record<string, string | number>;
  variables?: Record<string, string>;
}

export interface Changing {
  records: number;
  state: string;
  step: number;
  steps: number | null;
  results: Record<string, Num>;
  findings: Finding[];
  curves: PackedCurve[];
  layers?: Layers | null;
  histograms?: Histograms | null;
}

export interface Run extends Changing {
  name: string;
  path: string;
  watched: boolean;
  layers: Layers | null;
  histograms: Histograms | null;
  graph?: string;
  samples: Samples | null;
  config: Record<string, Num | boolean>;
  helps: Record<string, string>;
  sessions: Session[];
  command: string;
}

export interface PageData {
  format: number;
  made: string;
  version: string;
  runs: Run[];
  live?: { seconds: number };
}

export interface Curve {
  event: string;
  name: string;
  steps: number[];
  seconds: number[];
  values: number[];
}

function bytes(text: string): ArrayBuffer {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
  return found.buffer;
}

/** Every machine with a browser is little-endian, as the packed numbers are. */
export function unpack(packed: Packed): Float32Array | Float64Array | Uint16Array {
  if (packed.raw !== undefined) return packed.raw;
  if (packed.f4 !== undefined) return new Float32Array(bytes(packed.f4));
  if (packed.f8 !== undefined) return new Float64Array(bytes(packed.f8));
  return new Uint16Array(bytes(packed.u2 ?? ""));
}

export function toNumber(value: Num | boolean | undefined): number {
  if (typeof value === "number") return value;
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return NaN;
}

export function curveOf(packed: PackedCurve): Curve {
  return {
    event: packed.event,
    name: packed.name,
    steps: Array.from(unpack(packed.steps)),
    seconds: Array.from(unpack(packed.seconds)),
    values: Array.from(unpack(packed.values)),
  };
}
