// Texts from outside become text nodes and attributes here, never markup.

export const at = (id) => document.getElementById(id);

// make returns an element. Attributes that are null or false are left out.
export const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

// draw is make for SVG.
export const draw = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// say changes a text only if it differs, so that a selection in it lives and nothing is read out twice.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// rows makes the children of a parent those of a list, one for each key. An element whose key stays is kept where it is,
// and with it the keyboard's focus.
export function rows(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const keys = new Set(items.map(key));
  for (const [name, child] of old) if (!keys.has(name)) child.remove();
  let next = parent.firstElementChild;
  for (const item of items) {
    let element = old.get(key(item));
    if (!element) {
      element = create(item);
      element.dataset.key = key(item);
    }
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
    update(element, item);
  }
}

// cells says the texts of a row's cells.
export const cells = (row, texts) => texts.forEach((text, i) => say(row.cells[i], text));

// row makes a table row whose first cell is its header, with a class for each other cell.
export function row(...kinds) {
  return make("tr", null, make("th", { scope: "row" }), ...kinds.map((kind) => make("td", { class: kind || null })));
}
