"use strict";
// The forms of the API page: each sends its request with the token that was typed above.
const token = document.getElementById("token");

function makeAddress(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const field of form.querySelectorAll("input[data-in]")) {
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    else if (field.dataset.in === "query" && field.value !== "") query.append(field.name, field.value);
  }
  return query.size ? `${path}?${query}` : path;
}

async function describe(answer) {
  const kind = answer.headers.get("content-type") || "";
  if (!kind.includes("json")) return `${(await answer.blob()).size} bytes of ${kind || "nothing"}`;
  return JSON.stringify(await answer.json(), null, 2);
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-path]");
  if (!form) return;
  event.preventDefault();
  const shown = form.querySelector("output");
  const body = form.querySelector("textarea");
  const headers = { Authorization: `Bearer ${token.value.trim()}` };
  if (body) headers["Content-Type"] = "application/json";
  const address = makeAddress(form);
  const options = { method: form.dataset.method, headers, credentials: "omit" };
  if (body) options.body = body.value;
  try {
    const answer = await fetch(address, options);
    shown.textContent = `${options.method} ${address}\n${answer.status}\n${await describe(answer)}`;
  } catch {
    shown.textContent = `${options.method} ${address}\nNo answer: the server cannot be reached.`;
  }
});
