// What the engine and its theme leave out for readers who use a keyboard or a screen reader.
addEventListener("DOMContentLoaded", () => {
  document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
  for (const box of document.querySelectorAll("pre, .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});

// A page opened from a file may not read the others: the search lists what it finds without the text around it.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
