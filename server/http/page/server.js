// --- The server's models and cards, and the quote, which is about them

let models = [];

async function loadServer() {
  let server = null;
  try {
    server = await json("server");
    models = server.models;
  } catch (error) {
    if (error.status !== 404) throw error;  // a server that is older than its page
    models = (await json("models")).data;
  }
  offerModels();
  showServer(server);
}

function offerModels() {
  const select = $("#model"), ids = models.map((model) => model.id);
  $("#model-field").hidden = models.length === 1;
  if ([...select.options].map((option) => option.value).join() === (ids.join() || "none")) return;
  const chosen = select.value;
  select.replaceChildren(...ids.map((id) => new Option(id)));
  if (!models.length) select.append(new Option("No model is ready yet", "none"));
  if (ids.includes(chosen)) select.value = chosen;
  offerLoras();
  askForQuote();
}

// --- Quote

function showQuote(quote) {
  if (quote.steps) previewInterval = intervalOf(quote.steps);
  const line = $("#quote"), facts = [];
  const p50 = quote.seconds?.p50, wait = quote.queue?.seconds?.p50;
  if (p50 !== undefined) {
    facts.push(Object.assign(document.createElement("strong"), {textContent: "About " + spanOf(p50)}));
    if (spanOf(quote.seconds.p90) !== spanOf(p50)) facts.push("at most " + spanOf(quote.seconds.p90) + " in nine of ten cases");
  }
  if (quote.queue?.jobs_ahead) {
    facts.push(quote.queue.jobs_ahead + " before it" + (wait ? ", starts in about " + spanOf(wait) : ""));
  }
  if (quote.device_memory_bytes) facts.push(bytesOf(quote.device_memory_bytes) + " on the card");
  if (quote.host_memory_bytes) facts.push(bytesOf(quote.host_memory_bytes) + " of host memory");
  line.replaceChildren(...facts.flatMap((fact, i) => i ? [" · ", fact] : [fact]));
}

function showServer(server) {
  $("#server").hidden = !server;
}
