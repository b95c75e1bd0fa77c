// --- What there is: a list that is asked for from time to time, and streams of events of the next videos.

const often = 1000, seldom = 5000;  // ms between two lists
// A browser has six connections to a server; the others load pictures, and send requests.
const mostStreams = 3;

let videos = [];           // the newest first
const lives = new Map();   // by the id of an active video: what its events told of it; `stop` ends the stream, if there is one
let changes = 0;           // by this page; a list that was asked for before one does not count
let timer = 0, polling = false, failures = 0;
let hasEvents = true;      // false if the server is older than its page

const isActive = (video) => video.status === "queued" || video.status === "in_progress";
// Those that run, then those that wait, in the order in which they run.
const activeOnes = () => [...videos.filter((video) => video.status === "in_progress").reverse(),
                          ...videos.filter((video) => video.status === "queued").reverse()];

// Puts a page of the list in the place of what was known of its range.
function take(page, after) {
  const listed = new Set(page.data.map((video) => video.id));
  const begin = after ? videos.findIndex((video) => video.id === after) + 1 : 0;
  const end = videos.findIndex((video) => video.id === page.last_id) + 1;
  const rest = page.has_more ? videos.slice(Math.max(begin, end)).filter((video) => !listed.has(video.id)) : [];
  setVideos([...videos.slice(0, begin).filter((video) => !listed.has(video.id)), ...page.data, ...rest]);
  if (!rest.length) $("#older").hidden = !page.has_more;
}

function setVideos(next) {
  const before = new Map(videos.map((video) => [video.id, video])), waited = activeOnes().length;
  videos = next;
  if (activeOnes().length !== waited) askForQuote();  // the quote tells how long the next one waits
  for (const video of videos) {
    const old = before.get(video.id);
    if (!old || !isActive(old) || isActive(video)) continue;
    fresh.add(video.id);
    say((video.error ? "Failed: " : "Finished: ") + (video.prompt || "a video without a prompt"));
  }
  render();
  watch();
}

const replaceVideo = (video) => setVideos(videos.map((other) => other.id === video.id ? video : other));

async function list() {
  const known = changes;
  const page = await json("list");
  if (known !== changes) return list();
  take(page);
  // The one that runs may be older than the page.
  if (page.has_more && page.data.some(isActive)) await showOlder(page.last_id);
}

const showOlder = async (after) => take(await json("older", {id: after}), after);

async function poll() {
  clearTimeout(timer);
  if (document.hidden || polling) return;
  polling = true;
  const known = changes;
  let wait = hasEvents || !videos.some(isActive) ? seldom : often;
  try {
    await list();
    await loadServer();
    if (failures) say("The server answers again.");
    failures = 0;
    set($("#lost"), "");
    if (!models.length) wait = often;
  } catch (error) {
    if (error.status === undefined) throw error;
    wait = error.status === 401 ? 0 : lose(error);  // 0: until there is a token
  } finally {
    polling = false;
  }
  if (known !== changes) return poll();  // there may be a token now
  if (wait && !document.hidden) timer = setTimeout(poll, wait);
}

// Says that the server does not answer, and returns when it is asked again.
function lose(error) {
  set($("#lost"), error.status ? error.message : "The server does not answer. The page keeps trying.");
  return Math.min(500 * 2 ** failures++, seldom);
}

// Follows the first of the active videos, and stops to follow the others. What was told of them stays while they are
// active, because a stream that goes on repeats nothing.
function watch() {
  const active = activeOnes().map((video) => video.id);
  const wanted = hasEvents && !document.hidden ? active.slice(0, mostStreams) : [];
  for (const [id, live] of lives) {
    if (!wanted.includes(id)) {
      live.stop?.abort();
      live.stop = null;
    }
    if (active.includes(id)) continue;
    if (!live.screen?.player.isConnected) live.screen?.stop.abort();
    lives.delete(id);
  }
  for (const id of wanted) {
    if (!lives.has(id)) lives.set(id, {stop: null, last: "", frames: [], screen: null});
    const live = lives.get(id);
    if (live.stop) continue;
    live.stop = new AbortController();
    follow(id, live, live.stop);
  }
}

async function follow(id, live, stop) {
  try {
    await readEvents(id, live.last, stop.signal, (name, data, event) => {
      if (live.stop !== stop) return;
      if (event) live.last = event;
      takeLive(live, name, data);
    });
  } catch (error) {
    if (stop.signal.aborted || error.status === 401) return;  // another token starts over
    if (error.status === 404 && error.code === "unknown_url") hasEvents = false;
  }
  // The stream has ended: with the video, with the server, or with the connection. The list tells.
  if (live.stop !== stop) return;
  setTimeout(() => {
    if (live.stop !== stop) return;
    live.stop = null;
    watch();
  }, often);
  poll();
}

function takeLive(live, name, data) {
  if (name === "status") {
    changes++;  // a list that was asked for before does not know it
    replaceVideo(data);
  }
  if (name === "progress") Object.assign(live, data);
  if (name === "preview") live.frames = data.frames;
  if (name !== "status") render();
}

function startOver() {
  changes++;
  videos = [];
  models = [];
  setVideos([]);
  poll();
}
