// Outputs of the model, or its mistakes.

import { add, clear, h } from "./dom";
import type { SampleImage, Samples } from "./data";
import { percent } from "./format";
import type { State } from "./state";

export class SamplesView {
  readonly root: HTMLElement;
  private readonly body = h("div", {});
  private built: unknown;

  constructor(private readonly state: State) {
    this.root = h("section", { id: "samples", "aria-labelledby": "samples-title" });
    add(this.root, h("h2", { id: "samples-title" }, "Samples"), this.body);
    state.onChange(() => this.draw());
    this.draw();
  }

  private draw(): void {
    const samples = this.state.focus?.data.samples ?? null;
    if (this.built === samples && this.body.firstChild) return;
    this.built = samples;
    clear(this.body);
    if (!samples) add(this.body, h("p", { class: "empty" }, "No samples were kept. Samples are texts that a model generates, or mistakes of a classifier."));
    else add(this.body, h("p", {}, samples.title), samples.texts ? texts(samples.texts) : images(samples));
  }
}

function texts(found: string[]): HTMLElement {
  const long = found.some((text) => text.includes("\n") || text.length > 60);
  if (long) return h("div", { class: "texts" }, ...found.map((text) => h("pre", { tabindex: 0 }, text)));
  return h("ul", { class: "words" }, ...found.map((text) => h("li", {}, text)));
}

function images(samples: Samples): HTMLElement {
  const [height, width] = samples.size ?? [1, 1];
  const shown = (samples.images ?? []).map((image) => picture(image, height, width));
  return h("div", { class: "pictures" }, ...shown);
}

function picture(image: SampleImage, height: number, width: number): HTMLElement {
  const said = `${image.target}, taken for ${image.predicted} with ${percent(image.probability)}`;
  const canvas = h("canvas", { role: "img", "aria-label": said, width, height });
  const context = canvas.getContext("2d");
  const pixels = context?.createImageData(width, height);
  if (context && pixels) {
    for (let i = 0; i < width * height; i++) {
      const grey = 255 - parseInt(image.pixels.slice(2 * i, 2 * i + 2), 16);
      pixels.data.set([grey, grey, grey, 255], 4 * i);
    }
    context.putImageData(pixels, 0, 0);
  }
  return h("figure", {}, canvas, h("figcaption", { title: said, "aria-hidden": "true" },
    h("b", {}, image.target), " → ", h("b", { class: "wrong" }, image.predicted), h("br"), percent(image.probability)));
}
