//! A chart as an SVG file that looks as it does here: what the page's style gives is written into the file.

import { element } from "./element";

/** What a style sheet can set and a drawing needs. */
const PROPERTIES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor",
  "dominant-baseline", "paint-order",
];

/** Adds the button under a figure. `drawing` is the SVG, even if a canvas stands in its place. */
export function addDownload(figure: HTMLElement, drawing: SVGSVGElement): void {
  const name = figure.dataset.name || figure.id || "chart";
  const button = element(
    "button",
    { type: "button", title: "The figure as a file of vector graphics", "aria-label": `Download ${name} as SVG`, click: () => save(standalone(drawing), `${fileName(name)}.svg`) },
    "SVG",
  );
  figure.append(element("div", { class: "bar figure-bar" }, button));
}

/** The text of a file that needs no page around it. */
export function standalone(drawing: SVGSVGElement): string {
  const home = drawing.isConnected ? null : document.body.appendChild(element("div", { class: "unseen" }));
  home?.append(drawing);
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const [from, to] = [drawing.querySelectorAll("*"), copy.querySelectorAll("*")];
  const dress = (source: Element, target: Element) => {
    const style = getComputedStyle(source);
    for (const property of PROPERTIES) {
      const value = style.getPropertyValue(property);
      if (value !== "" && value !== "none 0px") target.setAttribute(property, value);
    }
    target.removeAttribute("style");
  };
  dress(drawing, copy);
  from.forEach((source, i) => {
    const target = to[i];
    if (target !== undefined && !/^(title|desc|style|defs|metadata)$/.test(target.localName)) dress(source, target);
  });
  copy.querySelectorAll("style").forEach((style) => style.remove());
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const box = drawing.viewBox.baseVal;
  if (box !== null && box.width > 0) {
    copy.setAttribute("width", String(box.width));
    copy.setAttribute("height", String(box.height));
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const attributes = { x: box.x, y: box.y, width: box.width, height: box.height };
    for (const [name, value] of Object.entries(attributes)) paper.setAttribute(name, String(value));
    paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
    // After title and description, which must come first.
    const first = Array.from(copy.children).find((child) => !/^(title|desc)$/.test(child.localName));
    copy.insertBefore(paper, first ?? null);
  }
  if (home !== null) {
    drawing.remove();
    home.remove();
  }
  return new XMLSerializer().serializeToString(copy);
}

function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^-+|-+$/g, "") || "chart";
}

function save(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
