"use strict";
// A phone in the page: text over a socket; listening and speaking by the browser where it can.
const phone = document.getElementById("phone");
const heard = document.getElementById("heard");
const talk = document.getElementById("talk");
const line = document.getElementById("line");
const status = document.getElementById("status");
const dial = document.getElementById("dial");
const listen = document.getElementById("listen");
const Recognition = window.SpeechRecognition || window.webkitSpeechRecognition;
let socket = null;
let callId = null;

function show(speaker, text) {
  const turn = document.createElement("li");
  turn.className = `turn ${speaker}`;
  const who = document.createElement("span");
  who.className = "who";
  who.textContent = speaker;
  const words = document.createElement("p");
  words.textContent = text;
  turn.append(who, words);
  heard.append(turn);
  turn.scrollIntoView({ block: "nearest" });
}

function setState(state, words) {
  phone.dataset.state = state;
  status.textContent = words;
  talk.hidden = state !== "talking";
  dial.querySelector("button").disabled = state === "ringing" || state === "talking";
  if (state === "talking") line.focus();
}

function speak(text) {
  if (document.getElementById("aloud").checked && "speechSynthesis" in window) {
    speechSynthesis.speak(new SpeechSynthesisUtterance(text));
  }
}

function quieten() {
  if ("speechSynthesis" in window) speechSynthesis.cancel();
}

function say(text, confidence) {
  if (!text.trim() || !socket || socket.readyState !== WebSocket.OPEN) return;
  quieten();
  show("caller", text);
  socket.send(JSON.stringify({ type: "say", text, ...(confidence ? { confidence } : {}) }));
}

function follow(id) {
  const after = document.getElementById("after");
  after.innerHTML = "";
  const link = document.createElement("p");
  const anchor = document.createElement("a");
  anchor.href = `/calls/${id}`;
  anchor.textContent = "Open the call";
  link.append(anchor);
  const steps = document.createElement("div");
  after.append(steps, link);
  htmx.ajax("GET", `/calls/${id}/steps`, { target: steps, swap: "innerHTML" });
}

dial.addEventListener("submit", (event) => {
  event.preventDefault();
  heard.replaceChildren();
  document.getElementById("after").replaceChildren();
  setState("ringing", "Ringing…");
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const caller = encodeURIComponent(document.getElementById("caller").value.trim());
  socket = new WebSocket(`${scheme}://${location.host}/browser/call?caller=${caller}`);
  socket.addEventListener("message", (message) => {
    const event = JSON.parse(message.data);
    if (event.type === "agent") {
      callId = event.call;
      setState("talking", "");
      show("agent", event.text);
      speak(event.text);
    } else if (event.type === "ended") {
      setState("idle", `The call has ended: ${event.reason.replaceAll("_", " ")}.`);
      follow(event.call);
    } else if (event.type === "refused") {
      setState("idle", `The call was refused: ${event.reason}`);
    }
  });
  socket.addEventListener("close", () => {
    if (phone.dataset.state !== "idle") {
      setState("idle", "The line was cut.");
      if (callId) follow(callId);
    }
  });
});

talk.addEventListener("submit", (event) => {
  event.preventDefault();
  say(line.value);
  line.value = "";
});

document.getElementById("hangup").addEventListener("click", () => {
  quieten();
  socket.send(JSON.stringify({ type: "hang_up" }));
});

if (Recognition) {
  listen.hidden = false;
  listen.addEventListener("click", () => {
    quieten();
    const recogniser = new Recognition();
    recogniser.lang = navigator.language;
    listen.textContent = "Listening…";
    recogniser.onresult = (event) => say(event.results[0][0].transcript, event.results[0][0].confidence);
    recogniser.onend = () => { listen.textContent = "Speak"; };
    recogniser.start();
  });
}
