// A phone in the page: spoken over a socket with the server's engine, or in text.
const find = (id) => document.getElementById(id);
const phone = find("phone");
const talk = find("talk");
const line = find("line");
const caller = find("caller");
const mute = find("mute");
const REMEMBERED = "aftercall.caller";
const NO_MICROPHONE = "There is no microphone: allow it for this page, or choose to type.";
const INSECURE = "Browsers give a microphone to pages on https or on this machine only. Choose to type.";
const Recognition = window.SpeechRecognition || window.webkitSpeechRecognition;
let call = null;  // { socket, id, isSpoken, microphone, sound }
let isAgreed = false;

caller.value = localStorage.getItem(REMEMBERED) ?? caller.value;

function setState(state, words) {
  phone.dataset.state = state;
  find("status").textContent = words;
  const isTalking = state === "talking";
  talk.hidden = !isTalking;
  find("ring").disabled = isTalking || state === "ringing";
  if (!isTalking) return;
  for (const part of talk.querySelectorAll("#line, #line + button")) part.hidden = call.isSpoken;
  find("listen").hidden = call.isSpoken || !Recognition;
  mute.hidden = !call.isSpoken;
  (call.isSpoken ? mute : line).focus();
}

function open(path) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}${path}?caller=${encodeURIComponent(caller.value.trim())}`);
  socket.binaryType = "arraybuffer";
  return socket;
}

function end(words) {
  if (phone.dataset.state === "idle") return;
  call?.microphone?.getTracks().forEach((track) => track.stop());
  call?.sound?.close();
  find("where").hidden = true;
  setState("idle", words);
  if (!call?.id) return;
  const steps = `<div hx-get="/calls/${call.id}/steps" hx-trigger="load" hx-swap="outerHTML"></div>`;
  find("after").innerHTML = `${steps}<p><a href="/calls/${call.id}">Open the call</a></p>`;
}

async function speak() {
  if (!navigator.mediaDevices) return setState("idle", INSECURE);
  let microphone;
  try {
    microphone = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true } });
  } catch {
    return setState("idle", NO_MICROPHONE);
  }
  const sound = new AudioContext();
  await sound.audioWorklet.addModule(phone.dataset.line);
  const worklet = new AudioWorkletNode(sound, "line", { outputChannelCount: [1], channelCount: 1, channelCountMode: "explicit" });
  sound.createMediaStreamSource(microphone).connect(worklet).connect(sound.destination);
  const socket = open("/browser/audio");
  call = { socket, microphone, sound, isSpoken: true };
  worklet.port.onmessage = ({ data }) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    socket.send(typeof data === "string" ? JSON.stringify({ type: "played", mark: data }) : data);
  };
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return worklet.port.postMessage(new Uint8Array(data));
    const event = JSON.parse(data);
    if (event.type === "mark") worklet.port.postMessage(event.name);
    if (event.type === "clear") worklet.port.postMessage(null);
    if (event.type === "refused") end(`The call was refused: ${event.reason}`);
    if (event.type === "call") {
      call.id = event.call;
      find("words").innerHTML = `<div sse-connect="/calls/${call.id}/live"><ol id="heard" class="turns rows" aria-live="polite" aria-label="The call" sse-swap="turn-${call.id}" hx-swap="beforeend scroll:bottom"></ol></div>`;
      setState("talking", "You are on the line. Digits on the keyboard are keys of the phone.");
    }
  };
  socket.onclose = () => end(call.id ? "The call has ended." : "The call was refused.");
}

function type() {
  const socket = open("/browser/call");
  call = { socket, isSpoken: false };
  socket.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    if (event.type === "refused") end(`The call was refused: ${event.reason}`);
    if (event.type === "ended") end(`The call has ended: ${event.reason.replaceAll("_", " ")}.`);
    if (event.type === "agent") {
      call.id = event.call;
      setState("talking", "");
      show("agent", event.text);
      if (find("aloud").checked) window.speechSynthesis?.speak(new SpeechSynthesisUtterance(event.text));
    }
  };
  socket.onclose = () => end("The line was cut.");
}

function show(speaker, text) {
  const turn = document.createElement("li");
  turn.className = `turn ${speaker}`;
  turn.innerHTML = `<span class="who">${speaker}</span><p></p>`;
  turn.lastChild.textContent = text;
  find("heard").append(turn);
  turn.scrollIntoView({ block: "nearest" });
}

function say(text, confidence) {
  if (!text.trim() || call.socket.readyState !== WebSocket.OPEN) return;
  window.speechSynthesis?.cancel();
  show("caller", text);
  call.socket.send(JSON.stringify({ type: "say", text, confidence: confidence || undefined }));
}

find("dial").addEventListener("submit", (event) => {
  event.preventDefault();
  const who = caller.value.trim();
  if (who) localStorage.setItem(REMEMBERED, who);
  else localStorage.removeItem(REMEMBERED);
  find("words").innerHTML = '<ol id="heard" class="turns" aria-live="polite" aria-label="The call"></ol>';
  find("after").replaceChildren();
  call = null;
  setState("ringing", "Ringing…");
  if (find("speak")?.checked) speak();
  else type();
});

talk.addEventListener("submit", (event) => {
  event.preventDefault();
  say(line.value);
  line.value = "";
});

find("hangup").addEventListener("click", () => {
  window.speechSynthesis?.cancel();
  call.socket.send(JSON.stringify({ type: "hang_up" }));
});

mute.addEventListener("click", () => {
  const [track] = call.microphone.getAudioTracks();
  track.enabled = !track.enabled;
  mute.setAttribute("aria-pressed", !track.enabled);
  mute.textContent = track.enabled ? "Mute" : "Unmute";
});

document.addEventListener("keydown", ({ key, target }) => {
  if (phone.dataset.state !== "talking" || !call.isSpoken || target.matches("input")) return;
  if (/^[0-9*#]$/.test(key)) call.socket.send(JSON.stringify({ type: "key", digit: key }));
});

function listen() {
  if (!isAgreed) {
    find("where").hidden = false;
    return find("agree").focus();
  }
  window.speechSynthesis?.cancel();
  const recogniser = new Recognition();
  recogniser.lang = navigator.language;
  find("listen").textContent = "Listening…";
  recogniser.onresult = ({ results }) => say(results[0][0].transcript, results[0][0].confidence);
  recogniser.onend = () => { find("listen").textContent = "Speak"; };
  recogniser.start();
}

find("listen").addEventListener("click", listen);
find("agree").addEventListener("click", () => {
  isAgreed = true;
  find("where").hidden = true;
  listen();
});
