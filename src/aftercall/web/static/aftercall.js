"use strict";
// What works in every page: copy buttons, and a transcript that follows its recording.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    const before = button.textContent;
    button.textContent = "copied";
    setTimeout(() => { button.textContent = before; }, 1500);
    return;
  }
  const player = document.querySelector("audio[data-transcript]");
  const turn = event.target.closest(".turn[data-at]");
  if (player && turn) {
    player.currentTime = Number(turn.dataset.at);
    player.play();
  }
});

const player = document.querySelector("audio[data-transcript]");
if (player) {
  const turns = [...document.querySelectorAll(".turn[data-at]")];
  player.addEventListener("timeupdate", () => {
    const now = turns.filter((turn) => Number(turn.dataset.at) <= player.currentTime).pop();
    turns.forEach((turn) => turn.classList.toggle("now", turn === now));
  });
}
