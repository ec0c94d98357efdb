// The box above long tables: hides the rows, and the sections, that lack what is written in it.
addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("filter");
  box?.addEventListener("input", () => {
    const wanted = box.value.toLowerCase();
    for (const section of document.querySelectorAll("section section")) {
      let any = false;
      for (const row of section.querySelectorAll("tbody tr")) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        any ||= !row.hidden;
      }
      section.hidden = !any;
    }
  });
});
