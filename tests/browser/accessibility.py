"""What a screen reader and weak eyes need of a page, read from the browser's own tree and from computed colours."""

# Roles of elements that a person operates, and of pictures; each of them has to have a name.
NAMED_ROLES = {"button", "link", "textbox", "combobox", "listbox", "checkbox", "radio", "spinbutton", "slider", "progressbar",
               "meter", "image", "img", "region", "form", "Video", "DisclosureTriangle"}

# Returns every visible text whose contrast with what is behind it is too small: 4.5, or 3 for large text (WCAG 2.1, 1.4.3).
# A background that is a picture counts as black, the colour that the page gives it.
CONTRAST = """
const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
const blend = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
const luminance = (colour) => {
  const [r, g, b] = colour.slice(0, 3).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
function behind(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    layers.push(colour);
    if (colour[3] === 1) break;
  }
  return layers.reverse().reduce((under, top) => blend(top, under), [255, 255, 255, 1]);
}
const found = [];
function check(element, text, style) {
  const under = behind(element);
  const [light, dark] = [luminance(blend(parse(style.color), under)), luminance(under)].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05), size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)}: '${text.trim().slice(0, 60)}' (${style.color})`);
}
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let count = 0;
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
  if (element.closest("script, style, template, :disabled")) continue;
  check(element, texts.currentNode.data, getComputedStyle(element));
  count++;
}
for (const field of document.querySelectorAll("input, textarea, select")) {
  if (!field.checkVisibility()) continue;
  check(field, "the value of " + (field.name || field.id), getComputedStyle(field));
  if (field.placeholder) check(field, field.placeholder, getComputedStyle(field, "::placeholder"));
}
return [count, found];
"""

# Returns what is wrong with the document's structure.
STRUCTURE = """
const wrong = [], ids = new Set();
for (const {id} of document.querySelectorAll("[id]")) ids.has(id) ? wrong.push("two elements have the id " + id) : ids.add(id);
for (const name of ["for", "aria-describedby", "aria-labelledby", "aria-errormessage"]) {
  for (const element of document.querySelectorAll(`[${name}]`)) {
    for (const id of element.getAttribute(name).split(" ")) if (!ids.has(id)) wrong.push(`${name} names ${id}, which is not there`);
  }
}
let level = 0;
for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
  if (!heading.checkVisibility()) continue;
  const own = Number(heading.tagName[1]);
  if (own > level + 1) wrong.push("the heading '" + heading.textContent + "' skips a level");
  level = own;
}
if (document.querySelectorAll("h1").length !== 1) wrong.push("there is not exactly one h1");
if (!document.documentElement.lang) wrong.push("the document has no language");
if (!document.title) wrong.push("the document has no title");
if (document.querySelectorAll("main").length !== 1) wrong.push("there is not exactly one main");
for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) wrong.push("a positive tabindex");
for (const element of document.querySelectorAll("button, a[href], input, select, summary")) {
  if (!element.checkVisibility() || element.classList.contains("unseen")) continue;
  const {width, height} = element.getBoundingClientRect();
  if (width < 24 || height < 24) wrong.push(`'${element.textContent || element.name}' is only ${width} x ${height} pixels large`);
}
return wrong;
"""


def nameless(browser):
    """Returns the role of every element without a name of the tree that screen readers get."""
    nodes = browser.cdp("Accessibility.getFullAXTree")["nodes"]
    missing = []
    for node in nodes:
        role = node.get("role", {}).get("value")
        if not node.get("ignored") and role in NAMED_ROLES and not node.get("name", {}).get("value", "").strip():
            missing.append(role)
    assert len(nodes) > 20, nodes
    return missing


def low_contrast(browser):
    count, found = browser.js(CONTRAST)
    assert count > 5, count
    return found


def problems(browser):
    """Returns all that is wrong, as texts."""
    return [f"{role} without a name" for role in nameless(browser)] + low_contrast(browser) + browser.js(STRUCTURE)
