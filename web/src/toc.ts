//! The navigation: goes to a section without losing setting and zoom, and marks the section that is in sight.

import type { View } from "./view";

export function addNavigation(view: View): void {
  const nav = document.getElementById("toc");
  if (nav === null) return;
  const links = new Map<string, HTMLAnchorElement>();
  for (const link of nav.querySelectorAll<HTMLAnchorElement>("a[href^='#']")) links.set(link.hash.slice(1), link);
  nav.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const target = link === null ? null : document.getElementById(link.hash.slice(1));
    if (link === null || target === null) return;
    event.preventDefault();
    view.goTo(target.id);
    arrive(target);
  });
  let section = "";
  const follow = () => {
    const target = view.section === section ? null : document.getElementById(view.section);
    section = view.section;
    if (target === null) return;
    unfold(target);
    target.scrollIntoView();
  };
  follow();
  view.onChange(follow);
  const seen = new Set<string>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) seen[entry.isIntersecting ? "add" : "delete"](entry.target.id);
      const current = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) {
        if (id === current) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-60px 0px -60% 0px" },
  );
  for (const id of links.keys()) {
    const target = document.getElementById(id);
    if (target !== null) observer.observe(target);
  }
}

/** Opens what a section is folded into. */
function unfold(target: HTMLElement): void {
  const fold = target.querySelector<HTMLDetailsElement>(":scope > details.fold");
  if (fold !== null) fold.open = true;
}

function arrive(target: HTMLElement): void {
  unfold(target);
  target.scrollIntoView();
  const head = target.querySelector<HTMLElement>("h1, h2") ?? target;
  head.tabIndex = -1;
  head.focus({ preventScroll: true });
}
