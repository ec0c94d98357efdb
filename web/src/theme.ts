// Colours: the stylesheet defines them, canvases read them from it; runs and layers get theirs here.

type Listener = () => void;
const listeners = new Set<Listener>();

/** Call back when the theme changes between light and dark. */
export function onTheme(listener: Listener): void {
  listeners.add(listener);
}

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function toggleTheme(): void {
  document.documentElement.dataset["theme"] = isDark() ? "light" : "dark";
  tell();
}

function tell(): void {
  for (const listener of listeners) listener();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);

// Colours that colour-blind people can tell apart (after Okabe and Ito); one set for each background.
const LIGHT = ["#0b6a9f", "#c4441c", "#00795a", "#a03d7a", "#8a6100", "#3f6fd8", "#5c5c5c", "#6b3fa0"];
const DARK = ["#5ab4e5", "#f08a5d", "#3fc79a", "#e08ac0", "#e0b040", "#8fb0ff", "#b8b8b8", "#b894f0"];

export function series(place: number): string {
  const all = isDark() ? DARK : LIGHT;
  return all[place % all.length] ?? "#888888";
}

// Viridis, by its stops: lightness rises evenly, so that it reads in grey as well.
const STOPS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37],
];

/** The colour of a share between 0 and 1. */
export function ramp(share: number): string {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const low = Math.min(Math.floor(place), STOPS.length - 2);
  const [a, b] = [STOPS[low] ?? [], STOPS[low + 1] ?? []];
  const mix = [0, 1, 2].map((i) => Math.round((a[i] ?? 0) + ((b[i] ?? 0) - (a[i] ?? 0)) * (place - low)));
  return `rgb(${mix.join(",")})`;
}

/** The colour of a layer's line, by its depth between 0 and 1; neither end vanishes into the background. */
export function depth(share: number): string {
  return ramp(isDark() ? 0.3 + 0.7 * share : 0.82 * share);
}

/** Blue below zero, orange above, the background at zero. */
export function diverging(share: number): string {
  const size = Math.min(Math.abs(share), 1) ** 0.8;
  const end = share < 0 ? [33, 102, 172] : [204, 76, 2];
  const middle = isDark() ? [44, 48, 54] : [246, 246, 244];
  return `rgb(${end.map((part, i) => Math.round((middle[i] ?? 0) + (part - (middle[i] ?? 0)) * size)).join(",")})`;
}
