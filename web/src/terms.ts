//! Keeps the descriptions of the glossary's words inside the window; page.css shows them on hover and focus.

/** Room that is kept to the window's edge, CSS pixels. */
const EDGE_PX = 12;

export function placeTerms(): void {
  const glossary = document.getElementById("glossary");
  if (glossary === null) return;
  let tip: HTMLElement | null = null;
  const hide = () => {
    tip?.remove();
    tip = null;
  };
  const show = (event: Event) => {
    const term = event.target instanceof Element ? event.target.closest<HTMLElement>(".term") : null;
    if (term === null) return;
    const described = document.getElementById(term.getAttribute("aria-describedby") ?? "");
    const words = described?.textContent || term.dataset.def;
    if (!words) return;
    hide();
    tip = document.createElement("div");
    tip.className = "term-tip";
    tip.setAttribute("aria-hidden", "true");
    tip.textContent = words;
    document.body.append(tip);
    const at = term.getBoundingClientRect();
    const left = Math.min(at.left, document.documentElement.clientWidth - tip.offsetWidth - EDGE_PX);
    const below = at.bottom + 6;
    const top = below + tip.offsetHeight > innerHeight - EDGE_PX ? at.top - tip.offsetHeight - 6 : below;
    tip.style.left = `${Math.max(EDGE_PX, left)}px`;
    tip.style.top = `${Math.max(EDGE_PX, top)}px`;
  };
  document.documentElement.classList.add("placed-terms");
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("pointerout", hide);
  document.addEventListener("focusout", hide);
  addEventListener("scroll", hide, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}
