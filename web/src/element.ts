//! Making elements in one expression. It must never take HTML as text: everything shown is a text node.

type Attributes = Record<string, string | number | boolean | EventListener>;

/** An element; attributes that are functions are listeners, `false` ones are left out. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/** Says something to those who cannot see it. */
export function announce(text: string): void {
  let live = document.getElementById("live");
  if (live === null) {
    live = element("div", { id: "live", class: "unseen", "aria-live": "polite", role: "status" });
    document.body.append(live);
  }
  live.textContent = text;
}
