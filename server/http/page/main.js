// --- What happens when

form.onsubmit = async (event) => {
  event.preventDefault();
  const button = $("button.main", form);
  if (button.disabled) return;
  button.disabled = true;
  showErrors(null);
  try {
    const video = await create(valuesOf());
    cards.get(video.id).scrollIntoView({block: "nearest"});
    askForQuote();
  } catch (error) {
    showErrors(error);
  }
  button.disabled = false;
};
form.oninput = askForQuote;
$("#prompt").onkeydown = (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
};
$("#access").onsubmit = (event) => {
  event.preventDefault();
  useToken($("#token").value.trim());
  $("#token").value = "";
};
$("#forget").onclick = () => useToken("");
$("#older").onclick = () => showOlder(videos.at(-1).id).catch((error) => say(error.message));
$("#model").onchange = () => {
  $("#loras ul").replaceChildren();
  modelChanged();
};
$("#add-lora").onchange = (event) => {
  const name = event.target.value;
  if (!name) return;
  addLora({name, scale: 1});
  offerLoras();
  loraRows().at(-1).querySelector("input").focus();
};
image.onchange = showImage;
$("#no-image").onclick = () => { setImage(null); image.focus(); };

document.addEventListener("paste", (event) => {
  const file = imageIn(event.clipboardData);
  if (!file) return;
  event.preventDefault();
  setImage(file);
  say("The image was pasted.");
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  $("#drop").classList.add("over");
});
document.addEventListener("dragleave", () => $("#drop").classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  $("#drop").classList.remove("over");
  const file = imageIn(event.dataTransfer);
  if (file) setImage(file);
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  watch();
  poll();
});
addEventListener("online", poll);
$("#forget").hidden = !token;
poll();
