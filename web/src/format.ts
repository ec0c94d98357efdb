// Numbers as people read them.

export function short(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text: string;
  if (Number.isInteger(value) && size < 1e7) text = size.toLocaleString("en-US");
  else if (size >= 1e5 || size < 1e-3) text = size.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  else text = String(Number(size.toPrecision(4)));
  return (value < 0 ? "−" : "") + text;
}

export function percent(value: number): string {
  if (value === 0) return "0 %";
  return `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 59.95) return `${Number(seconds.toPrecision(3))} s`;
  const total = Math.round(seconds);
  if (total < 3600) return `${Math.floor(total / 60)} min ${total % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Round numbers between minus reach and reach, at even distances and with 0; at most so many above it. */
export function roundNumbers(reach: number, most: number): number[] {
  const ten = 10 ** Math.floor(Math.log10(reach / most));
  const step = ten * ([1, 2, 5].find((one) => one * ten >= reach / most) ?? 10);
  const count = Math.floor(reach / step);
  return Array.from({ length: 2 * count + 1 }, (_, place) => (place - count) * step);
}

export function axisNumbers(_: unknown, splits: (number | null)[]): string[] {
  return splits.map((value) => (value === null ? "" : short(value)));
}

/** Begin a text with a capital, unless it begins with a name of code. */
export function sentence(text: string): string {
  return /^[a-z]+(?=[\s,:;]|$)/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

export function words(name: string): string {
  return name.replaceAll("_", " ");
}

export function heading(name: string): string {
  const text = words(name);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The state of a run in a word or two, with the reason of its end if known: "failed: the loss became NaN". */
export function stated(state: string): { word: string; reason: string } {
  const at = state.indexOf(": ");
  return at < 0 ? { word: state, reason: "" } : { word: state.slice(0, at), reason: state.slice(at + 2) };
}
