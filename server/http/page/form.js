// --- The form

const form = $("#create"), image = $("#image");
const fieldNames = [...new Set([...form.elements].map((input) => input.name).filter(Boolean)), "width", "height", "loras"];
const images = new Map();  // by the id of a video that this page asked for: its first frame, which the server does not return

function setImage(file) {
  const box = new DataTransfer();
  if (file) box.items.add(file);
  image.files = box.files;
  showImage();
}

function showImage() {
  const preview = $("#preview"), file = image.files[0];
  if (preview.src) URL.revokeObjectURL(preview.src);
  file ? preview.src = URL.createObjectURL(file) : preview.removeAttribute("src");
  $(".picked").hidden = !file;
  image.hidden = $("#image-hint").hidden = Boolean(file);
  askForQuote();
}

const imageIn = (transfer) => [...transfer?.files ?? []].find((one) => one.type.startsWith("image/"));

// --- LoRAs

const chosenModel = () => models.find((model) => model.id === $("#model").value);

// Adds one that a video had, or a new one.
function addLora(lora) {
  const {name} = lora;
  const row = $("#lora").content.firstElementChild.cloneNode(true);
  const input = $("input", row), label = $("label", row);
  row.dataset.name = name;
  input.id = "lora-" + name;
  input.value = lora.scale ?? lora.high_scale ?? lora.low_scale ?? 1;
  // A strength for each expert holds until another one is typed.
  const shown = input.value;
  row.lora = () => input.value === shown ? lora : {name, scale: Number(input.value)};
  label.htmlFor = input.id;
  set(label, name);
  input.title = "Strength";
  input.setAttribute("aria-label", "Strength of " + name);
  $("button", row).setAttribute("aria-label", "Remove " + name);
  $("button", row).onclick = () => {
    row.remove();
    offerLoras();
    $("#add-lora").focus();
    askForQuote();
  };
  $("#loras ul").append(row);
}

const loraRows = () => [...$("#loras ul").children];

// Offers those of the model that are not chosen.
function offerLoras() {
  const chosen = loraRows().map((row) => row.dataset.name);
  const offered = (chosenModel()?.loras ?? []).map((lora) => lora.name).filter((name) => !chosen.includes(name));
  $("#loras").hidden = !offered.length && !chosen.length;
  $("#add-lora").hidden = !offered.length;
  const shown = [...$("#add-lora").options].slice(1).map((option) => option.value);
  if (shown.join("\n") === offered.join("\n") && $("#add-lora").options.length) return;
  $("#add-lora").replaceChildren(new Option("Add a LoRA\u2026", ""), ...offered.map((name) => new Option(name)));
}

// --- Values

// Steps from one preview to the next. A quote tells how many steps there will be.
const intervalOf = (steps) => Math.max(1, Math.round(steps / 8));
let previewInterval = 2;

function valuesOf() {
  const body = new FormData(form);
  if (!image.files.length) body.delete("input_reference");
  for (const name of ["negative_prompt", "guidance_scale", "guidance_scale_2", "flow_shift", "fps", "seed"]) {
    if (!body.get(name)) body.delete(name);
  }
  body.set("preview_interval", previewInterval);
  const loras = loraRows().map((row) => row.lora());
  if (loras.length) body.set("loras", JSON.stringify(loras));
  return body;
}

// What a video was made from, as the form's fields. A video of one frame lasts 0 seconds, which is no length to ask for.
function fieldsOf(video) {
  return {
    prompt: video.prompt, model: video.model, size: video.size, seconds: video.num_frames > 1 ? video.seconds : 0.01,
    fps: video.fps, num_inference_steps: video.num_inference_steps, quality: video.quality, decoder: video.decoder,
    negative_prompt: video.negative_prompt,
    guidance_scale: video.guidance_scale, guidance_scale_2: video.guidance_scale_2, flow_shift: video.flow_shift,
  };
}

// Puts a video's values into the form. Without its seed the server draws another one.
function fillFrom(video, seed = "") {
  showErrors(null);
  setImage(images.get(video.id));
  for (const [name, value] of Object.entries(fieldsOf(video))) form.elements[name].value = value ?? "";
  form.elements.seed.value = seed;
  $("details", form).open ||= Boolean(seed || video.negative_prompt);
  $("#loras ul").replaceChildren();
  for (const lora of video.loras ?? []) addLora(lora);
  offerLoras();
  say(video.input_reference && !images.has(video.id) ? "The form has this video's values. Choose its first frame again."
                                                     : "The form has this video's values.");
  $("#prompt").focus();
  $("#make").scrollIntoView({block: "nearest"});
  askForQuote();
}

