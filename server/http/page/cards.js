// --- Cards: of the videos that run or wait, and of those that have ended.

const cards = new Map();   // by the id of the video
const fresh = new Set();   // the ids of those that ended while the page was open
const nameOf = (video) => video.prompt || "(no prompt)";

const stages = {
  loading: "Loading the model", preparing: "Preparing", encoding_text: "Reading the prompt",
  encoding_image: "Reading the first frame", denoising: "Drawing", decoding: "Decoding the frames",
  encoding_video: "Writing the file",
};

// "about 2 min" and the like, of a number of seconds.
function spanOf(seconds) {
  if (seconds < 90) return Math.max(1, Math.round(seconds)) + "\u00a0s";
  if (seconds < 5400) return Math.round(seconds / 60) + "\u00a0min";
  return Math.round(seconds / 360) / 10 + "\u00a0h";
}

function bytesOf(bytes) {
  const gib = bytes / 2 ** 30;
  return gib < 0.1 ? Math.round(bytes / 2 ** 20) + "\u00a0MiB" : gib.toFixed(gib < 10 ? 1 : 0) + "\u00a0GiB";
}

function factsOf(video) {
  const steps = video.num_inference_steps;
  const facts = [video.size.replace("x", "\u00d7"), secondsOf(video), steps + (steps === 1 ? "\u00a0step" : "\u00a0steps")];
  if (models.length > 1) facts.unshift(video.model);
  if (video.quality !== "exact") facts.push("quality\u00a0" + video.quality);
  for (const lora of video.loras ?? []) facts.push(lora.name);
  if (!isActive(video)) facts.push("seed\u00a0" + video.seed);
  return facts.join(" · ");
}

const secondsOf = (video) => Math.round(100 * video.seconds) / 100 + "\u00a0s";

// What a button does. An error is said in the card.
const told = (card, action) => async (event) => {
  const button = event.currentTarget;
  button.disabled = true;
  showWrong(card, "");
  try {
    await action(event, button);
  } catch (error) {
    showWrong(card, error.message);
  }
  button.disabled = false;
};

function showWrong(card, text) {
  const wrong = $(".wrong", card);
  set(wrong, text);
  wrong.hidden = !text;
}

function newCard(kind, video) {
  // A template's parts are in another document, where a player that came to them would stop.
  const card = document.importNode($("#" + kind).content.firstElementChild, true);
  const prompt = $(".prompt", card);
  prompt.id = "prompt-of-" + video.id;
  prompt.title = video.prompt;
  set(prompt, nameOf(video));
  for (const part of card.querySelectorAll("button, a")) part.setAttribute("aria-describedby", prompt.id);
  card.dataset.kind = kind;
  card.dataset.id = video.id;
  return card;
}

// --- A video that runs or waits

function makeJob(video) {
  const card = newCard("job", video);
  $("progress", card).setAttribute("aria-label", "Progress: " + nameOf(video));
  $(".cancel", card).onclick = told(card, async () => {
    await call("cancel", {id: video.id});
    changes++;
    setVideos(videos.filter((other) => other.id !== video.id));
    $("#queue-title").focus();
    say("Cancelled: " + nameOf(video));
  });
  return card;
}

function updateJob(card, video) {
  const live = lives.get(video.id) ?? {frames: []}, runs = video.status === "in_progress";
  set($(".facts", card), runs ? factsOf(video) : [waitingOf(video, live), factsOf(video)].join(" · "));
  $(".running", card).hidden = !runs;
  if (!runs) return;
  const percent = Math.max(video.progress, live.progress ?? 0);
  $("progress", card).value = percent;
  set($(".stage", card), stageOf(live, percent));
  if (isWatchable(video, live) && !liveScreen()) watchLive(card, video, live);
  showStrip($(".strip", card), live.screen?.shown ? [] : live.frames);
}

function waitingOf(video, live) {
  const ahead = live.queue_position ?? activeOnes().findIndex((other) => other.id === video.id);
  const place = ahead > 0 ? "Waiting, " + ahead + " before it" : "Next";
  return live.eta_seconds === undefined || live.eta_seconds === null ? place
      : place + ", starts in about " + spanOf(live.eta_seconds);
}

function stageOf(live, percent) {
  const parts = [percent + "\u00a0%", stages[live.stage] ?? "Running"];
  if (live.stage === "denoising") parts.push("step " + Math.min(live.step + 1, live.steps) + " of " + live.steps);
  if (live.eta_seconds > 0) parts.push("about " + spanOf(live.eta_seconds) + " left");
  return parts.join(" · ");
}

function showStrip(strip, frames) {
  strip.hidden = !frames.length;
  while (strip.children.length > frames.length) strip.lastChild.remove();
  frames.forEach((url, i) => {
    const picture = strip.children[i] ?? strip.appendChild(new Image());
    if (picture.src !== url) picture.src = url;
    picture.alt = "Preview of the " + (i === 0 ? "first" : i + 1 < frames.length ? "middle" : "last") + " frame";
  });
}

// --- A video that has ended

