"use strict";
// Every call that the page makes. A test compares these with the server's routes, the names of the form's fields with
// those that it reads, and what is read of `video` and `model` with what it answers.
const routes = {
  models: "GET /v1/models",
  server: "GET /v1/server",
  create: "POST /v1/videos",
  quote: "POST /v1/videos/quote",
  list: "GET /v1/videos?limit=50",
  older: "GET /v1/videos?limit=50&after={id}",
  events: "GET /v1/videos/{id}/events?previews=true",
  content: "GET /v1/videos/{id}/content",
  live: "GET /v1/videos/{id}/content?variant=live",
  thumbnail: "GET /v1/videos/{id}/content?variant=thumbnail",
  report: "GET /v1/videos/{id}/report",
  cancel: "DELETE /v1/videos/{id}",
};
const tokenKey = "wanserve.token";

const $ = (selector, root = document) => root.querySelector(selector);
const set = (element, text) => { if (element.textContent !== text) element.textContent = text; };
let token = sessionStorage.getItem(tokenKey) ?? "";

const urlOf = (route, id) => "." + routes[route].split(" ")[1].replace("{id}", encodeURIComponent(id));

// Throws {status, message, param} as the server says it; status 0 if there is no answer.
async function call(route, {id = "", body, headers = {}, signal} = {}) {
  let answer;
  try {
    answer = await fetch(urlOf(route, id), {
      method: routes[route].split(" ")[0], body, signal, cache: "no-store",
      headers: token ? {...headers, Authorization: "Bearer " + token} : headers,
    });
  } catch {
    throw {status: 0, message: "The server does not answer."};
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => null);
  const error = {message: "The server answers HTTP " + answer.status + ".", ...said?.error, status: answer.status};
  if (error.status === 401) askForToken(error);
  throw error;
}

// A seed has up to 63 bits, more than a number holds here, so it is read as a text. (Within a text its name would not be
// followed by a quote, but by a backslash.)
const parse = (text) => JSON.parse(text.replace(/"seed": ?(\d+)/g, '"seed":"$1"'));
async function json(route, options) {
  const answer = await call(route, options);
  try {
    return parse(await answer.text());
  } catch {
    throw {status: 0, message: "The server's answer broke off."};
  }
}

// Calls take(name, data, id) for each event of the video until the server ends the stream. An EventSource could not send
// the token.
async function readEvents(id, last, signal, take) {
  const answer = await call("events", {id, signal, headers: last ? {"Last-Event-ID": last} : {}});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const blocks = (text + value).replaceAll("\r", "").split("\n\n");
    text = blocks.pop();
    for (const block of blocks) takeEvent(block, take);
  }
}

function takeEvent(block, take) {
  const event = {event: "message", data: "", id: ""};
  for (const line of block.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === "data" && event.data) event.data += "\n" + value;
    else if (name) event[name] = value;
  }
  if (event.data) take(event.event, parse(event.data), event.id);
}

// A short text that is spoken, and shown for a while.
let sayTimer = 0;
function say(text) {
  set($("#said"), text);
  clearTimeout(sayTimer);
  sayTimer = setTimeout(() => set($("#said"), ""), 6000);
}

function askForToken(error) {
  $("#access").hidden = false;
  $("#create").hidden = true;
  set($("#access .wrong"), error.message);
  $("#forget").hidden = !token;
  if (document.activeElement === document.body) $("#token").focus();
}

function useToken(text) {
  token = text;
  token ? sessionStorage.setItem(tokenKey, token) : sessionStorage.removeItem(tokenKey);
  $("#forget").hidden = !token;
  $("#access").hidden = true;
  $("#create").hidden = false;
  startOver();
}