// Starts another video with the same values and another seed.
async function vary(video) {
  if (video.input_reference && !images.has(video.id)) return fillFrom(video);
  const body = new FormData();
  for (const [name, value] of Object.entries(fieldsOf(video))) {
    if (value !== undefined && value !== null && value !== "") body.set(name, value);
  }
  if (video.loras?.length) body.set("loras", JSON.stringify(video.loras));
  body.set("preview_interval", intervalOf(video.num_inference_steps));
  if (images.has(video.id)) {
    body.set("input_reference", images.get(video.id));
    body.set("exact_size", "true");  // the size is what the server made of the image's shape
  }
  await create(body);
}

// The request whose answer was lost last, and its key, with which it makes no second video when it is sent again.
let lost = {text: "", key: ""};

function keyOf(body) {
  const text = JSON.stringify([...body].map(([name, value]) => [name, value.lastModified ?? value, value.size ?? 0]));
  if (lost.text !== text) lost = {text, key: crypto.getRandomValues(new Uint32Array(4)).join("-")};
  return lost.key;
}

// Sends the request again if there is no answer; at last the person does, and the same values have the same key.
async function send(body) {
  const headers = {"Idempotency-Key": keyOf(body)};
  for (const wait of [500, 1000, 2000, 0]) {
    try {
      const video = await json("create", {body, headers});
      lost.text = "";
      return video;
    } catch (error) {
      if (error.status) lost.text = "";
      if (error.status || !wait) throw error;
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

async function create(body) {
  if (canPlayLive) body.set("progressive", "true");
  const video = await send(body);
  const file = body.get("input_reference");
  if (file) images.set(video.id, file);
  changes++;
  say("Accepted: " + nameOf(video));
  setVideos([video, ...videos.filter((other) => other.id !== video.id)]);
  return video;
}

// --- Errors: each at its field, in the server's words

// The message names all fields that are wrong: "width: must be ...; seed: is ...".
function errorsOf(error) {
  const names = fieldNames.join("|");
  return error.message.split(new RegExp("; (?=(?:" + names + ")[\\w.\\[\\]]*: )")).map((text) => {
    const [, name, rest] = new RegExp("^(" + names + ")[\\w.\\[\\]]*: (.*)$", "s").exec(text) ?? [];
    return {name: name ?? error.param, text: rest ?? text};
  });
}

function fieldOf(name) {
  if (name === "loras") return $("#loras input");
  const input = form.elements.namedItem(/^(width|height)$/.test(name) ? "size" : name ?? "");
  return input?.disabled ? null : input;
}

// A second error of a field stands in the same paragraph.
function showErrorAt(input, name, text) {
  const label = input.labels[0].textContent.trim().replace(/ \(.*/, "");
  const said = (input.name === name || name === "loras" ? label : "The " + name) + " " + text + ".";
  const id = input.id + "-wrong";
  const wrong = $("#" + id) ?? Object.assign(document.createElement("p"), {className: "wrong at-field", id});
  set(wrong, [wrong.textContent, said].filter(Boolean).join(" "));
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-errormessage", id);
  (input.closest(".pair, #loras") ?? input.parentElement).append(wrong);
}

function showErrors(error, {quiet = false} = {}) {
  for (const text of form.querySelectorAll(".at-field")) text.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-errormessage");
  }
  set($(".submit .wrong"), "");
  for (const {name, text} of error ? errorsOf(error) : []) {
    const input = fieldOf(name);
    if (input) showErrorAt(input, name, text);
    else set($(".submit .wrong"), [$(".submit .wrong").textContent, text].filter(Boolean).join(" "));
  }
  const first = $("[aria-invalid]", form);
  if (!first || quiet) return;
  const details = first.closest("details");
  if (details) details.open = true;
  first.focus();
}

// --- Quote: what the video would cost, asked for when the form has been still for a moment

const still = 300;  // ms
let quoteTimer = 0, quoting = null, standIn = null;

function askForQuote() {
  clearTimeout(quoteTimer);
  quoteTimer = setTimeout(quote, still);
}

// A small file with the image's shape, since only the shape counts for a quote.
async function standInOf(file) {
  if (standIn?.file === file) return standIn.blob;
  const {width, height} = await createImageBitmap(file);
  const canvas = Object.assign(document.createElement("canvas"), {width, height});
  canvas.getContext("2d", {alpha: false});
  const blob = await new Promise((done) => canvas.toBlob(done));
  standIn = {file, blob};
  return blob;
}

async function quote() {
  if (!models.length || $("#create").hidden) return;
  quoting?.abort();
  const mine = quoting = new AbortController();
  try {
    const body = valuesOf();
    if (!body.get("prompt").trim()) body.set("prompt", "a video");
    if (image.files.length) body.set("input_reference", await standInOf(image.files[0]), "shape.png");
    const answer = await json("quote", {body, signal: mine.signal});
    if (mine !== quoting) return;
    showErrors(null);
    showQuote(answer);
  } catch (error) {
    if (mine !== quoting || mine.signal.aborted) return;
    $("#quote").replaceChildren();
    if (error.status === 400) showErrors(error, {quiet: true});
  }
}
