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

// A compressed recording is decoded here, at a rate that is enough for its loudness.
const RATE_HZ = 8000, POINTS = 800, LANE_MIDDLES = [16, 48], LANE_HALF = 12;

function outline(samples, seconds, middle) {
  const width = Math.max(1, Math.floor(samples.length / POINTS));
  const upper = [], lower = [];
  for (let first = 0; first < samples.length; first += width) {
    const loudest = samples.subarray(first, first + width).reduce((most, one) => Math.max(most, Math.abs(one)), 0);
    const x = ((first / samples.length) * seconds).toFixed(2);
    const height = Math.min(1, loudest) * LANE_HALF;
    upper.push(`${x} ${(middle - height).toFixed(1)}`);
    lower.unshift(`${x} ${(middle + height).toFixed(1)}`);
  }
  return `M${upper.concat(lower).join("L")}Z`;
}

async function drawSound(svg) {
  const answer = await fetch(svg.dataset.sound);
  if (!answer.ok) return;
  const sound = await new OfflineAudioContext(1, 1, RATE_HZ).decodeAudioData(await answer.arrayBuffer());
  for (let channel = 0; channel < Math.min(2, sound.numberOfChannels); channel += 1) {
    const path = document.createElementNS(svg.namespaceURI, "path");
    path.setAttribute("class", ["caller", "agent"][channel]);
    path.setAttribute("d", outline(sound.getChannelData(channel), sound.duration, LANE_MIDDLES[channel]));
    svg.append(path);
  }
}

document.addEventListener("swapped", (event) => {
  const svg = event.detail.querySelector("svg[data-sound]");
  if (svg) drawSound(svg).catch(() => svg.remove());
});

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
