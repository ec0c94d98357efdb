"use strict";
(() => {
  const data = JSON.parse(document.getElementById("levels").textContent);
  const svg = document.querySelector("main svg");
  const open = new Set(data.opened);
  const [background] = svg.querySelectorAll(":scope > rect");
  let scale = 1;

  const make = (name, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const text = (attributes, words) => make("text", attributes, words);

  // A level is pulled apart around each open module: its frame needs more room than its box. What is right of the box
  // moves right, what is below it down, as far as the largest of the frames there needs; bends of edges move likewise.
  const placed = (key) => {
    const level = data.levels[key];
    const things = level.things.map((thing) => ({ ...thing, before: thing }));
    for (const thing of things) {
      if (!thing.module || !open.has(thing.module)) continue;
      thing.inside = placed(thing.module);
      thing.w = Math.max(thing.w, thing.inside.w + 2 * data.side);
      thing.h = Math.max(thing.h, thing.inside.h + data.top + data.side);
    }
    const across = moved(things, "x", "w"), down = moved(things, "y", "h");
    const w = level.w + across(Infinity), h = level.h + down(Infinity);
    const wires = level.wires.map((wire) => {
      const tail = things[wire.tail], head = things[wire.head];
      const end = wire.p[wire.p.length - 1];
      const leaves = port(tail, "out", wire.node) ?? tail.h / 2;
      const enters = port(head, "in", wire.node) ?? ((end[1] - head.before.y) * head.h) / head.before.h;
      const p = wire.p.map(([x, y]) => [x + across(x), y + down(y)]);
      p[0] = [tail.x + tail.w, tail.y + leaves];
      p[1][1] = p[0][1];
      p[p.length - 1] = [head.x, head.y + enters];
      p[p.length - 2][1] = head.y + enters;
      return { ...wire, p };
    });
    return { things, wires, w, h };
  };

  // Moves things along one axis; returns how far a place there moves.
  const moved = (things, axis, size) => {
    const ends = [];
    const shift = (at) => ends.reduce((most, [end, push]) => (end <= at + 0.2 ? Math.max(most, push) : most), 0);
    for (const thing of [...things].sort((one, other) => one.before[axis] - other.before[axis])) {
      const push = shift(thing.before[axis]);
      thing[axis] = thing.before[axis] + push;
      ends.push([thing.before[axis] + thing.before[size], push + thing[size] - thing.before[size]]);
    }
    return shift;
  };

  const port = (thing, way, node) => {
    const found = (thing.inside?.things ?? []).find((one) => one.port === `${way} ${node}`);
    return found && data.top + found.y + found.h / 2;
  };

  const curve = (points) => {
    let [x, y] = points[0];
    let path = `M${x},${y}`;
    points.slice(1).forEach(([to, height], at) => {
      const middle = (x + to) / 2;
      path += at % 2 === 0 ? `H${to}` : `C${middle},${y} ${middle},${height} ${to},${height}`;
      [x, y] = [to, height];
    });
    return path;
  };

  const drawn = (level) => {
    const group = make("g", {});
    for (const wire of level.wires) {
      const [x, y] = wire.p[wire.p.length - 1];
      const hint = () => make("title", {}, wire.hint);
      const kind = `wire ${wire.kind}`;
      group.append(make("path", { class: kind, d: curve(wire.p) }, hint()));
      group.append(make("path", { class: `${kind} tip`, d: `M${x - 5},${y - 3}L${x},${y}L${x - 5},${y + 3}` }));
      if (wire.label) group.append(text({ class: "label", "text-anchor": "end", x: x - 8, y: y - 4 }, wire.label));
    }
    for (const thing of level.things) group.append(box(thing));
    return group;
  };

  const box = (thing) => {
    const group = make("g", { class: thing.kind, transform: `translate(${thing.x},${thing.y})` });
    if (thing.inside) {
      group.classList.add("open");
      group.append(make("rect", { width: thing.w, height: thing.h, rx: 8 }));
      const title = make("g", {});
      title.innerHTML = thing.title;
      const inner = drawn(thing.inside);
      inner.setAttribute("transform", `translate(${data.side},${data.top})`);
      group.append(title, inner);
    } else group.innerHTML = thing.body;
    if (thing.module) {
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-expanded", String(Boolean(thing.inside)));
      group.setAttribute("aria-label", thing.name);
      group.dataset.module = thing.module;
    }
    return group;
  };

  const show = (focused) => {
    const top = placed("[]");
    for (const old of [...svg.children]) if (old !== background && old.tagName !== "style") old.remove();
    const group = drawn(top);
    group.setAttribute("transform", `translate(${data.margin},${data.margin})`);
    svg.append(group);
    let height = top.h + data.margin, width = top.w;
    for (const note of data.notes) {
      height += 15;
      svg.append(text({ class: "soft", x: data.margin, y: height }, note));
      width = Math.max(width, 6.8 * note.length);
    }
    width += 2 * data.margin;
    height += data.margin;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
    const again = [...svg.querySelectorAll("[data-module]")].find((one) => one.dataset.module === focused);
    if (again) again.focus({ preventScroll: true });
  };

  const turn = (event) => {
    const group = event.target.closest("g[class]");
    if (!group?.dataset.module) return; // an op, not the frame around it
    const key = group.dataset.module;
    if (!open.delete(key)) open.add(key);
    event.preventDefault();
    show(key);
  };

  svg.addEventListener("click", turn);
  svg.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") turn(event); });
  const press = (id, act) => document.getElementById(id).addEventListener("click", () => { act(); show(); });
  press("open", () => Object.keys(data.levels).forEach((key) => open.add(key)));
  press("shut", () => open.clear());
  press("smaller", () => { scale /= 1.25; });
  press("larger", () => { scale *= 1.25; });
  show();
})();
