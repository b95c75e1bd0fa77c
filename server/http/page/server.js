// --- The server's models and cards, and the quote, which is about them

let models = [];

async function loadServer() {
  let server = null;
  try {
    server = await json("server");
    models = server.models.filter((model) => model.state === "ready");
  } catch (error) {
    if (error.status !== 404) throw error;  // a server that is older than its page
    models = (await json("models")).data;
  }
  offerModels();
  $("#server").hidden = !server;
  if (server) showServer(server);
}

function offerModels() {
  const select = $("#model"), ids = models.map((model) => model.id);
  $("#model-field").hidden = models.length === 1;
  if ([...select.options].map((option) => option.value).join() !== (ids.join() || "none")) {
    const chosen = select.value;
    select.replaceChildren(...ids.map((id) => new Option(id)));
    if (!models.length) select.append(new Option("No model is ready yet", "none"));
    if (ids.includes(chosen)) select.value = chosen;
    modelChanged();
  }
  offerLoras();
}

// Shows what the model takes for fields that are left empty.
function modelChanged() {
  const defaults = chosenModel()?.defaults ?? {};
  for (const name of ["size", "num_inference_steps", "guidance_scale", "guidance_scale_2", "flow_shift", "fps"]) {
    form.elements[name].placeholder = defaults[name] ?? "";
  }
  form.elements.seconds.placeholder = defaults.fps ? Math.round(100 * (defaults.num_frames - 1) / defaults.fps) / 100 : "";
  form.elements.prompt.placeholder = chosenModel()?.id === "demo" ? "A green star orbits the centre over a black background."
                                                                  : "A lighthouse at sunset, waves break on the rocks.";
  const low = form.elements.guidance_scale_2;
  low.disabled = low.parentElement.hidden = !defaults.guidance_scale_2;
  const decoders = chosenModel()?.decoders ?? [], decoder = form.elements.decoder;
  decoder.replaceChildren(new Option("default", ""), ...decoders.map((name) => new Option(name)));
  decoder.disabled = decoder.parentElement.hidden = decoders.length < 2;
  const [width, height] = (defaults.size ?? "1280x704").split("x");
  const sizes = new Set([width + "x" + height, height + "x" + width, "832x480", "480x832", width + "x" + width]);
  $("#sizes").replaceChildren(...[...sizes].map((size) => new Option(size)));
  $("#drop").hidden = chosenModel()?.accepts_image === false;
  if ($("#drop").hidden && image.files.length) setImage(null);
  offerLoras();
  askForQuote();
}

// --- The foot of the page

function showServer(server) {
  const reasons = server.not_serving.map((one) => one.message);
  if (server.draining) reasons.push("The server takes no new videos, because it is being drained.");
  set($("#state"), reasons.join(" "));
  const facts = server.models.map(factOfModel);
  for (const group of server.groups) facts.push(...group.devices.map((device) => factOfDevice(device, group)));
  showFacts($("#facts"), facts);
  const libraries = Object.entries(server.libraries).map(([name, version]) => name + " " + version);
  set($("#versions"), ["wanserve " + server.version, ...libraries].join(" · "));
}

function factOfModel(model) {
  const facts = [model.state];
  if (model.family && model.family !== model.id) facts.push(model.family);
  if (model.precision) facts.push(model.precision);
  if (model.defaults) facts.push(model.defaults.size.replace("x", "\u00d7") + ", " + model.defaults.num_inference_steps + " steps");
  if (model.loras.length) facts.push(model.loras.length + (model.loras.length === 1 ? " LoRA" : " LoRAs"));
  return {name: "Model " + model.id, facts};
}

function factOfDevice(device, group) {
  const facts = [group.in_service ? (group.video ? "makes a video" : "idle") : "out of service"];
  const {memory_used_bytes: used, memory_total_bytes: total} = device;
  if (total) facts.push(bytesOf(used) + " of " + bytesOf(total) + " used");
  return {name: device.name ? device.device + ", " + device.name : device.device, facts, used, total};
}

function showFacts(container, facts) {
  while (container.children.length > facts.length) container.lastElementChild.remove();
  facts.forEach(({name, facts: parts, used, total}, i) => {
    const row = container.children[i] ?? container.appendChild($("#fact").content.firstElementChild.cloneNode(true));
    const meter = $("meter", row);
    set($("strong", row), name);
    set($(".hint", row), parts.join(" · "));
    meter.hidden = !total;
    if (!total) return;
    meter.max = total;
    meter.value = used;
    meter.setAttribute("aria-label", "Memory of " + name);
  });
}

// --- Quote

function showQuote(quote) {
  if (quote.steps) previewInterval = intervalOf(quote.steps);
  const line = $("#quote"), facts = [];
  const p50 = quote.seconds?.p50, wait = quote.queue.seconds?.p50;
  if (p50) {
    facts.push(Object.assign(document.createElement("strong"), {textContent: "About " + spanOf(p50)}));
    if (spanOf(quote.seconds.p90) !== spanOf(p50)) facts.push("at most " + spanOf(quote.seconds.p90) + " in nine of ten cases");
  } else {
    facts.push("The first video will tell how long one takes");
  }
  if (quote.queue.jobs_ahead) {
    facts.push(quote.queue.jobs_ahead + " before it" + (wait ? ", starts in about " + spanOf(wait) : ""));
  }
  if (quote.device_memory_bytes) facts.push(bytesOf(quote.device_memory_bytes) + " of device memory");
  if (quote.host_memory_bytes) facts.push(bytesOf(quote.host_memory_bytes) + " of host memory");
  line.replaceChildren(...facts.flatMap((fact, i) => i ? [" · ", fact] : [fact]));
}
