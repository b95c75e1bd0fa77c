// --- A video while it is made, whose fragments the page fetches: a <video> sends no token.

const canPlayLive = Boolean(window.MediaSource?.isTypeSupported('video/mp4; codecs="avc1.640028"'));
// The encoder holds back as many frames, so a shorter video comes whole at its end.
const heldBack = 44;
const isWatchable = (video, live) => canPlayLive && !live.unplayable && video.progressive && video.num_frames > heldBack &&
  ["decoding", "encoding_video"].includes(live.stage);
// One at a time, because a browser has six connections to a server.
const liveScreen = () => [...lives.values()].find((live) => live.screen)?.screen;
const once = (target, name) => new Promise((done) => target.addEventListener(name, done, {once: true}));

// Shows the video in its card as soon as there are frames. If its attempt ends, the next one is shown.
async function watchLive(card, video, live) {
  const screen = {player: newPlayer(video), stop: new AbortController(), shown: false, plays: true, broken: null};
  live.screen = screen;
  screen.player.muted = true;  // without that a browser does not let it begin by itself
  try {
    await feed(screen, video.id, () => {
      screen.shown = true;
      $(".strip", card).before(screen.player);
      render();
    });
  } catch (error) {
    screen.stop.abort();  // else the rest of the stream would hold a connection
    // The browser refuses the stream, and would refuse it each time. A stream that breaks off is a TypeError.
    live.unplayable = error instanceof DOMException;
    if (screen.broken) return screen.broken();
    screen.player.remove();
    screen.shown = false;
    setTimeout(() => { if (live.screen === screen) live.screen = null; }, often);
  }
}

// Plays the stream, and calls begun() when its first part has come.
async function feed({player, stop}, id, begun) {
  const answer = await call("live", {id, signal: stop.signal});
  const type = answer.headers.get("Content-Type");
  if (!type.includes("codecs")) return stop.abort();  // the job has ended, and this is its file
  const source = new MediaSource();
  player.src = URL.createObjectURL(source);
  await once(source, "sourceopen");
  URL.revokeObjectURL(player.src);
  const buffer = source.addSourceBuffer(type);
  const reader = answer.body.getReader();
  for (let first = true;; first = false) {
    const {value, done} = await reader.read();
    if (done) break;
    buffer.appendBuffer(value);
    await once(buffer, "updateend");
    if (first) begun();
  }
  source.endOfStream();
}

// A player that is moved to another card is paused.
function noteWhetherItPlays(screen) {
  if (screen) screen.plays = !screen.player.paused;
}

// Lets the player go on in the card of the video that has been made. The file takes over where the video begins again, so
// that nothing jumps; or at once, if the stream broke. Until the file is loaded, the poster shows the first frame.
async function keepPlaying(card, video, screen) {
  const {player} = screen;
  $(".poster", card).replaceWith(player);
  if (screen.plays) player.play().catch(() => {});  // another pause may come between
  const takeOver = told(card, async () => {
    player.onended = screen.broken = null;
    const at = player.ended ? 0 : player.currentTime;
    player.autoplay = player.ended || !player.paused;
    await playFile(card, player, video.id);
    player.currentTime = at;
  });
  player.onended = takeOver;
  screen.broken = () => takeOver({currentTarget: player});
  if (player.ended) takeOver({currentTarget: player});  // it told so before this card was there
  player.poster = await load("thumbnail", video.id).catch(() => "");
}
