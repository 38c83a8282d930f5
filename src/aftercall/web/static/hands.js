"use strict";
// Keys and signs: search by / and ⌘K, buttons by their key, rows by j, k and x, a sign for a click.
const search = document.getElementById("find");
const rows = () => [...document.querySelectorAll(".item.pick")];

function isTyping(target) {
  return target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}

function move(step) {
  const all = rows();
  const now = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, now + step))];
  next.querySelector("input[type=checkbox]").focus();
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const isFind = event.key === "k" && (event.metaKey || event.ctrlKey);
  if (search && (isFind || (event.key === "/" && !isTyping(event.target)))) {
    event.preventDefault();
    search.focus();
    search.select();
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
  if ((event.key === "j" || event.key === "k") && rows().length) {
    event.preventDefault();
    move(event.key === "j" ? 1 : -1);
    return;
  }
  const box = document.activeElement.closest(".item.pick input[type=checkbox]");
  if (event.key === "x" && box) {
    box.click();
    return;
  }
  const target = [...document.querySelectorAll("[data-key]")].find(
    (one) => one.dataset.key === event.key && one.checkVisibility(),
  );
  if (!target) return;
  event.preventDefault();
  if (target.tagName === "INPUT") target.select();
  else target.click();
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick-all]")) {
    for (const row of rows()) row.querySelector("input").checked = event.target.checked;
  }
  const count = document.querySelector("[data-picked]");
  if (count) count.textContent = rows().filter((row) => row.querySelector("input").checked).length;
});

// The slider of a day: it names the day while it moves, and the list below follows when it rests.
// The slider itself stays, so that the next key moves it on.
let asking = 0;

async function showDay(form) {
  const number = asking += 1;
  const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
  const answer = await fetch(address);
  if (!answer.ok || answer.redirected) {
    form.requestSubmit();
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (number !== asking) return;  // it moved on
  document.getElementById("remembered").replaceWith(fresh.getElementById("remembered"));
  history.replaceState(null, "", address);
}

document.addEventListener("input", (event) => {
  const slider = event.target.closest("[data-day]");
  if (!slider) return;
  const day = new Date(`${slider.dataset.day}T12:00:00Z`);
  day.setUTCDate(day.getUTCDate() + Number(slider.value));
  const field = document.getElementById("as-of");
  const isNow = slider.value === slider.max;
  field.value = isNow ? "" : day.toISOString().slice(0, 10);
  slider.nextElementSibling.textContent = isNow ? "now" : field.value;
  slider.setAttribute("aria-valuetext", isNow ? "now" : field.value);
});
document.addEventListener("change", (event) => {
  if (event.target.closest("[data-day]")) showDay(event.target.form);
});

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button || event.defaultPrevented) return;
  setTimeout(() => { button.disabled = true; button.setAttribute("aria-busy", "true"); });
  setTimeout(release, 5000);  // a download leaves the page open
});
function release() {
  for (const button of document.querySelectorAll("button[aria-busy]")) {
    button.disabled = false;
    button.removeAttribute("aria-busy");
  }
}
window.addEventListener("pageshow", release);
