"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const told = all("[data-severity]");
  const sections = all("[data-section]");
  const field = document.getElementById("filter-text");
  const boxes = all("#filter input[type=checkbox]");
  const said = document.getElementById("said");

  const texts = new Map();
  const text = (element) => {
    let known = texts.get(element);
    if (known === undefined) {
      const section = element.closest("[data-section]");
      known = `${section ? section.dataset.section : ""} ${element.textContent}`.toLowerCase();
      texts.set(element, known);
    }
    return known;
  };
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let shown = 0;
    for (const element of told) {
      const fits = wanted.has(element.dataset.severity) && words.every((word) => text(element).includes(word));
      element.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    for (const section of sections) {
      section.hidden = !section.querySelector("[data-severity]:not([hidden])");
    }
    said.textContent = `${shown} of ${told.length} shown`;
  };
  if (field) {
    field.addEventListener("input", filter);
    boxes.forEach((box) => box.addEventListener("change", filter));
    document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
  }

  const follow = () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch { return; }
    const target = name && document.getElementById(name);
    if (!target) return;
    if (field && target.closest("[hidden]")) {
      field.value = "";
      boxes.forEach((box) => { box.checked = true; });
      filter();
    }
    for (let outer = target.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
    const heading = target.matches("details") ? target.querySelector("summary") : target;
    heading.focus({ preventScroll: true });
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();

  const copy = async (source) => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(source);
      return document.execCommand("copy");
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches(".copy")) {
      const done = await copy(button.parentElement.querySelector("pre"));
      said.textContent = done ? "Copied" : "Select the text to copy it";
      const word = button.textContent;
      if (done && word === "Copy") {
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = word; }, 2000);
      }
    } else if (button.dataset.unfold) {
      const open = button.dataset.unfold === "all";
      told.forEach((element) => { if (element.matches("details")) element.open = open; });
      said.textContent = open ? "All unfolded" : "All folded";
    }
  });

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    folded.forEach((element) => { element.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((element) => { element.open = false; }));
})();
