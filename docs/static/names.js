// On the page of the search: take names as programs write them. The index knows `glassgrad.nn.functional.cross_entropy`;
// people type `torch.nn.functional.cross_entropy`, `F.cross_entropy(`, `optimizer.zero_grad()`.
const MODULES = new RegExp("^(amp|autograd|data|distributed|distributions|fft|func|functional|init|linalg|lr_scheduler|"
  + "Module|multiprocessing|nn|onnx|optim|parallel|random|rnn|sparse|special|swa_utils|Tensor|utils)$");

// A name keeps its last part, and the one before it if that is a module or a class of ours; a variable tells nothing.
function asIndexed(word) {
  const parts = word.replace(/^[`@"']+|\(.*$|[`"',;:]+$/g, "").split(".").filter((part) => part);
  if (parts.length < 2 || !parts.every((part) => /^[A-Za-z_]\w*$/.test(part))) return word;
  const holder = parts.at(-2) === "F" ? "functional" : parts.at(-2);
  return MODULES.test(holder) ? `${holder} ${parts.at(-1)}` : parts.at(-1);
}

// What ends exactly as it was typed comes first: `nn.Linear` before `nn.functional.linear`.
let ends = [];
Scorer.score = ([, title, , , score]) => score + (ends.some((end) => title.endsWith(`.${end}`)) ? 20 : 0);

const search = Search.performSearch;
Search.performSearch = (query) => {
  const names = query.trim().split(/\s+/).map(asIndexed);
  ends = names.map((name) => name.replace(" ", "."));
  search(names.join(" "));
};
