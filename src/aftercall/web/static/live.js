// What changes by itself in a page, by attributes that mean what they mean in htmx:
// hx-get fetches a part of a page (hx-trigger: load, toggle, every 2s, sse:NAME), sse-connect opens a
// stream of events, and sse-swap puts in what an event of that name brings. hx-swap says where.
const MAX_RETRY_MS = 60000;

function swap(element, html) {
  const [way, scroll] = (element.getAttribute("hx-swap") || "innerHTML").split(" ");
  const parsed = new DOMParser().parseFromString(html, "text/html");
  const selector = element.getAttribute("hx-target");
  const target = selector ? document.querySelector(selector) : element;
  const fresh = selector ? [parsed.querySelector(selector)] : [...parsed.body.childNodes];
  if (way === "beforeend") {
    // after a reconnection, a turn may come a second time
    target.append(...fresh.filter((node) => !node.id || !document.getElementById(node.id)));
  } else if (way === "outerHTML") target.replaceWith(...fresh);
  else target.replaceChildren(...fresh);
  if (scroll === "scroll:bottom") target.scrollTop = target.scrollHeight;
  document.dispatchEvent(new CustomEvent("swapped", { detail: element }));
}

async function load(element) {
  try {
    const answer = await fetch(element.getAttribute("hx-get"));
    if (answer.ok && !answer.redirected && element.isConnected) swap(element, await answer.text());
  } catch {
    // the server is away; what is polled is asked for again
  }
}

function startLoading(element) {
  const trigger = element.getAttribute("hx-trigger") || "";
  const every = /^every ([\d.]+)s$/.exec(trigger);
  if (trigger === "load") load(element);
  if (trigger === "toggle") element.closest("details").addEventListener("toggle", () => load(element), { once: true });
  if (every) {
    const timer = setInterval(() => {
      if (element.isConnected) load(element);
      else clearInterval(timer);
    }, every[1] * 1000);
  }
}

function connect(element, retry = 1000) {
  const stream = new EventSource(element.getAttribute("sse-connect"));
  element.stream = stream;
  element.names = new Set();
  stream.onopen = () => { retry = 1000; };
  stream.onerror = () => {
    if (stream.readyState !== EventSource.CLOSED) return;  // the browser connects again
    setTimeout(() => {
      if (element.isConnected) connect(element, Math.min(retry * 2, MAX_RETRY_MS));
    }, retry);
  };
  listen(element);
}

// Names may come later: the list of live calls brings one for each call.
function listen(element) {
  for (const one of element.querySelectorAll("[sse-swap], [hx-trigger^='sse:']")) {
    const name = one.getAttribute("sse-swap") || one.getAttribute("hx-trigger").slice(4);
    if (element.names.has(name)) continue;
    element.names.add(name);
    element.stream.addEventListener(name, (event) => {
      if (!element.isConnected) {
        element.stream.close();
        return;
      }
      for (const place of element.querySelectorAll(`[sse-swap="${name}"]`)) swap(place, event.data);
      for (const place of element.querySelectorAll(`[hx-trigger="sse:${name}"]`)) load(place);
    });
  }
}

const started = new WeakSet();

function start() {
  for (const element of document.querySelectorAll("[hx-get]")) {
    if (started.has(element)) continue;
    started.add(element);
    startLoading(element);
  }
  for (const element of document.querySelectorAll("[sse-connect]")) {
    if (element.stream) listen(element);
    else connect(element);
  }
}

start();
new MutationObserver(start).observe(document.body, { childList: true, subtree: true });
