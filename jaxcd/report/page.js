"use strict";
// Pictures: enlarged by the buttons, moved with the mouse, a finger or the scroll bars.
for (const figure of document.querySelectorAll("figure.zoom")) {
  const frame = figure.querySelector(".frame"), picture = frame.firstElementChild;
  let scale = 1;
  const show = (next) => {
    const x = (frame.scrollLeft + frame.clientWidth / 2) / frame.scrollWidth;
    const y = (frame.scrollTop + frame.clientHeight / 2) / frame.scrollHeight;
    scale = Math.min(Math.max(next, 1), 40);
    picture.style.maxWidth = scale > 1 ? "none" : "";
    picture.style.maxHeight = scale > 1 ? "none" : "";
    picture.style.width = scale > 1 ? scale * fitted + "px" : "";
    frame.scrollLeft = x * frame.scrollWidth - frame.clientWidth / 2;
    frame.scrollTop = y * frame.scrollHeight - frame.clientHeight / 2;
  };
  let fitted = 0;
  for (const button of figure.querySelectorAll("button")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      if (scale === 1) fitted = picture.getBoundingClientRect().width;
      show(button.value === "fit" ? 1 : scale * Number(button.value));
    });
  }
  let from = null;
  frame.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && scale > 1) {
      from = [event.clientX + frame.scrollLeft, event.clientY + frame.scrollTop];
      frame.setPointerCapture(event.pointerId);
    }
  });
  frame.addEventListener("pointermove", (event) => {
    if (from) {
      frame.scrollLeft = from[0] - event.clientX;
      frame.scrollTop = from[1] - event.clientY;
    }
  });
  frame.addEventListener("pointerup", () => { from = null; });
}
// Tables: sorted by the column whose heading is pressed; pressed again, the other way round.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.rows[0].cells];
  headings.forEach((heading, column) => {
    const sort = () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = heading.classList.contains("number");
      const key = (row) => row.cells[column].textContent;
      const rows = [...table.rows].slice(1);
      rows.sort((a, b) => numeric ? Number(key(a)) - Number(key(b)) : key(a).localeCompare(key(b)));
      if (down) rows.reverse();
      rows.forEach((row) => row.parentNode.append(row));
    };
    heading.tabIndex = 0;
    heading.addEventListener("click", sort);
    heading.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
}
