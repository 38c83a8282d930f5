"use strict";
// What works in every page: copy buttons, and listening to live calls.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    const before = button.textContent;
    button.textContent = "copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  }
  const listen = event.target.closest("[data-listen]");
  if (listen) listening?.id === listen.dataset.listen ? listening.stop() : listenTo(listen.dataset.listen);
});

let listening = null;

function showListening() {
  for (const button of document.querySelectorAll("[data-listen]")) {
    const isOn = listening?.id === button.dataset.listen;
    button.setAttribute("aria-pressed", isOn);
    button.textContent = isOn ? "Stop listening" : "Listen";
  }
}

function fromMulaw(byte) {
  const bits = ~byte & 255;
  const size = (((bits & 15) << 3) + 132) << ((bits >> 4) & 7);
  return (bits & 128 ? 132 - size : size - 132) / 32768;
}

// Each side has a time up to which it is scheduled; the agent's sound comes ahead of its time.
function listenTo(id) {
  listening?.stop();
  const sound = new AudioContext();
  const until = [0, 0];
  let ahead = [];
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/calls/${id}/listen`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => {
    const [side, ...bytes] = new Uint8Array(data);
    if (side === 2) {
      ahead.forEach((source) => source.stop());
      ahead = [];
      until[1] = 0;
      return;
    }
    const buffer = sound.createBuffer(1, bytes.length, 8000);
    buffer.copyToChannel(Float32Array.from(bytes, fromMulaw), 0);
    const source = sound.createBufferSource();
    source.buffer = buffer;
    source.connect(sound.destination);
    const start = Math.max(until[side], sound.currentTime + 0.1);
    source.start(start);
    until[side] = start + buffer.duration;
    if (side === 1) {
      ahead.push(source);
      source.onended = () => { ahead = ahead.filter((one) => one !== source); };
    }
  };
  const stop = () => {
    if (listening?.id === id) listening = null;
    socket.close();
    if (sound.state !== "closed") sound.close();
    showListening();
  };
  socket.onclose = stop;
  listening = { id, stop };
  showListening();
}

// Of a live call, the newest words are in sight.
function showNewest() {
  for (const said of document.querySelectorAll(".turns.small")) said.scrollTop = said.scrollHeight;
}

showNewest();
document.addEventListener("swapped", () => { showListening(); showNewest(); });
