"use strict";
// One call: its recording follows the turns, and the turns follow the recording.
const player = () => document.querySelector("audio[data-transcript]");
const turns = () => [...document.querySelectorAll(".turn[data-at]")];
const at = (turn) => Number(turn.dataset.at);

function mark(turn, { isFocused = false } = {}) {
  document.querySelector(".turn.now")?.classList.remove("now");
  if (!turn) return;
  turn.classList.add("now");
  if (isFocused) turn.focus();
  moveHead(at(turn));
}

function moveHead(seconds) {
  const head = document.querySelector(".playhead");
  head?.setAttribute("x1", seconds);
  head?.setAttribute("x2", seconds);
}

function seek(turn, isPlayed) {
  mark(turn, { isFocused: true });
  const audio = player();
  if (!audio) return;
  audio.currentTime = at(turn);
  if (isPlayed) audio.play();
}

function turnAt(seconds) {
  return turns().filter((turn) => at(turn) <= seconds).pop();
}

function step(by) {
  const all = turns();
  const now = all.indexOf(document.querySelector(".turn.now"));
  const next = all[Math.max(0, Math.min(all.length - 1, now + by))];
  if (next) seek(next, false);
}

const keys = {
  " ": () => { const audio = player(); if (audio) audio.paused ? audio.play() : audio.pause(); },
  ArrowLeft: () => { if (player()) player().currentTime -= 5; },
  ArrowRight: () => { if (player()) player().currentTime += 5; },
  j: () => step(1),
  k: () => step(-1),
  Enter: () => { const turn = document.activeElement.closest(".turn[data-at]"); if (turn) seek(turn, true); },
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, button, a, summary, audio");
  if (isTyping || event.metaKey || event.ctrlKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("a, button, summary")) return;
  const lanes = event.target.closest(".lanes");
  if (lanes) {
    const box = lanes.getBoundingClientRect();
    const seconds = ((event.clientX - box.left) / box.width) * Number(lanes.dataset.length);
    const turn = turnAt(seconds);
    if (turn) seek(turn, false);
    if (player()) { player().currentTime = seconds; player().play(); }
    return;
  }
  const turn = event.target.closest(".turn[data-at]");
  if (turn && !String(getSelection())) seek(turn, true);
});

document.addEventListener("timeupdate", (event) => {
  if (!event.target.matches("audio[data-transcript]")) return;
  const now = turnAt(event.target.currentTime);
  if (now && !now.classList.contains("now")) mark(now);
  moveHead(event.target.currentTime);
}, true);

function goToHash() {
  const seconds = /^#at-([\d.]+)$/.exec(location.hash)?.[1];
  const turn = seconds ? turnAt(seconds) || turns()[0] : location.hash.startsWith("#turn-") && document.querySelector(location.hash);
  if (turn) seek(turn, false);
  if (!seconds) return;
  if (player()) player().currentTime = seconds;
  moveHead(seconds);
}
addEventListener("hashchange", goToHash);
addEventListener("DOMContentLoaded", goToHash);
