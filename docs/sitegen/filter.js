const box = document.getElementById("filter");
box.addEventListener("input", () => {
  const wanted = box.value.toLowerCase();
  for (const section of document.querySelectorAll("section")) {
    let any = false;
    for (const row of section.querySelectorAll("tbody tr")) {
      const show = row.textContent.toLowerCase().includes(wanted);
      row.hidden = !show; any ||= show;
    }
    section.hidden = !any;
  }
});
