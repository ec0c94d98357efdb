// Append what was watched while the page was open: columns of maps and histograms.

import { unpack, type HistogramKind, type Histograms, type Layers, type Packed } from "./data";

/** With more columns than this, every second one of the older half is dropped. */
const MOST = 600;

/** Append new samples to the old ones, in the same objects. */
export function appendLayers(old: Layers, news: Layers): void {
  const [before, after] = [unpack(old.steps), unpack(news.steps)];
  const keep = kept(before.length, after.length);
  for (const quantity of old.quantities) {
    const more = news.quantities.find((one) => one.name === quantity.name);
    quantity.values = joined(quantity.values, more?.values, before.length, after.length, keep, NaN);
  }
  for (const quantity of news.quantities) {
    if (old.quantities.some((one) => one.name === quantity.name)) continue;
    const rows = unpack(quantity.values).length / Math.max(after.length, 1);
    const nothing = new Float32Array(rows * before.length).fill(NaN);
    old.quantities.push({ ...quantity, values: joined({ raw: nothing }, quantity.values, before.length, after.length, keep, NaN) });
  }
  old.steps = joined(old.steps, news.steps, before.length, after.length, keep, NaN);
}

export function appendHistograms(old: Histograms, news: Histograms): void {
  const [before, after] = [unpack(old.steps).length, unpack(news.steps).length];
  const keep = kept(before, after);
  for (const kind of ["gradient", "parameter"] as const) {
    const [mine, theirs]: (HistogramKind | undefined)[] = [old[kind], news[kind]];
    if (mine) mine.shares = joined(mine.shares, theirs?.shares, before, after, keep, 0);
  }
  old.steps = joined(old.steps, news.steps, before, after, keep, NaN);
}

export function lastStep(layers: Layers): number {
  const steps = unpack(layers.steps);
  return steps[steps.length - 1] ?? 0;
}

/** The columns of both that stay. */
function kept(before: number, after: number): number[] {
  const all = Array.from({ length: before + after }, (_, at) => at);
  return all.length <= MOST ? all : all.filter((at) => at >= all.length / 2 || at % 2 === 0);
}

function joined(old: Packed, news: Packed | undefined, before: number, after: number, keep: number[], missing: number): Packed {
  const [mine, theirs] = [unpack(old), news ? unpack(news) : undefined];
  const rows = before ? mine.length / before : 1;
  const made = new (mine.constructor as Float32ArrayConstructor)(rows * keep.length);
  for (let row = 0; row < rows; row++) {
    keep.forEach((at, column) => {
      made[row * keep.length + column] = at < before ? (mine[row * before + at] ?? missing) : (theirs?.[row * after + at - before] ?? missing);
    });
  }
  return { raw: made };
}