function makeVideo(video) {
  const card = newCard("video", video), id = video.id;
  const failed = video.status !== "completed";
  const poster = $(".poster", card);
  $(".screen", card).hidden = $(".download", card).hidden = $(".report", card).hidden = failed;
  card.classList.toggle("ended", failed);
  card.classList.toggle("fresh", fresh.has(id));
  set($(".facts", card), factsOf(video));
  set($(".length", card), secondsOf(video));
  if (video.error) showWrong(card, (video.status === "failed" ? "It failed: " : "") + video.error.message);
  const [width, height] = video.size.split("x");
  poster.style.aspectRatio = width + " / " + height;
  poster.setAttribute("aria-label", "Play");
  poster.onclick = told(card, () => play(card, video));
  $(".again", card).onclick = () => fillFrom(video, video.seed);
  $(".vary", card).onclick = told(card, () => vary(video));
  link($(".download", card), card, "content", id, save);
  link($(".report", card), card, "report", id, showReport);
  const screen = lives.get(id)?.screen;
  if (screen?.shown && !failed) keepPlaying(card, video, screen);
  else if (!failed) near.observe(card);
  return card;
}

// A link sends no token, so with one the page fetches what the link names.
function link(element, card, route, id, action) {
  element.href = urlOf(route, id);
  element.onclick = async (event) => {
    if (!token) return;
    event.preventDefault();
    await told(card, () => action(id))({currentTarget: element});
  };
}

function openBlob(blob, name) {
  const url = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

async function save(id) {
  const answer = await call("content", {id});
  const name = /filename="(.+)"/.exec(answer.headers.get("Content-Disposition"))?.[1] ?? id;
  openBlob(await answer.blob(), name);
}

// Opens the report in a tab. What a page opens from memory is held to that page's Content-Security-Policy, which refuses a
// <style>; a style sheet that is made in the tab is allowed.
async function showReport(id) {
  const tab = open("", "_blank");  // at once: after an answer the browser would block it
  if (!tab) throw {message: "The browser does not let the page open a tab."};
  try {
    const [html, style] = partsOf(await (await call("report", {id})).text());
    const url = URL.createObjectURL(new Blob([html], {type: "text/html"}));
    tab.location.replace(url);
    const shown = await new Promise((done) => {
      const check = () => {
        try {
          if (tab.closed) return done(false);
          if (tab.location.href === url && tab.document.readyState === "complete") return done(true);
        } catch {
          return done(false);  // the tab shows another site now
        }
        setTimeout(check, 20);
      };
      check();
    });
    URL.revokeObjectURL(url);
    if (!shown) return;
    const sheet = new tab.CSSStyleSheet();
    sheet.replaceSync(style);
    tab.document.adoptedStyleSheets = [sheet];
  } catch (error) {
    tab.close();
    throw error;
  }
}

// Returns the page without its styles, and the styles.
function partsOf(text) {
  let style = "";
  const html = text.replace(/<style>(.*?)<\/style>/gs, (_, rules) => { style += rules; return ""; });
  return [html, style];
}

function newPlayer(video) {
  const player = document.createElement("video");
  Object.assign(player, {controls: true, playsInline: true, autoplay: true});
  player.setAttribute("aria-label", "Video: " + nameOf(video));
  [player.width, player.height] = video.size.split("x");
  return player;
}

const load = async (route, id) => URL.createObjectURL(await (await call(route, {id})).blob());

// A <video> sends no token, so with one the page fetches the file.
async function playFile(card, player, id) {
  player.onerror = () => showWrong(card, "The browser cannot play this file; download it.");
  player.loop = true;
  player.src = token ? await load("content", id) : urlOf("content", id);
}

// Loads the file and plays it in the place of its poster.
async function play(card, video) {
  const player = newPlayer(video);
  await playFile(card, player, video.id);
  $(".poster", card).replaceWith(player);
  player.focus();
}

// Posters are loaded when they come near the screen.
const near = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting} of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    loadPoster(target);
  }
}, {rootMargin: "300px"});

async function loadPoster(card) {
  const picture = $(".poster img", card);
  try {
    picture.src = await load("thumbnail", card.dataset.id);
    picture.hidden = false;
  } catch {}  // without a picture the card can be played all the same
}

function removeCard(card) {
  near.unobserve(card);
  for (const part of card.querySelectorAll("img, video")) {
    for (const url of [part.src, part.poster]) if (url?.startsWith("blob:")) URL.revokeObjectURL(url);
  }
  card.remove();
}

// --- All of them

function place(container, shown) {
  const wanted = shown.map((video) => cards.get(video.id));
  wanted.forEach((card, i) => {
    if (container.children[i] !== card) container.insertBefore(card, container.children[i] ?? null);
  });
  container.previousElementSibling.hidden = shown.length > 0;
}

function render() {
  const kinds = new Map(videos.map((video) => [video.id, isActive(video) ? "job" : "video"]));
  for (const [id, card] of cards) {
    if (kinds.get(id) === card.dataset.kind) continue;
    noteWhetherItPlays(lives.get(id)?.screen);
    removeCard(card);
    cards.delete(id);
  }
  for (const video of videos) {
    const active = isActive(video);
    if (!cards.has(video.id)) cards.set(video.id, active ? makeJob(video) : makeVideo(video));
    if (active) updateJob(cards.get(video.id), video);
  }
  const active = activeOnes();
  place($("#queue"), active);
  place($("#videos"), videos.filter((video) => !isActive(video)));
  const running = active.find((video) => video.status === "in_progress");
  document.title = (running ? Math.max(running.progress, lives.get(running.id)?.progress ?? 0) + " % · " : "") + "wanserve";
}
